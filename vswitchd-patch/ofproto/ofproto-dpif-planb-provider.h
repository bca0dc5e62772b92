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

#ifndef OFPROTO_DPIF_PLANB_PROVIDER_H
#define OFPROTO_DPIF_PLANB_PROVIDER_H 1

/* Data structures that the files ofproto-dpif-planb*.c share.
 *
 * Locks, in the order in which they are taken: ofproto_mutex, planb_rt's
 * 'mutex', rule_dpif's 'stats_mutex', the mutex of
 * ofproto-dpif-planb-class.c, planb_backer's 'mutex'. */

#include <netinet/in.h>

#include "bitmap.h"
#include "cmap.h"
#include "dpif-planb.h"
#include "id-pool.h"
#include "latch.h"
#include "ofproto-dpif.h"
#include "ofproto-dpif-planb.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/hmap.h"
#include "ovs-atomic.h"
#include "ovs-thread.h"
#include "planb.h"
#include "rculist.h"

/* A route class. */
struct planb_class {
    struct cmap_node id_node;       /* In 'planb_classes'. */
    struct hmap_node key_node;      /* In planb_rt's 'classes'. */
    struct planb_rt *table;
    uint32_t id;

    /* What makes two routes of a table translate alike. */
    struct ofpact *ofpacts;
    size_t ofpacts_len;
    ovs_be64 cookie;                /* 0 if no translation can show it. */
    const struct rule_dpif *own;    /* Only for this rule, if nonnull. */

    /* Packets with this hop limit or less, if they get so far, have the
     * translation show which route they took. */
    uint8_t max_exposed_ttl;

    struct rculist routes;          /* "struct planb_route"s' 'class_node'. */
    size_t n_routes;                /* Those in the flow table. */
};

/* A rule in a route table that can match IPv6 packets. */
struct planb_route {
    struct rule_dpif *rule;
    struct planb_rt *table;      /* Holds a reference. */
    struct ovs_list node;           /* In planb_rt's list. */
    bool inserted;                  /* In the flow table? */
    bool staged;                    /* Among planb_rt's 'staged'? */
    const char *blocks;             /* Why it is not a route, or NULL. */

    /* Only if 'blocks' is NULL. */
    struct planb_class *class;
    struct rculist class_node;      /* In planb_class's 'routes'. */
    struct planb_counter *counter;
    struct planb_prefix prefix;     /* 'value' is the route index. */
};

/* The packets and bytes of a route index belong to a rule from the time the
 * index is given to it until no packet can be counted under it any more. */
struct planb_counter {
    struct ovs_list node;           /* In planb_rule's 'counters'. */
    struct planb_backer *backer;
    uint32_t index;                 /* Route index. */

    /* The rule to credit.  Written with the 'stats_mutex' of both the old and
     * the new rule. */
    ATOMIC(struct rule_dpif *) rule;

    /* What has been credited already. */
    uint64_t n_packets, n_bytes;
};

/* The blocks of route indexes of a class. */
struct planb_class_blocks {
    struct hmap_node node;          /* In planb_backer's 'class_blocks'. */
    uint32_t class_id;
    size_t n_blocks;
    struct ovs_list open;           /* "struct planb_block"s that have free
                                     * indexes. */
};

/* A block of route indexes, all of one class. */
struct planb_block {
    struct planb_class_blocks *class_blocks;
    struct ovs_list node;           /* In its 'open', unless full. */
    uint32_t block_no;              /* Indexes divided by their number. */
    unsigned int n_counters;
    struct planb_counter *counters[DPIF_PLANB_BLOCK_SIZE];
    bool used_before[DPIF_PLANB_BLOCK_SIZE]; /* Has the datapath counted? */
};

/* A route that has left the flow table, but that packets may still take. */
struct planb_drain {
    struct rule_dpif *rule;         /* Holds a reference. */
    struct planb_counter *counter;
};

/* One change to the prefixes of a tree. */
struct planb_change {
    struct planb_prefix prefix;
    uint32_t class_id;              /* 0 to remove the prefix. */
};

/* A request for a binding, from a thread that may not wait.  'state' says who
 * may write the rest.  A thread that reads it meanwhile may get a wrong idea
 * of whether a binding is on its way, which does no harm. */
struct planb_request {
    atomic_uint32_t state;          /* One of PLANB_REQUEST_*. */
    atomic_uint32_t in_port;
    atomic_uint32_t recirc_id;
    atomic_llong when;              /* Made, or refused, in msec. */
};

enum {
    PLANB_REQUEST_FREE,             /* Nobody. */
    PLANB_REQUEST_BUSY,             /* The thread that has taken it. */
    PLANB_REQUEST_READY,            /* The compiler, which has to serve it. */
    PLANB_REQUEST_REFUSED,          /* The compiler. */
};

#define PLANB_N_REQUESTS 16

/* Why the compiler could not give the datapath a tree. */
enum planb_failure {
    PLANB_BUILD_OK,                 /* It could. */
    PLANB_BUILD_CONFLICT,           /* Nested routes of equal priority. */
    PLANB_BUILD_ERROR,              /* Out of some resource. */
};

struct planb_rt {
    struct ovs_refcount ref_cnt;
    struct ofproto_dpif *ofproto;
    struct planb_backer *backer;
    uint8_t table_id;               /* In OpenFlow. */
    uint32_t dp_id;                 /* In the datapath. */
    struct cmap_node dp_node;       /* In 'planb_rts'. */
    struct ovs_list bridge_node;    /* In planb_bridge's 'active'. */

    /* The table is accelerated for translations in this version of the flow
     * tables and later ones.  OVS_VERSION_MAX if it is not. */
    ATOMIC(ovs_version_t) since;

    /* The class of the addresses without a route, and its route index.  The
     * compiler may need the numbers after the class is gone. */
    struct planb_class *miss;
    uint32_t miss_id;
    struct planb_counter *miss_counter;
    uint32_t miss_index;

    /* Protected by ofproto_mutex. */
    struct ovs_list routes;         /* "struct planb_route"s. */
    struct ovs_list blockers;       /* Those that are not routes. */
    struct ovs_list defaults;       /* The routes to ::/0. */
    size_t n_routes, n_defaults;    /* 'defaults' are among 'n_routes'. */
    struct planb_route **staged;    /* Changed since the last commit. */
    size_t n_staged, allocated_staged;

    /* Protected by the mutex of ofproto-dpif-planb-class.c. */
    struct hmap classes;            /* "struct planb_class"es. */
    size_t n_classes;               /* Those with a route in the flow table. */

    /* Shared with the compiler. */
    struct ovs_mutex mutex;
    bool wanted OVS_GUARDED;        /* Nothing but the compiler stops it. */
    bool dead OVS_GUARDED;          /* No longer configured. */
    ovs_version_t version OVS_GUARDED; /* Of the flow tables, last commit. */
    uint64_t n_commits OVS_GUARDED; /* Handed over to the compiler. */
    uint64_t n_compiled OVS_GUARDED; /* Of those, compiled. */
    uint64_t n_settled OVS_GUARDED; /* Of those, in use by all threads. */
    struct planb_change *changes OVS_GUARDED;
    size_t n_changes OVS_GUARDED, allocated_changes OVS_GUARDED;
    struct planb_drain *drains OVS_GUARDED;
    size_t n_drains OVS_GUARDED, allocated_drains OVS_GUARDED;

    /* What the compiler tells of the last build. */
    enum planb_failure failure OVS_GUARDED;
    struct planb_prefix conflict[2] OVS_GUARDED;
    int error OVS_GUARDED;          /* A positive errno value. */
    struct planb_stats stats OVS_GUARDED;
    uint64_t generation OVS_GUARDED; /* Of the tree, 0 if there is none. */
    size_t n_builds OVS_GUARDED;
    long long int build_usec OVS_GUARDED;
    size_t batch_size OVS_GUARDED;
    size_t n_refused OVS_GUARDED;   /* Bindings that another table has. */

    /* The tree in the datapath, NULL if there is none.  Written by the
     * compiler. */
    OVSRCU_TYPE(struct planb *) tree;

    /* The compiler's own. */
    struct ovs_list compile_node;   /* In planb_backer's 'tables'. */
    struct planb_table *prefixes;   /* What the next tree is built from. */
    bool unpublished;               /* Has changed since the last tree. */

    struct planb_request requests[PLANB_N_REQUESTS];
};

/* Packets of one datapath port and recirculation ID are looked up in one
 * table. */
struct planb_binding {
    struct cmap_node node;          /* In planb_backer's 'bindings'. */
    struct ovs_refcount ref_cnt;
    odp_port_t in_port;
    uint32_t recirc_id;
    struct planb_rt *table;      /* Valid while in 'bindings'. */
    long long int bound;            /* Last time, for the compiler. */
    atomic_llong used;              /* Last time that it served, in msec. */
};

/* The part of PlanB that belongs to a datapath. */
struct planb_backer {
    struct dpif *dpif;
    bool enabled, supported;        /* Main thread only. */
    struct seq *seq;                /* Changes when the main thread is due. */
    uint64_t last_seq;
    atomic_bool need_revalidate;

    /* The compiler thread, which runs only while there are tables. */
    pthread_t thread;
    bool running;
    struct latch wake, exit;

    struct ovs_mutex mutex;
    struct ovs_list tables OVS_GUARDED; /* "struct planb_rt"s. */
    struct id_pool *block_nos OVS_GUARDED; /* Blocks of route indexes. */
    struct planb_block **blocks OVS_GUARDED; /* By number. */
    uint32_t n_blocks OVS_GUARDED;  /* All that there ever were. */
    size_t allocated_blocks OVS_GUARDED;
    struct hmap class_blocks OVS_GUARDED; /* "struct planb_class_blocks"es. */

    /* Written by the compiler, with 'mutex'. */
    struct cmap bindings;           /* "struct planb_binding"s. */
};

/* The tables of a bridge that can be route tables: all but TBL_INTERNAL. */
#define PLANB_N_TABLES TBL_INTERNAL

/* The part of PlanB that belongs to a bridge. */
struct planb_bridge {
    struct ovs_list node;           /* In 'planb_bridges'. */
    struct ofproto_dpif *ofproto;
    char *config;                   /* planb-tables, as it was given. */
    char *bad_config;               /* What made no sense in it, or NULL. */
    unsigned long wanted[BITMAP_N_LONGS(PLANB_N_TABLES)];

    /* NULL for a table that is not in 'wanted', and for all of them if
     * acceleration is disabled.  Written with ofproto_mutex. */
    OVSRCU_TYPE(struct planb_rt *) tables[PLANB_N_TABLES];
    struct ovs_list active;         /* The same, by 'bridge_node'. */
};

extern struct ovs_list planb_bridges; /* "struct planb_bridge"s, for the main
                                       * thread. */
extern struct cmap planb_rts;    /* "struct planb_rt"s by 'dp_id'. */

struct planb_rt *planb_rt_lookup(const struct ofproto_dpif *,
                                       uint8_t table_id);
struct planb_rt *planb_rt_from_dp_id(uint32_t dp_id);
void planb_rt_unref(struct planb_rt *);
bool planb_rt_is_accelerated(const struct planb_rt *, ovs_version_t);
void planb_rt_format_reason(struct planb_rt *, struct ds *);
struct planb_route *planb_route_from_index(struct planb_rt *,
                                           uint32_t index);

/* ofproto-dpif-planb-class.c. */
const struct planb_class *planb_class_lookup(uint32_t id);
bool planb_class_create_miss(struct planb_rt *);
void planb_class_destroy_miss(struct planb_rt *);
bool planb_class_add_route(struct planb_route *);
void planb_class_remove_route(struct planb_route *);
void planb_class_count_route(struct planb_class *, bool inserted);

/* ofproto-dpif-planb-count.c. */
struct planb_counter *planb_counter_create(struct planb_backer *,
                                           uint32_t class_id,
                                           struct rule_dpif *);
struct planb_counter *planb_counter_lookup(const struct planb_backer *,
                                           uint32_t index);
void planb_counter_retire(struct planb_counter *);

/* ofproto-dpif-planb-compile.c. */
void planb_compiler_add_table(struct planb_rt *);
void planb_compiler_flush(struct planb_backer *);
void planb_compiler_stop(struct planb_backer *);

/* ofproto-dpif-planb-show.c. */
void planb_show_init(void);
void planb_show_run(void);

#endif /* ofproto-dpif-planb-provider.h */
