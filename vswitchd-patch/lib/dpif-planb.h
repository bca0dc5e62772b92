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

#ifndef DPIF_PLANB_H
#define DPIF_PLANB_H 1

/* IPv6 route tables in a datapath.
 * ================================
 *
 * What
 * ----
 *
 * A datapath that implements 'struct dpif_planb_class' can find, by itself and
 * before it looks for a megaflow, the *route class* of a packet: a number that
 * ofproto gives to all the IPv6 routes of one OpenFlow table that translate
 * alike.  The class becomes part of the packet's flow key ("planb(CLASS)"), so
 * that one megaflow serves all of the routes of a class.
 *
 * A *route table* in the datapath is a libplanb tree that maps each IPv6
 * address to a *route index*.  A route index stands for one route as long as
 * the index is in use: it has a class, which never changes, and a packet and a
 * byte counter, which only grow.  Every address has a route index: the client
 * gives the addresses that no route covers an index of their own.
 *
 * A *binding* says that packets that arrive at a datapath port with a given
 * recirculation ID are to be looked up in a given route table.  There is at
 * most one binding for a port and recirculation ID.
 *
 * The "count_route" action adds a packet to the counters of the route index
 * that the lookup has found.
 *
 * Why
 * ---
 *
 * See ofproto/ofproto-dpif-planb.h.
 *
 * Thread-safety
 * -------------
 *
 * All functions may be called from any thread that is not a PMD thread.  The
 * tree of a route table may be replaced while packets are looked up in it. */

#include <stddef.h>
#include <stdint.h>

#include "dpif.h"
#include "odp-netlink.h"
#include "util.h"

#ifdef  __cplusplus
extern "C" {
#endif

struct planb;

/* Route indexes are given to classes in blocks: those that differ only in this
 * many of their lowest bits have the same class.  So the datapath has few
 * classes to look at, which are in the cache when the routes are not. */
#define DPIF_PLANB_BLOCK_BITS 4
#define DPIF_PLANB_BLOCK_SIZE (1u << DPIF_PLANB_BLOCK_BITS)

/* What a datapath offers. */
struct dpif_planb_features {
    uint32_t max_routes;        /* Route indexes are less than this. */
};

/* Binds a route index to a class. */
struct dpif_planb_route {
    uint32_t index;             /* Route index. */
    uint32_t class_id;          /* Its class, nonzero. */
};

/* Packets that are looked up in a route table. */
struct dpif_planb_binding {
    odp_port_t in_port;
    uint32_t recirc_id;
};

/* What one PMD thread did with one route table. */
struct dpif_planb_pmd_stats {
    unsigned int core_id;       /* NON_PMD_CORE_ID for the main thread. */
    int numa_id;
    uint64_t generation;        /* Of the tree last used, 0 if none. */
    uint64_t n_lookups;         /* Packets looked up. */
    uint64_t n_hits;            /* Those that some route covered. */
};

/* The calls that a datapath provides.  They return 0 if successful, otherwise
 * a positive errno value. */
struct dpif_planb_class {
    int (*get_features)(const struct dpif *, struct dpif_planb_features *);

    /* Gives each of the 'n' route indexes in 'routes', with its block, its
     * class and makes room for its counters.  Must be called before a tree
     * that yields the index is installed, and not while one may be in use that
     * yielded an index of the block under another class.  ENOSPC if an index
     * is too large, ENOMEM if there is no memory, in which case nothing has
     * changed. */
    int (*add_routes)(struct dpif *, const struct dpif_planb_route routes[],
                      size_t n);

    /* Installs 'tree' as route table 'table_id', creating the route table if
     * it does not exist.  Packets that are looked up from now on use it.  On
     * success takes ownership of 'tree', which is destroyed by RCU when it has
     * been replaced.  'generation' is reported back in the statistics.
     * 'miss_index' is the route index of the addresses without a route. */
    int (*set_table)(struct dpif *, uint32_t table_id, struct planb *tree,
                     uint64_t generation, uint32_t miss_index);

    /* Removes route table 'table_id' and all of its bindings.  ENOENT if there
     * is none. */
    int (*del_table)(struct dpif *, uint32_t table_id);

    /* Binds packets from 'in_port' with 'recirc_id' to route table 'table_id',
     * in place of any route table that they were bound to before.  EEXIST if
     * they are bound to it already, ENOENT if there is no such table, ENODEV
     * if there is no such port. */
    int (*bind)(struct dpif *, odp_port_t in_port, uint32_t recirc_id,
                uint32_t table_id);

    /* Removes a binding.  ENOENT if there is none.  (A binding also goes with
     * its port and with its route table.) */
    int (*unbind)(struct dpif *, odp_port_t in_port, uint32_t recirc_id);

    /* Stores in '*bindingsp' an array of '*n' elements with the bindings to
     * route table 'table_id', none if there is no such table.  The caller must
     * free() '*bindingsp'. */
    int (*get_bindings)(const struct dpif *, uint32_t table_id,
                        struct dpif_planb_binding **bindingsp, size_t *n);

    /* Stores in 'stats' how many packets and bytes "count_route" has counted
     * for route 'index' since the datapath was created, over all threads past
     * and present, and the last time in msec that the count was seen to have
     * grown, by this call or by sweep() (0 if never).  'tcp_flags' is 0. */
    int (*get_route_stats)(const struct dpif *, uint32_t index,
                           struct dpif_flow_stats *stats);

    /* Looks at the counters of every route, so that 'used' in
     * get_route_stats() is no older than the time since the last sweep. */
    int (*sweep)(struct dpif *, long long int now);

    /* Stores in '*statsp' an array of '*n' elements with one element for each
     * thread that may look packets up in 'table_id'.  The caller must free()
     * '*statsp'. */
    int (*get_table_stats)(const struct dpif *, uint32_t table_id,
                           struct dpif_planb_pmd_stats **statsp, size_t *n);
};

/* These call the datapath's implementation, and return EOPNOTSUPP if it has
 * none. */
int dpif_planb_get_features(const struct dpif *, struct dpif_planb_features *);
int dpif_planb_add_routes(struct dpif *, const struct dpif_planb_route[],
                          size_t n);
int dpif_planb_set_table(struct dpif *, uint32_t table_id, struct planb *tree,
                         uint64_t generation, uint32_t miss_index);
int dpif_planb_del_table(struct dpif *, uint32_t table_id);
int dpif_planb_bind(struct dpif *, odp_port_t in_port, uint32_t recirc_id,
                    uint32_t table_id);
int dpif_planb_unbind(struct dpif *, odp_port_t in_port, uint32_t recirc_id);
int dpif_planb_get_bindings(const struct dpif *, uint32_t table_id,
                            struct dpif_planb_binding **, size_t *n);
int dpif_planb_get_route_stats(const struct dpif *, uint32_t index,
                               struct dpif_flow_stats *);
int dpif_planb_sweep(struct dpif *, long long int now);
int dpif_planb_get_table_stats(const struct dpif *, uint32_t table_id,
                               struct dpif_planb_pmd_stats **, size_t *n);

#ifdef  __cplusplus
}
#endif

#endif /* dpif-planb.h */
