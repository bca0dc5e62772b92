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

#include "dpif.h"
#include "dpif-planb.h"
#include "id-pool.h"
#include "util.h"

/* Statistics of routes.
 *
 * The datapath counts the packets of each route index.  A route index belongs
 * to a rule from the time that its 'struct planb_counter' is created until no
 * packet can be counted under it any more, which is later than the time when
 * the rule leaves the flow table.  What was counted is credited to the rule,
 * or to the one that has replaced it, when someone looks. */

/* Gives 'rule' (or nothing, if it is NULL) a route index of datapath
 * 'backer'.  Returns NULL if there are no more. */
struct planb_counter *
planb_counter_create(struct planb_backer *backer, struct rule_dpif *rule)
{
    struct planb_counter *counter = xzalloc(sizeof *counter);
    bool used_before = false;
    bool ok;

    counter->backer = backer;
    atomic_init(&counter->rule, rule);

    ovs_mutex_lock(&backer->mutex);
    ok = id_pool_alloc_id(backer->indexes, &counter->index);
    if (ok) {
        used_before = counter->index < backer->n_used_indexes;
        backer->n_used_indexes = MAX(backer->n_used_indexes,
                                     counter->index + 1);
        if (counter->index >= backer->allocated_counters) {
            size_t n = MAX(64, 2 * (size_t) counter->index);

            backer->counters = xrealloc(backer->counters,
                                        n * sizeof *backer->counters);
            backer->allocated_counters = n;
        }
        backer->counters[counter->index] = counter;
    }
    ovs_mutex_unlock(&backer->mutex);

    if (!ok) {
        free(counter);
        return NULL;
    }

    if (used_before) {
        struct dpif_flow_stats stats;

        if (!dpif_planb_get_route_stats(backer->dpif, counter->index,
                                        &stats)) {
            counter->n_packets = stats.n_packets;
            counter->n_bytes = stats.n_bytes;
        }
    }
    if (rule) {
        ovs_mutex_lock(&rule->stats_mutex);
        ovs_list_push_back(&rule->planb.counters, &counter->node);
        ovs_mutex_unlock(&rule->stats_mutex);
    }
    return counter;
}

/* Credits 'rule' with what 'counter' has counted for it since last time. */
static void
planb_counter_harvest(struct planb_counter *counter, struct rule_dpif *rule)
    OVS_REQUIRES(rule->stats_mutex)
{
    struct dpif_flow_stats stats;

    if (dpif_planb_get_route_stats(counter->backer->dpif, counter->index,
                                   &stats)
        || stats.n_packets == counter->n_packets) {
        return;
    }

    if (rule->new_rule) {
        /* Only the time of use is forwarded: see planb_rule_replace(). */
        ovs_mutex_lock(&rule->new_rule->stats_mutex);
        rule->new_rule->stats.used = MAX(rule->new_rule->stats.used,
                                         stats.used);
        ovs_mutex_unlock(&rule->new_rule->stats_mutex);
    } else {
        rule->stats.n_packets += stats.n_packets - counter->n_packets;
        rule->stats.n_bytes += stats.n_bytes - counter->n_bytes;
        rule->stats.used = MAX(rule->stats.used, stats.used);
    }
    counter->n_packets = stats.n_packets;
    counter->n_bytes = stats.n_bytes;
}

/* Frees 'counter' and its route index, after a last harvest for the rule that
 * it belongs to, if any.  No packet may be counted under it any more.
 *
 * The caller must make sure that the rule is not destroyed meanwhile. */
void
planb_counter_retire(struct planb_counter *counter)
{
    struct planb_backer *backer = counter->backer;
    struct rule_dpif *rule;

    atomic_read_relaxed(&counter->rule, &rule);
    while (rule) {
        struct rule_dpif *owner;

        ovs_mutex_lock(&rule->stats_mutex);
        atomic_read_relaxed(&counter->rule, &owner);
        if (owner == rule) {
            planb_counter_harvest(counter, rule);
            ovs_list_remove(&counter->node);
        }
        ovs_mutex_unlock(&rule->stats_mutex);
        if (owner == rule) {
            break;
        }
        rule = owner;
    }

    ovs_mutex_lock(&backer->mutex);
    backer->counters[counter->index] = NULL;
    id_pool_free_id(backer->indexes, counter->index);
    ovs_mutex_unlock(&backer->mutex);
    free(counter);
}

/* Brings the statistics of 'rule' up to date. */
void
planb_rule_harvest(struct rule_dpif *rule)
    OVS_REQUIRES(rule->stats_mutex)
{
    struct planb_counter *counter;

    LIST_FOR_EACH (counter, node, &rule->planb.counters) {
        planb_counter_harvest(counter, rule);
    }
}

/* Called when 'rule' replaces 'old_rule'.  If 'forward_counts' is true, from
 * now on 'rule' is credited with the packets that still take the old route.
 * The caller copies the statistics afterward. */
void
planb_rule_replace(struct rule_dpif *old_rule, struct rule_dpif *rule,
                   bool forward_counts)
    OVS_REQUIRES(old_rule->stats_mutex)
    OVS_REQUIRES(rule->stats_mutex)
{
    struct planb_counter *counter;

    LIST_FOR_EACH (counter, node, &old_rule->planb.counters) {
        planb_counter_harvest(counter, old_rule);
    }
    if (forward_counts) {
        LIST_FOR_EACH_SAFE (counter, node, &old_rule->planb.counters) {
            ovs_list_remove(&counter->node);
            ovs_list_push_back(&rule->planb.counters, &counter->node);
            atomic_store_relaxed(&counter->rule, rule);
        }
    }
}
