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

#include "planb-private.h"

/* Free runs are kept by size.  Up to 16 lines every size has its class, and
 * above there are four classes for each doubling, so that at most a fifth of a
 * run is unused.  Powers of two are sizes of their own. */
#define SMALL_RUN 16

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
    struct planb_arena *arena;
    void *lines;

    if (n_lines > PLANB_MAX_LINES) {
        return ENOSPC;
    }
    arena = calloc(1, sizeof *arena);
    if (!arena) {
        return ENOMEM;
    }
    if (posix_memalign(&lines, PLANB_LINE, n_lines * PLANB_LINE)) {
        free(arena);
        return ENOMEM;
    }
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
        free_run(arena, &arena->retired[arena->first_retired++].run);
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
