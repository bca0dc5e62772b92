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

#ifndef DPIF_NETDEV_PLANB_H
#define DPIF_NETDEV_PLANB_H 1

/* IPv6 route tables in the userspace datapath.
 * ============================================
 *
 * What
 * ----
 *
 * The implementation of dpif-planb.h for dpif-netdev.  A 'struct dp_planb'
 * belongs to a datapath and has its route tables and bindings.  A 'struct
 * dp_planb_pmd' belongs to a thread that processes packets (in the sense of
 * dpif-netdev.c, where the threads other than PMD threads share one) and has
 * what that thread writes: the routes' counters and some statistics.
 *
 * dp_planb_lookup() finds the route classes of a batch of packets before the
 * batch enters the flow caches.  dp_planb_count() implements "count_route".
 *
 * Why
 * ---
 *
 * A batch is looked up at once because the searches for its addresses hide
 * each other's cache misses.  The counters of its routes are on their way from
 * then on, but nothing waits for them before the packets are counted: that is
 * why classes are not beside the counters, but in an array of their own, which
 * is small because it has one class for each block of routes.
 *
 * Route indexes select an entry in arrays.  The arrays are divided into chunks
 * so that they can grow in place while they are used: a chunk is never moved,
 * and only freed with the array.  Thus the reader of an old tree, or of the
 * tree of an outer batch while a recirculated one is processed, always finds
 * the class and the counters of each index that the tree yields.
 *
 * No one else writes the counters of a thread.  Those of a thread that goes
 * away are added to 'struct dp_planb_route' in the moment when the thread is
 * taken off the list, so that the sum over the list and the remainder never
 * goes backwards.
 *
 * Thread-safety
 * -------------
 *
 * dp_planb_is_bound(), dp_planb_lookup() and dp_planb_count() are for the
 * thread that owns the 'struct dp_planb_pmd'.  They take no lock and allocate
 * nothing: route tables and bindings are protected by RCU, chunks are
 * published by a release store and stay.  When something is missing that
 * could not be allocated, a packet has no class, which is always right.
 *
 * All other functions take the mutex in 'struct dp_planb' and no other lock,
 * so that they may be called with any lock held. */

#include <netinet/in.h>

#include "cmap.h"
#include "dp-packet.h"
#include "dpif-planb.h"
#include "openvswitch/hmap.h"
#include "openvswitch/list.h"
#include "ovs-atomic.h"
#include "ovs-thread.h"
#include "packets.h"
#include "util.h"

#ifdef  __cplusplus
extern "C" {
#endif

struct smap;

/* A chunk has the entries of this many consecutive route indexes.  What a
 * thread writes for most packets then is in a single huge page. */
#define DP_PLANB_CHUNK_BITS 17
#define DP_PLANB_CHUNK_SIZE (1u << DP_PLANB_CHUNK_BITS)
#define DP_PLANB_CHUNK_MASK (DP_PLANB_CHUNK_SIZE - 1)

/* The most chunks in an array, thus a limit on route indexes. */
#define DP_PLANB_MAX_CHUNKS 128
#define DP_PLANB_MAX_ROUTES (DP_PLANB_MAX_CHUNKS * DP_PLANB_CHUNK_SIZE)

/* What a thread has counted for a route, but for its latest packets. */
struct dp_planb_pmd_route {
    atomic_ullong n_packets;    /* A multiple of DP_PLANB_MAX_LATEST. */
    atomic_ullong n_bytes;
};

/* The latest packets of a route are in 32 bits, so that a quarter of the cache
 * lines serves as many routes.  They are moved to the route's 'struct
 * dp_planb_pmd_route' whenever there are DP_PLANB_MAX_LATEST of them.  The 32
 * bits have their bytes, their number, and the phase, a bit that the last one
 * carries into.  So the phase tells which value of 'n_packets' the rest
 * belongs to. */
#define DP_PLANB_LATEST_BYTES ((UINT32_C(1) << 24) - 1)
#define DP_PLANB_LATEST_PACKET (UINT32_C(1) << 24)
#define DP_PLANB_MAX_LATEST 64
#define DP_PLANB_LATEST_PHASE (DP_PLANB_MAX_LATEST * DP_PLANB_LATEST_PACKET)

/* The longest packet whose bytes are among the latest. */
#define DP_PLANB_MAX_LATEST_SIZE (DP_PLANB_LATEST_BYTES / DP_PLANB_MAX_LATEST)

/* A chunk, as one thread sees it.  Aligned to cache lines, of which the latest
 * packets of a block of routes fill one. */
struct dp_planb_pmd_routes {
    atomic_uint32_t latest[DP_PLANB_CHUNK_SIZE];
    struct dp_planb_pmd_route routes[DP_PLANB_CHUNK_SIZE];
};

/* The classes of the blocks of a chunk, 0 where there is none. */
struct dp_planb_classes {
    atomic_uint32_t class_ids[DP_PLANB_CHUNK_SIZE / DPIF_PLANB_BLOCK_SIZE];
};

/* What else is known about a route. */
struct dp_planb_route {
    uint64_t n_packets;         /* Counted by threads that are gone. */
    uint64_t n_bytes;
    uint64_t n_packets_seen;    /* Of all threads, when last looked at. */
    long long int used;         /* When 'n_packets_seen' grew, in msec. */
};

struct dp_planb_routes {
    struct dp_planb_route routes[DP_PLANB_CHUNK_SIZE];
};

/* Of a datapath. */
struct dp_planb {
    /* Read by all threads that process packets, for each batch. */
    atomic_count n_bindings;    /* Number of elements in 'bindings'. */
    struct cmap bindings;       /* Contains "struct dp_planb_binding"s. */
    ATOMIC(struct dp_planb_classes *) classes[DP_PLANB_MAX_CHUNKS];

    struct ovs_refcount ref_cnt; /* 1 for the datapath, 1 for each thread. */

    /* Protects all that follows, and writing what precedes. */
    struct ovs_mutex mutex;
    struct hmap tables OVS_GUARDED; /* Contains "struct dp_planb_table"s. */
    struct hmap ports OVS_GUARDED; /* Contains "struct dp_planb_port"s. */
    struct ovs_list pmds OVS_GUARDED; /* Contains "struct dp_planb_pmd"s. */
    struct dp_planb_routes *routes[DP_PLANB_MAX_CHUNKS] OVS_GUARDED;
    size_t n_routes OVS_GUARDED; /* All route indexes are less than this. */
    char *kernel OVS_GUARDED;   /* Last other_config:planb-impl. */
};

/* Of a thread. */
struct dp_planb_pmd {
    struct dp_planb *planb;
    struct ovs_list node;       /* In 'planb''s 'pmds'. */
    unsigned int core_id;
    int numa_id;
    struct cmap tables;         /* Contains "struct dp_planb_pmd_table"s. */
    ATOMIC(struct dp_planb_flows *) flows; /* Null before the first table. */
    atomic_uint64_t flows_seq;  /* Changes when a flow of a class or its
                                 * actions go away. */
    ATOMIC(struct dp_planb_pmd_routes *) routes[DP_PLANB_MAX_CHUNKS];
};

/* What dp_planb_lookup() has found for a packet. */
struct dp_planb_result {
    uint32_t class_id;          /* Route class, 0 if none. */
    uint32_t route;             /* Route index, only if there is a class. */
    uint8_t *headers;           /* From dp_planb_get_headers(). */
};

/* Length of an Ethernet and an IPv6 header, and offset there of 'MEMBER' in
 * struct ovs_16aligned_ip6_hdr. */
#define DP_PLANB_HEADERS_LEN (ETH_HEADER_LEN + IPV6_HEADER_LEN)
#define DP_PLANB_IP6_OFS(MEMBER) \
    (ETH_HEADER_LEN + offsetof(struct ovs_16aligned_ip6_hdr, MEMBER))

extern const struct dpif_planb_class dp_planb_class;

struct dp_planb *dp_planb_create(void);
void dp_planb_destroy(struct dp_planb *);
void dp_planb_set_config(struct dp_planb *, const struct smap *other_config);
void dp_planb_add_port(struct dp_planb *, odp_port_t);
void dp_planb_del_port(struct dp_planb *, odp_port_t);

struct dp_planb_pmd *dp_planb_pmd_create(struct dp_planb *,
                                         unsigned int core_id, int numa_id);
void dp_planb_pmd_destroy(struct dp_planb_pmd *);

bool dp_planb_lookup__(struct dp_planb_pmd *, struct dp_packet_batch *,
                       bool md_is_valid, odp_port_t in_port,
                       struct dp_planb_result[NETDEV_MAX_BURST]);
void dp_planb_count(struct dp_planb_pmd *, const struct dp_packet_batch *);

const uint8_t *dp_planb_find_ipv6_dst(const struct dp_packet *);
void *dp_planb_alloc(size_t);

/* In dpif-netdev.c. */
struct dp_planb *dpif_netdev_get_planb(const struct dpif *);

/* Returns true if any binding exists in the datapath of 'pmd'. */
static inline bool
dp_planb_is_bound(struct dp_planb_pmd *pmd)
{
    return atomic_count_get(&pmd->planb->n_bindings) != 0;
}

/* Finds the route classes of the packets in 'batch'.
 *
 * If 'md_is_valid' is false, the packets have come from 'in_port', and their
 * metadata must not be used yet.  Returns true if some of them may have a
 * class, after storing a result for each position of 'batch' in 'results'.
 * The caller must pass each result to dp_planb_result_apply() after it has
 * initialized the packet's metadata.
 *
 * If 'md_is_valid' is true, the packets must have no class.  Stores those that
 * it finds in the packets' metadata itself, and returns false. */
static inline bool
dp_planb_lookup(struct dp_planb_pmd *pmd, struct dp_packet_batch *batch,
                bool md_is_valid, odp_port_t in_port,
                struct dp_planb_result results[NETDEV_MAX_BURST])
{
    return (OVS_UNLIKELY(dp_planb_is_bound(pmd))
            && dp_planb_lookup__(pmd, batch, md_is_valid, in_port, results));
}

/* Stores 'result' in 'md'. */
static inline void
dp_planb_result_apply(const struct dp_planb_result *result,
                      struct pkt_metadata *md)
{
    md->planb = result->class_id;
    md->planb_route = result->route;
}

/* Returns the payload length in 'headers', from dp_planb_get_headers(). */
static inline size_t
dp_planb_payload_len(const uint8_t *headers)
{
    return ((headers[DP_PLANB_IP6_OFS(ip6_plen)] << 8)
            | headers[DP_PLANB_IP6_OFS(ip6_plen) + 1]);
}

/* If the only headers before the payload of 'packet' are an Ethernet and an
 * IPv6 header, both valid, returns them, otherwise a null pointer.
 *
 * The conditions must not be weaker than those of miniflow_extract() for
 * taking all fields of the IPv6 header, with 'nw_frag' zero. */
static inline uint8_t *
dp_planb_get_headers(const struct dp_packet *packet)
{
    const size_t size = dp_packet_size(packet);
    uint8_t *headers = dp_packet_data(packet);
    size_t len;

    if (OVS_UNLIKELY(packet->packet_type != htonl(PT_ETH)
                     || size < DP_PLANB_HEADERS_LEN
                     || headers[ETH_ADDR_LEN * 2] != ETH_TYPE_IPV6 >> 8
                     || headers[ETH_ADDR_LEN * 2 + 1] != (ETH_TYPE_IPV6
                                                          & 0xff))) {
        return NULL;
    }

    len = DP_PLANB_HEADERS_LEN + dp_planb_payload_len(headers);
    if (OVS_UNLIKELY(len > size || size - len > UINT16_MAX)) {
        return NULL;
    }

    switch (headers[DP_PLANB_IP6_OFS(ip6_nxt)]) {
    case IPPROTO_HOPOPTS:
    case IPPROTO_ROUTING:
    case IPPROTO_FRAGMENT:
    case IPPROTO_AH:
    case IPPROTO_DSTOPTS:
        return NULL;
    default:
        return headers;
    }
}

/* Returns the chunk of 'pmd' that has route 'index' at 'index' &
 * DP_PLANB_CHUNK_MASK, or a null pointer if there is none. */
static inline struct dp_planb_pmd_routes *
dp_planb_get_pmd_routes(struct dp_planb_pmd *pmd, uint32_t index)
{
    uint32_t chunk_no = index >> DP_PLANB_CHUNK_BITS;
    struct dp_planb_pmd_routes *chunk;

    if (OVS_UNLIKELY(chunk_no >= DP_PLANB_MAX_CHUNKS)) {
        return NULL;
    }
    atomic_read_explicit(&pmd->routes[chunk_no], &chunk,
                         memory_order_acquire);
    return chunk;
}

/* Returns the class of route 'index', 0 if it has none. */
static inline uint32_t
dp_planb_get_class(struct dp_planb *planb, uint32_t index)
{
    uint32_t chunk_no = index >> DP_PLANB_CHUNK_BITS;
    struct dp_planb_classes *chunk;
    uint32_t class_id = 0;

    if (OVS_UNLIKELY(chunk_no >= DP_PLANB_MAX_CHUNKS)) {
        return 0;
    }
    atomic_read_explicit(&planb->classes[chunk_no], &chunk,
                         memory_order_acquire);
    if (OVS_LIKELY(chunk)) {
        uint32_t block = ((index & DP_PLANB_CHUNK_MASK)
                          >> DPIF_PLANB_BLOCK_BITS);

        atomic_read_relaxed(&chunk->class_ids[block], &class_id);
    }
    return class_id;
}

/* Adds 'n' to '*var', which only the calling thread writes. */
static inline void
dp_planb_add_own(atomic_ullong *var, unsigned long long int n)
{
    unsigned long long int value;

    atomic_read_relaxed(var, &value);
    atomic_store_relaxed(var, value + n);
}

/* Counts a packet of 'size' bytes for the route 'index'.
 *
 * Readers depend on the order of the stores, see read_pmd_route(). */
static inline void
dp_planb_count_packet(struct dp_planb_pmd *pmd, uint32_t index, size_t size)
{
    struct dp_planb_pmd_routes *chunk = dp_planb_get_pmd_routes(pmd, index);
    struct dp_planb_pmd_route *route;
    atomic_uint32_t *latest;
    uint32_t old, new;

    /* Conntrack may hand out a fragment in a thread other than the one that
     * has looked it up, so that 'chunk' could be null. */
    if (OVS_UNLIKELY(!chunk)) {
        return;
    }
    route = &chunk->routes[index & DP_PLANB_CHUNK_MASK];
    latest = &chunk->latest[index & DP_PLANB_CHUNK_MASK];

    if (OVS_UNLIKELY(size > DP_PLANB_MAX_LATEST_SIZE)) {
        dp_planb_add_own(&route->n_bytes, size);
        size = 0;
    }
    atomic_read_relaxed(latest, &old);
    new = old + DP_PLANB_LATEST_PACKET + size;
    if (OVS_UNLIKELY((old ^ new) & DP_PLANB_LATEST_PHASE)) {
        unsigned long long int n_bytes;

        dp_planb_add_own(&route->n_packets, DP_PLANB_MAX_LATEST);
        atomic_read_relaxed(&route->n_bytes, &n_bytes);
        atomic_store_explicit(&route->n_bytes,
                              n_bytes + (new & DP_PLANB_LATEST_BYTES),
                              memory_order_release);
        atomic_store_explicit(latest, new & DP_PLANB_LATEST_PHASE,
                              memory_order_release);
    } else {
        atomic_store_relaxed(latest, new);
    }
}

#ifdef  __cplusplus
}
#endif

#endif /* dpif-netdev-planb.h */
