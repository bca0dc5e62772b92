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

/* From sorted rules to a tree. */

#include "planb.h"

#include <errno.h>
#include <stdlib.h>

#include "planb-private.h"

/* The part of the address space from the end of the previous interval to
 * 'hi':'lo', inclusively. */
struct interval {
    uint64_t hi, lo;
    uint32_t value;
};

/* The sweep.
 *
 * Prefixes nest, so the ones that contain the current address form a stack,
 * and each frame knows the winner among itself and all frames below.  At most
 * 129 different prefixes contain an address.  Candidates for one prefix share
 * a frame. */
struct frame {
    uint64_t hi, lo;            /* Last address. */
    int64_t priority;           /* Of the winner; -1 for the default. */
    uint32_t value;
    size_t first, last;         /* The rules for this prefix. */
};

struct sweep {
    const struct planb_rule *rules;
    struct planb_conflict *conflict;

    struct frame frames[130];
    int depth;                  /* Top of stack; frame 0 is the default. */

    uint64_t hi, lo;            /* First address without interval. */
    bool done;                  /* Past the last address. */

    struct interval *intervals;
    size_t n;
};

static void
sweep_emit(struct sweep *s, uint64_t hi, uint64_t lo, uint32_t value)
{
    struct interval *iv;

    if (!s->n || s->intervals[s->n - 1].value != value) {
        s->n++;
    }
    iv = &s->intervals[s->n - 1];
    iv->hi = hi;
    iv->lo = lo;
    iv->value = value;

    s->lo = lo + 1;
    s->hi = hi + !s->lo;
    s->done = !s->lo && !s->hi;
}

static void
sweep_pop(struct sweep *s)
{
    struct frame *f = &s->frames[s->depth--];

    if (!s->done && (s->hi < f->hi || (s->hi == f->hi && s->lo <= f->lo))) {
        sweep_emit(s, f->hi, f->lo, f->value);
    }
}

static const struct planb_rule *
find_priority(const struct planb_rule rules[], const struct frame *f,
              uint32_t priority)
{
    size_t low = f->first;
    size_t high = f->last;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (rules[mid].priority < priority) {
            low = mid + 1;
        } else if (rules[mid].priority > priority) {
            high = mid;
        } else {
            return &rules[mid];
        }
    }
    return NULL;
}

/* Looks for rules of equal priority in the frame on top of the stack and in
 * those below it. */
static void
sweep_check_conflict(struct sweep *s)
{
    const struct frame *top = &s->frames[s->depth];

    for (size_t i = top->first; i < top->last; i++) {
        const struct planb_rule *inner = &s->rules[i];

        for (int d = s->depth - 1; d > 0; d--) {
            const struct planb_rule *outer
                = find_priority(s->rules, &s->frames[d], inner->priority);

            if (outer) {
                s->conflict->found = true;
                s->conflict->outer = *outer;
                s->conflict->inner = *inner;
                return;
            }
        }
    }
}

/* Stores the intervals that the 'n' elements of 'rules' make in 's', which has
 * room for 2 * n + 1. */
static void
sweep_run(struct sweep *s, const struct planb_rule rules[], size_t n,
          uint32_t default_value, struct planb_conflict *conflict)
{
    s->rules = rules;
    s->conflict = conflict;
    s->depth = 0;
    s->hi = s->lo = 0;
    s->done = false;
    s->n = 0;

    s->frames[0].hi = s->frames[0].lo = UINT64_MAX;
    s->frames[0].priority = -1;
    s->frames[0].value = default_value;
    s->frames[0].first = s->frames[0].last = 0;

    for (size_t i = 0; i < n; ) {
        const struct planb_rule *r = &rules[i];
        struct frame *parent, *f;
        size_t first = i;

        for (i++; i < n && rules[i].plen == r->plen && rules[i].hi == r->hi
                  && rules[i].lo == r->lo; i++) {
            continue;
        }

        while (s->frames[s->depth].hi < r->hi
               || (s->frames[s->depth].hi == r->hi
                   && s->frames[s->depth].lo < r->lo)) {
            sweep_pop(s);
        }
        parent = &s->frames[s->depth];
        if (s->hi < r->hi || (s->hi == r->hi && s->lo < r->lo)) {
            sweep_emit(s, r->hi - !r->lo, r->lo - 1, parent->value);
        }

        f = &s->frames[++s->depth];
        f->hi = r->hi | planb_host_hi(r->plen);
        f->lo = r->lo | planb_host_lo(r->plen);
        f->first = first;
        f->last = i;
        if (rules[i - 1].priority >= parent->priority) {
            f->priority = rules[i - 1].priority;
            f->value = rules[i - 1].value;
        } else {
            f->priority = parent->priority;
            f->value = parent->value;
        }

        if (conflict && !conflict->found) {
            sweep_check_conflict(s);
        }
    }
    while (s->depth >= 0) {
        sweep_pop(s);
    }
}

/* Keys and raw answers of one B+ tree. */
struct half {
    uint64_t *ends;
    uint32_t *values;
    size_t n;
};

static size_t
div_round_up(size_t x, size_t y)
{
    return (x + y - 1) / y;
}

/* Returns the number of lines that a B+ tree of 'n' intervals takes. */
static size_t
bt_n_lines(size_t n)
{
    size_t width = div_round_up(n, 8);
    size_t total = div_round_up(n, 16);

    for (;;) {
        total += width;
        if (width <= 1) {
            return total;
        }
        width = div_round_up(width, 9);
    }
}

/* Fills in 'bt' for the 'n' intervals in 'ends' and 'values' and writes its
 * lines into 'tree' from line '*next' on, which it advances. */
static void
bt_build(struct planb *tree, struct planb_bt *bt, const uint64_t ends[],
         const uint32_t values[], size_t n, uint32_t *next)
{
    size_t widths[PLANB_MAX_LEVELS];
    size_t span;

    memset(bt, 0, sizeof *bt);
    widths[0] = div_round_up(n, 8);
    for (bt->n_levels = 1; widths[bt->n_levels - 1] > 1; bt->n_levels++) {
        widths[bt->n_levels] = div_round_up(widths[bt->n_levels - 1], 9);
    }

    /* 'span' is the number of intervals below a child. */
    span = 1;
    for (uint32_t i = 0; i < bt->n_levels; i++) {
        uint32_t level = bt->n_levels - 1 - i;
        size_t stride = i ? span * 9 : 8;
        uint64_t *line = &tree->lines[(size_t) *next * 8];

        bt->levels[level] = *next;
        for (size_t j = 0; j < widths[i]; j++) {
            for (size_t k = 0; k < 8; k++) {
                size_t end = j * stride + (k + 1) * span - 1;

                *line++ = end < n ? ends[end] : UINT64_MAX;
            }
        }
        *next += widths[i];
        span = i ? span * 9 : 8;
    }

    bt->values = *next;
    memcpy(&tree->lines[(size_t) *next * 8], values, n * sizeof *values);
    *next += div_round_up(n, 16);
}

/* Makes an answer of 'value' for 'half', using 'tree->side' if need be. */
static uint32_t
add_value(struct planb *tree, size_t *n_side, uint32_t value)
{
    if (value <= PLANB_VALUE_FAST_MAX) {
        return value;
    }
    tree->side[*n_side].is_tree = false;
    tree->side[*n_side].value = value;
    return PLANB_INDIRECT | (uint32_t) (*n_side)++;
}

static void
add_interval(struct half *half, uint64_t end, uint32_t raw)
{
    half->ends[half->n] = end;
    half->values[half->n++] = raw;
}

static void *
alloc_lines(size_t n)
{
    void *p;

    return posix_memalign(&p, 64, n * 64) ? NULL : p;
}

/* Compiles 'n' sorted 'rules' without duplicates into a tree, which it stores
 * in '*treep'.  If 'conflict' is nonnull, fills it in.  Returns 0 or ENOMEM or
 * ENOSPC. */
int
planb_compile(const struct planb_rule rules[], size_t n,
              uint32_t default_value, struct planb_conflict *conflict,
              struct planb **treep)
{
    struct half upper = { NULL, NULL, 0 };
    struct half lower = { NULL, NULL, 0 };
    struct sweep *s = NULL;
    struct planb *tree = NULL;
    size_t max_intervals = 2 * n + 1;
    size_t n_side, n_lines, i;
    uint32_t next;

    if (n > PLANB_MAX_PREFIXES) {
        return ENOSPC;
    }
    if (conflict) {
        conflict->found = false;
    }

    tree = calloc(1, sizeof *tree);
    s = calloc(1, sizeof *s);
    if (!tree || !s) {
        goto nomem;
    }
    s->intervals = malloc(max_intervals * sizeof *s->intervals);
    if (!s->intervals) {
        goto nomem;
    }
    sweep_run(s, rules, n, default_value, conflict);

    /* How much of everything?  A value may be needed in two halves, and a /64
     * with further structure has at least one interval that ends within. */
    n_side = 0;
    n_lines = bt_n_lines(s->n * 2);
    for (i = 0; i < s->n; i++) {
        const struct interval *iv = &s->intervals[i];

        n_side += 2 * (iv->value > PLANB_VALUE_FAST_MAX);
        if (iv->lo != UINT64_MAX) {
            size_t start = i;

            while (iv[1].lo != UINT64_MAX && iv[1].hi == iv->hi) {
                iv++;
                i++;
                n_side += 2 * (iv->value > PLANB_VALUE_FAST_MAX);
            }
            n_side++;
            n_lines += bt_n_lines(i - start + 2);
        }
    }

    tree->lines = alloc_lines(n_lines);
    tree->side = malloc((n_side + 1) * sizeof *tree->side);
    upper.ends = malloc(s->n * 2 * sizeof *upper.ends);
    upper.values = malloc(s->n * 2 * sizeof *upper.values);
    lower.ends = malloc(s->n * sizeof *lower.ends);
    lower.values = malloc(s->n * sizeof *lower.values);
    if (!tree->lines || !tree->side || !upper.ends || !upper.values
        || !lower.ends || !lower.values) {
        goto nomem;
    }

    n_side = 0;
    next = 0;
    for (i = 0; i < s->n; ) {
        const struct interval *iv = &s->intervals[i];
        struct planb_side *side;
        struct planb_bt bt;
        uint64_t hi = iv->hi;

        if (iv->lo == UINT64_MAX) {
            add_interval(&upper, hi, add_value(tree, &n_side, iv->value));
            i++;
            continue;
        }

        /* Interval 'iv' ends within the /64 'hi'.  It may have begun in an
         * earlier one. */
        if (hi && (upper.n ? upper.ends[upper.n - 1] != hi - 1 : true)) {
            add_interval(&upper, hi - 1, add_value(tree, &n_side, iv->value));
        }

        lower.n = 0;
        for (; iv->hi == hi && iv->lo != UINT64_MAX; iv++) {
            add_interval(&lower, iv->lo, add_value(tree, &n_side, iv->value));
        }
        add_interval(&lower, UINT64_MAX,
                     add_value(tree, &n_side, iv->value));
        i = iv - s->intervals;
        i += iv->hi == hi;

        bt_build(tree, &bt, lower.ends, lower.values, lower.n, &next);
        side = &tree->side[n_side];
        side->is_tree = true;
        side->tree = bt;
        add_interval(&upper, hi, PLANB_INDIRECT | (uint32_t) n_side++);

        tree->stats.n_subtrees++;
        if (tree->stats.subtree_depth < bt.n_levels) {
            tree->stats.subtree_depth = bt.n_levels;
        }
    }
    tree->stats.n_subtree_bytes = (size_t) next * 64;
    bt_build(tree, &tree->root, upper.ends, upper.values, upper.n, &next);

    tree->stats.n_prefixes = n;
    tree->stats.n_intervals = s->n;
    tree->stats.n_bytes = (size_t) next * 64 + n_side * sizeof *tree->side;
    tree->stats.depth = tree->root.n_levels;

    free(upper.ends);
    free(upper.values);
    free(lower.ends);
    free(lower.values);
    free(s->intervals);
    free(s);
    *treep = tree;
    return 0;

nomem:
    free(upper.ends);
    free(upper.values);
    free(lower.ends);
    free(lower.values);
    if (s) {
        free(s->intervals);
        free(s);
    }
    planb_destroy(tree);
    return ENOMEM;
}

/* Frees 'tree'.  No lookup may be using it.  Does nothing if 'tree' is
 * null. */
void
planb_destroy(struct planb *tree)
{
    if (tree) {
        free(tree->lines);
        free(tree->side);
        free(tree);
    }
}

/* Stores figures about 'tree' in '*stats'. */
void
planb_get_stats(const struct planb *tree, struct planb_stats *stats)
{
    *stats = tree->stats;
}
