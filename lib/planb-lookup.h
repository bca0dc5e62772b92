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
 *     - count_bt(node, key), count_inner(node, key) and count_leaf(node, key),
 *       which return how many keys of a node of a B+ tree (eight of 64 bits),
 *       a PLANB_INNER (15 of 32 bits) and a PLANB_LEAF (seven) are less than
 *       the key.
 *
 * A batch goes through the steps together, GROUP addresses at a time: their
 * loads do not depend on one another, so their latencies overlap.  Addresses
 * need different steps.  A branch for each would be mispredicted often, which
 * costs more than the step itself, so each step has a list of the addresses
 * that need it, made without branches.
 *
 * Each step prefetches what the next one reads.  The CPU looks some ten
 * addresses ahead by itself, and a miss takes longer than that. */

#define GROUP 64

/* Addresses that go through the tables together.  If all answers are there,
 * as with addresses that nobody uses, they are done. */
#define BLOCK 8

/* Where a group is. */
struct group {
    uint64_t his[GROUP];        /* Upper halves of the addresses. */
    uint32_t raws[GROUP];       /* Answers so far. */

    /* Positions of the addresses whose answers are not values yet, and of
     * those among them that are to go through an inner node next. */
    uint32_t leaves[GROUP];
    uint32_t inner[GROUP];
    uint32_t n_leaves, n_inner;
};

/* The key of address 'i', in a way that leaves no instructions to execute. */
static inline const void *
key_of(const struct group *g, size_t i)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (const char *) &g->his[i] + PLANB_KEY_SHIFT / 8;
#else
    return (const char *) &g->his[i] + (64 - 32 - PLANB_KEY_SHIFT) / 8;
#endif
}

/* Takes the 'n' addresses in 'addrs', which are those from 'first' on in 'g',
 * through the tables. */
static inline TARGET __attribute__((always_inline)) void
search_tables(const struct planb *tree, const uint8_t *const addrs[],
              uint32_t values[], struct group *g, size_t first, size_t n)
{
    uint32_t entries[BLOCK] = { 0 };
    uint64_t his[BLOCK] = { 0 };
    uint32_t raws[BLOCK] = { 0 };
    uint32_t all = 0;

#pragma GCC unroll 8
    for (size_t i = 0; i < n; i++) {
        his[i] = planb_get_be64(addrs[i]);
        PLANB_OPAQUE(his[i]);
        entries[i] = planb_root_entry(tree, his[i]);
        raws[i] = planb_table1(tree, entries[i], his[i]);
        PLANB_OPAQUE(raws[i]);
        all |= raws[i];
        values[i] = raws[i] + tree->default_value;
    }
    if (all & PLANB_INDIRECT) {
        uint32_t n_leaves = g->n_leaves;
        uint32_t n_inner = g->n_inner;

#pragma GCC unroll 8
        for (size_t i = 0; i < n; i++) {
            uint32_t raw = planb_table2(tree, entries[i], raws[i], his[i]);

            values[i] = raw + tree->default_value;
            g->his[first + i] = his[i];
            g->raws[first + i] = raw;
            __builtin_prefetch(tree->lines
                               + (raw & PLANB_OFFSET_MASK & -(raw >> 31)));
            g->leaves[n_leaves] = first + i;
            n_leaves += raw >> 31;
            g->inner[n_inner] = first + i;
            n_inner += raw >= PLANB_INNER;
        }
        g->n_leaves = n_leaves;
        g->n_inner = n_inner;
    }
}

/* Walks from inner nodes to leaves.  Levels are few, and most addresses need
 * one at most. */
static inline TARGET __attribute__((always_inline)) void
search_inner(const struct planb *tree, struct group *g)
{
    uint32_t n = g->n_inner;

    do {
        uint32_t n_next = 0;

#pragma GCC unroll 4
        for (uint32_t i = 0; i < n; i++) {
            uint32_t j = g->inner[i];
            const uint32_t *node = planb_line(tree, g->raws[j]);
            uint32_t raw = (node[PLANB_INNER_KEYS]
                            + count_inner(node, key_of(g, j)) * PLANB_LINE);

            g->raws[j] = raw;
            __builtin_prefetch(planb_line(tree, raw));
            g->inner[n_next] = j;
            n_next += raw >= PLANB_INNER;
        }
        n = n_next;
    } while (n);
}

/* A group of 'n' addresses in a tree with a root. */
static inline TARGET __attribute__((always_inline)) void
lookup_group(const struct planb *tree, const uint8_t *const addrs[],
             uint32_t values[], size_t n)
{
    struct group g;
    uint32_t all = 0;
    size_t i;

    g.n_inner = g.n_leaves = 0;
    for (i = 0; i + BLOCK <= n; i += BLOCK) {
        search_tables(tree, &addrs[i], &values[i], &g, i, BLOCK);
    }
    if (i < n) {
        search_tables(tree, &addrs[i], &values[i], &g, i, n - i);
    }
    if (g.n_inner) {
        search_inner(tree, &g);
    }

#pragma GCC unroll 4
    for (i = 0; i < g.n_leaves; i++) {
        uint32_t j = g.leaves[i];
        const uint32_t *node = planb_line(tree, g.raws[j]);
        uint32_t raw;

        raw = node[PLANB_LEAF_KEYS + 1 + count_leaf(node, key_of(&g, j))];
        g.raws[j] = raw;
        values[j] = raw + tree->default_value;
        all |= raw;
    }

    if (__builtin_expect(all & PLANB_INDIRECT, 0)) {
        for (i = 0; i < g.n_leaves; i++) {
            uint32_t j = g.leaves[i];

            if (g.raws[j] & PLANB_INDIRECT) {
                values[j] = (planb_resolve(tree, g.raws[j], addrs[j])
                             + tree->default_value);
            }
        }
    }
}

/* A group of 'n' addresses in a tree without root. */
static TARGET void
lookup_small(const struct planb *tree, const uint8_t *const addrs[],
             uint32_t values[], size_t n)
{
    const struct planb_other *bt = planb_line(tree, tree->small);
    const char *lines = (const char *) bt;
    uint64_t keys[GROUP];
    uint32_t pos[GROUP];

    for (size_t i = 0; i < n; i++) {
        keys[i] = planb_get_be64(addrs[i]);
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
            raw = planb_resolve(tree, raw, addrs[i]);
        }
        values[i] = raw + tree->default_value;
    }
}

static TARGET void
lookup(const struct planb *tree, const uint8_t *const addrs[],
       uint32_t values[], size_t n)
{
    while (n) {
        size_t m = n < GROUP ? n : GROUP;

        if (tree->small) {
            lookup_small(tree, addrs, values, m);
        } else {
            lookup_group(tree, addrs, values, m);
        }
        addrs += m;
        values += m;
        n -= m;
    }
}
