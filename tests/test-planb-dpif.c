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
 *     counts      Counts many packets of a route, and reads meanwhile.
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
#include "coverage.h"
#include "dpif.h"
#include "dpif-netdev-planb.h"
#include "dummy.h"
#include "flow.h"
#include "netdev.h"
#include "odp-execute.h"
#include "odp-util.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/ofpbuf.h"
#include "openvswitch/vlog.h"
#include "ovs-rcu.h"
#include "ovs-thread.h"
#include "ovstest.h"
#include "packets.h"
#include "pcap-file.h"
#include "planb.h"
#include "random.h"
#include "smap.h"
#include "stream.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define TABLE_ID 3
#define MISS 32                 /* Route index of addresses without route. */

/* A datapath with ports 1, 2 and 3.  Port 1 receives what is sent to
 * 'stream'. */
static struct dpif *dpif;
static struct netdev *netdevs[4];
static struct stream *stream;
static char *socket_name;

/* What upcall_cb() has seen, and the actions that it gives. */
static int n_upcalls;
static int upcall_error;        /* ENOSPC to add no flow. */
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
    return upcall_error;
}

static void
start_datapath(void)
{
    struct smap args = SMAP_INITIALIZER(&args);

    vlog_set_levels(NULL, VLF_CONSOLE, VLL_WARN);
    odp_execute_init();
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
        } else {
            struct smap tx = SMAP_INITIALIZER(&tx);

            smap_add_format(&tx, "tx_pcap", "planb-p%d.pcap", i);
            unlink(smap_get(&tx, "tx_pcap"));
            CHECK(netdev_set_config(netdevs[i], &tx, NULL), 0);
            smap_destroy(&tx);
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

/* Has port 1 receive the 'size' bytes of 'data'. */
static void
receive_data(const void *data, size_t size)
{
    size_t sent = 0;
    uint8_t buf[512];

    ovs_assert(size + 2 <= sizeof buf);
    buf[0] = size >> 8;
    buf[1] = size;
    memcpy(buf + 2, data, size);

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
}

/* Has port 1 receive a packet to 'dst'.  Returns the packet's size. */
static size_t
receive(const char *dst)
{
    struct dp_packet packet;
    size_t size;

    dp_packet_init(&packet, 200);
    compose(&packet, dst);
    size = dp_packet_size(&packet);
    receive_data(dp_packet_data(&packet), size);
    dp_packet_uninit(&packet);
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
        { 0, 7 }, { 1, 7 }, { 16, 8 }, { MISS, 4000000000 }, { 100000, 8 },
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
    set_table(1, (uint32_t[]) { 0, 1, 16, 100000, 200000 }, 5);
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
    set_table(2, (uint32_t[]) { 16, 1, 0 }, 3);
    try("2001:db8:0::1");
    try("2001:db8:2::1");
    show_route(0, size);
    show_route(16, size);
    show_table();

    printf("# recirculation\n");
    execute("2001:db8:0::1", "count_route,recirc(5)");
    printf("recirc_id %"PRIu32", planb %"PRIu32"\n",
           last_upcall.recirc_id, last_upcall.planb);
    show_route(16, size);
    CHECK(dpif_planb_bind(dpif, u32_to_odp(1), 6, TABLE_ID), 0);
    upcall_actions[1] = "count_route,2";
    execute("2001:db8:0::1", "recirc(6)");
    printf("recirc_id %"PRIu32", planb %"PRIu32"\n",
           last_upcall.recirc_id, last_upcall.planb);
    show_route(16, size);

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

/* Returns the class that add_routes() gives to route 'index'. */
static uint32_t
class_of(uint32_t index)
{
    return 1000 + index / DPIF_PLANB_BLOCK_SIZE;
}

static void
add_routes(size_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct dpif_planb_route route = { i, class_of(i) };

        CHECK(dpif_planb_add_routes(dpif, &route, 1), 0);
    }
}

/* Returns the route index for the address in position 'i' of init_batch() when
 * there is a route for all but the last of them. */
static uint32_t
batch_route(int i)
{
    return i == NETDEV_MAX_BURST - 2 ? MISS : i;
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
    add_routes(MISS + 1);
    set_table(1, routes, NETDEV_MAX_BURST - 2);
    pmd = dp_planb_pmd_create(dpif_netdev_get_planb(dpif), 5, 0);

    /* Packets with metadata that is not valid. */
    ovs_assert(!dp_planb_lookup(pmd, &batch, false, u32_to_odp(1), results));
    CHECK(dpif_planb_bind(dpif, u32_to_odp(1), 0, TABLE_ID), 0);
    ovs_assert(!dp_planb_lookup(pmd, &batch, false, u32_to_odp(2), results));
    ovs_assert(dp_planb_lookup(pmd, &batch, false, u32_to_odp(1), results));
    DP_PACKET_BATCH_FOR_EACH (i, packet, &batch) {
        ovs_assert(!packet->md.planb);
        ovs_assert(results[i].class_id == (i % 4 == 3 ? 0
                                              : class_of(batch_route(i))));
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

        ovs_assert(packet->md.planb == (bound && i % 4 != 3
                                        ? class_of(batch_route(i)) : 0));
        ovs_assert(!packet->md.planb
                   || packet->md.planb_route == batch_route(i));
    }
    dp_planb_count(pmd, &batch);
    show_table();

    /* The counts outlive the thread. */
    for (int i = 0; i < 2; i++) {
        DP_PACKET_BATCH_FOR_EACH (j, packet, &batch) {
            struct dpif_flow_stats stats;
            int n = j % 4 == 3 ? 0 : packet->md.planb ? 3 : 2;

            CHECK(dpif_planb_get_route_stats(dpif, batch_route(j),
                                             &stats), 0);
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

/* Compiled flows.
 *
 * A random flow is made from a random packet, and this packet and one that
 * differs a bit are received, once so that the second one may find the flow
 * compiled, and once so that it cannot.  What is sent and counted must be the
 * same. */

/* A packet.  Each member has few values so that two packets often have the
 * same. */
struct random_packet {
    uint8_t eth_dst, eth_src, vlan, tclass, label, src, dst, proto;
    uint8_t hlimit, ports, tcp_flags, length, padding;
};

static uint8_t
random_proto(void)
{
    static const uint8_t protos[] = {
        IPPROTO_UDP, IPPROTO_TCP, IPPROTO_TCP, IPPROTO_ICMPV6, IPPROTO_NONE,
        IPPROTO_HOPOPTS, IPPROTO_FRAGMENT, IPPROTO_DSTOPTS, IPPROTO_AH,
        IPPROTO_ROUTING, 200
    };
    return protos[random_range(ARRAY_SIZE(protos))];
}

/* Gives one member of 'p', or all of them if 'member' is negative, a random
 * value. */
static void
randomize(struct random_packet *p, int member)
{
    static const uint8_t hlimits[] = { 0, 1, 64, 255 };

#define MEMBER(N, NAME, VALUE)                  \
    if (member < 0 || member == N) {            \
        p->NAME = VALUE;                        \
    }
    MEMBER(0, eth_dst, random_range(2));
    MEMBER(1, eth_src, random_range(2));
    MEMBER(2, vlan, !random_range(8));
    MEMBER(3, tclass, random_range(3) * 0x15);
    MEMBER(4, label, random_range(2));
    MEMBER(5, src, random_range(3));
    MEMBER(6, dst, random_range(4));
    MEMBER(7, proto, random_proto());
    MEMBER(8, hlimit, hlimits[random_range(ARRAY_SIZE(hlimits))]);
    MEMBER(9, ports, random_range(2));
    MEMBER(10, tcp_flags, random_range(64));
    MEMBER(11, length, random_range(8));
    MEMBER(12, padding, random_range(2) * random_range(64));
#undef MEMBER
}

/* Stores 'p' in 'data' and returns its size. */
static size_t
put_random_packet(const struct random_packet *p, uint8_t data[256])
{
    uint8_t *ip6, *l4;
    size_t l4_len = 24;

    memset(data, 0, 256);
    data[5] = p->eth_dst;
    data[11] = p->eth_src;
    if (p->vlan) {
        memcpy(&data[12], "\x81\x00\x00\x07", 4);
        ip6 = &data[18];
    } else {
        ip6 = &data[14];
    }
    ip6[-2] = ETH_TYPE_IPV6 >> 8;
    ip6[-1] = ETH_TYPE_IPV6 & 0xff;
    ip6[0] = 0x60 | p->tclass >> 4;
    ip6[1] = p->tclass << 4;
    ip6[3] = p->label;
    ip6[6] = p->proto;
    ip6[7] = p->hlimit;
    memcpy(&ip6[8], "\x20\x01\x0d\xb8\xff\xff", 6);
    ip6[23] = p->src;
    memcpy(&ip6[24], "\x20\x01\x0d\xb8\x00", 5);
    ip6[29] = p->dst;

    /* Good for UDP, and TCP with a header of four bytes more, and extension
     * headers of 8 bytes, of which the fragment header is one for the first or
     * a later fragment. */
    l4 = &ip6[40];
    l4[0] = p->proto == IPPROTO_TCP ? 0 : IPPROTO_UDP;
    l4[1] = p->ports;
    l4[3] = p->ports * (p->proto == IPPROTO_FRAGMENT ? 8 : 1);
    l4[12] = 6 << 4;
    l4[13] = p->tcp_flags;

    /* Some lengths are too short for a TCP header, one is more than there
     * is. */
    if (p->length < 2) {
        l4_len = p->length * 20;
    } else if (p->length == 2) {
        ip6[4] = 1;
    }
    ip6[5] = l4_len;
    return l4 + l4_len - data + p->padding;
}

/* Checks that dp_planb_get_headers() takes 'data' for a packet without other
 * headers only if miniflow_extract() does. */
static void
check_headers(const uint8_t *data, size_t size, uint32_t seed)
{
    struct dp_packet packet;
    const uint8_t *headers;
    struct flow flow;

    dp_packet_use_const(&packet, data, size);
    headers = dp_planb_get_headers(&packet);
    flow_extract(&packet, &flow);
    if (headers
        && (flow.dl_type != htons(ETH_TYPE_IPV6)
            || flow.vlans[0].tci
            || flow.nw_frag
            || flow.nw_proto != headers[DP_PLANB_IP6_OFS(ip6_nxt)]
            || flow.nw_ttl != headers[DP_PLANB_IP6_OFS(ip6_hlim)]
            || memcmp(&flow.ipv6_dst, &headers[DP_PLANB_IP6_OFS(ip6_dst)],
                      sizeof flow.ipv6_dst))) {
        ovs_fatal(0, "seed %"PRIu32": packet has more headers", seed);
    }
}

/* Makes a flow that matches 'data', whose class is 'class_id', and has random
 * actions.  Returns false if that is not an IPv6 packet. */
static bool
random_flow(const uint8_t *data, size_t size, char **key_s, char **actions_s)
{
    struct ds actions = DS_EMPTY_INITIALIZER;
    struct ds key_ds = DS_EMPTY_INITIALIZER;
    struct odp_flow_key_parms parms = { .support.max_vlan_headers = 1 };
    struct flow_wildcards wc;
    struct dp_packet packet;
    struct ofpbuf key, mask;
    struct flow flow;

    dp_packet_use_const(&packet, data, size);
    flow_extract(&packet, &flow);
    if (flow.dl_type != htons(ETH_TYPE_IPV6)) {
        return false;
    }
    flow.in_port.odp_port = u32_to_odp(1);
    flow.planb = class_of(ipv6_addr_is_set(&flow.ipv6_dst)
                          ? flow.ipv6_dst.s6_addr[5] * DPIF_PLANB_BLOCK_SIZE
                          : MISS);

    flow_wildcards_init_catchall(&wc);
    WC_MASK_FIELD(&wc, in_port);
    WC_MASK_FIELD(&wc, recirc_id);
    WC_MASK_FIELD(&wc, packet_type);
    WC_MASK_FIELD(&wc, dl_type);
    WC_MASK_FIELD(&wc, planb);
    WC_MASK_FIELD_MASK(&wc, nw_frag, FLOW_NW_FRAG_MASK);
    WC_MASK_FIELD_MASK(&wc, vlans[0].tci, htons(VLAN_VID_MASK | VLAN_CFI));
#define MAYBE(ONE_IN, FIELD)                    \
    if (!random_range(ONE_IN)) {                \
        WC_MASK_FIELD(&wc, FIELD);              \
    }
    MAYBE(2, dl_dst);
    MAYBE(3, dl_src);
    MAYBE(2, nw_ttl);
    MAYBE(4, nw_proto);
    MAYBE(4, ipv6_label);
    MAYBE(6, ipv6_src);
    MAYBE(6, ipv6_dst);
    if (flow.nw_proto == IPPROTO_TCP && flow.tp_src && !random_range(3)) {
        WC_MASK_FIELD(&wc, nw_proto);
        MAYBE(2, tp_src);
        MAYBE(2, tcp_flags);
    }
    MAYBE(10, skb_priority);
    MAYBE(10, ct_state);
#undef MAYBE
    if (!random_range(4)) {
        wc.masks.nw_tos = random_range(2) ? IP_DSCP_MASK : UINT8_MAX;
    }

    if (random_range(8)) {
        ds_put_cstr(&actions, "count_route,");
    }
    if (!random_range(2)) {
        ds_put_cstr(&actions, "set(eth(dst=02:00:00:00:00:77)),");
    }
    if (!random_range(4)) {
        ds_put_cstr(&actions, "set(eth(src=02:00:00:00:00:88"
                    "/00:ff:00:00:00:ff)),");
    }
    if (!random_range(4)) {
        ds_put_cstr(&actions, "set(eth(src=02:00:00:00:00:66,"
                    "dst=02:00:00:00:00:55)),");
    }
    if (flow.nw_proto && random_range(4)) {
        /* Not for packets that cannot be parsed. */
        WC_MASK_FIELD(&wc, nw_proto);
        if (!random_range(2)) {
            ds_put_cstr(&actions, "set(ipv6(hlimit=63)),");
        }
        if (!random_range(4)) {
            ds_put_cstr(&actions, "set(ipv6(tclass=0x2c/0xfc)),");
        }
        if (!random_range(4)) {
            ds_put_cstr(&actions, "set(ipv6(label=0x12345/0xfff0f)),");
        }
        if (!random_range(8)) {
            ds_put_cstr(&actions, "set(ipv6(src=2001:db8:eeee::2)),");
        }
    }
    if (!random_range(8)) {
        ds_put_cstr(&actions, "push_vlan(vid=9,pcp=0),");
    }
    switch (random_range(16)) {
    case 0:
        ds_clear(&actions);
        ds_put_cstr(&actions, "drop");
        break;
    case 1:
        /* Dropped, too, in the end. */
        ds_put_cstr(&actions, "count_route");
        break;
    case 2:
        ds_put_cstr(&actions, "2,set(eth(dst=02:00:00:00:00:99)),3");
        break;
    case 3:
        ds_put_cstr(&actions, "3,pop_vlan");
        break;
    default:
        ds_put_cstr(&actions, "2");
        break;
    }

    ofpbuf_init(&key, 0);
    ofpbuf_init(&mask, 0);
    parms.flow = &flow;
    parms.mask = &wc.masks;
    parms.support.recirc = true;
    parms.support.ct_state = true;
    odp_flow_key_from_flow(&parms, &key);
    parms.key_buf = &key;
    odp_flow_key_from_mask(&parms, &mask);
    odp_flow_format(key.data, key.size, mask.data, mask.size, NULL, &key_ds,
                    true);
    ofpbuf_uninit(&key);
    ofpbuf_uninit(&mask);

    *key_s = ds_steal_cstr(&key_ds);
    *actions_s = ds_steal_cstr(&actions);
    return true;
}

/* A case of test_flows(), by 'compiled'. */
struct flow_case {
    uint32_t seed;
    int n_sent[2][ARRAY_SIZE(netdevs)];
};

/* Checks that what was sent to port 'port_no' was the same whether the flow
 * was compiled or not. */
static void
compare_sent(const struct flow_case cases[], size_t n, int port_no)
{
    char *name = xasprintf("planb-p%d.pcap", port_no);
    struct pcap_file *file = ovs_pcap_open(name, "rb");

    ovs_assert(file);
    for (size_t i = 0; i < n; i++) {
        struct ds sent[2] = { DS_EMPTY_INITIALIZER, DS_EMPTY_INITIALIZER };

        for (int compiled = 0; compiled < 2; compiled++) {
            for (int k = 0; k < cases[i].n_sent[compiled][port_no]; k++) {
                struct dp_packet *packet;

                CHECK(ovs_pcap_read(file, &packet, NULL), 0);
                ds_put_hex(&sent[compiled], dp_packet_data(packet),
                           dp_packet_size(packet));
                ds_put_char(&sent[compiled], '\n');
                dp_packet_delete(packet);
            }
        }
        if (strcmp(ds_cstr(&sent[0]), ds_cstr(&sent[1]))) {
            ovs_fatal(0, "seed %"PRIu32", sent to port %d without compiled "
                      "flows:\n%swith compiled flows:\n%s", cases[i].seed,
                      port_no, ds_cstr(&sent[0]), ds_cstr(&sent[1]));
        }
        ds_destroy(&sent[0]);
        ds_destroy(&sent[1]);
    }
    ovs_pcap_close(file);
    free(name);
}

/* Receives each of the packets in 'data', the second one twice, with a flow
 * that has 'key' and 'actions' and can only be found in compiled form if
 * 'compiled'.  Stores the number of packets sent to each port in 'n_sent', and
 * what has been counted for the flow and for the 'n' routes in 'stats'. */
static void
receive_with_flow(uint8_t data[2][256], const size_t sizes[2],
                  const char *key, const char *actions, bool compiled,
                  const uint32_t routes[], size_t n, int n_sent[],
                  struct dpif_flow_stats stats[])
{
    const ovs_u128 ufid = { { 1, 2, 3, 4 } };

    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < n; j++) {
            struct dpif_flow_stats route_stats;

            dpif_planb_get_route_stats(dpif, routes[j], &route_stats);
            stats[1 + j].n_packets = (route_stats.n_packets
                                      - i * stats[1 + j].n_packets);
            stats[1 + j].n_bytes = (route_stats.n_bytes
                                    - i * stats[1 + j].n_bytes);
        }
        for (int j = 2; j < ARRAY_SIZE(netdevs); j++) {
            struct netdev_stats netdev_stats;

            CHECK(netdev_get_stats(netdevs[j], &netdev_stats), 0);
            n_sent[j] = netdev_stats.tx_packets - i * n_sent[j];
        }
        if (!i) {
            CHECK(put_flow(key, actions, &ufid, DPIF_FP_CREATE), 0);
            for (int j = 0; j < 3; j++) {
                receive_data(data[j > 0], sizes[j > 0]);
                if (!compiled) {
                    CHECK(put_flow(key, actions, &ufid, DPIF_FP_MODIFY), 0);
                }
            }
            CHECK(dpif_flow_del(dpif, NULL, 0, &ufid, PMD_ID_NULL, stats), 0);
        }
    }
}

extern struct coverage_counter counter_dp_planb_forwarded;

static void
test_flows(void)
{
    enum { N_CASES = 5000 };
    struct flow_case *cases = xcalloc(N_CASES, sizeof *cases);
    unsigned int n_forwarded;
    uint32_t routes[4];
    size_t n_cases = 0;

    start_datapath();
    upcall_error = ENOSPC;
    upcall_actions[0] = "3";
    for (int i = 0; i < ARRAY_SIZE(routes); i++) {
        routes[i] = i * DPIF_PLANB_BLOCK_SIZE;
    }
    add_routes(ARRAY_SIZE(routes) * DPIF_PLANB_BLOCK_SIZE);
    set_table(1, routes, ARRAY_SIZE(routes));
    CHECK(dpif_planb_bind(dpif, u32_to_odp(1), 0, TABLE_ID), 0);

    for (uint32_t seed = 1; seed <= N_CASES; seed++) {
        struct dpif_flow_stats stats[2][1 + ARRAY_SIZE(routes)];
        struct flow_case *c = &cases[n_cases];
        struct random_packet p;
        uint8_t data[2][256];
        char *key, *actions;
        size_t sizes[2];

        random_set_seed(seed);
        randomize(&p, -1);
        sizes[0] = put_random_packet(&p, data[0]);
        randomize(&p, random_range(13));
        randomize(&p, random_range(13));
        sizes[1] = put_random_packet(&p, data[1]);
        check_headers(data[0], sizes[0], seed);
        check_headers(data[1], sizes[1], seed);
        if (!random_flow(data[0], sizes[0], &key, &actions)) {
            continue;
        }

        c->seed = seed;
        memset(stats, 0, sizeof stats);
        for (int i = 0; i < 2; i++) {
            receive_with_flow(data, sizes, key, actions, i, routes,
                              ARRAY_SIZE(routes), c->n_sent[i], stats[i]);
        }
        for (int i = 0; i < ARRAY_SIZE(stats[0]); i++) {
            const struct dpif_flow_stats *a = &stats[0][i], *b = &stats[1][i];

            if (a->n_packets != b->n_packets || a->n_bytes != b->n_bytes
                || a->tcp_flags != b->tcp_flags) {
                ovs_fatal(0, "seed %"PRIu32", flow %s, actions %s: counter %d "
                          "is %"PRIu64" packets, %"PRIu64" bytes, tcp_flags "
                          "%#x, with compiled flows %"PRIu64", %"PRIu64", "
                          "%#x", seed, key, actions, i, a->n_packets,
                          a->n_bytes, a->tcp_flags, b->n_packets, b->n_bytes,
                          b->tcp_flags);
            }
        }
        if (!stats[0][0].n_packets) {
            ovs_fatal(0, "seed %"PRIu32", flow %s, actions %s: not hit by the "
                      "packet that it was made from", seed, key, actions);
        }
        free(key);
        free(actions);
        n_cases++;
    }
    for (int i = 2; i < ARRAY_SIZE(netdevs); i++) {
        compare_sent(cases, n_cases, i);
    }

    n_forwarded = (counter_dp_planb_forwarded.total
                   + counter_dp_planb_forwarded.count());
    fprintf(stderr, "%u packets found a compiled flow\n", n_forwarded);
    ovs_assert(n_forwarded > n_cases / 8);
    printf("%"PRIuSIZE" cases, 0 differ\n", n_cases);
    free(cases);
    stop_datapath();
}

/* Test of counters. */

#define COUNTED_SIZE 1000
#define N_COUNTED 3000000

static atomic_bool counted;

/* Counts packets of COUNTED_SIZE bytes for route 1. */
static void *
count_thread(void *pmd)
{
    for (int i = 0; i < N_COUNTED; i++) {
        dp_planb_count_packet(pmd, 1, COUNTED_SIZE);
    }
    atomic_store(&counted, true);
    return NULL;
}

static void
check_route(uint32_t index, uint64_t n_packets, uint64_t n_bytes)
{
    struct dpif_flow_stats stats;

    CHECK(dpif_planb_get_route_stats(dpif, index, &stats), 0);
    if (stats.n_packets != n_packets || stats.n_bytes != n_bytes) {
        ovs_fatal(0, "route %"PRIu32": %"PRIu64" packets, %"PRIu64" bytes, "
                  "expected %"PRIu64", %"PRIu64, index, stats.n_packets,
                  stats.n_bytes, n_packets, n_bytes);
    }
}

static void
test_counts(void)
{
    static const size_t sizes[] = {
        0, 60, DP_PLANB_MAX_LATEST_SIZE - 1, DP_PLANB_MAX_LATEST_SIZE,
        DP_PLANB_MAX_LATEST_SIZE + 1, UINT32_MAX,
    };
    uint64_t last = 0, n_packets = 0, n_bytes = 0;
    unsigned int n_between = 0;
    struct dp_planb_pmd *pmd;
    pthread_t thread;
    bool done;

    start_datapath();
    add_routes(DP_PLANB_CHUNK_SIZE + 3);
    pmd = dp_planb_pmd_create(dpif_netdev_get_planb(dpif), 5, 0);

    /* Packets and bytes belong together, whenever they are read. */
    atomic_init(&counted, false);
    thread = ovs_thread_create("count", count_thread, pmd);
    do {
        struct dpif_flow_stats stats;

        atomic_read(&counted, &done);
        CHECK(dpif_planb_get_route_stats(dpif, 1, &stats), 0);
        ovs_assert(stats.n_packets >= last);
        ovs_assert(stats.n_bytes == stats.n_packets * COUNTED_SIZE);
        n_between += stats.n_packets > last;
        last = stats.n_packets;
    } while (!done);
    xpthread_join(thread, NULL);
    fprintf(stderr, "read %u different counts\n", n_between);
    check_route(1, N_COUNTED, UINT64_C(1) * N_COUNTED * COUNTED_SIZE);

    /* Every size, and every one alone for as long as it may last. */
    for (int i = 0; i < ARRAY_SIZE(sizes); i++) {
        for (int j = 0; j < 3 * DP_PLANB_MAX_LATEST + 1; j++) {
            dp_planb_count_packet(pmd, DP_PLANB_CHUNK_SIZE + 1, sizes[i]);
            n_packets++;
            n_bytes += sizes[i];
            check_route(DP_PLANB_CHUNK_SIZE + 1, n_packets, n_bytes);
        }
    }
    check_route(DP_PLANB_CHUNK_SIZE, 0, 0);
    check_route(DP_PLANB_CHUNK_SIZE + 2, 0, 0);

    /* What a thread has counted outlives it. */
    dp_planb_pmd_destroy(pmd);
    check_route(1, N_COUNTED, UINT64_C(1) * N_COUNTED * COUNTED_SIZE);
    check_route(DP_PLANB_CHUNK_SIZE + 1, n_packets, n_bytes);
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

                        ovs_assert(packet->md.planb == class_of(route));
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
        { "flows", test_flows },
        { "counts", test_counts },
        { "threads", test_threads },
    };

    set_program_name(argv[0]);
    for (int i = 0; argc == 2 && i < ARRAY_SIZE(tests); i++) {
        if (!strcmp(argv[1], tests[i].name)) {
            tests[i].run();
            return;
        }
    }
    ovs_fatal(0, "usage: %s packets | batches | flow-put | flows | counts | "
              "threads", argv[0]);
}

OVSTEST_REGISTER("test-planb-dpif", test_planb_dpif_main);
