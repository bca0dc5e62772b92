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

#ifndef OFPROTO_DPIF_PLANB_H
#define OFPROTO_DPIF_PLANB_H 1

/* IPv6 route tables.
 * ==================
 *
 * What
 * ----
 *
 * An OpenFlow table whose IPv6 rules are all plain routes, that is, match
 * nothing or an IPv6 destination prefix alone, can be *accelerated*: the
 * datapath finds the route of each packet itself, with a libplanb tree that is
 * compiled from the table, and hands ofproto nothing but the route's class.
 *
 * All the routes of one table that translate alike share a *route class*.  A
 * class is identified by a nonzero number that is unique in the process and is
 * never used again.  The addresses that no route covers form a class of their
 * own, the table's miss class.
 *
 * A packet that carries a class of the table in which it is looked up is
 * translated by any live route of that class and not by its own address, so
 * that its megaflow need not match the address: it matches the class.
 *
 * Why
 * ---
 *
 * Thousands of routes lead to a handful of behaviors.  With a megaflow for
 * every prefix, each prefix costs an upcall, the datapath classifier searches
 * a subtable for each prefix length, and each change of a route throws
 * megaflows away.  With a megaflow for every class, a change of a route is
 * a change of a tree, of which the megaflows know nothing.
 *
 * How
 * ---
 *
 * 'struct planb_bridge' holds the 'struct planb_rt's of one bridge.  A
 * planb_rt follows the flow table by way of planb_rule_changed() and
 * planb_commit(), and hands the changes over to a compiler thread, one for
 * each datapath (see ofproto-dpif-planb-compile.c), that builds trees and
 * installs them in the datapath.  Nobody waits for that thread.
 *
 * A table is accelerated only while it can be: see planb_rt_update__().  At
 * all other times its lookups are the classifier's, wildcards included, and
 * planb/show tells why.
 *
 * Thread-safety
 * -------------
 *
 * planb_lookup_rule() and the functions for statistics, bindings
 * and translation may be called from any thread.  planb_rule_changed() and
 * planb_commit() require ofproto_mutex.  The rest is for the main thread. */

#include <stdbool.h>
#include <stdint.h>

#include "openvswitch/list.h"
#include "openvswitch/thread.h"
#include "openvswitch/types.h"
#include "ovs-atomic.h"
#include "ovs-rcu.h"
#include "versions.h"

struct dpif;
struct ds;
struct flow;
struct flow_wildcards;
struct ofpact;
struct ofpbuf;
struct ofproto_dpif;
struct planb_backer;
struct planb_binding;
struct planb_bridge;
struct planb_route;
struct rule_dpif;
struct smap;

/* PlanB's part of a 'struct rule_dpif'. */
struct planb_rule {
    /* NULL if the rule is not in a route table, or if it cannot match IPv6.
     * Protected by ofproto_mutex until the rule is destructed. */
    struct planb_route *route;

    /* The route's class, 0 if the rule is not a route. */
    atomic_uint32_t class_id;

    /* Contains "struct planb_counter"s.  Protected by the rule's
     * 'stats_mutex'. */
    struct ovs_list counters;
};

/* Datapaths. */
void planb_init(void);
struct planb_backer *planb_backer_create(struct dpif *);
void planb_backer_destroy(struct planb_backer *);
void planb_backer_set_enabled(struct planb_backer *, bool enabled,
                              bool supported);
bool planb_backer_run(struct planb_backer *);
void planb_backer_wait(struct planb_backer *);

/* Bridges. */
void planb_bridge_create(struct ofproto_dpif *);
void planb_bridge_set_tables(struct ofproto_dpif *, const char *tables);
void planb_bridge_destroy(struct ofproto_dpif *);
void planb_bridge_free(struct ofproto_dpif *);

/* Rules. */
void planb_rule_init(struct rule_dpif *);
void planb_rule_uninit(struct rule_dpif *);
void planb_rule_changed(struct rule_dpif *, bool inserted);
void planb_commit(struct ofproto_dpif *, ovs_version_t);
void planb_rule_harvest(struct rule_dpif *);
void planb_rule_replace(struct rule_dpif *old_rule, struct rule_dpif *rule,
                        bool forward_counts);

/* Translation. */

/* What a lookup made of the route class. */
enum planb_use {
    PLANB_USE_NONE,             /* Nothing. */
    PLANB_USE_BIND,             /* It would, if the packet carried a class. */
    PLANB_USE_CLASS,            /* The class has told what to do. */
    PLANB_USE_ROUTE,            /* The same, and it was the class of a route,
                                 * whose packets the datapath counts. */
};

bool planb_lookup_rule(const struct ofproto_dpif *, ovs_version_t,
                       uint8_t table_id, const struct flow *,
                       struct flow_wildcards *, struct rule_dpif **);
enum planb_use planb_get_use(const struct ofproto_dpif *, uint8_t table_id,
                             const struct rule_dpif *,
                             const struct flow *upcall_flow,
                             const struct flow *, uint32_t *dp_table_id);
void planb_check_destination(const struct flow *upcall_flow, struct flow *);
void planb_note_action(const struct ofpact *, struct flow *);
void planb_put_count_route(struct ofpbuf *odp_actions, unsigned int n);
bool planb_counts_equally(const struct ofpbuf *, const struct ofpbuf *);
void planb_report(const struct rule_dpif *, const struct flow *, struct ds *);

/* Bindings. */

/* What the packets of a megaflow mean to the bindings of their datapath. */
struct planb_binding_use {
    uint32_t dp_table_id;           /* They ask for this table, if nonzero. */
    odp_port_t in_port;
    uint32_t recirc_id;
    struct planb_binding *binding;  /* They have used this one, if nonnull. */
};

bool planb_request_binding(uint32_t dp_table_id, odp_port_t in_port,
                           uint32_t recirc_id);
void planb_binding_use_init(struct planb_binding_use *, struct planb_backer *,
                            uint32_t dp_table_id,
                            const struct flow *upcall_flow);
void planb_binding_use_push(const struct planb_binding_use *);
void planb_binding_use_uninit(struct planb_binding_use *);

#endif /* ofproto-dpif-planb.h */
