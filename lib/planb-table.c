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
 * directory changes just when a chunk is split or merged.
 *
 * A list of what has changed lets planb_table_publish() compile that alone. */

#include "planb.h"

#include <errno.h>
#include <stdlib.h>

#include "planb-private.h"

#define CHUNK_MAX 128

/* Compiling everything takes about as long as compiling this part of the rules
 * one by one. */
#define CHANGES_DIVISOR 32

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

    struct planb_compiler *compiler;

    /* What has been published last, if 'arena' is not null. */
    struct planb_arena *arena;
    struct planb_top top;
    bool found_conflict;
    struct planb_rule conflict[2];

    /* What has changed since, unless 'all_changed', which is to say that it is
     * too much to compile it apart from the rest. */
    struct planb_block *changes;
    size_t n_changes, allocated_changes;
    bool all_changed;

    /* Rules with 'conflict' set.  Out of date until publication. */
    size_t n_conflicts;

    /* What planb_table_publish() compiles. */
    struct planb_rule *rules;
    size_t allocated_rules;
};

/* A position in the sequence of rules, or the end. */
struct cursor {
    size_t chunk;
    size_t pos;
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
        table->compiler = planb_compiler_create(default_value, true);
        if (!table->compiler) {
            free(table);
            table = NULL;
        }
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
        planb_compiler_destroy(table->compiler);
        planb_arena_disown(table->arena);
        free(table->changes);
        free(table->rules);
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

/* Remembers that something changes for 'rule'. */
static void
note_change(struct planb_table *table, const struct planb_rule *rule)
{
    struct planb_block *block;

    if (!table->arena || table->top.small || table->all_changed) {
        return;
    }
    if (table->n_changes >= table->allocated_changes) {
        size_t n = table->allocated_changes * 2 + 16;
        struct planb_block *changes = NULL;

        if (table->n_changes <= table->n_rules / CHANGES_DIVISOR + 16) {
            changes = realloc(table->changes, n * sizeof *changes);
        }
        if (!changes) {
            table->all_changed = true;
            return;
        }
        table->changes = changes;
        table->allocated_changes = n;
    }
    block = &table->changes[table->n_changes++];
    block->hi = rule->hi;
    block->plen = rule->plen < 64 ? rule->plen : 64;
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
        if (chunk->rules[pos].value != rule.value) {
            chunk->rules[pos].value = rule.value;
            note_change(table, &rule);
        }
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
    note_change(table, &rule);
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
    note_change(table, &chunk->rules[pos]);
    table->n_conflicts -= chunk->rules[pos].conflict;
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

static struct planb_rule *
cursor_rule(const struct planb_table *table, const struct cursor *cursor)
{
    return &table->dir[cursor->chunk].chunk->rules[cursor->pos];
}

static void
cursor_next(const struct planb_table *table, struct cursor *cursor)
{
    if (++cursor->pos >= table->dir[cursor->chunk].chunk->n) {
        cursor->chunk++;
        cursor->pos = 0;
    }
}

/* Returns false if 'cursor' is at the beginning. */
static bool
cursor_prev(const struct planb_table *table, struct cursor *cursor)
{
    if (!cursor->pos) {
        if (!cursor->chunk) {
            return false;
        }
        cursor->chunk--;
        cursor->pos = table->dir[cursor->chunk].chunk->n;
    }
    cursor->pos--;
    return true;
}

/* Returns the position of the first rule not less than 'rule'. */
static struct cursor
cursor_seek(const struct planb_table *table, const struct planb_rule *rule)
{
    struct cursor cursor = { 0, 0 };
    bool found;

    if (table->n_chunks) {
        const struct chunk *chunk;

        cursor.chunk = find_chunk(table, rule);
        chunk = table->dir[cursor.chunk].chunk;
        cursor.pos = find_in_chunk(chunk, rule, &found);
        if (cursor.pos >= chunk->n) {
            cursor.chunk++;
            cursor.pos = 0;
        }
    }
    return cursor;
}

/* Returns the number of bits that the addresses of 'a' and 'b' have in common
 * at their beginning. */
static unsigned int
common_bits(const struct planb_rule *a, const struct planb_rule *b)
{
    return (a->hi != b->hi ? __builtin_clzll(a->hi ^ b->hi)
            : a->lo != b->lo ? 64 + __builtin_clzll(a->lo ^ b->lo)
            : 128);
}

/* Moves 'cursor' back to the nearest rule for a prefix that contains that of
 * 'key' and returns it, or a null pointer if there is none.  To get them all,
 * longest prefix first, begin with the position of 'key' for priority 0. */
static struct planb_rule *
prev_container(const struct planb_table *table, struct cursor *cursor,
               const struct planb_rule *key)
{
    while (cursor_prev(table, cursor)) {
        struct planb_rule *rule = cursor_rule(table, cursor);
        unsigned int n_bits = common_bits(rule, key);
        struct planb_rule target;

        if (n_bits >= rule->plen) {
            return rule;
        }

        /* What contains 'key' and comes before 'rule' contains 'rule', too.
         * Thus it is no longer than what they have in common. */
        target.hi = key->hi & ~planb_host_hi(n_bits);
        target.lo = key->lo & ~planb_host_lo(n_bits);
        target.plen = n_bits + 1;
        target.priority = 0;
        *cursor = cursor_seek(table, &target);
    }
    return NULL;
}

static int
add_rules(struct planb_table *table, const struct planb_rule rules[],
          size_t n, size_t *n_rules)
{
    if (n > table->allocated_rules - *n_rules) {
        size_t new = *n_rules + n + *n_rules / 2 + 64;
        struct planb_rule *p = realloc(table->rules, new * sizeof *p);

        if (!p) {
            return ENOMEM;
        }
        table->rules = p;
        table->allocated_rules = new;
    }
    if (n) {
        /* There may be no 'table->rules' yet. */
        memcpy(&table->rules[*n_rules], rules, n * sizeof *rules);
        *n_rules += n;
    }
    return 0;
}

/* Stores in 'table->rules' all rules for prefixes that contain 'block' or are
 * in it, and in '*np' their number.  The last '*n_inside' of them are those
 * from '*start' on. */
static int
collect_rules(struct planb_table *table, const struct planb_block *block,
              size_t *np, struct cursor *start, size_t *n_inside)
{
    uint64_t last = block->hi | planb_host_hi(block->plen);
    struct planb_rule key = { .hi = block->hi, .plen = block->plen };
    const struct planb_rule *rule;
    struct cursor cursor;
    size_t n = 0;
    size_t n_outside;

    cursor = *start = cursor_seek(table, &key);
    while ((rule = prev_container(table, &cursor, &key))) {
        int error = add_rules(table, rule, 1, &n);

        if (error) {
            return error;
        }
    }
    for (size_t i = 0; i < n / 2; i++) {
        struct planb_rule tmp = table->rules[i];

        table->rules[i] = table->rules[n - 1 - i];
        table->rules[n - 1 - i] = tmp;
    }

    n_outside = n;
    for (size_t i = start->chunk, pos = start->pos; i < table->n_chunks;
         i++, pos = 0) {
        const struct chunk *chunk = table->dir[i].chunk;
        size_t end = chunk->n;
        int error;

        while (end > pos && chunk->rules[end - 1].hi > last) {
            end--;
        }
        error = add_rules(table, &chunk->rules[pos], end - pos, &n);
        if (error) {
            return error;
        }
        if (end < chunk->n) {
            break;
        }
    }
    *np = n;
    *n_inside = n - n_outside;
    return 0;
}

/* Takes the conflicts that the compiler has found in 'n' elements of 'rules'
 * over to the same rules in 'table' from 'cursor' on. */
static void
set_conflicts(struct planb_table *table, struct cursor cursor,
              const struct planb_rule rules[], size_t n)
{
    for (size_t i = 0; i < n; i++, cursor_next(table, &cursor)) {
        struct planb_rule *rule = cursor_rule(table, &cursor);

        table->n_conflicts += rules[i].conflict;
        table->n_conflicts -= rule->conflict;
        rule->conflict = rules[i].conflict;
    }
}

/* Looks for the conflict that planb_table_find_conflict() is to tell. */
static void
find_first_conflict(struct planb_table *table)
{
    struct planb_rule key, *outer;
    struct cursor cursor = { 0, 0 };

    table->found_conflict = table->n_conflicts > 0;
    if (!table->found_conflict) {
        return;
    }
    while (!cursor_rule(table, &cursor)->conflict) {
        cursor_next(table, &cursor);
    }
    key = table->conflict[1] = *cursor_rule(table, &cursor);
    key.priority = 0;
    cursor = cursor_seek(table, &key);
    do {
        outer = prev_container(table, &cursor, &key);
    } while (outer->priority != table->conflict[1].priority);
    table->conflict[0] = *outer;
}

static int
compare_blocks(const void *a_, const void *b_)
{
    const struct planb_block *a = a_;
    const struct planb_block *b = b_;

    return (a->hi != b->hi ? (a->hi < b->hi ? -1 : 1)
            : a->plen < b->plen ? -1 : a->plen > b->plen);
}

/* Makes 'table->changes' disjoint and ordered blocks of the kind that the
 * compiler wants.  Returns false if it does not want to. */
static bool
prepare_changes(struct planb_table *table)
{
    size_t n = 0;

    for (size_t i = 0; i < table->n_changes; i++) {
        planb_update_note(table->compiler, &table->changes[i]);
    }
    for (size_t i = 0; i < table->n_changes; i++) {
        if (!planb_update_widen(table->compiler, &table->changes[i])) {
            return false;
        }
    }
    if (table->n_changes > 1) {
        qsort(table->changes, table->n_changes, sizeof *table->changes,
              compare_blocks);
    }
    for (size_t i = 0; i < table->n_changes; i++) {
        const struct planb_block *prev = n ? &table->changes[n - 1] : NULL;

        if (!prev || table->changes[i].hi > (prev->hi
                                             | planb_host_hi(prev->plen))) {
            table->changes[n++] = table->changes[i];
        }
    }
    table->n_changes = n;
    return true;
}

/* Compiles what has changed in 'table'.  Returns 0 if successful, ENOSPC if it
 * is better or necessary to compile everything, or ENOMEM. */
static int
publish_changes(struct planb_table *table, struct planb **treep)
{
    struct planb_top top = table->top;
    size_t n_compiled = 0;
    int error = 0;

    planb_update_begin(table->compiler, table->arena, &top);
    if (!prepare_changes(table)) {
        error = ENOSPC;
    }
    for (size_t i = 0; !error && i < table->n_changes; i++) {
        const struct planb_block *block = &table->changes[i];
        struct cursor start;
        size_t n, n_inside;

        error = collect_rules(table, block, &n, &start, &n_inside);
        if (!error) {
            n_compiled += n_inside;
            if (n_compiled > table->n_rules / 2 + CHUNK_MAX) {
                error = ENOSPC;
            }
        }
        if (!error) {
            error = planb_update_block(table->compiler, block, table->rules,
                                       n);
        }
        if (!error) {
            set_conflicts(table, start, &table->rules[n - n_inside],
                          n_inside);
        }
    }
    if (!error) {
        error = planb_make_tree(table->arena, &top, table->n_rules,
                                table->default_value, treep);
    }
    if (error) {
        planb_arena_abort(table->arena);
    } else {
        table->top = top;
    }
    return error;
}

/* Compiles all of 'table' into an arena of its own. */
static int
publish_all(struct planb_table *table, struct planb **treep)
{
    struct cursor start = { 0, 0 };
    struct planb_arena *arena;
    struct planb_rule *rules;
    struct planb_top top;
    size_t n_spare;
    size_t n = 0;
    int error;

    rules = malloc((table->n_rules + 1) * sizeof *rules);
    if (!rules) {
        return ENOMEM;
    }
    for (size_t i = 0; i < table->n_chunks; i++) {
        const struct chunk *chunk = table->dir[i].chunk;

        memcpy(&rules[n], chunk->rules, chunk->n * sizeof *rules);
        n += chunk->n;
    }

    /* If it is old trees that have filled up the arena, have more room this
     * time. */
    n_spare = table->arena ? 2 * table->arena->waiting : 0;
    error = planb_compile(table->compiler, rules, n, n_spare, &arena, &top);
    if (!error) {
        error = planb_make_tree(arena, &top, n, table->default_value, treep);
        if (error) {
            planb_arena_disown(arena);
        }
    }
    if (!error) {
        set_conflicts(table, start, rules, n);
        planb_arena_disown(table->arena);
        table->arena = arena;
        table->top = top;
    }
    free(rules);
    return error;
}

/* Compiles 'table' into a new tree and stores it in '*treep'.  The tree does
 * not change when 'table' does, and the caller must eventually free it with
 * planb_destroy().  It shares memory with the one published before, so that
 * this takes the longer the more has changed since then, not the more there
 * is.
 *
 * Returns 0 if successful, ENOSPC if the tree would exceed the limits that
 * planb.h describes, or ENOMEM.  If it fails the next call compiles the same
 * changes again. */
int
planb_table_publish(struct planb_table *table, struct planb **treep)
{
    int error = ENOSPC;

    if (table->arena && !table->top.small && !table->all_changed
        && table->n_rules * 2 >= PLANB_MIN_ROOT) {
        error = publish_changes(table, treep);
    }
    if (error == ENOSPC) {
        error = publish_all(table, treep);
    }
    if (!error) {
        find_first_conflict(table);
        table->n_changes = 0;
        table->all_changed = false;
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
    if (table->found_conflict) {
        planb_rule_to_prefix(&table->conflict[0], &pair[0]);
        planb_rule_to_prefix(&table->conflict[1], &pair[1]);
    }
    return table->found_conflict;
}
