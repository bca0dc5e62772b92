/*
 * Copyright (c) 2026 The PlanB for Open vSwitch Authors.
 *
 * Licensed under the Apache License, Version 2.0 (the "License");
 * you may not use this file except in compliance with the License.
 * You may obtain a copy of the License at:
 *
 *     http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software
 * distributed under the License is distributed on an "AS IS" BASIS,
 * WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
 * See the License for the specific language governing permissions and
 * limitations under the License.
 */

/* Tests the userspace datapath's IPv6 route tables without ofproto.
 *
 * Usage: ovstest test-planb-dpif COMMAND, where COMMAND is one of
 *
 *     packets     Sends packets through a dummy datapath.
 *     batches     Looks up batches with mixed contents.
 *     flow-put    Modifies one of two overlapping flows.
 *     threads     Looks up, counts, changes and reads in several threads. */

#include <config.h>
#undef NDEBUG
#include "dpif-planb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <unistd.h>

#include "dp-packet.h"
#include "dpif.h"
#include "dpif-netdev-planb.h"
#include "dummy.h"
#include "flow.h"
#include "netdev.h"
#include "odp-util.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/ofpbuf.h"
#include "openvswitch/vlog.h"
#include "ovs-rcu.h"
#include "ovs-thread.h"
#include "ovstest.h"
#include "packets.h"
#include "planb.h"
#include "smap.h"
#include "stream.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define TABLE_ID 3
#define MISS 9                  /* Route index of addresses without route. */

/* A datapath with ports 1, 2 and 3.  Port 1 receives what is sent to
 * 'stream'. */
static struct dpif *dpif;
static struct netdev *netdevs[4];
static struct stream *stream;
static char *socket_name;

/* What upcall_cb() has seen, and the actions that it gives. */
static int n_upcalls;
static struct flow last_upcall;
static const char *upcall_actions[2]; /* For recirc_id 0 and others. */

static void
check(int error, int expected, const char *what)
{
    if (error != expected) {
        ovs_fatal(0, "%s: error %d, expected %d", what, error, expected);
    }
}
#define CHECK(CALL, EXPECTED) check(CALL, EXPECTED, #CALL)

static int
upcall_cb(const struct dp_packet *packet OVS_UNUSED, const struct flow *flow,
          ovs_u128 *ufid OVS_UNUSED, unsigned int pmd_id OVS_UNUSED,
          enum dpif_upcall_type type OVS_UNUSED,
          const struct nlattr *userdata OVS_UNUSED, struct ofpbuf *actions,
          struct flow_wildcards *wc, struct ofpbuf *put_actions OVS_UNUSED,
          void *aux OVS_UNUSED)
{
    n_upcalls++;
    last_upcall = *flow;
    CHECK(odp_actions_from_string(upcall_actions[flow->recirc_id != 0], NULL,
                                  actions), 0);
    WC_MASK_FIELD(wc, in_port);
    WC_MASK_FIELD(wc, recirc_id);
    WC_MASK_FIELD(wc, packet_type);
    WC_MASK_FIELD(wc, dl_type);
    WC_MASK_FIELD_MASK(wc, nw_frag, FLOW_NW_FRAG_MASK);
    WC_MASK_FIELD(wc, planb);
    return 0;
}

static void
start_datapath(void)
{
    struct smap args = SMAP_INITIALIZER(&args);

    vlog_set_levels(NULL, VLF_CONSOLE, VLL_WARN);
    dummy_enable(NULL);
    CHECK(dpif_create_and_open("planb", "dummy", &dpif), 0);
    dpif_register_upcall_cb(dpif, upcall_cb, NULL);
    dpif_enable_upcall(dpif);
    upcall_actions[0] = "count_route,2";
    upcall_actions[1] = "2";

    socket_name = abs_file_name(NULL, "planb-p1.sock");
    smap_add_nocopy(&args, xstrdup("pstream"),
                    xasprintf("punix:%s", socket_name));
    for (int i = 1; i < ARRAY_SIZE(netdevs); i++) {
        struct netdev_saved_flags *sf;
        odp_port_t port_no = ODPP_NONE;
        char name[] = { 'p', '0' + i, '\0' };

        CHECK(netdev_open(name, "dummy", &netdevs[i]), 0);
        if (i == 1) {
            CHECK(netdev_set_config(netdevs[i], &args, NULL), 0);
        }
        CHECK(netdev_turn_flags_on(netdevs[i], NETDEV_UP, &sf), 0);
        CHECK(dpif_port_add(dpif, netdevs[i], &port_no), 0);
        ovs_assert(odp_to_u32(port_no) == i);
    }
    smap_destroy(&args);
}

static void
stop_datapath(void)
{
    stream_close(stream);
    for (int i = 1; i < ARRAY_SIZE(netdevs); i++) {
        netdev_close(netdevs[i]);
    }
    dpif_disable_upcall(dpif);
    CHECK(dpif_delete(dpif), 0);
    dpif_close(dpif);
    unlink(socket_name);
    free(socket_name);
}

/* Builds a tree that maps each address "2001:db8:I::/48" to route index
 * 'routes[I]', and installs it with 'generation'. */
static void
set_table(uint64_t generation, const uint32_t routes[], size_t n)
{
    struct planb_prefix *prefixes = xcalloc(n, sizeof *prefixes);
    struct planb *tree;

    for (size_t i = 0; i < n; i++) {
        struct planb_prefix *p = &prefixes[i];

        inet_pton(AF_INET6, "2001:db8::", p->addr);
        p->addr[4] = i >> 8;
        p->addr[5] = i;
        p->plen = 48;
        p->priority = 48;
        p->value = routes[i];
    }
    CHECK(planb_build(prefixes, n, MISS, &tree), 0);
    CHECK(dpif_planb_set_table(dpif, TABLE_ID, tree, generation, MISS), 0);
    free(prefixes);
}

/* Appends a packet to 'dst' to 'packet', which must be empty. */
static void
compose(struct dp_packet *packet, const char *dst)
{
    struct flow flow;

    memset(&flow, 0, sizeof flow);
    flow.dl_type = htons(ETH_TYPE_IPV6);
    inet_pton(AF_INET6, "2001:db8:ffff::1", &flow.ipv6_src);
    inet_pton(AF_INET6, dst, &flow.ipv6_dst);
    flow.nw_proto = IPPROTO_UDP;
    flow.nw_ttl = 64;
    flow_compose(packet, &flow, NULL, 64);
}

/* Has port 1 receive a packet to 'dst'.  Returns the packet's size. */
static size_t
receive(const char *dst)
{
    struct dp_packet packet;
    size_t size, sent = 0;
    uint8_t buf[512];

    dp_packet_init(&packet, 200);
    compose(&packet, dst);
    size = dp_packet_size(&packet);
    buf[0] = size >> 8;
    buf[1] = size;
    memcpy(buf + 2, dp_packet_data(&packet), size);
    dp_packet_uninit(&packet);

    if (!stream) {
        char *name = xasprintf("unix:%s", socket_name);

        CHECK(stream_open(name, &stream, DSCP_DEFAULT), 0);
        free(name);
    }
    for (int i = 0; i < 10; i++) {
        stream_run(stream);
        if (!stream_connect(stream) && sent < size + 2) {
            int n = stream_send(stream, buf + sent, size + 2 - sent);

            sent += n > 0 ? n : 0;
        }
        netdev_run();
        dpif_run(dpif);
    }
    ovs_assert(sent == size + 2);
    return size;
}

/* Has 'dpif' execute 'actions' on a packet to 'dst' from port 1. */
static void
execute(const char *dst, const char *actions_s)
{
    struct dpif_execute execute;
    struct ofpbuf actions;
    struct dp_packet packet;
    struct flow flow;

    dp_packet_init(&packet, 200);
    compose(&packet, dst);
    flow_extract(&packet, &flow);
    flow.in_port.odp_port = u32_to_odp(1);
    flow.planb = 7;
    pkt_metadata_from_flow(&packet.md, &flow);

    ofpbuf_init(&actions, 0);
    CHECK(odp_actions_from_string(actions_s, NULL, &actions), 0);
    memset(&execute, 0, sizeof execute);
    execute.actions = actions.data;
    execute.actions_len = actions.size;
    execute.packet = &packet;
    execute.flow = &flow;
    CHECK(dpif_execute(dpif, &execute), 0);
    ofpbuf_uninit(&actions);
    dp_packet_uninit(&packet);
}

static int
put_flow(const char *key_s, const char *actions_s, const ovs_u128 *ufid,
         enum dpif_flow_put_flags flags)
{
    struct ofpbuf key, mask, actions;
    int error;

    ofpbuf_init(&key, 0);
    ofpbuf_init(&mask, 0);
    ofpbuf_init(&actions, 0);
    CHECK(odp_flow_from_string(key_s, NULL, &key, &mask, NULL), 0);
    CHECK(odp_actions_from_string(actions_s, NULL, &actions), 0);
    error = dpif_flow_put(dpif, flags, key.data, key.size, mask.data,
                          mask.size, actions.data, actions.size, ufid,
                          PMD_ID_NULL, NULL);
    ofpbuf_uninit(&key);
    ofpbuf_uninit(&mask);
    ofpbuf_uninit(&actions);
    return error;
}

/* Prints all flows, sorted. */
static void
dump_flows(void)
{
    struct dpif_flow_dump *dump = dpif_flow_dump_create(dpif, false, NULL);
    struct dpif_flow_dump_thread *thread
        = dpif_flow_dump_thread_create(dump);
    struct svec lines = SVEC_EMPTY_INITIALIZER;
    struct dpif_flow f;
    const char *line;
    size_t i;

    while (dpif_flow_dump_next(thread, &f, 1)) {
        struct ds ds = DS_EMPTY_INITIALIZER;

        odp_flow_format(f.key, f.key_len, f.mask, f.mask_len, NULL, &ds,
                        false);
        ds_put_cstr(&ds, ", actions:");
        format_odp_actions(&ds, f.actions, f.actions_len, NULL);
        ds_put_format(&ds, ", packets:%"PRIu64, f.stats.n_packets);
        svec_add_nocopy(&lines, ds_steal_cstr(&ds));
    }
    dpif_flow_dump_thread_destroy(thread);
    dpif_flow_dump_destroy(dump);

    svec_sort(&lines);
    SVEC_FOR_EACH (i, line, &lines) {
        printf("%s\n", line);
    }
    svec_destroy(&lines);
}

/* Prints what has been counted for route 'index', in packets of 'size'. */
static void
show_route(uint32_t index, size_t size)
{
    struct dpif_flow_stats stats;

    CHECK(dpif_planb_get_route_stats(dpif, index, &stats), 0);
    ovs_assert(stats.n_bytes == stats.n_packets * size);
    ovs_assert(!stats.n_packets == !stats.used);
    printf("route %"PRIu32": %"PRIu64" packets\n", index, stats.n_packets);
}

static void
show_table(void)
{
    struct dpif_planb_pmd_stats *stats;
    size_t n;

    CHECK(dpif_planb_get_table_stats(dpif, TABLE_ID, &stats, &n), 0);
    for (size_t i = 0; i < n; i++) {
        printf("core %u: generation %"PRIu64", %"PRIu64" lookups, "
               "%"PRIu64" hits\n", stats[i].core_id, stats[i].generation,
               stats[i].n_lookups, stats[i].n_hits);
    }
    free(stats);
}

/* Has port 1 receive a packet to 'dst' and prints what it led to. */
static size_t
try(const char *dst)
{
    int old_upcalls = n_upcalls;
    size_t size = receive(dst);

    printf("%s: ", dst);
    if (n_upcalls == old_upcalls) {
        printf("no upcall\n");
    } else {
        printf("recirc_id %"PRIu32", planb %"PRIu32"\n",
               last_upcall.recirc_id, last_upcall.planb);
    }
    return size;
}

static void
test_packets(void)
{
    static const struct dpif_planb_route classes[] = {
        { 0, 7 }, { 1, 7 }, { 2, 8 }, { MISS, 4000000000 }, { 100000, 8 },
    };
    struct dpif_planb_features features;
    struct dpif_planb_pmd_stats *stats;
    struct dpif_planb_route too_large;
    size_t size, n;

    start_datapath();
    CHECK(dpif_planb_get_features(dpif, &features), 0);

    /* Errors. */
    CHECK(dpif_planb_bind(dpif, u32_to_odp(1), 0, TABLE_ID), ENOENT);
    CHECK(dpif_planb_unbind(dpif, u32_to_odp(1), 0), ENOENT);
    CHECK(dpif_planb_del_table(dpif, TABLE_ID), ENOENT);
    CHECK(dpif_planb_get_table_stats(dpif, TABLE_ID, &stats, &n), ENOENT);
    too_large.index = features.max_routes;
    too_large.class_id = 1;
    CHECK(dpif_planb_add_routes(dpif, &too_large, 1), ENOSPC);

    printf("# not bound\n");
    try("2001:db8:0::1");

    CHECK(dpif_planb_add_routes(dpif, classes, ARRAY_SIZE(classes)), 0);
    set_table(1, (uint32_t[]) { 0, 1, 2, 100000, 200000 }, 5);
    CHECK(dpif_planb_bind(dpif, u32_to_odp(99), 0, TABLE_ID), ENODEV);
    CHECK(dpif_planb_bind(dpif, u32_to_odp(1), 0, TABLE_ID), 0);

    printf("# bound\n");
    try("2001:db8:0::1");
    try("2001:db8:0::2");
    try("2001:db8:1::1");
    try("2001:db8:2::1");
    try("2001:db8:3::1");
    try("2001:db9::1");
    try("2001:db8:4::1");       /* Not added, no class. */
    size = try("::");
    for (int i = 0; i < ARRAY_SIZE(classes); i++) {
        show_route(classes[i].index, size);
    }
    show_table();
    dump_flows();

    printf("# the tree changes\n");
    set_table(2, (uint32_t[]) { 2, 1, 0 }, 3);
    try("2001:db8:0::1");
    try("2001:db8:2::1");
    show_route(0, size);
    show_route(2, size);
    show_table();

    printf("# recirculation\n");
    execute("2001:db8:0::1", "count_route,recirc(5)");
    printf("recirc_id %"PRIu32", planb %"PRIu32"\n",
           last_upcall.recirc_id, last_upcall.planb);
    show_route(2, size);
    CHECK(dpif_planb_bind(dpif, u32_to_odp(1), 6, TABLE_ID), 0);
    upcall_actions[1] = "count_route,2";
    execute("2001:db8:0::1", "recirc(6)");
    printf("recirc_id %"PRIu32", planb %"PRIu32"\n",
           last_upcall.recirc_id, last_upcall.planb);
    show_route(2, size);

    printf("# no class is carried over\n");
    dpif_flow_flush(dpif);
    upcall_actions[0] = "count_route,recirc(5),recirc(6)";
    try("2001:db8:2::1");
    dump_flows();

    printf("# bindings go with their port\n");
    CHECK(dpif_port_del(dpif, u32_to_odp(1), false), 0);
    CHECK(dpif_planb_unbind(dpif, u32_to_odp(1), 0), ENOENT);
    CHECK(dpif_planb_unbind(dpif, u32_to_odp(1), 6), ENOENT);
    CHECK(dpif_planb_bind(dpif, u32_to_odp(1), 0, TABLE_ID), ENODEV);

    printf("# bindings go with their table\n");
    CHECK(dpif_planb_bind(dpif, u32_to_odp(2), 0, TABLE_ID), 0);
    CHECK(dpif_planb_bind(dpif, u32_to_odp(2), 0, TABLE_ID), EEXIST);
    CHECK(dpif_planb_bind(dpif, u32_to_odp(3), 1, TABLE_ID), 0);
    CHECK(dpif_planb_unbind(dpif, u32_to_odp(3), 1), 0);
    CHECK(dpif_planb_del_table(dpif, TABLE_ID), 0);
    CHECK(dpif_planb_unbind(dpif, u32_to_odp(2), 0), ENOENT);
    CHECK(dpif_planb_del_table(dpif, TABLE_ID), ENOENT);
    show_route(0, size);

    /* Leave something for the datapath to free. */
    set_table(3, (uint32_t[]) { 0 }, 1);
    CHECK(dpif_planb_bind(dpif, u32_to_odp(2), 0, TABLE_ID), 0);
    stop_datapath();
}

static void
test_flow_put(void)
{
    static const struct dpif_planb_route classes[] = { { 0, 7 }, { MISS, 8 } };
    const char *base = "recirc_id(0),in_port(1),packet_type(ns=0,id=0),"
                       "eth(),eth_type(0x86dd),";
    ovs_u128 a = { { 1, 2, 3, 4 } }, b = { { 5, 6, 7, 8 } };
    ovs_u128 c = { { 9, 10, 11, 12 } };
    char *wide, *narrow;

    start_datapath();
    narrow = xasprintf("%sipv6(dst=2001:db8:1::/ffff:ffff:ffff::,frag=no)",
                       base);
    wide = xasprintf("%sipv6(dst=2001:db8:2::/ffff:ffff::,frag=no)", base);

    /* The key of the first flow matches both. */
    CHECK(put_flow(narrow, "2", &a, DPIF_FP_CREATE), 0);
    CHECK(put_flow(wide, "2", &b, DPIF_FP_CREATE), 0);
    CHECK(put_flow(narrow, "3", &a, DPIF_FP_MODIFY), 0);
    dump_flows();
    CHECK(put_flow(wide, "1", &b, DPIF_FP_MODIFY), 0);
    CHECK(put_flow(narrow, "2", &a, DPIF_FP_MODIFY), 0);
    dump_flows();
    CHECK(put_flow(narrow, "2", &c, DPIF_FP_MODIFY), ENOENT);
    CHECK(put_flow(narrow, "2", &a, DPIF_FP_CREATE), EEXIST);
    CHECK(put_flow(narrow, "2", &c, DPIF_FP_CREATE), EEXIST);
    free(wide);
    free(narrow);

    /* A flow that does not look at the class may be a "simple match". */
    printf("# simple match\n");
    dpif_flow_flush(dpif);
    wide = xasprintf("%sipv6(frag=no)", base);
    narrow = xasprintf("planb(7),%sipv6(frag=no)", base);
    CHECK(dpif_planb_add_routes(dpif, classes, ARRAY_SIZE(classes)), 0);
    set_table(1, (uint32_t[]) { 0 }, 1);
    CHECK(dpif_planb_bind(dpif, u32_to_odp(1), 0, TABLE_ID), 0);
    CHECK(put_flow(wide, "2", &a, DPIF_FP_CREATE), 0);
    try("2001:db8::1");
    dpif_flow_flush(dpif);
    CHECK(put_flow(narrow, "count_route,2", &b, DPIF_FP_CREATE), 0);
    try("2001:db8::1");
    try("2001:db8:1::1");
    dump_flows();
    free(wide);
    free(narrow);
    stop_datapath();
}

/* Initializes 'batch' with packets whose addresses, and so route indexes, are
 * their positions, except for each fourth, which is ARP. */
static void
init_batch(struct dp_packet_batch *batch)
{
    dp_packet_batch_init(batch);
    for (int i = 0; i < NETDEV_MAX_BURST; i++) {
        struct dp_packet *packet = dp_packet_new(0);

        if (i % 4 == 3) {
            compose_arp(packet, ARP_OP_REQUEST, eth_addr_zero, eth_addr_zero,
                        true, htonl(1), htonl(2));
        } else {
            char *dst = xasprintf("2001:db8:%x::1", i);

            compose(packet, dst);
            free(dst);
        }
        dp_packet_batch_add(batch, packet);
    }
}

static void
add_routes(size_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct dpif_planb_route route = { i, 1000 + i };

        CHECK(dpif_planb_add_routes(dpif, &route, 1), 0);
    }
}

static void
test_batches(void)
{
    struct dp_planb_result results[NETDEV_MAX_BURST];
    uint32_t routes[NETDEV_MAX_BURST];
    struct dp_packet_batch batch;
    struct dp_planb_pmd *pmd;
    struct dp_packet *packet;

    start_datapath();
    init_batch(&batch);
    for (int i = 0; i < NETDEV_MAX_BURST; i++) {
        routes[i] = i;
    }
    add_routes(NETDEV_MAX_BURST);
    set_table(1, routes, NETDEV_MAX_BURST);
    pmd = dp_planb_pmd_create(dpif_netdev_get_planb(dpif), 5, 0);

    /* Packets with metadata that is not valid. */
    ovs_assert(!dp_planb_lookup(pmd, &batch, false, u32_to_odp(1), results));
    CHECK(dpif_planb_bind(dpif, u32_to_odp(1), 0, TABLE_ID), 0);
    ovs_assert(!dp_planb_lookup(pmd, &batch, false, u32_to_odp(2), results));
    ovs_assert(dp_planb_lookup(pmd, &batch, false, u32_to_odp(1), results));
    DP_PACKET_BATCH_FOR_EACH (i, packet, &batch) {
        ovs_assert(!packet->md.planb);
        ovs_assert(results[i].class_id == (i % 4 == 3 ? 0 : 1000 + i));
        pkt_metadata_init(&packet->md, u32_to_odp(1));
        dp_planb_result_apply(&results[i], &packet->md);
    }
    dp_planb_count(pmd, &batch);
    dp_planb_count(pmd, &batch);

    /* Recirculated packets, of different ports and recirculation IDs. */
    CHECK(dpif_planb_bind(dpif, u32_to_odp(2), 1, TABLE_ID), 0);
    DP_PACKET_BATCH_FOR_EACH (i, packet, &batch) {
        pkt_metadata_init(&packet->md, u32_to_odp(1 + i / 10));
        packet->md.recirc_id = i / 5 % 2;
    }
    ovs_assert(!dp_planb_lookup(pmd, &batch, true, 0, NULL));
    DP_PACKET_BATCH_FOR_EACH (i, packet, &batch) {
        bool bound = i < 5 || (i >= 15 && i < 20);

        ovs_assert(packet->md.planb == (bound && i % 4 != 3 ? 1000 + i : 0));
        ovs_assert(!packet->md.planb || packet->md.planb_route == i);
    }
    dp_planb_count(pmd, &batch);
    show_table();

    /* The counts outlive the thread. */
    for (int i = 0; i < 2; i++) {
        DP_PACKET_BATCH_FOR_EACH (j, packet, &batch) {
            struct dpif_flow_stats stats;
            int n = j % 4 == 3 ? 0 : packet->md.planb ? 3 : 2;

            CHECK(dpif_planb_get_route_stats(dpif, j, &stats), 0);
            ovs_assert(stats.n_packets == n);
            ovs_assert(stats.n_bytes == n * dp_packet_size(packet));
        }
        if (!i) {
            dp_planb_pmd_destroy(pmd);
        }
    }
    dp_packet_delete_batch(&batch, true);
    stop_datapath();
}

/* Test with threads. */

#define N_THREADS 3
#define N_BATCHES 3000

static atomic_bool threads_stop;

/* Looks up and counts batches, with several successive 'struct
 * dp_planb_pmd's. */
static void *
counter_thread(void *aux)
{
    uint32_t *n = aux;
    struct dp_packet_batch batch;

    init_batch(&batch);
    for (int i = 0; i < 3; i++) {
        struct dp_planb_pmd *pmd
            = dp_planb_pmd_create(dpif_netdev_get_planb(dpif), i, 0);

        for (int j = 0; j < N_BATCHES; j++) {
            struct dp_planb_result results[NETDEV_MAX_BURST];
            struct dp_packet *packet;

            if (dp_planb_lookup(pmd, &batch, false, u32_to_odp(1), results)) {
                DP_PACKET_BATCH_FOR_EACH (k, packet, &batch) {
                    pkt_metadata_init(&packet->md, u32_to_odp(1));
                    dp_planb_result_apply(&results[k], &packet->md);
                    if (packet->md.planb) {
                        uint32_t route = packet->md.planb_route;

                        ovs_assert(packet->md.planb == 1000 + route);
                        n[route]++;
                    }
                }
                dp_planb_count(pmd, &batch);
            }
            ovsrcu_quiesce();
        }
        dp_planb_pmd_destroy(pmd);
    }
    dp_packet_delete_batch(&batch, true);
    return NULL;
}

/* Changes trees and bindings. */
static void *
writer_thread(void *aux)
{
    uint32_t *n_routes = aux;
    uint64_t generation = 1;
    bool stop;

    do {
        uint32_t routes[NETDEV_MAX_BURST];

        generation++;
        for (int i = 0; i < NETDEV_MAX_BURST; i++) {
            routes[i] = (i * 131 + generation * 17) % *n_routes;
        }
        set_table(generation, routes, NETDEV_MAX_BURST);
        if (generation % 8 == 0) {
            dpif_planb_unbind(dpif, u32_to_odp(1), 0);
        }
        if (generation % 64 == 0) {
            dpif_planb_del_table(dpif, TABLE_ID);
            set_table(generation, routes, NETDEV_MAX_BURST);
        }
        dpif_planb_bind(dpif, u32_to_odp(1), 0, TABLE_ID);
        ovsrcu_quiesce();
        atomic_read_relaxed(&threads_stop, &stop);
    } while (!stop);
    return NULL;
}

static void
test_threads(void)
{
    /* More than one chunk. */
    uint32_t n_routes = 2 * DP_PLANB_CHUNK_SIZE + 10;
    uint64_t *last = xcalloc(n_routes, sizeof *last);
    uint32_t *n[N_THREADS];
    pthread_t threads[N_THREADS];
    pthread_t writer;
    uint64_t total = 0;

    start_datapath();
    add_routes(n_routes);
    set_table(1, (uint32_t[]) { 0 }, 1);
    atomic_init(&threads_stop, false);
    writer = ovs_thread_create("writer", writer_thread, &n_routes);
    for (int i = 0; i < N_THREADS; i++) {
        n[i] = xcalloc(n_routes, sizeof **n);
        threads[i] = ovs_thread_create("counter", counter_thread, n[i]);
    }

    /* Counts never go backwards. */
    for (int i = 0; i < 20; i++) {
        for (uint32_t j = 0; j < n_routes; j++) {
            struct dpif_flow_stats stats;

            CHECK(dpif_planb_get_route_stats(dpif, j, &stats), 0);
            ovs_assert(stats.n_packets >= last[j]);
            last[j] = stats.n_packets;
        }
        CHECK(dpif_planb_sweep(dpif, time_msec()), 0);
        ovsrcu_quiesce();
    }

    for (int i = 0; i < N_THREADS; i++) {
        xpthread_join(threads[i], NULL);
    }
    atomic_store_relaxed(&threads_stop, true);
    xpthread_join(writer, NULL);

    /* Each packet was counted once. */
    for (uint32_t j = 0; j < n_routes; j++) {
        struct dpif_flow_stats stats;
        uint64_t sum = 0;

        for (int i = 0; i < N_THREADS; i++) {
            sum += n[i][j];
        }
        CHECK(dpif_planb_get_route_stats(dpif, j, &stats), 0);
        ovs_assert(stats.n_packets == sum);
        total += sum;
    }
    ovs_assert(total);
    for (int i = 0; i < N_THREADS; i++) {
        free(n[i]);
    }
    free(last);
    stop_datapath();
}

static void
test_planb_dpif_main(int argc, char *argv[])
{
    static const struct test {
        const char *name;
        void (*run)(void);
    } tests[] = {
        { "packets", test_packets },
        { "batches", test_batches },
        { "flow-put", test_flow_put },
        { "threads", test_threads },
    };

    set_program_name(argv[0]);
    for (int i = 0; argc == 2 && i < ARRAY_SIZE(tests); i++) {
        if (!strcmp(argv[1], tests[i].name)) {
            tests[i].run();
            return;
        }
    }
    ovs_fatal(0, "usage: %s packets | batches | flow-put | threads", argv[0]);
}

OVSTEST_REGISTER("test-planb-dpif", test_planb_dpif_main);
