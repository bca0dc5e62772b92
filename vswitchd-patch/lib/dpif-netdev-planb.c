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

#include <config.h>
#include "dpif-netdev-planb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dpif-netdev-planb-flow.h"
#include "flow.h"
#include "hash.h"
#include "openvswitch/vlog.h"
#include "ovs-rcu.h"
#include "planb.h"
#include "smap.h"
#include "timeval.h"

VLOG_DEFINE_THIS_MODULE(dpif_netdev_planb);

/* What a lookup needs of a route table, replaced as a whole. */
struct dp_planb_tree {
    struct planb *tree;
    uint64_t generation;
    uint32_t miss_index;        /* Route index of addresses without route. */
};

/* A route table. */
struct dp_planb_table {
    struct hmap_node node;      /* In "struct dp_planb"'s 'tables'. */
    uint32_t id;
    OVSRCU_TYPE(struct dp_planb_tree *) tree;
};

/* What one thread did with a route table.  Allocated in cache lines of its
 * own, because it is written for each batch. */
struct dp_planb_pmd_table {
    struct cmap_node node;      /* In "struct dp_planb_pmd"'s 'tables'. */
    uint32_t id;                /* Of the route table. */
    atomic_ullong generation;
    atomic_ullong n_lookups;
    atomic_ullong n_hits;
};

/* A port of the datapath. */
struct dp_planb_port {
    struct hmap_node node;      /* In "struct dp_planb"'s 'ports'. */
    odp_port_t port_no;
    struct ovs_list bindings;   /* Contains "struct dp_planb_binding"s. */
};

/* Binds packets from a port with a recirculation ID to a route table. */
struct dp_planb_binding {
    struct cmap_node node;      /* In "struct dp_planb"'s 'bindings'. */
    struct ovs_list port_node;  /* In "struct dp_planb_port"'s 'bindings'. */
    odp_port_t in_port;
    uint32_t recirc_id;
    OVSRCU_TYPE(struct dp_planb_table *) table;
};

static uint32_t
hash_binding(odp_port_t in_port, uint32_t recirc_id)
{
    return hash_2words(odp_to_u32(in_port), recirc_id);
}

static struct dp_planb_binding *
find_binding(const struct dp_planb *planb, odp_port_t in_port,
             uint32_t recirc_id)
{
    struct dp_planb_binding *binding;

    CMAP_FOR_EACH_WITH_HASH (binding, node, hash_binding(in_port, recirc_id),
                             &planb->bindings) {
        if (binding->in_port == in_port && binding->recirc_id == recirc_id) {
            return binding;
        }
    }
    return NULL;
}

static struct dp_planb_pmd_table *
find_pmd_table(const struct dp_planb_pmd *pmd, uint32_t id)
{
    struct dp_planb_pmd_table *pmd_table;

    CMAP_FOR_EACH_WITH_HASH (pmd_table, node, hash_int(id, 0), &pmd->tables) {
        if (pmd_table->id == id) {
            return pmd_table;
        }
    }
    return NULL;
}

static struct dp_planb_table *
find_table(const struct dp_planb *planb, uint32_t id)
    OVS_REQUIRES(planb->mutex)
{
    struct dp_planb_table *table;

    HMAP_FOR_EACH_WITH_HASH (table, node, hash_int(id, 0), &planb->tables) {
        if (table->id == id) {
            return table;
        }
    }
    return NULL;
}

static struct dp_planb_port *
find_port(const struct dp_planb *planb, odp_port_t port_no)
    OVS_REQUIRES(planb->mutex)
{
    struct dp_planb_port *port;

    HMAP_FOR_EACH_WITH_HASH (port, node, hash_int(odp_to_u32(port_no), 0),
                             &planb->ports) {
        if (port->port_no == port_no) {
            return port;
        }
    }
    return NULL;
}

/* Processing packets. */

/* Returns the IPv6 destination that miniflow_extract() would find in 'packet',
 * as 16 bytes that need not be aligned, or a null pointer if it would not find
 * an Ethernet frame with IPv6 in it.  Like there, the destination is "::" if
 * the IPv6 header is truncated or its payload length cannot be right.
 *
 * Unlike miniflow_extract(), does not need the metadata of 'packet', does not
 * change 'packet', and does not count malformed packets. */
const uint8_t *
dp_planb_find_ipv6_dst(const struct dp_packet *packet)
{
    const void *data = dp_packet_data(packet);
    size_t size = dp_packet_size(packet);

    if (packet->packet_type != htonl(PT_ETH)
        || size < sizeof(struct eth_header)
        || parse_dl_type(&data, &size, NULL) != htons(ETH_TYPE_IPV6)) {
        return NULL;
    }

    /* Must agree with ipv6_sanity_check() in flow.c. */
    const struct ovs_16aligned_ip6_hdr *nh = data;
    if (OVS_LIKELY(size >= sizeof *nh)) {
        size_t ip6_len = IPV6_HEADER_LEN + ntohs(nh->ip6_plen);

        if (OVS_LIKELY(ip6_len <= size && size - ip6_len <= UINT16_MAX)) {
            return (const uint8_t *) &nh->ip6_dst;
        }
    }
    return in6addr_any.s6_addr;
}

/* Looks the 'n' addresses in 'addrs' up in 'table' and stores what is found
 * for 'addrs[i]' in 'results[positions[i]]'.  'n' must not exceed
 * NETDEV_MAX_BURST. */
static void
lookup_addrs(struct dp_planb_pmd *pmd, const struct dp_planb_table *table,
             const uint8_t *const addrs[], size_t n,
             const uint8_t positions[], struct dp_planb_result results[])
{
    struct dp_planb_tree *tree = ovsrcu_get(struct dp_planb_tree *,
                                            &table->tree);
    uint32_t routes[NETDEV_MAX_BURST];
    struct dp_planb_pmd_table *pmd_table;
    size_t n_hits = 0;

    planb_lookup_batch(tree->tree, addrs, routes, n);

    for (size_t i = 0; i < n; i++) {
        struct dp_planb_pmd_routes *chunk
            = dp_planb_get_pmd_routes(pmd, routes[i]);
        struct dp_planb_result *result = &results[positions[i]];

        result->class_id = 0;
        if (OVS_LIKELY(chunk)) {
            OVS_PREFETCH_WRITE(&chunk->latest[routes[i]
                                              & DP_PLANB_CHUNK_MASK]);
            result->class_id = dp_planb_get_class(pmd->planb, routes[i]);
        }
        result->route = routes[i];
        n_hits += routes[i] != tree->miss_index;
    }

    pmd_table = find_pmd_table(pmd, table->id);
    if (OVS_LIKELY(pmd_table)) {
        atomic_store_relaxed(&pmd_table->generation, tree->generation);
        dp_planb_add_own(&pmd_table->n_lookups, n);
        dp_planb_add_own(&pmd_table->n_hits, n_hits);
    }
}

/* Looks up 'n' packets, from 'packets', in 'table' and stores what is found
 * for 'packets[i]' in 'results[i]'. */
static void
lookup_packets(struct dp_planb_pmd *pmd, const struct dp_planb_table *table,
               struct dp_packet *packets[], size_t n,
               struct dp_planb_result results[])
{
    const uint8_t *addrs[NETDEV_MAX_BURST];
    uint8_t positions[NETDEV_MAX_BURST];
    size_t n_addrs = 0;

    for (size_t i = 0; i < n; i++) {
        uint8_t *headers = dp_planb_get_headers(packets[i]);
        const uint8_t *addr = (OVS_LIKELY(headers)
                               ? headers + DP_PLANB_IP6_OFS(ip6_dst)
                               : dp_planb_find_ipv6_dst(packets[i]));

        results[i].headers = headers;
        results[i].class_id = 0;
        positions[n_addrs] = i;
        addrs[n_addrs] = addr;
        n_addrs += addr != NULL;
    }
    if (n_addrs) {
        lookup_addrs(pmd, table, addrs, n_addrs, positions, results);
    }
}

/* Looks up packets that have valid metadata and no class.  Nearly always they
 * are all from one port and have one recirculation ID.  If not, each run of
 * packets that do is looked up by itself. */
static void
lookup_recirculated(struct dp_planb_pmd *pmd, struct dp_packet_batch *batch)
{
    const size_t n = dp_packet_batch_size(batch);
    struct dp_packet **packets = batch->packets;
    size_t start, end;

    for (start = 0; start < n; start = end) {
        const struct pkt_metadata *md = &packets[start]->md;
        struct dp_planb_result results[NETDEV_MAX_BURST];
        struct dp_planb_binding *binding;

        for (end = start + 1; end < n; end++) {
            if (packets[end]->md.in_port.odp_port != md->in_port.odp_port
                || packets[end]->md.recirc_id != md->recirc_id) {
                break;
            }
        }

        binding = find_binding(pmd->planb, md->in_port.odp_port,
                               md->recirc_id);
        if (binding) {
            lookup_packets(pmd,
                           ovsrcu_get(struct dp_planb_table *,
                                      &binding->table),
                           &packets[start], end - start, results);
            for (size_t i = start; i < end; i++) {
                dp_planb_result_apply(&results[i - start], &packets[i]->md);
            }
        }
    }
}

/* Implements dp_planb_lookup() for a datapath with bindings. */
bool
dp_planb_lookup__(struct dp_planb_pmd *pmd, struct dp_packet_batch *batch,
                  bool md_is_valid, odp_port_t in_port,
                  struct dp_planb_result results[NETDEV_MAX_BURST])
{
    struct dp_planb_binding *binding;
    struct dp_packet *packet;

    if (md_is_valid) {
        lookup_recirculated(pmd, batch);
        return false;
    }

    binding = find_binding(pmd->planb, in_port, 0);
    if (!binding) {
        return false;
    }

    /* The packets have just been received, and are needed all at once.  Their
     * metadata has until the search is done. */
    DP_PACKET_BATCH_FOR_EACH (i, packet, batch) {
        OVS_PREFETCH(dp_packet_data(packet));
        OVS_PREFETCH_WRITE(packet->md.cacheline0);
        OVS_PREFETCH_WRITE(packet->md.cacheline2);
    }
    lookup_packets(pmd,
                   ovsrcu_get(struct dp_planb_table *, &binding->table),
                   batch->packets, dp_packet_batch_size(batch), results);
    return true;
}

/* Counts each packet in 'batch' that has a class for its route. */
void
dp_planb_count(struct dp_planb_pmd *pmd, const struct dp_packet_batch *batch)
{
    struct dp_packet *packet;

    DP_PACKET_BATCH_FOR_EACH (i, packet, batch) {
        if (packet->md.planb) {
            dp_planb_count_packet(pmd, packet->md.planb_route,
                                  dp_packet_size(packet));
        }
    }
}

/* Datapaths and threads. */

/* Returns a new 'struct dp_planb', without any route table.  The caller must
 * eventually pass it to dp_planb_destroy(). */
struct dp_planb *
dp_planb_create(void)
{
    struct dp_planb *planb = xzalloc_cacheline(sizeof *planb);

    atomic_count_init(&planb->n_bindings, 0);
    cmap_init(&planb->bindings);
    ovs_refcount_init(&planb->ref_cnt);
    ovs_mutex_init(&planb->mutex);

    ovs_mutex_lock(&planb->mutex);
    hmap_init(&planb->tables);
    hmap_init(&planb->ports);
    ovs_list_init(&planb->pmds);
    planb->kernel = xstrdup("auto");
    ovs_mutex_unlock(&planb->mutex);

    return planb;
}

static void
dp_planb_unref(struct dp_planb *planb)
    OVS_NO_THREAD_SAFETY_ANALYSIS
{
    if (ovs_refcount_unref(&planb->ref_cnt) != 1) {
        return;
    }

    for (size_t i = 0; i < DP_PLANB_MAX_CHUNKS; i++) {
        struct dp_planb_classes *classes;

        atomic_read_relaxed(&planb->classes[i], &classes);
        free(classes);
        free(planb->routes[i]);
    }
    cmap_destroy(&planb->bindings);
    hmap_destroy(&planb->tables);
    hmap_destroy(&planb->ports);
    free(planb->kernel);
    ovs_mutex_destroy(&planb->mutex);
    free_cacheline(planb);
}

static void
tree_destroy(struct dp_planb_tree *tree)
{
    planb_destroy(tree->tree);
    free(tree);
}

static void
pmd_table_destroy(struct dp_planb_pmd_table *pmd_table)
{
    free_cacheline(pmd_table);
}

static void
binding_remove(struct dp_planb *planb, struct dp_planb_binding *binding)
    OVS_REQUIRES(planb->mutex)
{
    cmap_remove(&planb->bindings, &binding->node,
                hash_binding(binding->in_port, binding->recirc_id));
    atomic_count_dec(&planb->n_bindings);
    ovs_list_remove(&binding->port_node);
    ovsrcu_postpone(free, binding);
}

static void
port_remove(struct dp_planb *planb, struct dp_planb_port *port)
    OVS_REQUIRES(planb->mutex)
{
    struct dp_planb_binding *binding;

    LIST_FOR_EACH_SAFE (binding, port_node, &port->bindings) {
        binding_remove(planb, binding);
    }
    hmap_remove(&planb->ports, &port->node);
    free(port);
}

static void
table_remove(struct dp_planb *planb, struct dp_planb_table *table)
    OVS_REQUIRES(planb->mutex)
{
    struct dp_planb_binding *binding;
    struct dp_planb_port *port;
    struct dp_planb_pmd *pmd;

    HMAP_FOR_EACH (port, node, &planb->ports) {
        LIST_FOR_EACH_SAFE (binding, port_node, &port->bindings) {
            if (ovsrcu_get_protected(struct dp_planb_table *,
                                     &binding->table) == table) {
                binding_remove(planb, binding);
            }
        }
    }
    LIST_FOR_EACH (pmd, node, &planb->pmds) {
        struct dp_planb_pmd_table *pmd_table = find_pmd_table(pmd, table->id);

        cmap_remove(&pmd->tables, &pmd_table->node, hash_int(table->id, 0));
        ovsrcu_postpone(pmd_table_destroy, pmd_table);
    }
    hmap_remove(&planb->tables, &table->node);
    ovsrcu_postpone(tree_destroy,
                    ovsrcu_get_protected(struct dp_planb_tree *,
                                         &table->tree));
    ovsrcu_postpone(free, table);
}

/* Destroys the datapath's reference to 'planb', with all route tables and
 * bindings.  Packets must not be looked up any more. */
void
dp_planb_destroy(struct dp_planb *planb)
{
    struct dp_planb_table *table;
    struct dp_planb_port *port;

    ovs_mutex_lock(&planb->mutex);
    HMAP_FOR_EACH_SAFE (port, node, &planb->ports) {
        port_remove(planb, port);
    }
    HMAP_FOR_EACH_SAFE (table, node, &planb->tables) {
        table_remove(planb, table);
    }
    ovs_mutex_unlock(&planb->mutex);

    dp_planb_unref(planb);
}

/* Chooses libplanb's kernel according to 'other_config'. */
void
dp_planb_set_config(struct dp_planb *planb, const struct smap *other_config)
{
    const char *name = smap_get_def(other_config, "planb-impl", "auto");

    ovs_mutex_lock(&planb->mutex);
    if (strcmp(name, planb->kernel)) {
        int error = planb_set_kernel(name);

        if (error) {
            planb_set_kernel("auto");
            VLOG_WARN("other_config:planb-impl: \"%s\" is %s, using %s", name,
                      error == ENOTSUP ? "not supported here" : "not known",
                      planb_get_kernel());
        } else {
            VLOG_INFO("IPv6 route tables use %s", planb_get_kernel());
        }
        free(planb->kernel);
        planb->kernel = xstrdup(name);
    }
    ovs_mutex_unlock(&planb->mutex);
}

/* Tells 'planb' that the datapath has a port 'port_no'. */
void
dp_planb_add_port(struct dp_planb *planb, odp_port_t port_no)
{
    ovs_mutex_lock(&planb->mutex);
    if (!find_port(planb, port_no)) {
        struct dp_planb_port *port = xmalloc(sizeof *port);

        port->port_no = port_no;
        ovs_list_init(&port->bindings);
        hmap_insert(&planb->ports, &port->node,
                    hash_int(odp_to_u32(port_no), 0));
    }
    ovs_mutex_unlock(&planb->mutex);
}

/* Removes the bindings of port 'port_no', which the datapath loses. */
void
dp_planb_del_port(struct dp_planb *planb, odp_port_t port_no)
{
    struct dp_planb_port *port;

    ovs_mutex_lock(&planb->mutex);
    port = find_port(planb, port_no);
    if (port) {
        port_remove(planb, port);
    }
    ovs_mutex_unlock(&planb->mutex);
}

#define HUGE_PAGE_SIZE ((size_t) 2 << 20)

/* Returns 'size' zeroed bytes that share no cache line with anything else, in
 * huge pages if they fill any, or a null pointer if there is no memory for
 * them.  The caller must eventually pass them to free(). */
void *
dp_planb_alloc(size_t size)
{
    /* Not xzalloc_cacheline(), which does not return without memory. */
    bool huge = size >= HUGE_PAGE_SIZE;
    void *bytes;

    if (posix_memalign(&bytes, huge ? HUGE_PAGE_SIZE : CACHE_LINE_SIZE,
                       ROUND_UP(size, CACHE_LINE_SIZE))) {
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    /* Packets find their routes in random order, and would miss in the TLB
     * nearly each time.  If the system does not want to, it does not
     * matter. */
    if (huge) {
        madvise(bytes, ROUND_DOWN(size, HUGE_PAGE_SIZE), MADV_HUGEPAGE);
    }
#endif
    return memset(bytes, 0, size);
}

/* Gives 'pmd' what it needs for chunk 'chunk_no', if it has not got it yet.
 * Returns false if there is no memory for it. */
static bool
add_pmd_routes(struct dp_planb_pmd *pmd, size_t chunk_no)
    OVS_REQUIRES(pmd->planb->mutex)
{
    struct dp_planb_pmd_routes *chunk;

    atomic_read_relaxed(&pmd->routes[chunk_no], &chunk);
    if (!chunk) {
        chunk = dp_planb_alloc(sizeof *chunk);
        if (!chunk) {
            return false;
        }
        atomic_store_explicit(&pmd->routes[chunk_no], chunk,
                              memory_order_release);
    }
    return true;
}

static void
add_pmd_table(struct dp_planb_pmd *pmd, uint32_t id)
    OVS_REQUIRES(pmd->planb->mutex)
{
    struct dp_planb_pmd_table *pmd_table
        = xzalloc_cacheline(sizeof *pmd_table);
    struct dp_planb_flows *flows;

    pmd_table->id = id;
    cmap_insert(&pmd->tables, &pmd_table->node, hash_int(id, 0));

    /* Without memory for it, packets take the ordinary path. */
    atomic_read_relaxed(&pmd->flows, &flows);
    if (!flows) {
        atomic_store_explicit(&pmd->flows, dp_planb_flows_create(),
                              memory_order_release);
    }
}

/* Returns a new 'struct dp_planb_pmd' for a thread on core 'core_id' of NUMA
 * node 'numa_id'.  The caller must eventually pass it to
 * dp_planb_pmd_destroy(). */
struct dp_planb_pmd *
dp_planb_pmd_create(struct dp_planb *planb, unsigned int core_id, int numa_id)
{
    struct dp_planb_pmd *pmd = xzalloc_cacheline(sizeof *pmd);
    struct dp_planb_table *table;

    ovs_refcount_ref(&planb->ref_cnt);
    pmd->planb = planb;
    pmd->core_id = core_id;
    pmd->numa_id = numa_id;
    cmap_init(&pmd->tables);
    atomic_init(&pmd->flows_seq, 0);

    ovs_mutex_lock(&planb->mutex);
    for (size_t i = 0; i < DP_PLANB_MAX_CHUNKS; i++) {
        if (planb->routes[i] && !add_pmd_routes(pmd, i)) {
            static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 1);

            VLOG_WARN_RL(&rl, "core %u: no memory for routes, packets take "
                         "the ordinary path", core_id);
        }
    }
    HMAP_FOR_EACH (table, node, &planb->tables) {
        add_pmd_table(pmd, table->id);
    }
    ovs_list_push_back(&planb->pmds, &pmd->node);
    ovs_mutex_unlock(&planb->mutex);

    return pmd;
}

/* Adds what the thread of 'chunk' has counted for the route at 'i' in there to
 * '*n_packets' and '*n_bytes'.
 *
 * dp_planb_count_packet() moves the latest packets to the others by storing
 * the new 'n_packets', then 'n_bytes', then 'latest', whose phase changes.  If
 * 'n_packets' is the same before and after the rest has been read, and has
 * that phase, then no store of the next move has been seen, and all of the
 * last one. */
static void
read_pmd_route(struct dp_planb_pmd_routes *chunk, size_t i,
               uint64_t *n_packets, uint64_t *n_bytes)
{
    struct dp_planb_pmd_route *route = &chunk->routes[i];
    unsigned long long int packets, bytes, packets_after;
    uint32_t latest;

    do {
        atomic_read_explicit(&route->n_packets, &packets,
                             memory_order_acquire);
        atomic_read_explicit(&chunk->latest[i], &latest,
                             memory_order_acquire);
        atomic_read_explicit(&route->n_bytes, &bytes, memory_order_acquire);
        atomic_read_relaxed(&route->n_packets, &packets_after);
    } while (packets != packets_after
             || (!(packets & DP_PLANB_MAX_LATEST)
                 != !(latest & DP_PLANB_LATEST_PHASE)));

    *n_packets += packets + (latest / DP_PLANB_LATEST_PACKET
                             % DP_PLANB_MAX_LATEST);
    *n_bytes += bytes + (latest & DP_PLANB_LATEST_BYTES);
}

/* Adds what 'pmd' has counted for chunk 'chunk_no' to 'chunk'. */
static void
retire_pmd_routes(struct dp_planb_pmd *pmd, size_t chunk_no,
                  struct dp_planb_routes *chunk)
    OVS_REQUIRES(pmd->planb->mutex)
{
    struct dp_planb_pmd_routes *pmd_chunk;

    atomic_read_relaxed(&pmd->routes[chunk_no], &pmd_chunk);
    for (size_t i = 0; pmd_chunk && i < DP_PLANB_CHUNK_SIZE; i++) {
        read_pmd_route(pmd_chunk, i, &chunk->routes[i].n_packets,
                       &chunk->routes[i].n_bytes);
    }
}

/* Destroys 'pmd', whose thread must have ended, and keeps what it has
 * counted.  No other thread may still be in a call that was given 'pmd'. */
void
dp_planb_pmd_destroy(struct dp_planb_pmd *pmd)
{
    struct dp_planb *planb = pmd->planb;
    struct dp_planb_pmd_table *pmd_table;
    struct dp_planb_flows *flows;

    ovs_mutex_lock(&planb->mutex);
    for (size_t i = 0; i < DP_PLANB_MAX_CHUNKS; i++) {
        struct dp_planb_pmd_routes *chunk;

        if (planb->routes[i]) {
            retire_pmd_routes(pmd, i, planb->routes[i]);
        }
        atomic_read_relaxed(&pmd->routes[i], &chunk);
        free(chunk);
    }
    ovs_list_remove(&pmd->node);
    ovs_mutex_unlock(&planb->mutex);

    CMAP_FOR_EACH (pmd_table, node, &pmd->tables) {
        cmap_remove(&pmd->tables, &pmd_table->node,
                    hash_int(pmd_table->id, 0));
        ovsrcu_postpone(pmd_table_destroy, pmd_table);
    }
    cmap_destroy(&pmd->tables);
    atomic_read_relaxed(&pmd->flows, &flows);
    dp_planb_flows_destroy(flows);
    free_cacheline(pmd);
    dp_planb_unref(planb);
}

/* Provider calls, see dpif-planb.h. */

static int
dp_planb_get_features(const struct dpif *dpif OVS_UNUSED,
                      struct dpif_planb_features *features)
{
    features->max_routes = DP_PLANB_MAX_ROUTES;
    return 0;
}

/* Makes room for all that belongs to chunk 'chunk_no'.  Returns false if there
 * is no memory for it. */
static bool
add_chunk(struct dp_planb *planb, size_t chunk_no)
    OVS_REQUIRES(planb->mutex)
{
    struct dp_planb_classes *classes;
    struct dp_planb_pmd *pmd;

    atomic_read_relaxed(&planb->classes[chunk_no], &classes);
    if (!classes) {
        classes = dp_planb_alloc(sizeof *classes);
        if (!classes) {
            return false;
        }
        atomic_store_explicit(&planb->classes[chunk_no], classes,
                              memory_order_release);
    }
    if (!planb->routes[chunk_no]) {
        planb->routes[chunk_no] = calloc(1, sizeof *planb->routes[chunk_no]);
        if (!planb->routes[chunk_no]) {
            return false;
        }
    }
    LIST_FOR_EACH (pmd, node, &planb->pmds) {
        if (!add_pmd_routes(pmd, chunk_no)) {
            return false;
        }
    }
    return true;
}

/* Gives route 'index', whose chunk must exist, and its block the class
 * 'class_id'. */
static void
set_class(struct dp_planb *planb, uint32_t index, uint32_t class_id)
    OVS_REQUIRES(planb->mutex)
{
    struct dp_planb_classes *chunk;
    uint32_t block = (index & DP_PLANB_CHUNK_MASK) >> DPIF_PLANB_BLOCK_BITS;

    atomic_read_relaxed(&planb->classes[index >> DP_PLANB_CHUNK_BITS], &chunk);
    atomic_store_relaxed(&chunk->class_ids[block], class_id);
    planb->n_routes = MAX(planb->n_routes, index + 1);
}

static int
dp_planb_add_routes(struct dpif *dpif, const struct dpif_planb_route routes[],
                    size_t n)
{
    struct dp_planb *planb = dpif_netdev_get_planb(dpif);
    size_t chunk_no = SIZE_MAX;
    int error = 0;

    ovs_mutex_lock(&planb->mutex);
    for (size_t i = 0; i < n; i++) {
        if (routes[i].index >= DP_PLANB_MAX_ROUTES) {
            error = ENOSPC;
            goto exit;
        }
        if (routes[i].index >> DP_PLANB_CHUNK_BITS != chunk_no) {
            chunk_no = routes[i].index >> DP_PLANB_CHUNK_BITS;
            if (!add_chunk(planb, chunk_no)) {
                error = ENOMEM;
                goto exit;
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        set_class(planb, routes[i].index, routes[i].class_id);
    }

exit:
    ovs_mutex_unlock(&planb->mutex);
    return error;
}

static int
dp_planb_set_table(struct dpif *dpif, uint32_t table_id, struct planb *tree_,
                   uint64_t generation, uint32_t miss_index)
{
    struct dp_planb *planb = dpif_netdev_get_planb(dpif);
    struct dp_planb_table *table;
    struct dp_planb_tree *tree;

    tree = xmalloc(sizeof *tree);
    tree->tree = tree_;
    tree->generation = generation;
    tree->miss_index = miss_index;

    ovs_mutex_lock(&planb->mutex);
    table = find_table(planb, table_id);
    if (table) {
        struct dp_planb_tree *old_tree
            = ovsrcu_get_protected(struct dp_planb_tree *, &table->tree);

        ovsrcu_set(&table->tree, tree);
        ovsrcu_postpone(tree_destroy, old_tree);
    } else {
        struct dp_planb_pmd *pmd;

        table = xmalloc(sizeof *table);
        table->id = table_id;
        ovsrcu_init(&table->tree, tree);
        hmap_insert(&planb->tables, &table->node, hash_int(table_id, 0));
        LIST_FOR_EACH (pmd, node, &planb->pmds) {
            add_pmd_table(pmd, table_id);
        }
    }
    ovs_mutex_unlock(&planb->mutex);

    return 0;
}

static int
dp_planb_del_table(struct dpif *dpif, uint32_t table_id)
{
    struct dp_planb *planb = dpif_netdev_get_planb(dpif);
    struct dp_planb_table *table;

    ovs_mutex_lock(&planb->mutex);
    table = find_table(planb, table_id);
    if (table) {
        table_remove(planb, table);
    }
    ovs_mutex_unlock(&planb->mutex);

    return table ? 0 : ENOENT;
}

static int
dp_planb_bind(struct dpif *dpif, odp_port_t in_port, uint32_t recirc_id,
              uint32_t table_id)
{
    struct dp_planb *planb = dpif_netdev_get_planb(dpif);
    struct dp_planb_binding *binding;
    struct dp_planb_table *table;
    struct dp_planb_port *port;
    int error = 0;

    ovs_mutex_lock(&planb->mutex);
    table = find_table(planb, table_id);
    port = find_port(planb, in_port);
    binding = find_binding(planb, in_port, recirc_id);
    if (!table) {
        error = ENOENT;
    } else if (!port) {
        error = ENODEV;
    } else if (binding) {
        if (ovsrcu_get_protected(struct dp_planb_table *,
                                 &binding->table) == table) {
            error = EEXIST;
        } else {
            ovsrcu_set(&binding->table, table);
        }
    } else {
        binding = xmalloc(sizeof *binding);
        binding->in_port = in_port;
        binding->recirc_id = recirc_id;
        ovsrcu_init(&binding->table, table);
        ovs_list_push_back(&port->bindings, &binding->port_node);
        cmap_insert(&planb->bindings, &binding->node,
                    hash_binding(in_port, recirc_id));
        atomic_count_inc(&planb->n_bindings);
    }
    ovs_mutex_unlock(&planb->mutex);

    return error;
}

static int
dp_planb_unbind(struct dpif *dpif, odp_port_t in_port, uint32_t recirc_id)
{
    struct dp_planb *planb = dpif_netdev_get_planb(dpif);
    struct dp_planb_binding *binding;

    ovs_mutex_lock(&planb->mutex);
    binding = find_binding(planb, in_port, recirc_id);
    if (binding) {
        binding_remove(planb, binding);
    }
    ovs_mutex_unlock(&planb->mutex);

    return binding ? 0 : ENOENT;
}

static int
dp_planb_get_bindings(const struct dpif *dpif, uint32_t table_id,
                      struct dpif_planb_binding **bindingsp, size_t *n)
{
    struct dp_planb *planb = dpif_netdev_get_planb(dpif);
    struct dpif_planb_binding *bindings = NULL;
    struct dp_planb_binding *binding;
    struct dp_planb_port *port;
    size_t allocated = 0;

    *n = 0;
    ovs_mutex_lock(&planb->mutex);
    HMAP_FOR_EACH (port, node, &planb->ports) {
        LIST_FOR_EACH (binding, port_node, &port->bindings) {
            if (ovsrcu_get_protected(struct dp_planb_table *,
                                     &binding->table)->id == table_id) {
                if (*n >= allocated) {
                    bindings = x2nrealloc(bindings, &allocated,
                                          sizeof *bindings);
                }
                bindings[*n].in_port = binding->in_port;
                bindings[(*n)++].recirc_id = binding->recirc_id;
            }
        }
    }
    ovs_mutex_unlock(&planb->mutex);
    *bindingsp = bindings;

    return 0;
}

/* Adds up the counters of all threads, past and present, for the route
 * 'index', whose chunk must exist, and notes whether they have grown.  Stores
 * the sums in '*n_packetsp' and '*n_bytesp'. */
static struct dp_planb_route *
update_route(struct dp_planb *planb, uint32_t index, long long int now,
             uint64_t *n_packetsp, uint64_t *n_bytesp)
    OVS_REQUIRES(planb->mutex)
{
    struct dp_planb_routes *chunk
        = planb->routes[index >> DP_PLANB_CHUNK_BITS];
    struct dp_planb_route *route
        = &chunk->routes[index & DP_PLANB_CHUNK_MASK];
    uint64_t n_packets = route->n_packets;
    uint64_t n_bytes = route->n_bytes;
    struct dp_planb_pmd *pmd;

    LIST_FOR_EACH (pmd, node, &planb->pmds) {
        struct dp_planb_pmd_routes *pmd_chunk
            = dp_planb_get_pmd_routes(pmd, index);

        if (pmd_chunk) {
            read_pmd_route(pmd_chunk, index & DP_PLANB_CHUNK_MASK,
                           &n_packets, &n_bytes);
        }
    }
    if (n_packets != route->n_packets_seen) {
        route->n_packets_seen = n_packets;
        route->used = now;
    }

    *n_packetsp = n_packets;
    *n_bytesp = n_bytes;
    return route;
}

static int
dp_planb_get_route_stats(const struct dpif *dpif, uint32_t index,
                         struct dpif_flow_stats *stats)
{
    struct dp_planb *planb = dpif_netdev_get_planb(dpif);

    memset(stats, 0, sizeof *stats);
    if (index >= DP_PLANB_MAX_ROUTES) {
        return ENOENT;
    }

    ovs_mutex_lock(&planb->mutex);
    if (planb->routes[index >> DP_PLANB_CHUNK_BITS]) {
        stats->used = update_route(planb, index, time_msec(),
                                   &stats->n_packets, &stats->n_bytes)->used;
    }
    ovs_mutex_unlock(&planb->mutex);

    return 0;
}

/* How many routes to sweep while others wait. */
#define SWEEP_STEP 4096

static int
dp_planb_sweep(struct dpif *dpif, long long int now)
{
    struct dp_planb *planb = dpif_netdev_get_planb(dpif);

    ovs_mutex_lock(&planb->mutex);
    for (size_t i = 0; i < planb->n_routes; i++) {
        uint64_t n_packets, n_bytes;

        if (planb->routes[i >> DP_PLANB_CHUNK_BITS]) {
            update_route(planb, i, now, &n_packets, &n_bytes);
        }
        if (!((i + 1) % SWEEP_STEP)) {
            /* Let others in between. */
            ovs_mutex_unlock(&planb->mutex);
            ovs_mutex_lock(&planb->mutex);
        }
    }
    ovs_mutex_unlock(&planb->mutex);

    return 0;
}

static int
dp_planb_get_table_stats(const struct dpif *dpif, uint32_t table_id,
                         struct dpif_planb_pmd_stats **statsp, size_t *n)
{
    struct dp_planb *planb = dpif_netdev_get_planb(dpif);
    struct dpif_planb_pmd_stats *stats;
    struct dp_planb_pmd *pmd;

    ovs_mutex_lock(&planb->mutex);
    if (!find_table(planb, table_id)) {
        ovs_mutex_unlock(&planb->mutex);
        return ENOENT;
    }

    *n = 0;
    *statsp = stats = xcalloc(ovs_list_size(&planb->pmds), sizeof *stats);
    LIST_FOR_EACH (pmd, node, &planb->pmds) {
        struct dp_planb_pmd_table *pmd_table = find_pmd_table(pmd, table_id);
        unsigned long long int value;

        stats->core_id = pmd->core_id;
        stats->numa_id = pmd->numa_id;
        atomic_read_relaxed(&pmd_table->generation, &value);
        stats->generation = value;
        atomic_read_relaxed(&pmd_table->n_lookups, &value);
        stats->n_lookups = value;
        atomic_read_relaxed(&pmd_table->n_hits, &value);
        stats->n_hits = value;
        stats++;
        ++*n;
    }
    ovs_mutex_unlock(&planb->mutex);

    return 0;
}

const struct dpif_planb_class dp_planb_class = {
    .get_features = dp_planb_get_features,
    .add_routes = dp_planb_add_routes,
    .set_table = dp_planb_set_table,
    .del_table = dp_planb_del_table,
    .bind = dp_planb_bind,
    .unbind = dp_planb_unbind,
    .get_bindings = dp_planb_get_bindings,
    .get_route_stats = dp_planb_get_route_stats,
    .sweep = dp_planb_sweep,
    .get_table_stats = dp_planb_get_table_stats,
};
