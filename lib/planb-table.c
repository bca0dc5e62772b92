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

/* The mutable table.
 *
 * The rules are in one sorted sequence that is cut into chunks of at most
 * CHUNK_MAX.  A directory with the first rule of each chunk makes finding one
 * two binary searches.  A change moves rules within a chunk only, and the
 * directory changes just when a chunk is split or merged. */

#include "planb.h"

#include <errno.h>
#include <stdlib.h>

#include "planb-private.h"

#define CHUNK_MAX 128

struct chunk {
    size_t n;
    struct planb_rule rules[CHUNK_MAX];
};

/* An element of the directory.  'first' is never greater than the first rule
 * in 'chunk', and greater than the last one of the chunk before. */
struct dirent {
    struct planb_rule first;
    struct chunk *chunk;
};

struct planb_table {
    uint32_t default_value;

    struct dirent *dir;
    size_t n_chunks, allocated_chunks;
    size_t n_rules;

    struct planb_conflict conflict;     /* As of the last publication. */
};

/* Creates and returns a table without prefixes, whose trees will answer
 * 'default_value' for addresses that no prefix contains.  Returns a null
 * pointer if memory is short. */
struct planb_table *
planb_table_create(uint32_t default_value)
{
    struct planb_table *table = calloc(1, sizeof *table);

    if (table) {
        table->default_value = default_value;
    }
    return table;
}

/* Destroys 'table', but not the trees that came from it.  Does nothing if
 * 'table' is null. */
void
planb_table_destroy(struct planb_table *table)
{
    if (table) {
        for (size_t i = 0; i < table->n_chunks; i++) {
            free(table->dir[i].chunk);
        }
        free(table->dir);
        free(table);
    }
}

/* Returns the index of the chunk in which 'rule' is or would be.  The table
 * must not be empty. */
static size_t
find_chunk(const struct planb_table *table, const struct planb_rule *rule)
{
    size_t low = 0;
    size_t high = table->n_chunks;

    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;

        if (planb_rule_compare(&table->dir[mid].first, rule) <= 0) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return low;
}

/* Returns the position in 'chunk' of the first rule that is not less than
 * 'rule', and whether that is the same. */
static size_t
find_in_chunk(const struct chunk *chunk, const struct planb_rule *rule,
              bool *found)
{
    size_t low = 0;
    size_t high = chunk->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (planb_rule_compare(&chunk->rules[mid], rule) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    *found = (low < chunk->n
              && !planb_rule_compare(&chunk->rules[low], rule));
    return low;
}

/* Puts a new chunk at position 'i' of the directory and returns it, or a null
 * pointer if memory is short. */
static struct chunk *
insert_chunk(struct planb_table *table, size_t i)
{
    struct chunk *chunk;

    if (table->n_chunks >= table->allocated_chunks) {
        size_t n = table->n_chunks + table->n_chunks / 2 + 4;
        struct dirent *dir = realloc(table->dir, n * sizeof *dir);

        if (!dir) {
            return NULL;
        }
        table->dir = dir;
        table->allocated_chunks = n;
    }

    chunk = malloc(sizeof *chunk);
    if (chunk) {
        memmove(&table->dir[i + 1], &table->dir[i],
                (table->n_chunks - i) * sizeof *table->dir);
        table->dir[i].chunk = chunk;
        table->n_chunks++;
    }
    return chunk;
}

static void
remove_chunk(struct planb_table *table, size_t i)
{
    free(table->dir[i].chunk);
    table->n_chunks--;
    memmove(&table->dir[i], &table->dir[i + 1],
            (table->n_chunks - i) * sizeof *table->dir);
}

/* Adds 'prefix' to 'table', or if the same prefix is there already with the
 * same priority, gives it a new value.
 *
 * Returns 0 if successful, EINVAL if 'prefix' is longer than 128 bits or has
 * host bits set, ENOSPC if the table has PLANB_MAX_PREFIXES already, or
 * ENOMEM. */
int
planb_table_put(struct planb_table *table, const struct planb_prefix *prefix)
{
    struct planb_rule rule;
    struct chunk *chunk;
    bool found;
    size_t i, pos;
    int error;

    error = planb_rule_from_prefix(&rule, prefix);
    if (error) {
        return error;
    }

    if (!table->n_chunks) {
        chunk = insert_chunk(table, 0);
        if (!chunk) {
            return ENOMEM;
        }
        chunk->n = 0;
        memset(&table->dir[0].first, 0, sizeof table->dir[0].first);
    }

    i = find_chunk(table, &rule);
    chunk = table->dir[i].chunk;
    pos = find_in_chunk(chunk, &rule, &found);
    if (found) {
        chunk->rules[pos].value = rule.value;
        return 0;
    }
    if (table->n_rules >= PLANB_MAX_PREFIXES) {
        return ENOSPC;
    }

    if (chunk->n >= CHUNK_MAX) {
        /* Split it, in the middle unless the table is growing at its end, as
         * happens when sorted prefixes are put in. */
        size_t keep = (pos == CHUNK_MAX && i == table->n_chunks - 1
                       ? CHUNK_MAX : CHUNK_MAX / 2);
        struct chunk *new = insert_chunk(table, i + 1);

        if (!new) {
            return ENOMEM;
        }
        new->n = chunk->n - keep;
        memcpy(new->rules, &chunk->rules[keep], new->n * sizeof *new->rules);
        chunk->n = keep;
        if (new->n) {
            table->dir[i + 1].first = new->rules[0];
        } else {
            table->dir[i + 1].first = rule;
        }
        if (planb_rule_compare(&table->dir[i + 1].first, &rule) <= 0) {
            pos -= keep;
            chunk = new;
        }
    }
    memmove(&chunk->rules[pos + 1], &chunk->rules[pos],
            (chunk->n - pos) * sizeof *chunk->rules);
    chunk->rules[pos] = rule;
    chunk->n++;
    table->n_rules++;
    return 0;
}

/* Looks for 'prefix' (its address, length and priority) in 'table'.  Returns
 * true if it is there and stores its position. */
static bool
find_rule(const struct planb_table *table, const struct planb_prefix *prefix,
          size_t *i, size_t *pos)
{
    struct planb_rule rule;
    bool found;

    if (planb_rule_from_prefix(&rule, prefix) || !table->n_chunks) {
        return false;
    }
    *i = find_chunk(table, &rule);
    *pos = find_in_chunk(table->dir[*i].chunk, &rule, &found);
    return found;
}

/* Removes from 'table' the prefix that has the address, length and priority of
 * 'prefix', whose value is ignored.  Returns 0 if successful, ENOENT if there
 * is none. */
int
planb_table_remove(struct planb_table *table,
                   const struct planb_prefix *prefix)
{
    struct chunk *chunk;
    size_t i, pos;

    if (!find_rule(table, prefix, &i, &pos)) {
        return ENOENT;
    }
    chunk = table->dir[i].chunk;
    chunk->n--;
    memmove(&chunk->rules[pos], &chunk->rules[pos + 1],
            (chunk->n - pos) * sizeof *chunk->rules);
    table->n_rules--;

    /* Do not let shrinking tables keep nearly empty chunks. */
    if (!chunk->n) {
        remove_chunk(table, i);
        if (!i && table->n_chunks) {
            memset(&table->dir[0].first, 0, sizeof table->dir[0].first);
        }
    } else if (i + 1 < table->n_chunks) {
        struct chunk *next = table->dir[i + 1].chunk;

        if (chunk->n + next->n <= CHUNK_MAX / 2) {
            memcpy(&chunk->rules[chunk->n], next->rules,
                   next->n * sizeof *next->rules);
            chunk->n += next->n;
            remove_chunk(table, i + 1);
        }
    }
    return 0;
}

/* Looks in 'table' for the prefix that has the address, length and priority of
 * 'prefix'.  If it is there, stores its value in 'prefix->value' and returns
 * 0.  Otherwise, returns ENOENT. */
int
planb_table_get(const struct planb_table *table, struct planb_prefix *prefix)
{
    size_t i, pos;

    if (!find_rule(table, prefix, &i, &pos)) {
        return ENOENT;
    }
    prefix->value = table->dir[i].chunk->rules[pos].value;
    return 0;
}

/* Returns the number of prefixes in 'table', where those that differ in their
 * priority alone count each. */
size_t
planb_table_count(const struct planb_table *table)
{
    return table->n_rules;
}

/* Compiles 'table' into a new tree and stores it in '*treep'.  The tree is
 * independent of 'table' from then on, and the caller must eventually free it
 * with planb_destroy().
 *
 * Returns 0 if successful, otherwise ENOMEM, in which case the next call
 * compiles the same changes again. */
int
planb_table_publish(struct planb_table *table, struct planb **treep)
{
    struct planb_conflict conflict;
    struct planb_compiler *c;
    struct planb_arena *arena;
    struct planb_rule *rules;
    struct planb_top top;
    size_t n = 0;
    int error;

    rules = malloc((table->n_rules + 1) * sizeof *rules);
    c = planb_compiler_create();
    if (!rules || !c) {
        free(rules);
        planb_compiler_destroy(c);
        return ENOMEM;
    }
    for (size_t i = 0; i < table->n_chunks; i++) {
        const struct chunk *chunk = table->dir[i].chunk;

        memcpy(&rules[n], chunk->rules, chunk->n * sizeof *rules);
        n += chunk->n;
    }
    error = planb_compile(c, rules, n, table->default_value, &arena, &top,
                          NULL, &conflict);
    if (!error) {
        error = planb_make_tree(arena, &top, n, table->default_value, treep);
        planb_arena_disown(arena);
    }
    planb_compiler_destroy(c);
    free(rules);

    if (!error) {
        table->conflict = conflict;
    }
    return error;
}

/* Tells whether 'table', as the latest planb_table_publish() found it, has two
 * prefixes of equal priority one of which contains the other.  This library
 * lets the longer one win, but other users of the same prefixes might not.
 *
 * If so, stores in 'pair[0]' the containing prefix and in 'pair[1]' the
 * contained one.  Which pair is told depends on the set of prefixes alone, not
 * on how it came about: the contained prefix is the first one by address, then
 * by length, then by priority, and the other is the longest that contains
 * it. */
bool
planb_table_find_conflict(const struct planb_table *table,
                          struct planb_prefix pair[2])
{
    if (table->conflict.found) {
        planb_rule_to_prefix(&table->conflict.outer, &pair[0]);
        planb_rule_to_prefix(&table->conflict.inner, &pair[1]);
    }
    return table->conflict.found;
}
