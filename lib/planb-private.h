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

#ifndef PLANB_PRIVATE_H
#define PLANB_PRIVATE_H 1

/* What the source files of libplanb share and its users do not see. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "planb.h"

/* 'planb_rule' is a prefix in host byte order, which is what the library
 * keeps, sorts and compiles. */
struct planb_rule {
    uint64_t hi;                /* Bits 0...63 of the address. */
    uint64_t lo;                /* Bits 64...127. */
    uint32_t priority;
    uint32_t value;
    uint8_t plen;
    bool conflict;              /* Has the last compilation found a rule of
                                 * the same priority that contains this? */
};

static inline uint64_t
planb_get_be64(const uint8_t *p)
{
    uint64_t x;

    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

static inline void
planb_put_be64(uint8_t *p, uint64_t x)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    memcpy(p, &x, sizeof x);
}

/* Host bits of a prefix of length 'plen' in the upper and lower 64 bits. */
static inline uint64_t
planb_host_hi(unsigned int plen)
{
    return plen >= 64 ? 0 : UINT64_MAX >> plen;
}

static inline uint64_t
planb_host_lo(unsigned int plen)
{
    return (plen >= 128 ? 0
            : plen <= 64 ? UINT64_MAX : UINT64_MAX >> (plen - 64));
}

/* The order in which rules are kept: a prefix comes before all those nested in
 * it, and the candidates for one prefix are neighbors of rising priority. */
static inline int
planb_rule_compare(const struct planb_rule *a, const struct planb_rule *b)
{
    if (a->hi != b->hi) {
        return a->hi < b->hi ? -1 : 1;
    }
    if (a->lo != b->lo) {
        return a->lo < b->lo ? -1 : 1;
    }
    if (a->plen != b->plen) {
        return a->plen < b->plen ? -1 : 1;
    }
    return a->priority < b->priority ? -1 : a->priority > b->priority;
}

int planb_rule_from_prefix(struct planb_rule *, const struct planb_prefix *);
void planb_rule_to_prefix(const struct planb_rule *, struct planb_prefix *);

/* Answers.
 *
 * Inside a tree an answer is a 32-bit "raw" number.  Below PLANB_INDIRECT it
 * is the value that the caller will get, less the tree's default value (modulo
 * 2^32, so that "no route" is 0 whatever the caller calls it).
 *
 * With PLANB_INDIRECT set, it leads to a 64-byte line of the tree's memory,
 * whose offset in bytes is in PLANB_OFFSET_MASK, and the kind, which is in the
 * three highest bits, tells what is there:
 *
 *     - PLANB_TABLE: Answers, indexed by the next bits of the address.
 *
 *     - PLANB_LEAF: 32-bit keys and then answers that are values or of kind
 *       PLANB_OTHER.  Either seven keys, one word of padding, and eight
 *       answers, or 15 keys, padding, and 16 answers in a line of their own.
 *
 *     - PLANB_INNER: 15 32-bit keys, then the answer for the first child.  The
 *       children are consecutive lines, so that c * 64 more is the answer for
 *       child c.
 *
 *     - PLANB_OTHER: struct planb_other, for what is rare.
 *
 * The lowest six bits have for a table 64 less the number of bits in its
 * index, and for leaves the number of words before the answers.
 *
 * Kinds have the order in which comparisons can tell them apart the
 * fastest. */
#define PLANB_INDIRECT UINT32_C(0x80000000)
#define PLANB_KIND_MASK UINT32_C(0xe0000000)
#define PLANB_LEAF UINT32_C(0x80000000)
#define PLANB_OTHER UINT32_C(0xa0000000)
#define PLANB_INNER UINT32_C(0xc0000000)
#define PLANB_TABLE UINT32_C(0xe0000000)
#define PLANB_OFFSET_MASK UINT32_C(0x1fffffc0)
#define PLANB_AUX_MASK UINT32_C(0x3f)

#define PLANB_LINE 64
#define PLANB_MAX_LINES (UINT32_C(1) << 23)

/* Keys of leaves and inner nodes are bits 16 to 47 of an address.  The key of
 * an interval is that of its last address.  The children or answers that a key
 * has to its left are those up to it, so a search counts the keys less than
 * the one it looks for.  Padding is UINT32_MAX, which never counts. */
#define PLANB_LEAF_ANSWERS 8
#define PLANB_LEAF_MAX_ANSWERS 16
#define PLANB_INNER_KEYS 15
#define PLANB_KEY_SHIFT 16      /* Bits of the upper half below a key. */

static inline uint32_t
planb_key(uint64_t hi)
{
    return hi >> PLANB_KEY_SHIFT;
}

/* A value that needs all 32 bits, or a linearized B+ tree over 64-bit keys,
 * for what the 32-bit keys are not exact enough for, and for tables too small
 * to deserve more.
 *
 * The beginning is a leaf whose only answer is the way here again, so that a
 * search needs no case of its own for this.
 *
 * In the B+ tree, interval i ends with address ends[i], inclusively, and the
 * last one ends with UINT64_MAX or whatever is the last that can be asked for.
 * Searching for x means counting the ends less than x.  As the padding of
 * incomplete nodes is UINT64_MAX and no x is greater, it never counts, and no
 * address needs special care.
 *
 * Each level is an array of lines of eight ends.  The lines of the lowest
 * level hold all of 'ends' in order, so that a position there is the index of
 * an answer.  The eight keys of a line above are the last ends of its first
 * eight children, which makes room for nine: child c of line i is line
 * 9 * i + c of the level below.
 *
 * All lines are counted from that of the struct itself. */
#define PLANB_BT_MAX_LEVELS 10  /* 8 * 9^9 > 2 * PLANB_MAX_PREFIXES + 1. */
struct planb_other {
    uint32_t keys[PLANB_LEAF_ANSWERS]; /* All UINT32_MAX. */
    uint32_t self;              /* Answer that leads here. */
    uint32_t value;             /* If 'n_levels' is 0. */
    uint32_t n_lines;           /* Including this one. */
    uint16_t lower;             /* Over bits 64...127 instead of 0...63? */
    uint16_t n_levels;
    uint32_t n;                 /* Number of intervals. */
    uint32_t answers;           /* First line of answers, 16 in each. */
    uint32_t levels[PLANB_BT_MAX_LEVELS]; /* First line of each, root
                                           * first. */
};
#define PLANB_OTHER_LINES 2     /* Lines of a struct planb_other. */

/* The top.
 *
 * The first 16 bits of an address select an entry of the root, which is the
 * offset of a table plus, in the lowest six bits, 64 less the number of bits
 * of stride, at least one, with which to index the table.  So (hi << 16) >>
 * entry is the index, as x86 ignores the upper bits of a shift count.
 *
 * An answer in that table may be of kind PLANB_TABLE, which takes the bits
 * that follow those, and one in there once more.  They do not go beyond the
 * bits that keys have.
 *
 * The root is cut into pages of 256 entries, whose offsets are in the tree
 * itself.  This way a new tree shares most of them with the last one, and all
 * of the address space that nobody uses with itself: it takes one page, which
 * stays in the L1 cache.  Behind the entries of a page come its "cells", lines
 * of 16 equal answers each, the tables for those entries that know only one
 * answer.
 *
 * Trees of few prefixes have an answer of kind PLANB_OTHER for everything in
 * 'small' instead. */
#define PLANB_ROOT_BITS 16
#define PLANB_PAGE_BITS 8
#define PLANB_N_PAGES (1u << (PLANB_ROOT_BITS - PLANB_PAGE_BITS))
#define PLANB_PAGE_SIZE (1u << PLANB_PAGE_BITS)
#define PLANB_PAGE_LINES (PLANB_PAGE_SIZE * 4 / PLANB_LINE)
#define PLANB_MAX_STRIDE 16
#define PLANB_MAX_TABLES 3

struct planb {
    const char *lines;          /* Memory of the arena. */
    uint32_t small;
    uint32_t default_value;

    struct planb_arena *arena;
    uint64_t version;
    struct planb *prev, *next;  /* In the arena's list. */
    struct planb_stats stats;

    uint32_t pages[PLANB_N_PAGES]; /* Offsets, unless 'small' is used. */
};

static inline const void *
planb_line(const struct planb *tree, uint32_t raw)
{
    return tree->lines + (raw & PLANB_OFFSET_MASK);
}

static inline uint32_t
planb_root_offset(uint32_t entry)
{
    return entry & ~UINT32_C(63);
}

static inline unsigned int
planb_root_stride(uint32_t entry)
{
    return 64 - (entry & 63);
}

/* Keeps the compiler from knowing anything about 'X', and so from turning the
 * loop around it into gather instructions, which are slower than the loads
 * they consist of. */
#define PLANB_OPAQUE(X) __asm__ ("" : "+r" (X))

static inline uint32_t
planb_root_entry(const struct planb *tree, uint64_t hi)
{
    const char *page = tree->lines + tree->pages[hi >> 56];
    uint32_t entry;

    memcpy(&entry, page + ((hi >> (64 - PLANB_ROOT_BITS)) & 0xff) * 4,
           sizeof entry);
    return entry;
}

/* Answer for 'hi' in the table of the root's 'entry'. */
static inline uint32_t
planb_table1(const struct planb *tree, uint32_t entry, uint64_t hi)
{
    const char *table = tree->lines + planb_root_offset(entry);
    uint32_t raw;

    memcpy(&raw, table + ((hi << PLANB_ROOT_BITS) >> (entry & 63)) * 4,
           sizeof raw);
    return raw;
}

/* Returns the bits of the key that follow those planb_table1() used. */
static inline uint32_t
planb_table1_rest(uint32_t entry, uint64_t hi)
{
    return planb_key(hi) << (-entry & 31);
}

/* If 'raw' leads to a table, returns the offset in there of the answer for the
 * bits that 'rest' begins with, otherwise 0. */
static inline uint64_t
planb_next_offset(uint32_t raw, uint32_t rest)
{
    uint64_t offset = (raw & PLANB_OFFSET_MASK) + (rest >> (raw & 31)) * 4;

    offset = raw >= PLANB_TABLE ? offset : 0;
    PLANB_OPAQUE(offset);
    return offset;
}

/* If 'raw' leads to a table, returns the answer in there for the bits that
 * '*rest' begins with, and removes them, otherwise returns 'raw'.  Has no
 * branches: for other answers it reads the arena's first line, which nobody
 * uses. */
static inline uint32_t
planb_next_table(const struct planb *tree, uint32_t raw, uint32_t *rest)
{
    uint64_t offset = planb_next_offset(raw, *rest);
    uint32_t next;

    *rest <<= -raw & 31;
    memcpy(&next, tree->lines + offset, sizeof next);
    PLANB_OPAQUE(next);
    return raw >= PLANB_TABLE ? next : raw;
}

/* Returns the answer for 'hi' in the tables, which is of any kind but
 * PLANB_TABLE. */
static inline uint32_t
planb_tables(const struct planb *tree, uint64_t hi)
{
    uint32_t entry = planb_root_entry(tree, hi);
    uint32_t raw = planb_table1(tree, entry, hi);
    uint32_t rest = planb_table1_rest(entry, hi);

    for (int i = 1; i < PLANB_MAX_TABLES; i++) {
        raw = planb_next_table(tree, raw, &rest);
    }
    return raw;
}

/* Finishes the lookup of 'addr' that came to 'raw', of any kind but
 * PLANB_TABLE. */
uint32_t planb_resolve(const struct planb *, uint32_t raw,
                       const uint8_t addr[16]);

/* Memory.
 *
 * An arena holds the lines of all trees that came from one table, which share
 * what they have in common.  Allocation and everything else is the business of
 * the table's writer, except that planb_destroy() may be called by any
 * thread: it takes the tree off the list of those that are alive, which
 * 'mutex' protects.
 *
 * When an arena is full, the table gets a new one, which is also what keeps
 * free runs of the wrong size from being wasted for ever.
 *
 * Lines never change once a tree with them has been published.  A change makes
 * new lines and "retires" old ones.  These are free again when the last of the
 * trees has been destroyed that are older than the one that does without
 * them.
 *
 * Everything that is allocated and retired between planb_arena_begin() and
 * planb_arena_commit() can be undone by planb_arena_abort(). */
struct planb_run {
    uint32_t line;
    uint32_t n;
};

struct planb_retired {
    struct planb_run run;
    uint64_t version;           /* First tree without it. */
};

#define PLANB_N_CLASSES 104

struct planb_arena {
    char *lines;
    uint32_t capacity;          /* In lines. */
    uint32_t used;              /* Never allocated from here on. */
    uint32_t free[PLANB_N_CLASSES]; /* Lists of free runs by size class. */
    size_t live;                /* Lines in the latest tree. */
    size_t waiting;             /* Lines that older trees keep from being
                                 * free. */

    /* The transaction. */
    uint64_t version;           /* Of the latest tree. */
    struct planb_run *fresh;
    size_t n_fresh, allocated_fresh;
    size_t fresh_lines, retired_lines;

    /* Queue of retired runs.  Those from 'retired_committed' on are of the
     * transaction. */
    struct planb_retired *retired;
    size_t first_retired, n_retired, allocated_retired;
    size_t retired_committed;

    pthread_mutex_t mutex;
    struct planb *oldest, *latest;  /* Trees alive. */
    bool has_table;
};

int planb_arena_create(size_t n_lines, struct planb_arena **);
void planb_arena_disown(struct planb_arena *);
void planb_arena_begin(struct planb_arena *);
int planb_arena_alloc(struct planb_arena *, size_t n_lines, uint32_t *line);
int planb_arena_retire(struct planb_arena *, uint32_t line, size_t n_lines);
void planb_arena_commit(struct planb_arena *, struct planb *);
void planb_arena_abort(struct planb_arena *);
size_t planb_run_size(size_t n_lines);

static inline void *
planb_arena_line(const struct planb_arena *arena, uint32_t line)
{
    return arena->lines + (size_t) line * PLANB_LINE;
}

static inline uint32_t
planb_raw_line(uint32_t raw)
{
    return (raw & PLANB_OFFSET_MASK) / PLANB_LINE;
}

static inline uint32_t
planb_raw_kind(uint32_t raw)
{
    return raw & PLANB_KIND_MASK;
}

static inline uint32_t
planb_raw_aux(uint32_t raw)
{
    return raw & PLANB_AUX_MASK;
}

/* Bits in the index of a table. */
static inline unsigned int
planb_raw_stride(uint32_t raw)
{
    return 64 - planb_raw_aux(raw);
}

/* Compilation.
 *
 * The state of what a table has published, from which the next tree can be
 * derived. */
struct planb_top {
    uint32_t small;             /* As in struct planb. */
    uint32_t pages[PLANB_N_PAGES];
    uint16_t page_lines[PLANB_N_PAGES]; /* Size with the cells. */

    size_t n_intervals;
    unsigned int node_levels;   /* Inner nodes and leaves. */
    unsigned int bt_levels[2];  /* B+ trees over the upper and the lower
                                 * half. */
};

/* A part of the address space: what is under a prefix of at most 64 bits. */
struct planb_block {
    uint64_t hi;
    unsigned int plen;
};

/* What it is worth in bytes, for each interval that needs it, to go through an
 * inner node, and through a leaf.  The last one is what a table that is yet to
 * be designed is expected to cost for each interval. */
#ifndef PLANB_INNER_COST
#define PLANB_INNER_COST 16
#endif
#ifndef PLANB_LEAF_COST
#define PLANB_LEAF_COST 16
#endif
#ifndef PLANB_TABLE_COST
#define PLANB_TABLE_COST 24
#endif

/* With less prefixes than this, a tree has no root. */
#ifndef PLANB_MIN_ROOT
#define PLANB_MIN_ROOT 256
#endif

struct planb_compiler;

struct planb_compiler *planb_compiler_create(uint32_t default_value,
                                             bool find_conflicts);
void planb_compiler_destroy(struct planb_compiler *);
int planb_compile(struct planb_compiler *, struct planb_rule rules[],
                  size_t n, size_t n_spare, struct planb_arena **,
                  struct planb_top *);
int planb_make_tree(struct planb_arena *, const struct planb_top *,
                    size_t n_prefixes, uint32_t default_value,
                    struct planb **);

/* Compilation of what has changed. */
void planb_update_begin(struct planb_compiler *, struct planb_arena *,
                        struct planb_top *);
void planb_update_note(struct planb_compiler *, const struct planb_block *);
bool planb_update_widen(struct planb_compiler *, struct planb_block *);
int planb_update_block(struct planb_compiler *, const struct planb_block *,
                       struct planb_rule rules[], size_t n);

/* Kernels.  One file each, and each has a function for a batch of any size. */
typedef void planb_lookup_func(const struct planb *,
                               const uint8_t *const addrs[],
                               uint32_t values[], size_t n);

typedef void planb_lookup_strided_func(const struct planb *,
                                       const uint8_t *addrs, size_t stride,
                                       uint32_t values[], size_t n);

struct planb_kernel {
    const char *name;
    bool (*is_available)(void);
    uint32_t (*lookup_one)(const struct planb *, const uint8_t *addr);
    planb_lookup_func *lookup;
    planb_lookup_strided_func *lookup_strided;
};

extern const struct planb_kernel planb_kernel_scalar;
extern const struct planb_kernel planb_kernel_sse42;
extern const struct planb_kernel planb_kernel_avx2;
extern const struct planb_kernel planb_kernel_avx512;
extern const struct planb_kernel planb_kernel_neon;
extern const struct planb_kernel planb_kernel_autovalidator;

/* All kernels that this build contains, the best ones last and the
 * autovalidator first. */
extern const struct planb_kernel *const planb_kernels[];
extern const size_t planb_n_kernels;

#endif /* planb-private.h */
