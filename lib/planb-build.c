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

#include "planb.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "planb-private.h"

/* Converts 'prefix' into 'rule'.  Returns 0 or EINVAL if 'prefix' is not a
 * prefix. */
int
planb_rule_from_prefix(struct planb_rule *rule,
                       const struct planb_prefix *prefix)
{
    uint64_t hi = planb_get_be64(prefix->addr);
    uint64_t lo = planb_get_be64(prefix->addr + 8);

    if (prefix->plen > 128
        || hi & planb_host_hi(prefix->plen)
        || lo & planb_host_lo(prefix->plen)) {
        return EINVAL;
    }

    rule->hi = hi;
    rule->lo = lo;
    rule->priority = prefix->priority;
    rule->value = prefix->value;
    rule->plen = prefix->plen;
    rule->conflict = false;
    return 0;
}

void
planb_rule_to_prefix(const struct planb_rule *rule,
                     struct planb_prefix *prefix)
{
    memset(prefix, 0, sizeof *prefix);
    planb_put_be64(prefix->addr, rule->hi);
    planb_put_be64(prefix->addr + 8, rule->lo);
    prefix->plen = rule->plen;
    prefix->priority = rule->priority;
    prefix->value = rule->value;
}

/* Sorting.
 *
 * What is sorted are pairs of the upper half of the address and the position
 * in the caller's array.  A radix sort on the former puts nearly everything in
 * place.  What ties there is finished by comparison. */
struct sort_item {
    uint64_t hi;
    uint32_t index;
};

#define RADIX_BITS 11
#define RADIX_SIZE (1u << RADIX_BITS)
#define RADIX_PASSES ((64 + RADIX_BITS - 1) / RADIX_BITS)

/* Sorts the 'n' items in 'a' by 'hi', keeping the order of equal ones.  Uses
 * 'b' as scratch space.  Returns whichever of the two has the result. */
static struct sort_item *
radix_sort(struct sort_item *a, struct sort_item *b, size_t n,
           uint32_t counts[RADIX_PASSES][RADIX_SIZE])
{
    memset(counts, 0, RADIX_PASSES * sizeof counts[0]);
    for (size_t i = 0; i < n; i++) {
        for (int pass = 0; pass < RADIX_PASSES; pass++) {
            counts[pass][(a[i].hi >> (pass * RADIX_BITS)) % RADIX_SIZE]++;
        }
    }

    for (int pass = 0; pass < RADIX_PASSES; pass++) {
        int shift = pass * RADIX_BITS;
        uint32_t *count = counts[pass];
        struct sort_item *tmp;
        uint32_t sum = 0;

        /* A digit that is the same everywhere orders nothing. */
        if (n && count[(a[0].hi >> shift) % RADIX_SIZE] == n) {
            continue;
        }

        for (size_t i = 0; i < RADIX_SIZE; i++) {
            uint32_t c = count[i];

            count[i] = sum;
            sum += c;
        }
        for (size_t i = 0; i < n; i++) {
            b[count[(a[i].hi >> shift) % RADIX_SIZE]++] = a[i];
        }

        tmp = a;
        a = b;
        b = tmp;
    }
    return a;
}

static int
compare_rules(const void *a_, const void *b_)
{
    const struct planb_rule *a = a_;
    const struct planb_rule *b = b_;

    return planb_rule_compare(a, b);
}

/* Compares rules that may be identical, in which case their positions in the
 * array they came from decide.  Those are in 'value' for the while. */
static int
compare_rules_stably(const void *a_, const void *b_)
{
    const struct planb_rule *a = a_;
    const struct planb_rule *b = b_;
    int cmp = compare_rules(a, b);

    return cmp ? cmp : a->value < b->value ? -1 : a->value > b->value;
}

/* Converts the 'n' elements of 'prefixes' to sorted rules without duplicates
 * in '*rulesp', which the caller must free, and stores their number in '*np'.
 * Of identical prefixes the last one stays. */
static int
sort_prefixes(const struct planb_prefix prefixes[], size_t n,
              struct planb_rule **rulesp, size_t *np)
{
    uint32_t (*counts)[RADIX_SIZE] = NULL;
    struct planb_rule *rules = NULL;
    struct sort_item *items = NULL;
    struct sort_item *sorted;
    size_t n_rules = 0;
    int error = ENOMEM;

    rules = malloc((n ? n : 1) * sizeof *rules);
    items = malloc((n ? n : 1) * 2 * sizeof *items);
    counts = malloc(RADIX_PASSES * sizeof *counts);
    if (!rules || !items || !counts) {
        goto error;
    }

    for (size_t i = 0; i < n; i++) {
        items[i].hi = planb_get_be64(prefixes[i].addr);
        items[i].index = i;
    }
    sorted = radix_sort(items, items + n, n, counts);

    for (size_t i = 0; i < n; i++) {
        uint32_t index = sorted[i].index;

        error = planb_rule_from_prefix(&rules[i], &prefixes[index]);
        if (error) {
            goto error;
        }
        rules[i].value = index;
    }

    for (size_t i = 0; i < n; ) {
        size_t start = i;

        for (i++; i < n && rules[i].hi == rules[start].hi; i++) {
            continue;
        }
        if (i - start > 1) {
            qsort(&rules[start], i - start, sizeof *rules,
                  compare_rules_stably);
        }
        for (size_t j = start; j < i; j++) {
            if (j + 1 < i && !compare_rules(&rules[j], &rules[j + 1])) {
                continue;
            }
            rules[n_rules] = rules[j];
            rules[n_rules++].value = prefixes[rules[j].value].value;
        }
    }

    free(items);
    free(counts);
    *rulesp = rules;
    *np = n_rules;
    return 0;

error:
    free(rules);
    free(items);
    free(counts);
    return error;
}

/* Compiles the 'n' elements of 'prefixes', in any order, into a new tree that
 * gives 'default_value' for addresses outside all of them, and stores it in
 * '*treep'.  If the same prefix is there more than once with the same
 * priority, its last value counts.
 *
 * Returns 0 if successful, EINVAL if an element is not a prefix (it is longer
 * than 128 bits or has host bits set), ENOSPC if 'n' is greater than
 * PLANB_MAX_PREFIXES or the tree would be too big, or ENOMEM. */
int
planb_build(const struct planb_prefix prefixes[], size_t n,
            uint32_t default_value, struct planb **treep)
{
    struct planb_compiler *c;
    struct planb_arena *arena;
    struct planb_rule *rules;
    struct planb_top top;
    size_t n_rules;
    int error;

    if (n > PLANB_MAX_PREFIXES) {
        return ENOSPC;
    }

    error = sort_prefixes(prefixes, n, &rules, &n_rules);
    if (error) {
        return error;
    }

    c = planb_compiler_create(default_value, false);
    if (c) {
        error = planb_compile(c, rules, n_rules, 0, &arena, &top);
        if (!error) {
            error = planb_make_tree(arena, &top, n_rules, default_value,
                                    treep);
            planb_arena_disown(arena);
        }
        planb_compiler_destroy(c);
    } else {
        error = ENOMEM;
    }
    free(rules);
    return error;
}

/* Memory.  See struct planb_arena in planb-private.h.
 *
 * Free runs are kept by size.  Up to 16 lines every size has its class, and
 * above there are four classes for each doubling, so that at most a fifth of a
 * run is unused.  Powers of two are sizes of their own. */
#define SMALL_RUN 16

#define HUGE_PAGE ((size_t) 2 << 20)

static unsigned int
size_class(size_t n)
{
    if (n <= SMALL_RUN) {
        return n - 1;
    } else {
        unsigned int log2 = 63 - __builtin_clzll(n - 1);
        unsigned int quarter = ((n - 1) >> (log2 - 2)) & 3;

        return SMALL_RUN + (log2 - 4) * 4 + quarter;
    }
}

/* Returns the number of lines that a run of 'n' lines takes. */
size_t
planb_run_size(size_t n)
{
    if (n <= SMALL_RUN) {
        return n;
    } else {
        unsigned int log2 = 63 - __builtin_clzll(n - 1);
        size_t unit = (size_t) 1 << (log2 - 2);

        return (n + unit - 1) & ~(unit - 1);
    }
}

static uint32_t
get_next_free(const struct planb_arena *arena, uint32_t line)
{
    uint32_t next;

    memcpy(&next, planb_arena_line(arena, line), sizeof next);
    return next;
}

static void
free_run(struct planb_arena *arena, const struct planb_run *run)
{
    uint32_t *list = &arena->free[size_class(run->n)];

    memcpy(planb_arena_line(arena, run->line), list, sizeof *list);
    *list = run->line;
}

/* Creates an arena of 'n_lines' lines, for the use of one table's writer, and
 * stores it in '*arenap'.  Returns 0, or ENOSPC if there cannot be that many,
 * or ENOMEM. */
int
planb_arena_create(size_t n_lines, struct planb_arena **arenap)
{
    size_t size = n_lines * PLANB_LINE;
    struct planb_arena *arena;
    void *lines;

    if (n_lines > PLANB_MAX_LINES) {
        return ENOSPC;
    }
    arena = calloc(1, sizeof *arena);
    if (!arena) {
        return ENOMEM;
    }
    if (posix_memalign(&lines, size >= HUGE_PAGE ? HUGE_PAGE : PLANB_LINE,
                       size)) {
        free(arena);
        return ENOMEM;
    }
#ifdef MADV_HUGEPAGE
    /* Less TLB misses for lookups and less page faults for the build.  If the
     * system would rather not, it does not matter. */
    if (size >= HUGE_PAGE) {
        madvise(lines, size & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
    }
#endif
    arena->lines = lines;
    arena->capacity = n_lines;

    /* Line 0 ends the lists of free runs. */
    arena->used = 1;
    arena->has_table = true;
    pthread_mutex_init(&arena->mutex, NULL);
    *arenap = arena;
    return 0;
}

static void
arena_destroy(struct planb_arena *arena)
{
    pthread_mutex_destroy(&arena->mutex);
    free(arena->lines);
    free(arena->fresh);
    free(arena->retired);
    free(arena);
}

/* Tells 'arena' that no more trees will be made in it.  It goes when the last
 * one in it does.  Does nothing if 'arena' is null. */
void
planb_arena_disown(struct planb_arena *arena)
{
    if (arena) {
        bool last;

        pthread_mutex_lock(&arena->mutex);
        arena->has_table = false;
        last = !arena->oldest;
        pthread_mutex_unlock(&arena->mutex);
        if (last) {
            arena_destroy(arena);
        }
    }
}

/* Frees 'tree'.  No lookup may be using it.  Does nothing if 'tree' is null.
 *
 * May be called by any thread. */
void
planb_destroy(struct planb *tree)
{
    if (tree) {
        struct planb_arena *arena = tree->arena;
        bool last;

        pthread_mutex_lock(&arena->mutex);
        *(tree->prev ? &tree->prev->next : &arena->oldest) = tree->next;
        *(tree->next ? &tree->next->prev : &arena->latest) = tree->prev;
        last = !arena->oldest && !arena->has_table;
        pthread_mutex_unlock(&arena->mutex);

        free(tree);
        if (last) {
            arena_destroy(arena);
        }
    }
}

/* Begins to make the next tree in 'arena'. */
void
planb_arena_begin(struct planb_arena *arena)
{
    uint64_t oldest;

    pthread_mutex_lock(&arena->mutex);
    oldest = arena->oldest ? arena->oldest->version : UINT64_MAX;
    pthread_mutex_unlock(&arena->mutex);

    while (arena->first_retired < arena->n_retired
           && arena->retired[arena->first_retired].version <= oldest) {
        const struct planb_run *run
            = &arena->retired[arena->first_retired++].run;

        free_run(arena, run);
        arena->waiting -= run->n;
    }
    if (arena->first_retired > arena->n_retired / 2) {
        arena->n_retired -= arena->first_retired;
        memmove(arena->retired, &arena->retired[arena->first_retired],
                arena->n_retired * sizeof *arena->retired);
        arena->first_retired = 0;
    }

    arena->n_fresh = 0;
    arena->fresh_lines = arena->retired_lines = 0;
    arena->retired_committed = arena->n_retired;
}

/* Stores in '*line' the first of 'n_lines' consecutive lines.  Returns 0, or
 * ENOSPC if 'arena' is full, or ENOMEM. */
int
planb_arena_alloc(struct planb_arena *arena, size_t n_lines, uint32_t *line)
{
    size_t size = planb_run_size(n_lines);
    uint32_t *list = &arena->free[size_class(n_lines)];

    if (arena->n_fresh >= arena->allocated_fresh) {
        size_t n = arena->allocated_fresh * 2 + 64;
        struct planb_run *fresh = realloc(arena->fresh, n * sizeof *fresh);

        if (!fresh) {
            return ENOMEM;
        }
        arena->fresh = fresh;
        arena->allocated_fresh = n;
    }

    if (*list) {
        *line = *list;
        *list = get_next_free(arena, *line);
    } else if (size <= arena->capacity - arena->used) {
        *line = arena->used;
        arena->used += size;
    } else {
        return ENOSPC;
    }
    arena->fresh[arena->n_fresh].line = *line;
    arena->fresh[arena->n_fresh++].n = size;
    arena->fresh_lines += size;
    return 0;
}

/* Says that the next tree will do without the run of 'n_lines' lines at
 * 'line'.  Returns 0 or ENOMEM. */
int
planb_arena_retire(struct planb_arena *arena, uint32_t line, size_t n_lines)
{
    struct planb_retired *r;

    if (arena->n_retired >= arena->allocated_retired) {
        size_t n = arena->allocated_retired * 2 + 64;

        r = realloc(arena->retired, n * sizeof *r);
        if (!r) {
            return ENOMEM;
        }
        arena->retired = r;
        arena->allocated_retired = n;
    }
    r = &arena->retired[arena->n_retired++];
    r->run.line = line;
    r->run.n = planb_run_size(n_lines);
    r->version = arena->version + 1;
    arena->retired_lines += r->run.n;
    return 0;
}

/* Makes 'tree' the latest one in 'arena'. */
void
planb_arena_commit(struct planb_arena *arena, struct planb *tree)
{
    arena->live += arena->fresh_lines;
    arena->live -= arena->retired_lines;
    arena->waiting += arena->retired_lines;

    tree->lines = arena->lines;
    tree->arena = arena;
    tree->version = ++arena->version;
    tree->next = NULL;
    pthread_mutex_lock(&arena->mutex);
    tree->prev = arena->latest;
    *(arena->latest ? &arena->latest->next : &arena->oldest) = tree;
    arena->latest = tree;
    pthread_mutex_unlock(&arena->mutex);
}

/* Takes back all since planb_arena_begin(). */
void
planb_arena_abort(struct planb_arena *arena)
{
    while (arena->n_fresh) {
        free_run(arena, &arena->fresh[--arena->n_fresh]);
    }
    arena->n_retired = arena->retired_committed;
}
