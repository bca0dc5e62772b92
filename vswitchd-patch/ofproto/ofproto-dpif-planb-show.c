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

#include <errno.h>

#include "classifier.h"
#include "dpif.h"
#include "flow.h"
#include "netdev-offload.h"
#include "netdev.h"
#include "ofproto-provider.h"
#include "openvswitch/match.h"
#include "openvswitch/ofp-actions.h"
#include "openvswitch/ofp-print.h"
#include "packets.h"
#include "unixctl.h"
#include "util.h"

/* The planb/ commands of ovs-appctl. */

/* A "planb/wait" that has not been answered yet. */
struct waiter {
    struct ovs_list node;
    struct unixctl_conn *conn;
};

static struct ovs_list waiters = OVS_LIST_INITIALIZER(&waiters);

/* Finds the bridge that 'name' names.  If there is none, replies so to 'conn'
 * and returns NULL. */
static struct ofproto_dpif *
find_bridge(struct unixctl_conn *conn, const char *name)
{
    struct ofproto_dpif *ofproto = ofproto_dpif_lookup_by_name(name);

    if (!ofproto) {
        unixctl_command_reply_error(conn, "no such bridge");
    }
    return ofproto;
}

/* Parses 's' as the number of a table that is configured as a route table of
 * 'ofproto'.  If that fails, replies so to 'conn' and returns false. */
static bool
find_table(struct unixctl_conn *conn, const struct ofproto_dpif *ofproto,
           const char *s, uint8_t *table_id)
{
    unsigned int n;

    if (!str_to_uint(s, 10, &n) || n >= PLANB_N_TABLES) {
        unixctl_command_reply_error(conn, "bad table number");
        return false;
    }
    if (!bitmap_is_set(ofproto->planb->wanted, n)) {
        unixctl_command_reply_error(conn,
                                    "table is not listed in planb-tables");
        return false;
    }
    *table_id = n;
    return true;
}

static void
format_prefix(const struct planb_prefix *p, struct ds *s)
{
    struct in6_addr addr;

    memcpy(&addr, p->addr, sizeof addr);
    ipv6_format_addr(&addr, s);
    ds_put_format(s, "/%d", p->plen);
}

static void
show_bindings(const struct planb_rt *t, struct ds *s)
{
    struct dpif_planb_binding *bindings;
    size_t n, i;

    dpif_planb_get_bindings(t->backer->dpif, t->dp_id, &bindings, &n);
    for (i = 0; i < n; i++) {
        const struct dpif_planb_binding *b = &bindings[i];
        struct netdev *netdev = netdev_ports_get(b->in_port,
                                                 dpif_type(t->backer->dpif));

        ds_put_format(s, "    binding: in_port %"PRIu32, b->in_port);
        if (netdev) {
            ds_put_format(s, " (%s)", netdev_get_name(netdev));
            netdev_close(netdev);
        }
        ds_put_format(s, ", recirc_id %#"PRIx32"\n", b->recirc_id);
    }
    if (!n) {
        ds_put_cstr(s, "    binding: none\n");
    }
    free(bindings);
}

static void
show_pmds(const struct planb_rt *t, struct ds *s)
{
    struct dpif_planb_pmd_stats *stats;
    size_t n, i;

    if (dpif_planb_get_table_stats(t->backer->dpif, t->dp_id, &stats, &n)) {
        return;
    }
    for (i = 0; i < n; i++) {
        const struct dpif_planb_pmd_stats *p = &stats[i];

        if (p->core_id == NON_PMD_CORE_ID) {
            ds_put_cstr(s, "    main thread: ");
        } else {
            ds_put_format(s, "    pmd numa_id %d core_id %u: ", p->numa_id,
                          p->core_id);
        }
        ds_put_format(s, "generation %"PRIu64", lookups %"PRIu64", "
                      "hits %"PRIu64"\n", p->generation, p->n_lookups,
                      p->n_hits);
    }
    free(stats);
}

static void
show_table(struct planb_rt *t, struct ds *s)
{
    bool accelerated;

    ovs_mutex_lock(&ofproto_mutex);
    accelerated = planb_rt_is_accelerated(t, t->ofproto->up.tables_version);
    ds_put_format(s, "  table %"PRIu8": %s", t->table_id,
                  accelerated ? "accelerated" : "stock path: ");
    if (!accelerated) {
        planb_rt_format_reason(t, s);
    }
    ds_put_format(s, "\n    routes %"PRIuSIZE", classes %"PRIuSIZE"\n",
                  t->n_routes, t->n_classes);
    ovs_mutex_unlock(&ofproto_mutex);

    ovs_mutex_lock(&t->mutex);
    if (ovsrcu_get(struct planb *, &t->tree)) {
        const struct planb_stats *stats = &t->stats;

        ds_put_format(s, "    tree: intervals %"PRIuSIZE", "
                      "bytes %"PRIuSIZE" (%.1f per route), depth %u, "
                      "kernel %s\n",
                      stats->n_intervals, stats->n_bytes,
                      (double) stats->n_bytes / MAX(stats->n_prefixes, 1),
                      stats->depth, planb_get_kernel());
        ds_put_format(s, "    generation %"PRIu64": built in %lld.%03lld ms "
                      "from %"PRIuSIZE" changes, "
                      "%"PRIuSIZE" changes pending\n",
                      t->generation, t->build_usec / 1000,
                      t->build_usec % 1000, t->batch_size, t->n_changes);
    }
    if (t->n_refused) {
        ds_put_format(s, "    bindings refused: %"PRIuSIZE"\n", t->n_refused);
    }
    ovs_mutex_unlock(&t->mutex);
    if (accelerated) {
        show_bindings(t, s);
        show_pmds(t, s);
    }
}

/* Shows the route tables of 'ofproto', or just 'only' if that is
 * nonnegative. */
static void
show_bridge(const struct ofproto_dpif *ofproto, int only, struct ds *s)
{
    const struct planb_bridge *bridge = ofproto->planb;
    const struct planb_backer *backer = ofproto->backer->planb;
    size_t table_id;

    ds_put_format(s, "%s: planb-tables \"%s\"", ofproto->up.name,
                  bridge->config);
    if (bridge->bad_config) {
        ds_put_format(s, ", of which \"%s\" is ignored", bridge->bad_config);
    }
    ds_put_char(s, '\n');

    BITMAP_FOR_EACH_1 (table_id, PLANB_N_TABLES, bridge->wanted) {
        struct planb_rt *t;

        if (only >= 0 && table_id != only) {
            continue;
        }
        t = planb_rt_lookup(ofproto, table_id);
        if (t) {
            show_table(t, s);
        } else {
            ds_put_format(s, "  table %"PRIuSIZE": stock path: %s\n", table_id,
                          !backer->supported
                          ? "the datapath does not support route tables"
                          : !backer->enabled
                          ? "planb-enable is false"
                          : "out of route classes or indexes");
        }
    }
}

static void
planb_unixctl_show(struct unixctl_conn *conn, int argc, const char *argv[],
                   void *aux OVS_UNUSED)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    if (argc > 1) {
        const struct ofproto_dpif *ofproto = find_bridge(conn, argv[1]);
        int only = -1;

        if (!ofproto) {
            return;
        }
        if (argc > 2) {
            uint8_t table_id;

            if (!find_table(conn, ofproto, argv[2], &table_id)) {
                return;
            }
            only = table_id;
        }
        show_bridge(ofproto, only, &s);
    } else {
        const struct shash_node **nodes;
        const struct planb_bridge *bridge;
        struct shash bridges;
        size_t i;

        shash_init(&bridges);
        LIST_FOR_EACH (bridge, node, &planb_bridges) {
            if (bridge->config[0]) {
                shash_add(&bridges, bridge->ofproto->up.name, bridge->ofproto);
            }
        }
        nodes = shash_sort(&bridges);
        for (i = 0; i < shash_count(&bridges); i++) {
            show_bridge(nodes[i]->data, -1, &s);
        }
        free(nodes);
        shash_destroy(&bridges);
    }
    unixctl_command_reply(conn, ds_cstr(&s));
    ds_destroy(&s);
}

/* Returns the route of 't' that its tree gives for 'addr', NULL for none. */
static const struct planb_route *
tree_lookup(struct planb_rt *t, const struct planb *tree,
            const struct in6_addr *addr)
{
    return planb_route_from_index(t, planb_lookup(tree, addr->s6_addr));
}

/* Returns the rule that the classifier gives for 'addr' in the table of 't',
 * NULL for none. */
static const struct rule_dpif *
classifier_lookup_addr(const struct planb_rt *t, const struct in6_addr *addr)
{
    const struct ofproto_dpif *ofproto = t->ofproto;
    const struct cls_rule *cr;
    struct flow flow;

    memset(&flow, 0, sizeof flow);
    flow.packet_type = htonl(PT_ETH);
    flow.dl_type = htons(ETH_TYPE_IPV6);
    flow.ipv6_dst = *addr;
    cr = classifier_lookup(&ofproto->up.tables[t->table_id].cls,
                           ofproto->up.tables_version, &flow, NULL);
    return cr ? CONTAINER_OF(cr, struct rule_dpif, up.cr) : NULL;
}

static void
format_answer(const char *who, const struct rule_dpif *rule, struct ds *s)
{
    const struct planb_route *route = rule ? rule->planb.route : NULL;

    ds_put_format(s, "%s: ", who);
    if (!rule) {
        ds_put_cstr(s, "no route\n");
        return;
    }
    if (route && !route->blocks) {
        const struct rule_actions *actions = rule_get_actions(&rule->up);
        struct ofpact_format_params fp = { .s = s };

        format_prefix(&route->prefix, s);
        ds_put_format(s, ", priority %"PRIu32", class %"PRIu32", actions=",
                      route->prefix.priority, route->class->id);
        ofpacts_format(actions->ofpacts, actions->ofpacts_len, &fp);
    } else {
        cls_rule_format(&rule->up.cr, ofproto_get_tun_tab(rule->up.ofproto),
                        NULL, s);
    }
    ds_put_char(s, '\n');
}

static void
planb_unixctl_lookup(struct unixctl_conn *conn, int argc OVS_UNUSED,
                     const char *argv[], void *aux OVS_UNUSED)
{
    const struct ofproto_dpif *ofproto = find_bridge(conn, argv[1]);
    struct ds s = DS_EMPTY_INITIALIZER;
    struct in6_addr addr;
    struct planb *tree;
    struct planb_rt *t;
    uint8_t table_id;

    if (!ofproto || !find_table(conn, ofproto, argv[2], &table_id)) {
        return;
    }
    if (!ipv6_parse(argv[3], &addr)) {
        unixctl_command_reply_error(conn, "bad IPv6 address");
        return;
    }
    t = planb_rt_lookup(ofproto, table_id);
    tree = t ? ovsrcu_get(struct planb *, &t->tree) : NULL;
    if (!tree) {
        unixctl_command_reply_error(conn, "table is on the stock path");
        return;
    }

    ovs_mutex_lock(&ofproto_mutex);
    const struct planb_route *route = tree_lookup(t, tree, &addr);
    format_answer("tree", route ? route->rule : NULL, &s);
    format_answer("classifier", classifier_lookup_addr(t, &addr), &s);
    ovs_mutex_unlock(&ofproto_mutex);

    unixctl_command_reply(conn, ds_cstr(&s));
    ds_destroy(&s);
}

/* Adds 1 to 'addr', or subtracts 1 if 'down'.  Returns false if there is no
 * such address. */
static bool
step_address(struct in6_addr *addr, bool down)
{
    uint8_t limit = down ? 0 : UINT8_MAX;
    int i;

    for (i = 15; i >= 0; i--) {
        bool carry = addr->s6_addr[i] == limit;

        addr->s6_addr[i] += down ? -1 : 1;
        if (!carry) {
            return true;
        }
    }
    return false;
}

struct verification {
    size_t n_checked, n_differ;
    struct ds differences;          /* The first few. */
};

static void
verify_address(struct planb_rt *t, const struct planb *tree,
               const struct in6_addr *addr, struct verification *v)
    OVS_REQUIRES(ofproto_mutex)
{
    const struct planb_route *route = tree_lookup(t, tree, addr);
    const struct rule_dpif *a = route ? route->rule : NULL;
    const struct rule_dpif *b = classifier_lookup_addr(t, addr);

    v->n_checked++;
    if (a != b && v->n_differ++ < 10) {
        ds_put_format(&v->differences, "table %"PRIu8", ", t->table_id);
        ipv6_format_addr(addr, &v->differences);
        ds_put_cstr(&v->differences, ":\n");
        format_answer("  tree", a, &v->differences);
        format_answer("  classifier", b, &v->differences);
    }
}

/* Compares the tree of 't' with the classifier for the first and last address
 * of 'prefix' and for the addresses beside it. */
static void
verify_prefix(struct planb_rt *t, const struct planb *tree,
              const struct planb_prefix *prefix, struct verification *v)
    OVS_REQUIRES(ofproto_mutex)
{
    struct in6_addr mask = ipv6_create_mask(prefix->plen);
    struct in6_addr first, last;
    int i;

    memcpy(&first, prefix->addr, sizeof first);
    for (i = 0; i < 16; i++) {
        last.s6_addr[i] = first.s6_addr[i] | (uint8_t) ~mask.s6_addr[i];
    }
    verify_address(t, tree, &first, v);
    verify_address(t, tree, &last, v);
    if (step_address(&first, true)) {
        verify_address(t, tree, &first, v);
    }
    if (step_address(&last, false)) {
        verify_address(t, tree, &last, v);
    }
}

static void
planb_unixctl_verify(struct unixctl_conn *conn, int argc, const char *argv[],
                     void *aux OVS_UNUSED)
{
    const struct ofproto_dpif *ofproto = find_bridge(conn, argv[1]);
    struct verification v = { .differences = DS_EMPTY_INITIALIZER };
    uint8_t only = 0;
    size_t table_id;

    if (!ofproto
        || (argc > 2 && !find_table(conn, ofproto, argv[2], &only))) {
        return;
    }

    BITMAP_FOR_EACH_1 (table_id, PLANB_N_TABLES, ofproto->planb->wanted) {
        const struct planb_prefix all = { .plen = 0 };
        const struct planb_route *route;
        struct planb *tree;
        struct planb_rt *t;

        if (argc > 2 && table_id != only) {
            continue;
        }
        t = planb_rt_lookup(ofproto, table_id);
        tree = t ? ovsrcu_get(struct planb *, &t->tree) : NULL;
        if (!tree) {
            continue;
        }
        ovs_mutex_lock(&ofproto_mutex);
        verify_prefix(t, tree, &all, &v);
        LIST_FOR_EACH (route, node, &t->routes) {
            verify_prefix(t, tree, &route->prefix, &v);
        }
        ovs_mutex_unlock(&ofproto_mutex);
    }

    ds_put_format(&v.differences, "%"PRIuSIZE" checked, %"PRIuSIZE" differ\n",
                  v.n_checked, v.n_differ);
    if (v.n_differ) {
        unixctl_command_reply_error(conn, ds_cstr(&v.differences));
    } else {
        unixctl_command_reply(conn, ds_cstr(&v.differences));
    }
    ds_destroy(&v.differences);
}

/* Returns true if all route tables have trees that are up to date, and every
 * thread uses them. */
static bool
all_settled(void)
{
    const struct planb_bridge *bridge;

    LIST_FOR_EACH (bridge, node, &planb_bridges) {
        struct planb_rt *t;

        LIST_FOR_EACH (t, bridge_node, &bridge->active) {
            bool settled;

            ovs_mutex_lock(&t->mutex);
            settled = t->n_settled == t->n_commits;
            ovs_mutex_unlock(&t->mutex);
            if (!settled) {
                return false;
            }
        }
    }
    return true;
}

static void
planb_unixctl_wait(struct unixctl_conn *conn, int argc OVS_UNUSED,
                   const char *argv[] OVS_UNUSED, void *aux OVS_UNUSED)
{
    struct waiter *w = xmalloc(sizeof *w);

    w->conn = conn;
    ovs_list_push_back(&waiters, &w->node);
    planb_show_run();
}

/* Answers the "planb/wait" commands that are pending, if the time has come. */
void
planb_show_run(void)
{
    struct waiter *w;

    if (!ovs_list_is_empty(&waiters) && all_settled()) {
        LIST_FOR_EACH_POP (w, node, &waiters) {
            unixctl_command_reply(w->conn, NULL);
            free(w);
        }
    }
}

/* Registers the commands. */
void
planb_show_init(void)
{
    unixctl_command_register("planb/show", "[bridge] [table]", 0, 2,
                             planb_unixctl_show, NULL);
    unixctl_command_register("planb/lookup", "bridge table address", 3, 3,
                             planb_unixctl_lookup, NULL);
    unixctl_command_register("planb/verify", "bridge [table]", 1, 2,
                             planb_unixctl_verify, NULL);
    unixctl_command_register("planb/wait", "", 0, 0, planb_unixctl_wait, NULL);
}
