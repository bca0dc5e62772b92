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
#include "hash.h"
#include "id-pool.h"
#include "util.h"

/* Statistics of routes.
 *
 * The datapath counts the packets of each route index.  A route index belongs
 * to a rule from the time that its 'struct planb_counter' is created until no
 * packet can be counted under it any more, which is later than the time when
 * the rule leaves the flow table.  What was counted is credited to the rule,
 * or to the one that has replaced it, when someone looks. */

/* Returns the 'struct planb_class_blocks' of class 'class_id', or NULL. */
static struct planb_class_blocks *
class_blocks_lookup(const struct planb_backer *backer, uint32_t class_id)
    OVS_REQUIRES(backer->mutex)
{
    struct planb_class_blocks *cb;

    HMAP_FOR_EACH_WITH_HASH (cb, node, hash_int(class_id, 0),
                             &backer->class_blocks) {
        if (cb->class_id == class_id) {
            return cb;
        }
    }
    return NULL;
}

/* Adds a block of route indexes for class 'class_id' to 'backer'.  Returns
 * NULL if there are no more. */
static struct planb_block *
block_create(struct planb_backer *backer, uint32_t class_id)
    OVS_REQUIRES(backer->mutex)
{
    struct planb_class_blocks *cb;
    struct planb_block *block;
    uint32_t block_no;

    if (!id_pool_alloc_id(backer->block_nos, &block_no)) {
        return NULL;
    }

    cb = class_blocks_lookup(backer, class_id);
    if (!cb) {
        cb = xzalloc(sizeof *cb);
        cb->class_id = class_id;
        ovs_list_init(&cb->open);
        hmap_insert(&backer->class_blocks, &cb->node, hash_int(class_id, 0));
    }

    block = xzalloc(sizeof *block);
    block->block_no = block_no;
    block->class_blocks = cb;
    ovs_list_push_back(&cb->open, &block->node);
    cb->n_blocks++;
    if (block_no < backer->n_blocks) {
        memset(block->used_before, true, sizeof block->used_before);
    } else {
        while (block_no >= backer->allocated_blocks) {
            backer->blocks = x2nrealloc(backer->blocks,
                                        &backer->allocated_blocks,
                                        sizeof *backer->blocks);
        }
        while (backer->n_blocks <= block_no) {
            backer->blocks[backer->n_blocks++] = NULL;
        }
    }
    backer->blocks[block_no] = block;
    return block;
}

/* Returns a block of 'backer' that has free indexes for class 'class_id', NULL
 * if there is none and cannot be one. */
static struct planb_block *
get_open_block(struct planb_backer *backer, uint32_t class_id)
    OVS_REQUIRES(backer->mutex)
{
    const struct planb_class_blocks *cb = class_blocks_lookup(backer,
                                                              class_id);

    return (cb && !ovs_list_is_empty(&cb->open)
            ? CONTAINER_OF(ovs_list_front(&cb->open), struct planb_block, node)
            : block_create(backer, class_id));
}

/* Gives 'counter' the free route index 'i' of 'block'. */
static void
block_add(struct planb_block *block, unsigned int i,
          struct planb_counter *counter)
{
    counter->index = block->block_no * DPIF_PLANB_BLOCK_SIZE + i;
    block->counters[i] = counter;
    block->used_before[i] = true;
    if (++block->n_counters == DPIF_PLANB_BLOCK_SIZE) {
        ovs_list_remove(&block->node);
    }
}

/* Takes its route index from 'counter'. */
static void
block_remove(struct planb_backer *backer, struct planb_counter *counter)
    OVS_REQUIRES(backer->mutex)
{
    uint32_t block_no = counter->index / DPIF_PLANB_BLOCK_SIZE;
    struct planb_block *block = backer->blocks[block_no];
    struct planb_class_blocks *cb = block->class_blocks;

    block->counters[counter->index % DPIF_PLANB_BLOCK_SIZE] = NULL;
    if (block->n_counters-- == DPIF_PLANB_BLOCK_SIZE) {
        ovs_list_push_back(&cb->open, &block->node);
    }
    if (!block->n_counters) {
        ovs_list_remove(&block->node);
        backer->blocks[block_no] = NULL;
        id_pool_free_id(backer->block_nos, block_no);
        free(block);
        if (!--cb->n_blocks) {
            hmap_remove(&backer->class_blocks, &cb->node);
            free(cb);
        }
    }
}

/* Returns the counter of route 'index' of 'backer', NULL if there is none. */
struct planb_counter *
planb_counter_lookup(const struct planb_backer *backer, uint32_t index)
    OVS_REQUIRES(backer->mutex)
{
    uint32_t block_no = index / DPIF_PLANB_BLOCK_SIZE;
    const struct planb_block *block
        = block_no < backer->n_blocks ? backer->blocks[block_no] : NULL;

    return block ? block->counters[index % DPIF_PLANB_BLOCK_SIZE] : NULL;
}

/* Gives 'rule' (or nothing, if it is NULL) a route index of datapath 'backer'
 * for class 'class_id'.  Returns NULL if there are no more. */
struct planb_counter *
planb_counter_create(struct planb_backer *backer, uint32_t class_id,
                     struct rule_dpif *rule)
{
    struct planb_counter *counter = NULL;
    struct dpif_flow_stats stats;
    struct planb_block *block;
    bool used_before = false;

    ovs_mutex_lock(&backer->mutex);
    block = get_open_block(backer, class_id);
    if (block) {
        unsigned int i = 0;

        while (block->counters[i]) {
            i++;
        }
        used_before = block->used_before[i];
        counter = xzalloc(sizeof *counter);
        counter->backer = backer;
        atomic_init(&counter->rule, rule);
        block_add(block, i, counter);
    }
    ovs_mutex_unlock(&backer->mutex);

    if (!counter) {
        return NULL;
    }

    if (used_before
        && !dpif_planb_get_route_stats(backer->dpif, counter->index, &stats)) {
        counter->n_packets = stats.n_packets;
        counter->n_bytes = stats.n_bytes;
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
    block_remove(backer, counter);
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
