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
    const struct planb_rule *rules;
    struct planb_conflict *conflict;

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

/* Stores in 's->intervals', which must have room for 2 * n + 1, the intervals
 * that the 'n' elements of 'rules' make of 'block'.  'rules' must have all
 * rules for prefixes inside 'block' and all that contain it.  Looks for the
 * first conflict unless 'conflict' is null or already has one. */
static void
sweep_run(struct sweep *s, const struct planb_block *block,
          const struct planb_rule rules[], size_t n, uint32_t default_value,
          struct planb_conflict *conflict)
{
    s->rules = rules;
    s->conflict = conflict;
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

        if (conflict && !conflict->found) {
            sweep_check_conflict(s);
        }
    }
    while (s->depth >= 0) {
        sweep_pop(s);
    }
}

/* What a compilation works with. */
struct planb_compiler {
    struct sweep sweep;
    size_t allocated_intervals;

    struct planb_arena *arena;
    uint32_t default_value;

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

    /* Figures. */
    unsigned int depth;
    unsigned int subtree_depth;
};

/* Creates and returns a compiler, or a null pointer if memory is short. */
struct planb_compiler *
planb_compiler_create(void)
{
    return calloc(1, sizeof(struct planb_compiler));
}

void
planb_compiler_destroy(struct planb_compiler *c)
{
    if (c) {
        free(c->sweep.intervals);
        free(c->ends);
        free(c->raws);
        free(c->lower_ends);
        free(c->lower_raws);
        free(c->bases);
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
    *raw = make_raw(line, PLANB_OTHER, 0);

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
    if (c->subtree_depth < n_levels) {
        c->subtree_depth = n_levels;
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

/* Makes a tree of leaves and inner nodes of 'n_ends' intervals and stores the
 * answer that leads to it in '*raw'. */
static int
build_nodes(struct planb_compiler *c, const uint64_t ends[],
            const uint32_t raws[], size_t n_ends, uint32_t *raw)
{
    enum { FANOUT = PLANB_INNER_KEYS + 1, LEAF_FANOUT = PLANB_LEAF_KEYS + 1 };
    size_t n = div_round_up(n_ends, LEAF_FANOUT);
    size_t span = LEAF_FANOUT;
    unsigned int depth = 1;

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

        error = planb_arena_alloc(c->arena, n_siblings, &line);
        if (error) {
            return error;
        }
        c->bases[first / FANOUT] = make_raw(line, PLANB_LEAF, n_siblings - 1);
        for (size_t i = 0; i < n_siblings; i++) {
            uint32_t *keys = planb_arena_line(c->arena, line + i);
            uint32_t *answers = &keys[LEAF_FANOUT];
            size_t start = (first + i) * LEAF_FANOUT;

            for (size_t k = 0; k < LEAF_FANOUT; k++) {
                size_t j = start + k < n_ends ? start + k : n_ends - 1;

                keys[k] = (k < PLANB_LEAF_KEYS && j < n_ends - 1
                           ? planb_key(ends[j]) : UINT32_MAX);
                answers[k] = raws[j];
            }
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
            c->bases[first / FANOUT] = make_raw(line, PLANB_INNER,
                                                n_siblings - 1);
        }
        span *= FANOUT;
        depth++;
    }
    if (c->depth < depth) {
        c->depth = depth;
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
    size_t n_lines = div_round_up(n, PLANB_LEAF_KEYS + 1);
    size_t cost = n * PLANB_STEP_BYTES;

    while (n_lines > 1) {
        cost += n_lines * PLANB_LINE + n * PLANB_STEP_BYTES;
        n_lines = div_round_up(n_lines, PLANB_INNER_KEYS + 1);
    }
    return cost + PLANB_LINE;
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
        if (n_slot > PLANB_LEAF_KEYS + 1 && nested) {
            /* Whatever is below, it will have found a good stride. */
            cost += n_slot * (8 + PLANB_STEP_BYTES);
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
    if (last > shift) {
        last = shift;
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

/* Makes a table of kind PLANB_TABLE for the 'c->n' intervals in 'c', which
 * cover the 1 << 'shift' addresses from 'first' on. */
static int
build_table2(struct planb_compiler *c, uint64_t first, unsigned int shift,
             unsigned int stride, uint32_t *raw)
{
    uint64_t size = size_of_slot(shift - stride);
    uint64_t last = first + (size - 1);
    uint32_t *table;
    uint32_t line;
    size_t i = 0;
    int error;

    error = planb_arena_alloc(c->arena, table_n_lines(stride), &line);
    if (error) {
        return error;
    }
    *raw = make_raw(line, PLANB_TABLE, PLANB_MAX_STRIDE - stride);
    table = planb_arena_line(c->arena, line);
    for (size_t slot = 0; slot < (size_t) 1 << stride; slot++, last += size) {
        size_t start = i;

        while (c->ends[i] < last) {
            i++;
        }
        error = build_search(c, &c->ends[start], &c->raws[start],
                             i - start + 1, &table[slot]);
        if (error) {
            return error;
        }
        i += c->ends[i] == last;
    }
    return 0;
}

/* Compiles the intervals of 'c->sweep' from '**ivp' on, as far as they are
 * among the 1 << 'shift' addresses (in the upper half) from 'first' on, and
 * stores the answer in '*raw'.  Moves '*ivp' past the intervals that end
 * there.  If 'small', the answer is a B+ tree in any case. */
static int
build_slot(struct planb_compiler *c, const struct interval **ivp,
           uint64_t first, unsigned int shift, bool small, uint32_t *raw)
{
    uint64_t last = first + (UINT64_MAX >> (64 - shift));
    const struct interval *iv = *ivp;
    uint64_t pos = first;
    int error;

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

        if (end == last && !c->n && !small) {
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

    if (small) {
        return build_bt(c, false, c->ends, c->raws, c->n, raw);
    }
    if (c->n > PLANB_LEAF_KEYS + 1) {
        size_t table_cost;
        unsigned int stride = choose_stride(c->ends, c->n, shift, false,
                                            &table_cost);

        if (table_cost < cost_of_search(c->n)) {
            return build_table2(c, first, shift, stride, raw);
        }
    }
    return build_search(c, c->ends, c->raws, c->n, raw);
}

/* Fills 'n' slots in 'table', which are 1 << 'shift' apart, from 'hi' on. */
static int
build_slots(struct planb_compiler *c, const struct interval **ivp,
            uint64_t hi, unsigned int shift, uint32_t table[], size_t n)
{
    for (size_t i = 0; i < n; i++, hi += size_of_slot(shift)) {
        int error = build_slot(c, ivp, hi, shift, false, &table[i]);

        if (error) {
            return error;
        }
    }
    return 0;
}

/* Makes a table for the /16 from 'hi' on, and stores its root entry in
 * '*entry'. */
static int
build_table(struct planb_compiler *c, const struct interval **ivp,
            uint64_t hi, unsigned int stride, uint32_t *entry)
{
    uint32_t line;
    int error;

    error = planb_arena_alloc(c->arena, table_n_lines(stride), &line);
    if (error) {
        return error;
    }
    *entry = line * PLANB_LINE + (64 - stride);
    return build_slots(c, ivp, hi, 64 - PLANB_ROOT_BITS - stride,
                       planb_arena_line(c->arena, line), 1u << stride);
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

static int
build_root(struct planb_compiler *c, struct planb_top *top,
           struct planb_slot_info *info)
{
    const struct interval *iv = c->sweep.intervals;
    uint32_t cell = 0, cell_value = 0;
    uint32_t *root;
    uint32_t line;
    int error;

    error = planb_arena_alloc(c->arena, PLANB_ROOT_LINES, &line);
    if (error) {
        return error;
    }
    top->root = line;
    root = planb_arena_line(c->arena, line);

    for (uint32_t i = 0; i < PLANB_ROOT_SIZE; i++) {
        uint64_t hi = (uint64_t) i << (64 - PLANB_ROOT_BITS);
        uint64_t last = last_of_root_slot(hi);
        const struct interval *start = iv;
        unsigned int stride;
        size_t n;

        if (ends_after(iv, last)) {
            /* One answer for all.  Neighbors share a table of two equal
             * entries. */
            if (!cell || cell_value != iv->value) {
                cell_value = iv->value;
                error = build_table(c, &iv, hi, 1, &cell);
                if (error) {
                    return error;
                }
            } else {
                iv += iv->hi == last;
            }
            root[i] = cell;
            n = 1;
        } else {
            while (!ends_after(iv, last)) {
                iv++;
            }
            n = iv - start + 1;
            iv = start;
            error = choose_root_stride(c, iv, n, &stride);
            if (!error) {
                error = build_table(c, &iv, hi, stride, &root[i]);
            }
            if (error) {
                return error;
            }
        }
        if (info) {
            info[i].n_built = n;
            info[i].n_changed = 0;
        }
    }
    return 0;
}

static const struct planb_block everything = { 0, 0 };

/* Sweeps over 'rules' within 'block', after having made room for what that
 * gives. */
static int
sweep(struct planb_compiler *c, const struct planb_block *block,
      const struct planb_rule rules[], size_t n,
      struct planb_conflict *conflict)
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
    sweep_run(&c->sweep, block, rules, n, c->default_value, conflict);
    return 0;
}

/* Compiles the 'n' elements of 'rules', which must be sorted and without
 * duplicates, into a new arena, which it stores in '*arenap' with a
 * transaction begun but not committed, and describes the result in '*top'.
 * Fills in '*conflict' and the PLANB_ROOT_SIZE elements of 'info' unless they
 * are null.
 *
 * Returns 0, or ENOSPC if this exceeds the limits of the data structure, or
 * ENOMEM. */
int
planb_compile(struct planb_compiler *c, const struct planb_rule rules[],
              size_t n, uint32_t default_value, struct planb_arena **arenap,
              struct planb_top *top, struct planb_slot_info *info,
              struct planb_conflict *conflict)
{
    size_t n_lines;
    int error;

    if (n > PLANB_MAX_PREFIXES) {
        return ENOSPC;
    }

    c->default_value = default_value;
    if (conflict) {
        conflict->found = false;
    }
    error = sweep(c, &everything, rules, n, conflict);
    if (error) {
        return error;
    }

    /* How many lines it will take is hard to tell and easy to try.  Memory
     * that is not used need not exist. */
    n_lines = c->sweep.n + (n >= PLANB_MIN_ROOT ? 2 * PLANB_ROOT_LINES : 64);
    for (;;) {
        const struct interval *iv = c->sweep.intervals;

        error = planb_arena_create(n_lines, &c->arena);
        if (error) {
            return error;
        }
        planb_arena_begin(c->arena);

        memset(top, 0, sizeof *top);
        c->depth = c->subtree_depth = 0;
        if (n >= PLANB_MIN_ROOT) {
            error = build_root(c, top, info);
        } else {
            error = build_slot(c, &iv, 0, 64, true, &top->small);
        }
        if (!error) {
            top->n_intervals = c->sweep.n;
            top->depth = c->depth + (top->small ? 0 : 2);
            top->subtree_depth = c->subtree_depth;
            *arenap = c->arena;
            return 0;
        }

        planb_arena_disown(c->arena);
        if (error != ENOSPC || n_lines >= PLANB_MAX_LINES) {
            return error;
        }
        n_lines = (n_lines < PLANB_MAX_LINES / 2
                   ? n_lines * 2 : PLANB_MAX_LINES);
    }
}

/* Makes what is new in 'arena' a tree, which it stores in '*treep', and
 * commits.  Returns 0 or ENOMEM. */
int
planb_make_tree(struct planb_arena *arena, const struct planb_top *top,
                size_t n_prefixes, uint32_t default_value,
                struct planb **treep)
{
    struct planb *tree = calloc(1, sizeof *tree);

    if (!tree) {
        return ENOMEM;
    }

    if (!top->small) {
        tree->root = planb_arena_line(arena, top->root);
    }
    tree->small = top->small;
    tree->default_value = default_value;
    planb_arena_commit(arena, tree);

    tree->stats.n_prefixes = n_prefixes;
    tree->stats.n_intervals = top->n_intervals;
    tree->stats.n_bytes = arena->live * PLANB_LINE;
    tree->stats.depth = top->depth;
    tree->stats.subtree_depth = top->subtree_depth;
    *treep = tree;
    return 0;
}

/* Stores figures about 'tree' in '*stats'. */
void
planb_get_stats(const struct planb *tree, struct planb_stats *stats)
{
    *stats = tree->stats;
}
