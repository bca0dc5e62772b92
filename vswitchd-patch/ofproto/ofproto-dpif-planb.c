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

#include "ofproto-dpif-planb.h"
#include "ofproto-dpif-planb-provider.h"

#include "classifier.h"
#include "flow.h"
#include "hash.h"
#include "ofproto-provider.h"
#include "openvswitch/match.h"
#include "openvswitch/ofp-match.h"
#include "openvswitch/vlog.h"
#include "packets.h"
#include "seq.h"
#include "smap.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(ofproto_dpif_planb);

struct cmap planb_rts = CMAP_INITIALIZER;

struct ovs_list planb_bridges = OVS_LIST_INITIALIZER(&planb_bridges);

/* The last route table that was given a number in the datapath.  No number is
 * ever used again. */
static uint32_t last_dp_id;

/* Rules. */

/* Initializes PlanB's part of 'rule'. */
void
planb_rule_init(struct rule_dpif *rule)
{
    rule->planb.route = NULL;
    atomic_init(&rule->planb.class_id, 0);
    ovs_list_init(&rule->planb.counters);
}

static void
route_free(struct planb_route *route)
{
    planb_rt_unref(route->table);
    free(route);
}

/* Takes 'route' out of its class and frees it when nobody can see it any
 * more.  The rule's counter remains. */
static void
route_destroy(struct planb_route *route)
{
    if (route->class) {
        planb_class_remove_route(route);
    }
    ovsrcu_postpone(route_free, route);
}

/* Frees PlanB's part of 'rule', which is not in the flow table any more and
 * has no counters left. */
void
planb_rule_uninit(struct rule_dpif *rule)
{
    ovs_assert(ovs_list_is_empty(&rule->planb.counters));
    if (rule->planb.route) {
        route_destroy(rule->planb.route);
    }
}

/* Returns the route of 't' that has route index 'index', or NULL if there is
 * none. */
struct planb_route *
planb_route_from_index(struct planb_rt *t, uint32_t index)
    OVS_REQUIRES(ofproto_mutex)
{
    struct planb_backer *backer = t->backer;
    struct planb_route *route = NULL;
    struct planb_counter *counter;

    ovs_mutex_lock(&backer->mutex);
    counter = planb_counter_lookup(backer, index);
    if (counter) {
        struct rule_dpif *rule;

        atomic_read_relaxed(&counter->rule, &rule);
        route = rule ? rule->planb.route : NULL;
    }
    ovs_mutex_unlock(&backer->mutex);
    return route && route->table == t ? route : NULL;
}

/* What a rule is to a route table. */
enum rule_kind {
    RULE_KIND_OTHER,            /* Matches no IPv6 packet. */
    RULE_KIND_ROUTE,
    RULE_KIND_BLOCKER,          /* Matches IPv6, but is not a route. */
};

/* Finds out what 'rule' is to a route table.  For a route, stores its prefix
 * and priority in '*prefix'; for a blocker, what is wrong in '*why'. */
static enum rule_kind
classify_rule(const struct rule *rule, struct planb_prefix *prefix,
              const char **why)
{
    struct flow_wildcards *wc;
    struct in6_addr mask;
    struct match match;

    minimatch_expand(&rule->cr.match, &match);
    wc = &match.wc;

    if (wc->masks.dl_type && match.flow.dl_type != htons(ETH_TYPE_IPV6)) {
        return RULE_KIND_OTHER;
    }
    if (wc->masks.packet_type == OVS_BE32_MAX
        && match.flow.packet_type != htonl(PT_ETH)) {
        return RULE_KIND_OTHER;
    }

    mask = wc->masks.ipv6_dst;
    wc->masks.dl_type = 0;
    if (match.flow.packet_type == htonl(PT_ETH)) {
        wc->masks.packet_type = 0;
    }
    wc->masks.ipv6_dst = in6addr_any;
    wc->masks.tunnel.metadata.tab = NULL;
    if (!flow_wildcards_is_catchall(wc)) {
        *why = "matches more than an IPv6 destination";
        return RULE_KIND_BLOCKER;
    }
    if (!ipv6_is_cidr(&mask)) {
        *why = "matches a destination mask that is not a prefix";
        return RULE_KIND_BLOCKER;
    }

    memcpy(prefix->addr, &match.flow.ipv6_dst, sizeof prefix->addr);
    prefix->plen = ipv6_count_cidr_bits(&mask);
    prefix->priority = rule->cr.priority;
    return RULE_KIND_ROUTE;
}

/* Creates the route, or the obstacle, that 'rule' is to table 't'.  Returns
 * NULL if it is neither. */
static struct planb_route *
route_create(struct planb_rt *t, struct rule_dpif *rule)
{
    struct planb_prefix prefix;
    const char *why = NULL;
    enum rule_kind kind = classify_rule(&rule->up, &prefix, &why);

    if (kind == RULE_KIND_OTHER) {
        return NULL;
    }

    struct planb_route *route = xzalloc(sizeof *route);

    route->rule = rule;
    route->table = t;
    ovs_refcount_ref(&t->ref_cnt);
    route->blocks = why;
    if (!route->blocks && !planb_class_add_route(route)) {
        route->blocks = "found no free route class";
    }
    if (!route->blocks) {
        route->counter = planb_counter_create(t->backer, route->class->id,
                                              rule);
        if (route->counter) {
            route->prefix = prefix;
            route->prefix.value = route->counter->index;
            atomic_store_relaxed(&rule->planb.class_id, route->class->id);
        } else {
            planb_class_remove_route(route);
            route->blocks = "found no free route index in the datapath";
        }
    }
    rule->planb.route = route;
    return route;
}

/* Whether the routes to ::/0 of 't' contradict each other: the classifier
 * knows two kinds, "ipv6" and rules that match everything. */
static bool
table_has_ambiguous_default(const struct planb_rt *t,
                            const struct planb_route *pair[2])
{
    const struct planb_route *a, *b;

    LIST_FOR_EACH (a, node, &t->defaults) {
        LIST_FOR_EACH (b, node, &t->defaults) {
            if (a != b && a->prefix.priority == b->prefix.priority) {
                if (pair) {
                    pair[0] = a;
                    pair[1] = b;
                }
                return true;
            }
        }
    }
    return false;
}

static void
table_stage(struct planb_rt *t, struct planb_route *route)
{
    if (route->staged) {
        return;
    }
    route->staged = true;
    ofproto_rule_ref(&route->rule->up);
    if (t->n_staged >= t->allocated_staged) {
        t->staged = x2nrealloc(t->staged, &t->allocated_staged,
                               sizeof *t->staged);
    }
    t->staged[t->n_staged++] = route;
}

/* Adds 'rule' to 't' if 'inserted', otherwise removes it. */
static void
table_rule_changed(struct planb_rt *t, struct rule_dpif *rule,
                   bool inserted)
    OVS_REQUIRES(ofproto_mutex)
{
    struct planb_route *route = rule->planb.route;

    if (inserted && !route) {
        route = route_create(t, rule);
    }
    if (!route || route->table != t) {
        return;
    }

    route->inserted = inserted;
    if (!inserted) {
        ovs_list_remove(&route->node);
    } else if (route->blocks) {
        ovs_list_push_back(&t->blockers, &route->node);
    } else {
        ovs_list_push_back(route->prefix.plen ? &t->routes : &t->defaults,
                           &route->node);
    }
    if (!route->blocks) {
        t->n_routes += inserted ? 1 : -1;
        planb_class_count_route(route->class, inserted);
    }
    table_stage(t, route);
}

/* Called when 'rule' has been inserted into its flow table ('inserted' true)
 * or removed from it, also when this undoes an earlier change. */
void
planb_rule_changed(struct rule_dpif *rule, bool inserted)
    OVS_REQUIRES(ofproto_mutex)
{
    const struct ofproto_dpif *ofproto
        = CONTAINER_OF(rule->up.ofproto, struct ofproto_dpif, up);
    struct planb_rt *t = planb_rt_lookup(ofproto, rule->up.table_id);

    if (t) {
        table_rule_changed(t, rule, inserted);
    }
}

static void
table_push_change(struct planb_rt *t, const struct planb_route *route)
    OVS_REQUIRES(t->mutex)
{
    if (t->n_changes >= t->allocated_changes) {
        t->changes = x2nrealloc(t->changes, &t->allocated_changes,
                                sizeof *t->changes);
    }
    t->changes[t->n_changes++] = (struct planb_change) {
        .prefix = route->prefix,
        .class_id = route->inserted ? route->class->id : 0,
    };
}

/* Has the compiler retire 'counter' of 'rule', of which the caller gives up
 * a reference, when no packet can be counted under it any more. */
static void
table_push_drain(struct planb_rt *t, struct rule_dpif *rule,
                 struct planb_counter *counter)
    OVS_REQUIRES(t->mutex)
{
    if (t->n_drains >= t->allocated_drains) {
        t->drains = x2nrealloc(t->drains, &t->allocated_drains,
                               sizeof *t->drains);
    }
    t->drains[t->n_drains++] = (struct planb_drain) {
        .rule = rule,
        .counter = counter,
    };
}

/* Finds out whether 't' can be accelerated as its rules are, and if not, stops
 * that at once. */
static void
planb_rt_update__(struct planb_rt *t)
    OVS_REQUIRES(t->mutex)
{
    t->wanted = (ovs_list_is_empty(&t->blockers)
                 && !table_has_ambiguous_default(t, NULL));
    if (!t->wanted) {
        atomic_store_relaxed(&t->since, OVS_VERSION_MAX);
    }
}

/* Hands the changes of 't' over to the compiler.  'version' is the version of
 * the flow tables that they lead to. */
static void
table_commit(struct planb_rt *t, ovs_version_t version)
    OVS_REQUIRES(ofproto_mutex)
{
    size_t i;

    ovs_mutex_lock(&t->mutex);
    planb_rt_update__(t);
    t->version = version;

    /* A route can take the place of another one with the same prefix and
     * priority, so what leaves comes first. */
    for (i = 0; i < t->n_staged; i++) {
        struct planb_route *route = t->staged[i];

        if (!route->inserted && !route->blocks) {
            const struct planb_route *other;

            table_push_change(t, route);
            if (!route->prefix.plen) {
                /* There may be another default route of the same priority,
                 * which to the tree is the same prefix. */
                LIST_FOR_EACH (other, node, &t->defaults) {
                    if (other->prefix.priority == route->prefix.priority) {
                        table_push_change(t, other);
                    }
                }
            }
        }
    }
    for (i = 0; i < t->n_staged; i++) {
        struct planb_route *route = t->staged[i];

        route->staged = false;
        if (route->blocks) {
            ofproto_rule_unref(&route->rule->up);
        } else if (route->inserted) {
            table_push_change(t, route);
            ofproto_rule_unref(&route->rule->up);
        } else {
            /* Keeps the reference, so that a "flow removed" message waits for
             * the last packets. */
            table_push_drain(t, route->rule, route->counter);
            route->counter = NULL;
        }
    }
    t->n_staged = 0;
    t->n_commits++;
    ovs_mutex_unlock(&t->mutex);

    latch_set(&t->backer->wake);
}

/* Called when the flow tables of 'ofproto' are about to become visible in
 * 'version', after planb_rule_changed() has been called for all changes that
 * lead there. */
void
planb_commit(struct ofproto_dpif *ofproto, ovs_version_t version)
    OVS_REQUIRES(ofproto_mutex)
{
    struct planb_rt *t;

    LIST_FOR_EACH (t, bridge_node, &ofproto->planb->active) {
        if (t->n_staged) {
            table_commit(t, version);
        }
    }
}

/* Tables. */

/* Returns the planb_rt for table 'table_id' of 'ofproto', or NULL if there
 * is none. */
struct planb_rt *
planb_rt_lookup(const struct ofproto_dpif *ofproto, uint8_t table_id)
{
    return (table_id < PLANB_N_TABLES
            ? ovsrcu_get(struct planb_rt *, &ofproto->planb->tables[table_id])
            : NULL);
}

/* Returns the planb_rt that the datapath knows as 'dp_id', or NULL if there
 * is none. */
struct planb_rt *
planb_rt_from_dp_id(uint32_t dp_id)
{
    struct planb_rt *t;

    CMAP_FOR_EACH_WITH_HASH (t, dp_node, hash_int(dp_id, 0), &planb_rts) {
        if (t->dp_id == dp_id) {
            return t;
        }
    }
    return NULL;
}

/* Returns true if lookups in 't' go by the class in 'version' of the flow
 * tables. */
bool
planb_rt_is_accelerated(const struct planb_rt *t, ovs_version_t version)
{
    ovs_version_t since;

    atomic_read_relaxed(&CONST_CAST(struct planb_rt *, t)->since, &since);
    return version >= since && since != OVS_VERSION_MAX;
}

/* Appends to 's' why 't' is not accelerated. */
void
planb_rt_format_reason(struct planb_rt *t, struct ds *s)
    OVS_REQUIRES(ofproto_mutex)
{
    const struct planb_route *pair[2];

    ovs_mutex_lock(&t->mutex);
    if (!ovs_list_is_empty(&t->blockers)) {
        const struct planb_route *route
            = CONTAINER_OF(ovs_list_front(&t->blockers), struct planb_route,
                           node);

        ds_put_cstr(s, "rule \"");
        cls_rule_format(&route->rule->up.cr,
                        ofproto_get_tun_tab(route->rule->up.ofproto), NULL, s);
        ds_put_format(s, "\" %s", route->blocks);
    } else if (table_has_ambiguous_default(t, pair)) {
        ds_put_format(s, "two default routes have priority %"PRIu32,
                      pair[0]->prefix.priority);
    } else if (t->failure == PLANB_BUILD_CONFLICT) {
        int i;

        ds_put_cstr(s, "routes ");
        for (i = 0; i < 2; i++) {
            struct in6_addr addr;

            memcpy(&addr, t->conflict[i].addr, sizeof addr);
            ds_put_cstr(s, i ? " and " : "");
            ipv6_format_addr(&addr, s);
            ds_put_format(s, "/%d", t->conflict[i].plen);
        }
        ds_put_format(s, " overlap and both have priority %"PRIu32,
                      t->conflict[0].priority);
    } else if (t->failure == PLANB_BUILD_ERROR) {
        ds_put_format(s, "build failed (%s)", ovs_strerror(t->error));
    } else {
        ds_put_cstr(s, "the first tree is being built");
    }
    ovs_mutex_unlock(&t->mutex);
}

static void
planb_rt_free(struct planb_rt *t)
{
    ovs_mutex_destroy(&t->mutex);
    hmap_destroy(&t->classes);
    free(t->staged);
    free(t->changes);
    free(t->drains);
    free(t);
}

/* Gives up a reference to 't'. */
void
planb_rt_unref(struct planb_rt *t)
{
    if (ovs_refcount_unref(&t->ref_cnt) == 1) {
        ovsrcu_postpone(planb_rt_free, t);
    }
}

/* Starts to follow table 'table_id' of 'ofproto'. */
static void
planb_rt_enable(struct ofproto_dpif *ofproto, struct planb_bridge *bridge,
                   uint8_t table_id)
    OVS_EXCLUDED(ofproto_mutex)
{
    struct planb_backer *backer = ofproto->backer->planb;
    struct planb_rt *t;
    struct rule_dpif *rule;

    t = xzalloc(sizeof *t);
    ovs_refcount_init(&t->ref_cnt);
    t->ofproto = ofproto;
    t->backer = backer;
    t->table_id = table_id;
    atomic_init(&t->since, OVS_VERSION_MAX);
    ovs_list_init(&t->routes);
    ovs_list_init(&t->blockers);
    ovs_list_init(&t->defaults);
    hmap_init(&t->classes);
    ovs_mutex_init(&t->mutex);
    ovsrcu_init(&t->tree, NULL);

    if (last_dp_id == UINT32_MAX || !planb_class_create_miss(t)) {
        VLOG_WARN("bridge %s: table %"PRIu8" is not accelerated: no free "
                  "route class", ofproto->up.name, table_id);
        planb_rt_free(t);
        return;
    }
    t->miss_id = t->miss->id;
    t->miss_counter = planb_counter_create(backer, t->miss_id, NULL);
    if (!t->miss_counter) {
        VLOG_WARN("bridge %s: table %"PRIu8" is not accelerated: no free "
                  "route index", ofproto->up.name, table_id);
        planb_class_destroy_miss(t);
        planb_rt_free(t);
        return;
    }
    t->miss_index = t->miss_counter->index;
    t->dp_id = ++last_dp_id;
    cmap_insert(&planb_rts, &t->dp_node, hash_int(t->dp_id, 0));

    ovs_mutex_lock(&ofproto_mutex);
    ovsrcu_set(&bridge->tables[table_id], t);
    ovs_list_push_back(&bridge->active, &t->bridge_node);
    CLS_FOR_EACH (rule, up.cr, &ofproto->up.tables[table_id].cls) {
        if (rule->up.state == RULE_INSERTED) {
            table_rule_changed(t, rule, true);
        }
    }
    table_commit(t, ofproto->up.tables_version);
    ovs_mutex_unlock(&ofproto_mutex);

    planb_compiler_add_table(t);
}

/* Takes 'route' out of 't', which is about to go. */
static void
table_detach_route(struct planb_rt *t, struct planb_route *route)
    OVS_REQUIRES(ofproto_mutex)
    OVS_REQUIRES(t->mutex)
{
    struct rule_dpif *rule = route->rule;

    ovs_list_remove(&route->node);
    rule->planb.route = NULL;
    atomic_store_relaxed(&rule->planb.class_id, 0);
    if (route->counter) {
        ofproto_rule_ref(&rule->up);
        table_push_drain(t, rule, route->counter);
    }
    route_destroy(route);
}

/* Stops following the table that 't' follows in 'bridge'. */
static void
planb_rt_disable(struct planb_bridge *bridge, struct planb_rt *t)
    OVS_EXCLUDED(ofproto_mutex)
{
    struct planb_route *route;

    ovs_mutex_lock(&ofproto_mutex);
    if (t->n_staged) {
        table_commit(t, t->ofproto->up.tables_version);
    }

    ovs_mutex_lock(&t->mutex);
    t->wanted = false;
    t->dead = true;
    atomic_store_relaxed(&t->since, OVS_VERSION_MAX);
    ovsrcu_set(&bridge->tables[t->table_id], NULL);
    ovs_list_remove(&t->bridge_node);
    LIST_FOR_EACH_SAFE (route, node, &t->routes) {
        table_detach_route(t, route);
    }
    LIST_FOR_EACH_SAFE (route, node, &t->defaults) {
        table_detach_route(t, route);
    }
    LIST_FOR_EACH_SAFE (route, node, &t->blockers) {
        table_detach_route(t, route);
    }
    table_push_drain(t, NULL, t->miss_counter);
    t->n_commits++;
    ovs_mutex_unlock(&t->mutex);
    ovs_mutex_unlock(&ofproto_mutex);

    cmap_remove(&planb_rts, &t->dp_node, hash_int(t->dp_id, 0));
    planb_class_destroy_miss(t);

    atomic_store_relaxed(&t->backer->need_revalidate, true);
    seq_change(t->backer->seq);
    latch_set(&t->backer->wake);
}

/* Bridges. */

/* Makes the tables of 'ofproto' that are followed those that should be. */
static void
planb_bridge_update(struct ofproto_dpif *ofproto)
{
    struct planb_bridge *bridge = ofproto->planb;
    const struct planb_backer *backer = ofproto->backer->planb;
    uint8_t table_id;

    for (table_id = 0; table_id < PLANB_N_TABLES; table_id++) {
        struct planb_rt *t = planb_rt_lookup(ofproto, table_id);
        bool wanted = (backer->enabled && backer->supported
                       && bitmap_is_set(bridge->wanted, table_id));

        if (wanted && !t) {
            planb_rt_enable(ofproto, bridge, table_id);
        } else if (!wanted && t) {
            planb_rt_disable(bridge, t);
        }
    }
}

/* Parses 'tables', which is a list of table numbers and ranges of them
 * separated by commas, into the 'wanted' of 'bridge'.  What makes no sense is
 * left out and stored in 'bad_config'. */
static void
parse_tables(struct planb_bridge *bridge, const char *tables)
{
    char *copy = xstrdup(tables);
    char *save_ptr = NULL;
    char *s;

    memset(bridge->wanted, 0, sizeof bridge->wanted);
    free(bridge->bad_config);
    bridge->bad_config = NULL;
    for (s = strtok_r(copy, ", \t\n", &save_ptr); s;
         s = strtok_r(NULL, ", \t\n", &save_ptr)) {
        unsigned int first, last;
        int n = -1;

        if (ovs_scan(s, "%u-%u%n", &first, &last, &n) && !s[n]) {
            /* A range. */
        } else if (n = -1, ovs_scan(s, "%u%n", &first, &n) && !s[n]) {
            last = first;
        } else {
            first = 1;
            last = 0;
        }
        if (first <= last && last < PLANB_N_TABLES) {
            bitmap_set_multiple(bridge->wanted, first, last - first + 1, true);
        } else if (!bridge->bad_config) {
            bridge->bad_config = xstrdup(s);
        } else {
            char *bad = xasprintf("%s,%s", bridge->bad_config, s);

            free(bridge->bad_config);
            bridge->bad_config = bad;
        }
    }
    free(copy);
}

/* Creates PlanB's part of 'ofproto', which has no route tables at first. */
void
planb_bridge_create(struct ofproto_dpif *ofproto)
{
    ofproto->planb = xzalloc(sizeof *ofproto->planb);
    ofproto->planb->ofproto = ofproto;
    ofproto->planb->config = xstrdup("");
    ovs_list_push_back(&planb_bridges, &ofproto->planb->node);
    ovs_list_init(&ofproto->planb->active);
}

/* Makes the tables in 'tables' route tables of 'ofproto', for example
 * "10,20-29".  NULL or an empty string means none. */
void
planb_bridge_set_tables(struct ofproto_dpif *ofproto, const char *tables)
{
    struct planb_bridge *bridge = ofproto->planb;

    tables = tables ? tables : "";
    if (strcmp(tables, bridge->config)) {
        free(bridge->config);
        bridge->config = xstrdup(tables);
        parse_tables(bridge, tables);
        if (bridge->bad_config) {
            VLOG_WARN("bridge %s: planb-tables: ignoring \"%s\", which is not "
                      "a table number from 0 to %d or a range of them",
                      ofproto->up.name, bridge->bad_config,
                      PLANB_N_TABLES - 1);
        }
    }
    planb_bridge_update(ofproto);
}

/* Ends acceleration for 'ofproto', whose translations have ended.  Waits for
 * the compiler.  The flow tables may still change. */
void
planb_bridge_destroy(struct ofproto_dpif *ofproto)
{
    struct planb_bridge *bridge = ofproto->planb;
    struct planb_rt *t;

    LIST_FOR_EACH_SAFE (t, bridge_node, &bridge->active) {
        planb_rt_disable(bridge, t);
    }
    planb_compiler_flush(ofproto->backer->planb);

    ovs_list_remove(&bridge->node);
}

/* Frees PlanB's part of 'ofproto', to which nobody refers any more. */
void
planb_bridge_free(struct ofproto_dpif *ofproto)
{
    struct planb_bridge *bridge = ofproto->planb;

    if (bridge) {
        free(bridge->config);
        free(bridge->bad_config);
        free(bridge);
    }
}

/* Datapaths. */

/* Creates PlanB's part of the datapath 'dpif'. */
struct planb_backer *
planb_backer_create(struct dpif *dpif)
{
    struct planb_backer *backer = xzalloc(sizeof *backer);
    struct dpif_planb_features features;

    if (dpif_planb_get_features(dpif, &features)) {
        features.max_routes = 0;
    }

    planb_init();
    backer->dpif = dpif;
    backer->seq = seq_create();
    backer->last_seq = seq_read(backer->seq);
    atomic_init(&backer->need_revalidate, false);
    latch_init(&backer->wake);
    latch_init(&backer->exit);
    ovs_mutex_init(&backer->mutex);
    ovs_list_init(&backer->tables);
    backer->block_nos = id_pool_create(0, (features.max_routes
                                           / DPIF_PLANB_BLOCK_SIZE));
    hmap_init(&backer->class_blocks);
    cmap_init(&backer->bindings);
    return backer;
}

/* Frees 'backer'.  Its datapath must have no bridges any more, and RCU no
 * callbacks. */
void
planb_backer_destroy(struct planb_backer *backer)
{
    planb_compiler_stop(backer);
    cmap_destroy(&backer->bindings);
    id_pool_destroy(backer->block_nos);
    hmap_destroy(&backer->class_blocks);
    free(backer->blocks);
    ovs_mutex_destroy(&backer->mutex);
    latch_destroy(&backer->exit);
    latch_destroy(&backer->wake);
    seq_destroy(backer->seq);
    free(backer);
}

/* Turns acceleration on or off for 'backer', whose datapath can do it if
 * 'supported'. */
void
planb_backer_set_enabled(struct planb_backer *backer, bool enabled,
                         bool supported)
{
    struct planb_bridge *bridge;

    if (backer->enabled == enabled && backer->supported == supported) {
        return;
    }
    backer->enabled = enabled;
    backer->supported = supported;
    LIST_FOR_EACH (bridge, node, &planb_bridges) {
        if (bridge->ofproto->backer->planb == backer) {
            planb_bridge_update(bridge->ofproto);
        }
    }
}

/* Does what is due in the main thread.  Returns true if all megaflows need to
 * be revalidated. */
bool
planb_backer_run(struct planb_backer *backer)
{
    bool need_revalidate;

    backer->last_seq = seq_read(backer->seq);
    /* What happens between these two is covered by the revalidation that
     * follows. */
    atomic_read_relaxed(&backer->need_revalidate, &need_revalidate);
    if (need_revalidate) {
        atomic_store_relaxed(&backer->need_revalidate, false);
    }
    planb_show_run();
    return need_revalidate;
}

/* Arranges for poll_block() to wake up when planb_backer_run() is due. */
void
planb_backer_wait(struct planb_backer *backer)
{
    seq_wait(backer->seq, backer->last_seq);
}

/* Registers the commands. */
void
planb_init(void)
{
    static struct ovsthread_once once = OVSTHREAD_ONCE_INITIALIZER;

    if (ovsthread_once_start(&once)) {
        planb_show_init();
        ovsthread_once_done(&once);
    }
}
