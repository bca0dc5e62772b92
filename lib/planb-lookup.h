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

/* The search itself, for inclusion by the file of each kernel, which defines:
 *
 *     - TARGET, the attribute that allows its instructions.
 *
 *     - count_bt(node, key), which returns how many of the eight 64-bit keys
 *       of a line of a B+ tree are less than 'key'.
 *
 *     - search_node(node, key), which returns the number of the first of 16
 *       32-bit words that is not less than the key that 'key' points to, or 15
 *       if there is none.  In a PLANB_INNER, the last word is not a key.  In a
 *       small PLANB_LEAF, the first half ends with padding, which nothing is
 *       greater than, and the second half does not matter.
 *
 *     - next_tables(tree, values, g), if it defines NEXT_TABLES, which does
 *       what the function below of that name does.
 *
 * A batch goes through the steps together, GROUP addresses at a time: their
 * loads do not depend on one another, so their latencies overlap.  Addresses
 * need different steps.  A branch for each would be mispredicted often, which
 * costs more than the step itself, so each step has a list of the addresses
 * that need it, made without branches.
 *
 * Each step prefetches what the next one reads.  The CPU looks some ten
 * addresses ahead by itself, and a miss takes longer than that. */

#include "planb-lookup-private.h"

/* The step through a leaf. */
static ALWAYS_INLINE uint32_t
step_leaf(const struct planb *tree, uint32_t raw, const uint32_t *key)
{
    const uint32_t *node = planb_line(tree, raw);

    return node[planb_raw_aux(raw) + search_node(node, key)];
}

/* The step through an inner node. */
static ALWAYS_INLINE uint32_t
step_inner(const struct planb *tree, uint32_t raw, const uint32_t *key)
{
    const uint32_t *node = planb_line(tree, raw);

    return node[PLANB_INNER_KEYS] + search_node(node, key) * PLANB_LINE;
}

/* Takes the 'n' addresses from 'first' on, at most BLOCK, through the first
 * table. */
static ALWAYS_INLINE void
first_table(const struct planb *tree, const struct input *in,
            uint32_t values[], struct group *g, size_t first, size_t n)
{
    uint32_t default_value = tree->default_value;
    uint32_t entries[BLOCK] = { 0 };
    uint32_t raws[BLOCK] = { 0 };
    uint64_t his[BLOCK] = { 0 };
    uint32_t all = 0;

#pragma GCC unroll 8
    for (size_t i = 0; i < n; i++) {
        his[i] = planb_get_be64(get_addr(in, first + i));
        PLANB_OPAQUE(his[i]);
        entries[i] = planb_root_entry(tree, his[i]);
        raws[i] = planb_table1(tree, entries[i], his[i]);
        PLANB_OPAQUE(raws[i]);
        all |= raws[i];
        values[first + i] = raws[i] + default_value;
    }
    if (all & PLANB_INDIRECT) {
#pragma GCC unroll 8
        for (size_t i = 0; i < BLOCK; i++) {
            size_t slot = g->n_slots + i;
            uint32_t rest = planb_table1_rest(entries[i], his[i]);

            g->keys[slot] = planb_key(his[i]);
            g->rests[slot] = rest;
            g->raws[slot] = raws[i];
            g->positions[slot] = first + i;
            __builtin_prefetch(tree->lines
                               + planb_next_offset(raws[i], rest));
        }
        g->n_slots += BLOCK;
    }
}

#ifndef NEXT_TABLES
/* Takes all slots through the tables that follow, and lists what these do not
 * have the answers for. */
static ALWAYS_INLINE void
next_tables(const struct planb *tree, uint32_t values[], struct group *g)
{
    uint32_t default_value = tree->default_value;
    uint32_t n_leaves = 0;
    uint32_t n_inner = 0;

    for (uint32_t i = 0; i < g->n_slots; i++) {
        uint32_t rest = g->rests[i];
        uint32_t raw = g->raws[i];

        for (int depth = 1; depth < PLANB_MAX_TABLES; depth++) {
            raw = planb_next_table(tree, raw, &rest);
        }
        if (g->positions[i] < g->n_addrs) {
            values[g->positions[i]] = raw + default_value;
        }
        g->raws[i] = raw;
        __builtin_prefetch(planb_line(tree, raw & ((int32_t) raw >> 31)));
        g->leaves[n_leaves] = i;
        n_leaves += raw >> 31;
        g->inner[n_inner] = i;
        n_inner += raw >= PLANB_INNER;
    }
    g->n_leaves = n_leaves;
    g->n_inner = n_inner;
}
#endif

/* Walks from inner nodes to leaves.  Levels are few. */
static ALWAYS_INLINE void
search_inner(const struct planb *tree, struct group *g)
{
    uint32_t n = g->n_inner;

    do {
        uint32_t n_next = 0;

#pragma GCC unroll 4
        for (uint32_t i = 0; i < n; i++) {
            uint32_t j = g->inner[i];
            uint32_t raw = step_inner(tree, g->raws[j], &g->keys[j]);

            g->raws[j] = raw;
            __builtin_prefetch(planb_line(tree, raw));
            g->inner[n_next] = j;
            n_next += raw >= PLANB_INNER;
        }
        n = n_next;
    } while (n);
}

/* Takes slots through leaves. */
static ALWAYS_INLINE void
search_leaves(const struct planb *tree, const struct input *in,
              uint32_t values[], struct group *g)
{
    uint32_t default_value = tree->default_value;
    uint32_t n = g->n_leaves;
    uint32_t all = 0;

#pragma GCC unroll 4
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = g->leaves[i];
        uint32_t raw = step_leaf(tree, g->raws[j], &g->keys[j]);

        values[g->positions[j]] = raw + default_value;
        all |= raw;
    }
    if (__builtin_expect(all & PLANB_INDIRECT, 0)) {
        for (uint32_t i = 0; i < n; i++) {
            uint32_t j = g->positions[g->leaves[i]];
            uint32_t raw = values[j] - default_value;

            if (raw & PLANB_INDIRECT) {
                values[j] = (planb_resolve(tree, raw, get_addr(in, j))
                             + default_value);
            }
        }
    }
}

/* A group of 'n' addresses in a tree with a root. */
static ALWAYS_INLINE void
lookup_group(const struct planb *tree, const struct input *in,
             uint32_t values[], size_t n)
{
    struct group g;
    size_t i;

    g.n_addrs = n;
    g.n_slots = 0;
    for (i = 0; i + BLOCK <= n; i += BLOCK) {
        first_table(tree, in, values, &g, i, BLOCK);
    }
    if (i < n) {
        first_table(tree, in, values, &g, i, n - i);
    }
    if (g.n_slots) {
        next_tables(tree, values, &g);
        if (g.n_inner) {
            search_inner(tree, &g);
        }
        search_leaves(tree, in, values, &g);
    }
}

/* A single address. */
static TARGET uint32_t
lookup_one(const struct planb *tree, const uint8_t *addr)
{
    uint32_t raw = tree->small;

    if (!raw) {
        uint64_t hi = planb_get_be64(addr);
        uint32_t key = planb_key(hi);

        raw = planb_tables(tree, hi);
        while (raw >= PLANB_INNER) {
            raw = step_inner(tree, raw, &key);
        }
        if (raw & PLANB_INDIRECT) {
            raw = step_leaf(tree, raw, &key);
        }
    }
    if (__builtin_expect(raw & PLANB_INDIRECT, 0)) {
        raw = planb_resolve(tree, raw, addr);
    }
    return raw + tree->default_value;
}

/* A group of 'n' addresses in a tree without root. */
static ALWAYS_INLINE void
lookup_small(const struct planb *tree, const struct input *in,
             uint32_t values[], size_t n)
{
    const struct planb_other *bt = planb_line(tree, tree->small);
    const char *lines = (const char *) bt;
    uint64_t keys[GROUP];
    uint32_t pos[GROUP];

    for (size_t i = 0; i < n; i++) {
        keys[i] = planb_get_be64(get_addr(in, i));
        pos[i] = 0;
    }
    for (uint32_t level = 0; level < bt->n_levels; level++) {
        const char *nodes = lines + bt->levels[level] * PLANB_LINE;
        uint32_t fanout = level + 1 < bt->n_levels ? 9 : 8;

        for (size_t i = 0; i < n; i++) {
            const void *node = nodes + pos[i] * PLANB_LINE;

            pos[i] = pos[i] * fanout + count_bt(node, keys[i]);
        }
    }
    lines += bt->answers * PLANB_LINE;
    for (size_t i = 0; i < n; i++) {
        uint32_t raw;

        memcpy(&raw, lines + pos[i] * 4, sizeof raw);
        if (__builtin_expect(raw & PLANB_INDIRECT, 0)) {
            raw = planb_resolve(tree, raw, get_addr(in, i));
        }
        values[i] = raw + tree->default_value;
    }
}

static ALWAYS_INLINE void
lookup_input(const struct planb *tree, struct input in, uint32_t values[],
             size_t n)
{
    while (n) {
        size_t m = n < GROUP ? n : GROUP;

        if (tree->small) {
            lookup_small(tree, &in, values, m);
        } else {
            lookup_group(tree, &in, values, m);
        }
        if (in.by_pointer) {
            in.pointers += m;
        } else {
            in.addrs += m * in.stride;
        }
        values += m;
        n -= m;
    }
}

static TARGET void
lookup(const struct planb *tree, const uint8_t *const addrs[],
       uint32_t values[], size_t n)
{
    struct input in = { .by_pointer = true, .pointers = addrs };

    lookup_input(tree, in, values, n);
}

static TARGET void
lookup_strided(const struct planb *tree, const uint8_t *addrs, size_t stride,
               uint32_t values[], size_t n)
{
    struct input in = { .addrs = addrs, .stride = stride };

    lookup_input(tree, in, values, n);
}
