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

/* From sorted rules to a tree.
 *
 * First a sweep over the rules makes intervals, then the intervals become what
 * planb-private.h describes.  Both work on a block of the address space, all
 * of it or a part. */

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
    struct planb_rule *rules;

    struct frame frames[130];
    int depth;                  /* Top of stack; frame 0 is the default. */

    uint64_t hi, lo;            /* First address without interval. */
    uint64_t last_hi;           /* Where to end. */
    bool done;                  /* Past that. */

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
    s->done = hi == s->last_hi && lo == UINT64_MAX;
}

static void
sweep_pop(struct sweep *s)
{
    struct frame *f = &s->frames[s->depth--];

    if (s->done) {
        return;
    } else if (f->hi > s->last_hi) {
        sweep_emit(s, s->last_hi, UINT64_MAX, f->value);
    } else if (s->hi < f->hi || (s->hi == f->hi && s->lo <= f->lo)) {
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

/* Finds out which rules in the frame on top of the stack have one of equal
 * priority in the frames below. */
static void
sweep_find_conflicts(struct sweep *s)
{
    const struct frame *top = &s->frames[s->depth];

    for (size_t i = top->first; i < top->last; i++) {
        struct planb_rule *rule = &s->rules[i];

        rule->conflict = false;
        for (int d = s->depth - 1; d > 0 && !rule->conflict; d--) {
            rule->conflict = find_priority(s->rules, &s->frames[d],
                                           rule->priority) != NULL;
        }
    }
}

/* Stores in 's->intervals', which must have room for 2 * n + 1, the intervals
 * that the 'n' elements of 'rules' make of 'block'.  'rules' must have all
 * rules for prefixes inside 'block' and all that contain it.  If
 * 'find_conflicts', sets 'conflict' in each of 'rules'. */
static void
sweep_run(struct sweep *s, const struct planb_block *block,
          struct planb_rule rules[], size_t n, uint32_t default_value,
          bool find_conflicts)
{
    s->rules = rules;
    s->depth = 0;
    s->hi = block->hi;
    s->lo = 0;
    s->last_hi = block->hi | planb_host_hi(block->plen);
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

        if (find_conflicts) {
            sweep_find_conflicts(s);
        }
    }
    while (s->depth >= 0) {
        sweep_pop(s);
    }
}

/* What a compilation works with. */
struct planb_compiler {
    uint32_t default_value;
    bool for_table;

    struct sweep sweep;
    size_t allocated_intervals;

    /* What is being compiled, and where. */
    struct planb_arena *arena;
    struct planb_top *top;

    /* Intervals of the upper half within one slot of a table. */
    uint64_t *ends;
    uint32_t *raws;
    size_t n, allocated;

    /* The same for the lower half within one /64. */
    uint64_t *lower_ends;
    uint32_t *lower_raws;
    size_t lower_n, lower_allocated;

    /* Answers for the first children of inner nodes. */
    uint32_t *bases;
    size_t allocated_bases;

    /* For each entry of the root, how many changes will make its table so much
     * different from what a full build would give that it is to be built
     * anew.  Null until there is a root. */
    uint32_t *countdowns;

    /* What an update has copied already. */
    uint32_t own_page;          /* Index of a page. */
    uint32_t own_table;         /* Index of a root entry. */
    struct planb_block own_next[PLANB_MAX_TABLES]; /* What tables below that
                                                    * cover, by depth. */
};

/* Creates and returns a compiler, or a null pointer if memory is short.  If
 * 'for_table', it will not only compile but also find conflicts and be ready
 * for updates. */
struct planb_compiler *
planb_compiler_create(uint32_t default_value, bool for_table)
{
    struct planb_compiler *c = calloc(1, sizeof *c);

    if (c) {
        c->default_value = default_value;
        c->for_table = for_table;
    }
    return c;
}

/* Frees what grows with the number of rules compiled at a time. */
static void
free_scratch(struct planb_compiler *c)
{
    free(c->sweep.intervals);
    c->sweep.intervals = NULL;
    c->allocated_intervals = 0;
    free(c->ends);
    c->ends = NULL;
    free(c->raws);
    c->raws = NULL;
    c->allocated = 0;
    free(c->lower_ends);
    c->lower_ends = NULL;
    free(c->lower_raws);
    c->lower_raws = NULL;
    c->lower_allocated = 0;
    free(c->bases);
    c->bases = NULL;
    c->allocated_bases = 0;
}

void
planb_compiler_destroy(struct planb_compiler *c)
{
    if (c) {
        free_scratch(c);
        free(c->countdowns);
        free(c);
    }
}

/* Makes room in '*endsp' and '*rawsp' for more than 'n' elements. */
static int
grow(uint64_t **endsp, uint32_t **rawsp, size_t n, size_t *allocated)
{
    if (n >= *allocated) {
        size_t new = *allocated * 2 + 64;
        uint64_t *ends;
        uint32_t *raws;

        ends = realloc(*endsp, new * sizeof *ends);
        if (!ends) {
            return ENOMEM;
        }
        *endsp = ends;
        raws = realloc(*rawsp, new * sizeof *raws);
        if (!raws) {
            return ENOMEM;
        }
        *rawsp = raws;
        *allocated = new;
    }
    return 0;
}

static uint32_t
make_raw(uint32_t line, uint32_t kind, uint32_t aux)
{
    return kind | line * PLANB_LINE | aux;
}

/* Allocates 'n_lines' lines for something of kind PLANB_OTHER and stores the
 * answer that leads there in '*raw'. */
static int
make_other(struct planb_compiler *c, size_t n_lines,
           struct planb_other **otherp, uint32_t *raw)
{
    struct planb_other *other;
    uint32_t line;
    int error;

    error = planb_arena_alloc(c->arena, n_lines, &line);
    if (error) {
        return error;
    }
    *raw = make_raw(line, PLANB_OTHER, PLANB_LEAF_ANSWERS);

    other = planb_arena_line(c->arena, line);
    memset(other, 0, PLANB_LINE);
    memset(other->keys, 0xff, sizeof other->keys);
    other->self = *raw;
    other->n_lines = n_lines;
    *otherp = other;
    return 0;
}

/* Stores in '*raw' the answer for 'value'. */
static int
make_value(struct planb_compiler *c, uint32_t value, uint32_t *raw)
{
    uint32_t diff = value - c->default_value;
    struct planb_other *other;
    int error;

    if (!(diff & PLANB_INDIRECT)) {
        *raw = diff;
        return 0;
    }
    error = make_other(c, 1, &other, raw);
    if (!error) {
        other->value = diff;
    }
    return error;
}

/* Returns the value of 'raw', less the default value. */
static uint32_t
get_value(const struct planb_compiler *c, uint32_t raw)
{
    const struct planb_other *other;

    if (!(raw & PLANB_INDIRECT)) {
        return raw;
    }
    other = planb_arena_line(c->arena, planb_raw_line(raw));
    return other->value;
}

/* Stores in '*raw' the answer for the same value as 'old', but if 'old' leads
 * to a line, another one. */
static int
copy_value(struct planb_compiler *c, uint32_t old, uint32_t *raw)
{
    return make_value(c, get_value(c, old) + c->default_value, raw);
}

static int
add_upper(struct planb_compiler *c, uint64_t end, uint32_t raw)
{
    int error = grow(&c->ends, &c->raws, c->n, &c->allocated);

    if (!error) {
        c->ends[c->n] = end;
        c->raws[c->n++] = raw;
    }
    return error;
}

static int
add_lower(struct planb_compiler *c, uint64_t end, uint32_t value)
{
    int error = grow(&c->lower_ends, &c->lower_raws, c->lower_n,
                     &c->lower_allocated);

    if (!error) {
        c->lower_ends[c->lower_n] = end;
        error = make_value(c, value, &c->lower_raws[c->lower_n++]);
    }
    return error;
}

static size_t
div_round_up(size_t x, size_t y)
{
    return (x + y - 1) / y;
}

/* Makes a B+ tree of 'n' intervals and stores the answer that leads to it in
 * '*raw'. */
static int
build_bt(struct planb_compiler *c, bool lower, const uint64_t ends[],
         const uint32_t raws[], size_t n, uint32_t *raw)
{
    size_t widths[PLANB_BT_MAX_LEVELS];
    size_t n_lines, span, next;
    struct planb_other *bt;
    int n_levels;
    int error;

    widths[0] = div_round_up(n, 8);
    n_lines = PLANB_OTHER_LINES + widths[0] + div_round_up(n, 16);
    for (n_levels = 1; widths[n_levels - 1] > 1; n_levels++) {
        widths[n_levels] = div_round_up(widths[n_levels - 1], 9);
        n_lines += widths[n_levels];
    }

    error = make_other(c, n_lines, &bt, raw);
    if (error) {
        return error;
    }
    bt->n = n;
    bt->lower = lower;
    bt->n_levels = n_levels;
    if (c->top->bt_levels[lower] < n_levels) {
        c->top->bt_levels[lower] = n_levels;
    }

    /* From the lowest level up.  'span' is the number of intervals that a key
     * has to its left within its node, at first. */
    next = PLANB_OTHER_LINES;
    span = 1;
    for (int i = 0; i < n_levels; i++) {
        uint64_t *keys = planb_arena_line(c->arena,
                                          planb_raw_line(*raw) + next);
        size_t stride = i ? span * 9 : 8;

        bt->levels[n_levels - 1 - i] = next;
        for (size_t j = 0; j < widths[i]; j++) {
            for (size_t k = 0; k < 8; k++) {
                size_t end = j * stride + (k + 1) * span - 1;

                *keys++ = end < n - 1 ? ends[end] : UINT64_MAX;
            }
        }
        next += widths[i];
        span = stride;
    }

    bt->answers = next;
    memcpy(planb_arena_line(c->arena, planb_raw_line(*raw) + next), raws,
           n * sizeof *raws);
    return 0;
}

/* Returns the number of lines of a leaf with 'size' answers. */
static size_t
leaf_n_lines(size_t size)
{
    return size * 2 * sizeof(uint32_t) / PLANB_LINE;
}

/* Fills a leaf with the first 'n' of the intervals of which there are
 * 'n_ends' all together.  'size' is the number of answers that it has room
 * for. */
static void
fill_leaf(uint32_t leaf[], size_t size, const uint64_t ends[],
          const uint32_t raws[], size_t n, size_t n_ends)
{
    for (size_t i = 0; i < size; i++) {
        size_t j = i < n ? i : n - 1;

        leaf[i] = (i < size - 1 && j < n_ends - 1
                   ? planb_key(ends[j]) : UINT32_MAX);
        leaf[size + i] = raws[j];
    }
}

/* Makes a tree of leaves and inner nodes of 'n_ends' intervals and stores the
 * answer that leads to it in '*raw'. */
static int
build_nodes(struct planb_compiler *c, const uint64_t ends[],
            const uint32_t raws[], size_t n_ends, uint32_t *raw)
{
    enum { FANOUT = PLANB_INNER_KEYS + 1 };
    size_t size = (n_ends > PLANB_LEAF_ANSWERS
                   && n_ends <= PLANB_LEAF_MAX_ANSWERS
                   ? PLANB_LEAF_MAX_ANSWERS : PLANB_LEAF_ANSWERS);
    size_t n_lines = leaf_n_lines(size);
    size_t n = div_round_up(n_ends, size);
    size_t span = size;
    unsigned int n_levels = 1;

    if (n > c->allocated_bases) {
        uint32_t *bases = realloc(c->bases, n * sizeof *bases);

        if (!bases) {
            return ENOMEM;
        }
        c->bases = bases;
        c->allocated_bases = n;
    }

    /* Leaves, and then what is above, in groups of siblings. */
    for (size_t first = 0; first < n; first += FANOUT) {
        size_t n_siblings = n - first < FANOUT ? n - first : FANOUT;
        uint32_t line;
        int error;

        error = planb_arena_alloc(c->arena, n_siblings * n_lines, &line);
        if (error) {
            return error;
        }
        c->bases[first / FANOUT] = make_raw(line, PLANB_LEAF, size);
        for (size_t i = 0; i < n_siblings; i++) {
            size_t start = (first + i) * size;
            size_t left = n_ends - start;

            fill_leaf(planb_arena_line(c->arena, line + i), size,
                      &ends[start], &raws[start], left < size ? left : size,
                      left);
        }
    }
    while (n > 1) {
        size_t n_children = n;

        n = div_round_up(n_children, FANOUT);
        for (size_t first = 0; first < n; first += FANOUT) {
            size_t n_siblings = n - first < FANOUT ? n - first : FANOUT;
            uint32_t line;
            int error;

            error = planb_arena_alloc(c->arena, n_siblings, &line);
            if (error) {
                return error;
            }
            for (size_t i = 0; i < n_siblings; i++) {
                uint32_t *keys = planb_arena_line(c->arena, line + i);
                size_t child = (first + i) * FANOUT;

                for (size_t k = 0; k < PLANB_INNER_KEYS; k++) {
                    keys[k] = (child + k + 1 < n_children
                               ? planb_key(ends[(child + k + 1) * span - 1])
                               : UINT32_MAX);
                }
                memcpy(&keys[PLANB_INNER_KEYS], &c->bases[first + i],
                       sizeof *c->bases);
            }
            c->bases[first / FANOUT] = make_raw(line, PLANB_INNER, 0);
        }
        span *= FANOUT;
        n_levels++;
    }
    if (c->top->node_levels < n_levels) {
        c->top->node_levels = n_levels;
    }
    *raw = c->bases[0];
    return 0;
}

static uint64_t
size_of_slot(unsigned int shift)
{
    return UINT64_C(1) << shift;
}

/* Returns what it costs, in bytes, to find one of 'n' intervals, more than
 * one, by their keys.  The steps that this takes are included. */
static size_t
cost_of_search(size_t n)
{
    size_t n_lines = div_round_up(n, PLANB_LEAF_ANSWERS);
    size_t cost = n_lines * PLANB_LINE + n * PLANB_LEAF_COST;

    if (n > PLANB_LEAF_MAX_ANSWERS) {
        do {
            n_lines = div_round_up(n_lines, PLANB_INNER_KEYS + 1);
            cost += n_lines * PLANB_LINE + n * PLANB_INNER_COST;
        } while (n_lines > 1);
    }
    return cost;
}

/* Returns what it costs, in bytes, to cut the 'n' intervals that end at 'ends'
 * into slots of 1 << 'shift', with as many entries in the table as 'stride'
 * says.  If 'nested', a slot may become a table again. */
static size_t
cost_of_stride(const uint64_t ends[], size_t n, unsigned int shift,
               unsigned int stride, bool nested)
{
    size_t cost = sizeof(uint32_t) << stride;
    uint64_t mask = size_of_slot(shift) - 1;

    for (size_t i = 0; i < n - 1; ) {
        uint64_t slot = ends[i] | mask;
        size_t n_slot = 1;

        /* An interval that ends where the slot does takes nothing. */
        for (; i < n - 1 && ends[i] < slot; i++) {
            n_slot++;
        }
        i += i < n - 1 && ends[i] == slot;
        if (n_slot > PLANB_LEAF_MAX_ANSWERS && nested) {
            /* Whatever is below, it will have found a good stride. */
            cost += n_slot * PLANB_TABLE_COST;
        } else if (n_slot > 1) {
            cost += cost_of_search(n_slot);
        }
    }
    return cost;
}

/* Returns the best stride for a table of the 'n' intervals that end at 'ends',
 * which cover 1 << 'shift' addresses. */
static unsigned int
choose_stride(const uint64_t ends[], size_t n, unsigned int shift,
              bool nested, size_t *best_cost)
{
    unsigned int log2 = 63 - __builtin_clzll(n);
    unsigned int first = log2 > 4 ? log2 - 3 : 1;
    unsigned int last = log2 + 3;
    unsigned int best = 1;

    if (last > PLANB_MAX_STRIDE) {
        last = PLANB_MAX_STRIDE;
    }
    if (last > shift - PLANB_KEY_SHIFT) {
        last = shift - PLANB_KEY_SHIFT;
    }
    *best_cost = SIZE_MAX;
    for (unsigned int stride = first; stride <= last; stride++) {
        size_t cost = cost_of_stride(ends, n, shift - stride, stride,
                                     nested);

        if (cost < *best_cost) {
            *best_cost = cost;
            best = stride;
        }
    }
    return best;
}

static size_t
table_n_lines(unsigned int stride)
{
    return div_round_up((size_t) 1 << stride, PLANB_LINE / sizeof(uint32_t));
}

/* Makes what finds the right one of 'n' intervals by their keys. */
static int
build_search(struct planb_compiler *c, const uint64_t ends[],
             const uint32_t raws[], size_t n, uint32_t *raw)
{
    if (n == 1) {
        *raw = raws[0];
        return 0;
    }
    for (size_t i = 0; i < n - 1; i++) {
        if (~ends[i] & ((1 << PLANB_KEY_SHIFT) - 1)) {
            return build_bt(c, false, ends, raws, n, raw);
        }
    }
    return build_nodes(c, ends, raws, n, raw);
}

static int build_range(struct planb_compiler *, uint64_t ends[],
                       uint32_t raws[], size_t n, uint64_t first,
                       unsigned int shift, int depth, uint32_t *raw);

/* Makes a table of kind PLANB_TABLE for 'n' intervals, which cover the 1 <<
 * 'shift' addresses from 'first' on.  Its slots are 'depth' tables deep. */
static int
build_next_table(struct planb_compiler *c, uint64_t ends[], uint32_t raws[],
                 uint64_t first, unsigned int shift, unsigned int stride,
                 int depth, uint32_t *raw)
{
    uint64_t size = size_of_slot(shift - stride);
    size_t shared = SIZE_MAX;
    uint32_t *table;
    uint32_t line;
    size_t i = 0;
    int error;

    error = planb_arena_alloc(c->arena, table_n_lines(stride), &line);
    if (error) {
        return error;
    }
    *raw = make_raw(line, PLANB_TABLE, 64 - stride);
    table = planb_arena_line(c->arena, line);
    for (size_t slot = 0; slot < (size_t) 1 << stride; slot++, first += size) {
        uint64_t last = first + (size - 1);
        size_t start = i;

        while (ends[i] < last) {
            i++;
        }

        /* What is in two slots must be there twice, so that an update of one
         * can dispose of its own. */
        error = (start == shared
                 ? copy_value(c, raws[start], &raws[start]) : 0);
        if (!error) {
            error = build_range(c, &ends[start], &raws[start], i - start + 1,
                                first, shift - stride, depth, &table[slot]);
        }
        if (error) {
            return error;
        }
        shared = i;
        i += ends[i] == last;
    }
    return 0;
}

/* Makes what finds the right one of 'n' intervals, the last of which ends with
 * the 1 << 'shift' addresses from 'first' on or after them.  They are 'depth'
 * tables deep. */
static int
build_range(struct planb_compiler *c, uint64_t ends[], uint32_t raws[],
            size_t n, uint64_t first, unsigned int shift, int depth,
            uint32_t *raw)
{
    if (n > PLANB_LEAF_ANSWERS && depth < PLANB_MAX_TABLES
        && shift > PLANB_KEY_SHIFT) {
        size_t cost;
        unsigned int stride = choose_stride(ends, n, shift,
                                            depth + 1 < PLANB_MAX_TABLES,
                                            &cost);

        if (cost < cost_of_search(n)) {
            return build_next_table(c, ends, raws, first, shift, stride,
                                    depth + 1, raw);
        }
    }
    return build_search(c, ends, raws, n, raw);
}

/* Compiles the intervals of 'c->sweep' from '**ivp' on, as far as they are
 * among the 1 << 'shift' addresses (in the upper half) from 'first' on, and
 * stores the answer in '*raw'.  Moves '*ivp' past the intervals that end
 * there.  They are 'depth' tables deep; if none, the answer is a B+ tree. */
static int
build_slot(struct planb_compiler *c, const struct interval **ivp,
           uint64_t first, unsigned int shift, int depth, uint32_t *raw)
{
    uint64_t last = first + (UINT64_MAX >> (64 - shift));
    const struct interval *iv = *ivp;
    uint64_t pos = first;
    int error = 0;

    c->n = 0;
    for (;;) {
        uint64_t end;

        if (iv->lo == UINT64_MAX || iv->hi > last) {
            end = iv->hi < last ? iv->hi : last;
            error = make_value(c, iv->value, raw);
            if (error) {
                return error;
            }
            if (iv->hi == end && iv->lo == UINT64_MAX) {
                iv++;
            }
        } else {
            /* 'iv' ends inside the /64 'end', where it may have begun, too. */
            end = iv->hi;
            if (pos < end) {
                error = make_value(c, iv->value, raw);
                if (!error) {
                    error = add_upper(c, end - 1, *raw);
                }
                if (error) {
                    return error;
                }
            }

            for (c->lower_n = 0; !error; iv++) {
                if (iv->hi != end || iv->lo == UINT64_MAX) {
                    error = add_lower(c, UINT64_MAX, iv->value);
                    break;
                }
                error = add_lower(c, iv->lo, iv->value);
            }
            if (error) {
                return error;
            }
            iv += iv->hi == end;
            error = build_bt(c, true, c->lower_ends, c->lower_raws,
                             c->lower_n, raw);
            if (error) {
                return error;
            }
        }

        if (end == last && !c->n && depth) {
            *ivp = iv;
            return 0;
        }
        error = add_upper(c, end, *raw);
        if (error) {
            return error;
        }
        if (end == last) {
            break;
        }
        pos = end + 1;
    }
    *ivp = iv;

    if (!depth) {
        return build_bt(c, false, c->ends, c->raws, c->n, raw);
    }
    return build_range(c, c->ends, c->raws, c->n, first, shift, depth, raw);
}

/* Makes a table for the /16 from 'hi' on, and stores its root entry in
 * '*entry'. */
static int
build_table(struct planb_compiler *c, const struct interval **ivp,
            uint64_t hi, unsigned int stride, uint32_t *entry)
{
    unsigned int shift = 64 - PLANB_ROOT_BITS - stride;
    uint32_t *table;
    uint32_t line;
    int error;

    error = planb_arena_alloc(c->arena, table_n_lines(stride), &line);
    if (error) {
        return error;
    }
    *entry = line * PLANB_LINE + (64 - stride);
    table = planb_arena_line(c->arena, line);
    for (size_t i = 0; i < (size_t) 1 << stride; i++) {
        error = build_slot(c, ivp, hi, shift, 1, &table[i]);
        if (error) {
            return error;
        }
        hi += size_of_slot(shift);
    }
    return 0;
}

static uint64_t
last_of_root_slot(uint64_t hi)
{
    return hi | (UINT64_MAX >> PLANB_ROOT_BITS);
}

static bool
ends_after(const struct interval *iv, uint64_t last)
{
    return iv->hi > last || (iv->hi == last && iv->lo == UINT64_MAX);
}

/* Stores in '*stride' the best stride for the table of a root's entry with the
 * 'n' intervals from 'iv' on. */
static int
choose_root_stride(struct planb_compiler *c, const struct interval *iv,
                   size_t n, unsigned int *stride)
{
    size_t cost;

    c->n = 0;
    for (size_t i = 0; i < n; i++) {
        int error = add_upper(c, iv[i].hi, 0);

        if (error) {
            return error;
        }
    }
    *stride = choose_stride(c->ends, n, 64 - PLANB_ROOT_BITS, true,
                            &cost);
    return 0;
}

/* Makes a table for the 'n' intervals of the /16 from 'hi' on and stores its
 * root entry in '*entry'. */
static int
build_root_slot(struct planb_compiler *c, const struct interval **ivp,
                size_t n, uint64_t hi, uint32_t *entry)
{
    unsigned int stride = 1;
    int error = 0;

    if (n > 1) {
        error = choose_root_stride(c, *ivp, n, &stride);
    }
    if (!error) {
        error = build_table(c, ivp, hi, stride, entry);
    }
    if (!error && c->countdowns) {
        c->countdowns[hi >> (64 - PLANB_ROOT_BITS)] = n / 2 + 8;
    }
    return error;
}

/* Returns the number of intervals from '*ivp' on that there are in the /16
 * from 'hi' on, and moves '*ivp' past those that end there. */
static size_t
count_root_slot(const struct interval **ivp, uint64_t hi)
{
    uint64_t last = last_of_root_slot(hi);
    const struct interval *iv = *ivp;
    size_t n;

    while (!ends_after(iv, last)) {
        iv++;
    }
    n = iv - *ivp + 1;
    *ivp = iv + (iv->hi == last);
    return n;
}

/* Makes a page of the root for the /8 from 'hi' on.  Stores its offset in
 * '*page' and its size in '*n_lines'. */
static int
build_page(struct planb_compiler *c, const struct interval **ivp,
           uint64_t hi, uint32_t *page, uint16_t *n_lines)
{
    uint64_t size = size_of_slot(64 - PLANB_ROOT_BITS);
    const struct interval *iv = *ivp;
    size_t n_intervals[PLANB_PAGE_SIZE];
    uint32_t value = 0;
    size_t n_cells = 0;
    uint32_t *entries;
    uint32_t line;
    int error;

    for (size_t i = 0; i < PLANB_PAGE_SIZE; i++) {
        uint32_t first_value = iv->value;

        n_intervals[i] = count_root_slot(&iv, hi + i * size);
        if (n_intervals[i] == 1 && (!n_cells || first_value != value)) {
            value = first_value;
            n_cells++;
        }
    }

    *n_lines = PLANB_PAGE_LINES + n_cells;
    error = planb_arena_alloc(c->arena, *n_lines, &line);
    if (error) {
        return error;
    }
    *page = line * PLANB_LINE;
    entries = planb_arena_line(c->arena, line);
    n_cells = 0;
    for (size_t i = 0; i < PLANB_PAGE_SIZE; i++, hi += size) {
        if (n_intervals[i] > 1) {
            error = build_root_slot(c, ivp, n_intervals[i], hi, &entries[i]);
            if (error) {
                return error;
            }
        } else {
            if (!n_cells || (*ivp)->value != value) {
                uint32_t cell = line + PLANB_PAGE_LINES + n_cells++;
                uint32_t *answers = planb_arena_line(c->arena, cell);

                value = (*ivp)->value;
                error = make_value(c, value, &answers[0]);
                if (error) {
                    return error;
                }
                for (size_t j = 1; j < PLANB_LINE / sizeof *answers; j++) {
                    answers[j] = answers[0];
                }
            }
            entries[i] = ((line + PLANB_PAGE_LINES + n_cells - 1) * PLANB_LINE
                          + (64 - 1));
            *ivp += (*ivp)->hi == last_of_root_slot(hi);
        }
    }
    return 0;
}

static int
build_root(struct planb_compiler *c)
{
    struct planb_top *top = c->top;
    const struct interval *iv = c->sweep.intervals;
    unsigned int same = PLANB_N_PAGES;
    uint32_t value = 0;

    for (unsigned int i = 0; i < PLANB_N_PAGES; i++) {
        uint64_t hi = (uint64_t) i << (64 - 8);
        uint64_t last = hi | (UINT64_MAX >> 8);

        if (!ends_after(iv, last)) {
            int error = build_page(c, &iv, hi, &top->pages[i],
                                   &top->page_lines[i]);
            if (error) {
                return error;
            }
        } else if (same < PLANB_N_PAGES && iv->value == value) {
            top->pages[i] = top->pages[same];
            top->page_lines[i] = top->page_lines[same];
            iv += iv->hi == last;
        } else {
            int error;

            same = i;
            value = iv->value;
            error = build_page(c, &iv, hi, &top->pages[i],
                               &top->page_lines[i]);
            if (error) {
                return error;
            }
        }
    }
    return 0;
}

static const struct planb_block everything = { 0, 0 };

/* Sweeps over 'rules' within 'block', after having made room for what that
 * gives. */
static int
sweep(struct planb_compiler *c, const struct planb_block *block,
      struct planb_rule rules[], size_t n)
{
    size_t max_intervals = 2 * n + 1;

    if (max_intervals > c->allocated_intervals) {
        struct interval *intervals;

        intervals = realloc(c->sweep.intervals,
                            max_intervals * sizeof *intervals);
        if (!intervals) {
            return ENOMEM;
        }
        c->sweep.intervals = intervals;
        c->allocated_intervals = max_intervals;
    }
    sweep_run(&c->sweep, block, rules, n, c->default_value, c->for_table);
    return 0;
}

/* Makes a new arena with room for 'n_lines' lines and builds everything in
 * it. */
static int
build_all(struct planb_compiler *c, size_t n, size_t n_lines,
          struct planb_top *top)
{
    const struct interval *iv = c->sweep.intervals;
    int error;

    error = planb_arena_create(n_lines, &c->arena);
    if (error) {
        return error;
    }
    planb_arena_begin(c->arena);

    c->top = top;
    memset(top, 0, sizeof *top);
    top->n_intervals = c->sweep.n;
    if (n >= PLANB_MIN_ROOT) {
        error = build_root(c);
    } else {
        error = build_slot(c, &iv, 0, 64, 0, &top->small);
    }
    if (error) {
        planb_arena_disown(c->arena);
    }
    return error;
}

/* Compiles the 'n' elements of 'rules', which must be sorted and without
 * duplicates, into a new arena with room for 'n_spare' lines more than are
 * likely to be needed.  Stores the arena in '*arenap', with a transaction
 * begun but not committed, and describes the result in '*top'.  If the
 * compiler is for a table, sets 'conflict' in each of 'rules'.
 *
 * Returns 0, or ENOSPC if this exceeds the limits of the data structure, or
 * ENOMEM. */
int
planb_compile(struct planb_compiler *c, struct planb_rule rules[],
              size_t n, size_t n_spare, struct planb_arena **arenap,
              struct planb_top *top)
{
    size_t n_lines;
    int error;

    if (n > PLANB_MAX_PREFIXES) {
        return ENOSPC;
    }
    if (c->for_table && n >= PLANB_MIN_ROOT && !c->countdowns) {
        c->countdowns = calloc(1u << PLANB_ROOT_BITS, sizeof *c->countdowns);
        if (!c->countdowns) {
            return ENOMEM;
        }
    }
    error = sweep(c, &everything, rules, n);
    if (error) {
        return error;
    }

    /* How many lines it will take is hard to tell and easy to try.  Memory
     * that is not used need not exist. */
    n_lines = c->sweep.n + 2048 + n_spare;
    for (;;) {
        if (n_lines > PLANB_MAX_LINES) {
            n_lines = PLANB_MAX_LINES;
        }
        error = build_all(c, n, n_lines, top);
        if (error != ENOSPC || n_lines == PLANB_MAX_LINES) {
            break;
        }
        n_lines *= 2;
    }
    free_scratch(c);
    if (!error) {
        *arenap = c->arena;
    }
    return error;
}

/* Updates.
 *
 * A new tree takes over from the latest one whatever the changes since then
 * leave as it is.  What they reach is built anew, and so are copies of the
 * tables and the page of the root above it. */

/* A walk from left to right over a part of the latest tree, to say that the
 * next tree will do without it, and to count the intervals. */
struct walk {
    struct planb_arena *arena;
    uint32_t last_other;        /* Latest of kind PLANB_OTHER. */
    int error;

    size_t n_intervals;
    uint32_t first_value, last_value; /* Less the default value. */
};

static void
walk_run(struct walk *w, uint32_t raw, size_t n_lines)
{
    if (!w->error) {
        w->error = planb_arena_retire(w->arena, planb_raw_line(raw), n_lines);
    }
}

static void
walk_value(struct walk *w, uint32_t value)
{
    if (!w->n_intervals) {
        w->first_value = value;
    }
    w->n_intervals += !w->n_intervals || value != w->last_value;
    w->last_value = value;
}

static void walk(struct walk *, uint32_t raw);

/* Walks over the leaf or the inner node that 'raw' leads to, except that it
 * leaves the lines of that itself alone. */
static void
walk_node(struct walk *w, uint32_t raw)
{
    const uint32_t *words = planb_arena_line(w->arena, planb_raw_line(raw));

    if (planb_raw_kind(raw) == PLANB_INNER) {
        uint32_t child = words[PLANB_INNER_KEYS];
        size_t n = 0;

        do {
            walk_node(w, child + n * PLANB_LINE);
        } while (words[n++] != UINT32_MAX && n <= PLANB_INNER_KEYS);
        walk_run(w, child, n);
    } else {
        unsigned int size = planb_raw_aux(raw);

        for (unsigned int i = 0; i < size; i++) {
            walk(w, words[size + i]);
        }
    }
}

static void
walk(struct walk *w, uint32_t raw)
{
    const uint32_t *words = planb_arena_line(w->arena, planb_raw_line(raw));
    const struct planb_other *other = (const void *) words;
    unsigned int stride;

    if (!(raw & PLANB_INDIRECT)) {
        walk_value(w, raw);
        return;
    }
    switch (planb_raw_kind(raw)) {
    case PLANB_TABLE:
        stride = planb_raw_stride(raw);
        for (size_t i = 0; i < (size_t) 1 << stride; i++) {
            walk(w, words[i]);
        }
        walk_run(w, raw, table_n_lines(stride));
        break;

    case PLANB_INNER:
        walk_node(w, raw);
        walk_run(w, raw, 1);
        break;

    case PLANB_LEAF:
        walk_node(w, raw);
        walk_run(w, raw, leaf_n_lines(planb_raw_aux(raw)));
        break;

    default:
        /* The last answer of a leaf may be there more than once. */
        if (raw == w->last_other) {
            break;
        }
        if (!other->n_levels) {
            walk_value(w, other->value);
        } else {
            words += (size_t) other->answers * (PLANB_LINE / 4);
            for (uint32_t i = 0; i < other->n; i++) {
                walk(w, words[i]);
            }
        }
        walk_run(w, raw, other->n_lines);
        w->last_other = raw;
        break;
    }
}

/* Replaces the run of 'n_lines' lines at offset '*offset' by a copy. */
static int
copy_run(struct planb_compiler *c, size_t n_lines, uint32_t *offset)
{
    uint32_t old = *offset / PLANB_LINE;
    uint32_t new;
    int error;

    error = planb_arena_alloc(c->arena, n_lines, &new);
    if (!error) {
        memcpy(planb_arena_line(c->arena, new),
               planb_arena_line(c->arena, old), n_lines * PLANB_LINE);
        *offset = new * PLANB_LINE;
        error = planb_arena_retire(c->arena, old, n_lines);
    }
    return error;
}

/* Is 'entry', of page 'page', one with a cell? */
static bool
is_cell(const struct planb_top *top, uint32_t page, uint32_t entry)
{
    /* Everything before the page gives a huge difference. */
    return (planb_root_offset(entry) - top->pages[page]
            < top->page_lines[page] * (uint32_t) PLANB_LINE);
}

static uint32_t *
root_entry(const struct planb_compiler *c, uint32_t slot)
{
    uint32_t page = c->top->pages[slot / PLANB_PAGE_SIZE];
    uint32_t *entries = planb_arena_line(c->arena, page / PLANB_LINE);

    return &entries[slot % PLANB_PAGE_SIZE];
}

static uint32_t *
table_entries(const struct planb_compiler *c, uint32_t entry)
{
    return planb_arena_line(c->arena, entry / PLANB_LINE);
}

static uint32_t *
next_entries(const struct planb_compiler *c, uint32_t raw)
{
    return planb_arena_line(c->arena, planb_raw_line(raw));
}

/* Makes page 'page' one that is not in any tree yet. */
static int
own_page(struct planb_compiler *c, uint32_t page)
{
    struct planb_top *top = c->top;
    uint32_t n_lines = top->page_lines[page];
    uint32_t old = top->pages[page];
    uint32_t new, line;
    uint32_t *entries;
    int error;

    if (c->own_page == page) {
        return 0;
    }
    error = planb_arena_alloc(c->arena, n_lines, &line);
    if (error) {
        return error;
    }
    new = line * PLANB_LINE;
    entries = planb_arena_line(c->arena, line);
    memcpy(entries, planb_arena_line(c->arena, old / PLANB_LINE),
           n_lines * PLANB_LINE);
    for (size_t i = 0; i < PLANB_PAGE_SIZE; i++) {
        if (is_cell(top, page, entries[i])) {
            entries[i] += new - old;
        }
    }
    top->pages[page] = new;
    c->own_page = page;

    /* Part of the address space may still use it. */
    for (size_t i = 0; i < PLANB_N_PAGES; i++) {
        if (top->pages[i] == old) {
            return 0;
        }
    }
    return planb_arena_retire(c->arena, old / PLANB_LINE, n_lines);
}

/* Does the same for the table of root entry 'slot'. */
static int
own_table(struct planb_compiler *c, uint32_t slot)
{
    uint32_t *entry = root_entry(c, slot);
    uint32_t stride = planb_root_stride(*entry);
    uint32_t offset = planb_root_offset(*entry);
    int error;

    if (c->own_table == slot) {
        return 0;
    }
    error = copy_run(c, table_n_lines(stride), &offset);
    *entry = offset + (64 - stride);
    c->own_table = slot;
    return error;
}

/* And for the table at '*raw', 'depth' tables deep, which covers the first
 * 'plen' bits of 'hi'. */
static int
own_next_table(struct planb_compiler *c, int depth, uint64_t hi,
               unsigned int plen, uint32_t *raw)
{
    struct planb_block *own = &c->own_next[depth];
    uint32_t offset = *raw & PLANB_OFFSET_MASK;
    int error;

    hi &= ~planb_host_hi(plen);
    if (own->plen == plen && own->hi == hi) {
        return 0;
    }
    error = copy_run(c, table_n_lines(planb_raw_stride(*raw)), &offset);
    *raw = PLANB_TABLE | offset | planb_raw_aux(*raw);
    own->plen = plen;
    own->hi = hi;
    return error;
}

/* Begins to make of 'top', which describes the latest tree in 'arena', the
 * next one. */
void
planb_update_begin(struct planb_compiler *c, struct planb_arena *arena,
                   struct planb_top *top)
{
    planb_arena_begin(arena);
    c->arena = arena;
    c->top = top;
    c->own_page = c->own_table = UINT32_MAX;
    memset(c->own_next, 0, sizeof c->own_next);
}

/* Counts a change of the prefix 'block'.  To be called once for each change,
 * before the first planb_update_widen(). */
void
planb_update_note(struct planb_compiler *c, const struct planb_block *block)
{
    uint32_t *countdown = &c->countdowns[block->hi >> (64 - PLANB_ROOT_BITS)];

    *countdown -= *countdown > 0;
}

/* Updates know only blocks that are no shorter than this. */
#define MIN_UPDATE_PLEN 12

/* Makes 'block' the part of the address space that has to be compiled if
 * something changes in 'block'.  Returns false if it is too much, so that it
 * is better to compile everything. */
bool
planb_update_widen(struct planb_compiler *c, struct planb_block *block)
{
    uint32_t slot = block->hi >> (64 - PLANB_ROOT_BITS);
    uint32_t entry = *root_entry(c, slot);

    if (block->plen <= PLANB_ROOT_BITS) {
        return block->plen >= MIN_UPDATE_PLEN;
    } else if (!c->countdowns[slot]
               || is_cell(c->top, slot / PLANB_PAGE_SIZE, entry)) {
        block->plen = PLANB_ROOT_BITS;
    } else {
        unsigned int plen = PLANB_ROOT_BITS + planb_root_stride(entry);
        uint32_t raw = table_entries(c, entry)[(block->hi << PLANB_ROOT_BITS)
                                               >> (entry & 63)];

        while (block->plen > plen && planb_raw_kind(raw) == PLANB_TABLE) {
            uint64_t rest = block->hi << plen;

            plen += planb_raw_stride(raw);
            raw = next_entries(c, raw)[rest >> planb_raw_aux(raw)];
        }
        if (block->plen > plen) {
            block->plen = plen;
        }
    }
    block->hi &= ~planb_host_hi(block->plen);
    return true;
}

/* Builds the slots of 'block', which are 1 << 'shift' each and 'depth' tables
 * deep, anew.  'raw' is the first of them. */
static int
update_slots(struct planb_compiler *c, const struct planb_block *block,
             unsigned int shift, int depth, uint32_t *raw, struct walk *w)
{
    const struct interval *iv = c->sweep.intervals;
    uint64_t last = block->hi | planb_host_hi(block->plen);
    uint64_t hi = block->hi;

    for (;;) {
        int error;

        walk(w, *raw);
        error = build_slot(c, &iv, hi, shift, depth, raw);
        if (error) {
            return error;
        }
        raw++;
        hi += size_of_slot(shift) - 1;
        if (hi == last) {
            return 0;
        }
        hi++;
    }
}

/* Builds the tables of 'block', which has 16 bits or less, anew. */
static int
update_root(struct planb_compiler *c, const struct planb_block *block,
            struct walk *w)
{
    uint32_t n = 1u << (PLANB_ROOT_BITS - block->plen);
    uint32_t first = block->hi >> (64 - PLANB_ROOT_BITS);
    const struct interval *iv = c->sweep.intervals;

    for (uint32_t slot = first; slot < first + n; slot++) {
        uint64_t hi = (uint64_t) slot << (64 - PLANB_ROOT_BITS);
        uint32_t *entry = root_entry(c, slot);
        const struct interval *next = iv;
        size_t n_intervals = count_root_slot(&next, hi);
        uint32_t *table = table_entries(c, *entry);
        int error;

        if (is_cell(c->top, slot / PLANB_PAGE_SIZE, *entry)) {
            /* It stays in the page. */
            walk_value(w, get_value(c, table[0]));
        } else {
            unsigned int stride = planb_root_stride(*entry);

            for (size_t i = 0; i < (size_t) 1 << stride; i++) {
                walk(w, table[i]);
            }
            walk_run(w, planb_root_offset(*entry), table_n_lines(stride));
        }
        error = build_root_slot(c, &iv, n_intervals, hi, entry);
        if (error) {
            return error;
        }
    }
    return 0;
}

/* Builds everything in 'block' from the intervals in 'c->sweep'. */
static int
update_intervals(struct planb_compiler *c, const struct planb_block *block,
                 struct walk *w)
{
    uint32_t slot = block->hi >> (64 - PLANB_ROOT_BITS);
    unsigned int plen;
    uint32_t entry;
    uint32_t *raw;
    int depth = 1;
    int error;

    error = own_page(c, slot / PLANB_PAGE_SIZE);
    if (!error) {
        if (block->plen <= PLANB_ROOT_BITS) {
            return update_root(c, block, w);
        }
        error = own_table(c, slot);
    }

    entry = *root_entry(c, slot);
    plen = PLANB_ROOT_BITS + planb_root_stride(entry);
    raw = &table_entries(c, entry)[(block->hi << PLANB_ROOT_BITS)
                                   >> (entry & 63)];
    while (!error && block->plen > plen) {
        uint64_t rest = block->hi << plen;

        error = own_next_table(c, depth++, block->hi, plen, raw);
        plen += planb_raw_stride(*raw);
        raw = &next_entries(c, *raw)[rest >> planb_raw_aux(*raw)];
    }
    return error ? error : update_slots(c, block, 64 - plen, depth, raw, w);
}

/* Returns the value at address 'hi':'lo', less the default value. */
static uint32_t
look_up(const struct planb_compiler *c, uint64_t hi, uint64_t lo)
{
    uint32_t entry = *root_entry(c, hi >> (64 - PLANB_ROOT_BITS));
    uint32_t rest = planb_table1_rest(entry, hi);
    struct planb tree = { .lines = c->arena->lines };
    uint32_t raw = planb_table1(&tree, entry, hi);
    uint8_t addr[16];

    for (int i = 1; i < PLANB_MAX_TABLES; i++) {
        raw = planb_next_table(&tree, raw, &rest);
    }
    planb_put_be64(addr, hi);
    planb_put_be64(addr + 8, lo);
    return planb_resolve(&tree, raw, addr);
}

/* Compiles 'block', which planb_update_widen() has made, anew.  'rules' must
 * have, in order, all 'n' rules for prefixes in 'block' or that contain it.
 * Sets 'conflict' in each.  Blocks must be disjoint and in order.
 *
 * Returns 0, or ENOSPC if the arena is full, or ENOMEM. */
int
planb_update_block(struct planb_compiler *c, const struct planb_block *block,
                   struct planb_rule rules[], size_t n)
{
    uint64_t last = block->hi | planb_host_hi(block->plen);
    const struct interval *intervals;
    struct walk w = { .arena = c->arena };
    uint32_t first_value, last_value;
    size_t n_intervals;
    int error;

    error = sweep(c, block, rules, n);
    if (error) {
        return error;
    }

    intervals = c->sweep.intervals;
    n_intervals = c->sweep.n;
    first_value = intervals[0].value - c->default_value;
    last_value = intervals[n_intervals - 1].value - c->default_value;

    error = update_intervals(c, block, &w);
    if (error || w.error) {
        return error ? error : w.error;
    }

    /* Intervals go on beyond the ends of 'block' if the values there are the
     * same. */
    c->top->n_intervals += n_intervals - w.n_intervals;
    if (block->hi) {
        uint32_t value = look_up(c, block->hi - 1, UINT64_MAX);

        c->top->n_intervals += (value != first_value);
        c->top->n_intervals -= (value != w.first_value);
    }
    if (last < UINT64_MAX) {
        uint32_t value = look_up(c, last + 1, 0);

        c->top->n_intervals += (value != last_value);
        c->top->n_intervals -= (value != w.last_value);
    }
    return 0;
}

/* Makes what is new in 'arena' a tree, which it stores in '*treep', and
 * commits.  Returns 0 or ENOMEM. */
int
planb_make_tree(struct planb_arena *arena, const struct planb_top *top,
                size_t n_prefixes, uint32_t default_value,
                struct planb **treep)
{
    struct planb *tree;
    void *p;

    if (posix_memalign(&p, PLANB_LINE, sizeof *tree)) {
        return ENOMEM;
    }
    tree = p;
    memset(tree, 0, sizeof *tree);

    tree->small = top->small;
    tree->default_value = default_value;
    memcpy(tree->pages, top->pages, sizeof tree->pages);
    planb_arena_commit(arena, tree);

    tree->stats.n_prefixes = n_prefixes;
    tree->stats.n_intervals = top->n_intervals;
    tree->stats.n_bytes = arena->live * PLANB_LINE;
    tree->stats.depth = top->small ? 0 : 2 + top->node_levels;
    tree->stats.subtree_depth = top->bt_levels[0] + top->bt_levels[1];
    *treep = tree;
    return 0;
}

/* Stores figures about 'tree' in '*stats'. */
void
planb_get_stats(const struct planb *tree, struct planb_stats *stats)
{
    *stats = tree->stats;
}
