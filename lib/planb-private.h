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
    return plen >= 128 ? 0 : plen <= 64 ? UINT64_MAX : UINT64_MAX >> (plen - 64);
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

/* Compilation. */
struct planb_conflict {
    bool found;
    struct planb_rule outer, inner;
};

int planb_compile(const struct planb_rule rules[], size_t n,
                  uint32_t default_value, struct planb_conflict *,
                  struct planb **);

/* Trees.
 *
 * A raw answer below PLANB_INDIRECT is the value itself.  Any other one, with
 * PLANB_INDIRECT taken away, is an index into 'side', where the rest of the
 * answer is: values that need all 32 bits, and the /64s that are divided
 * further. */
#define PLANB_INDIRECT UINT32_C(0x80000000)

#define PLANB_MAX_LEVELS 11     /* 8 * 9^10 > 2^32 - 1. */

/* A linearized B+ tree over 64-bit keys.
 *
 * Interval i ends with address ends[i], inclusively, and the last one ends
 * with UINT64_MAX.  Searching for x means counting the ends less than x.  As
 * the padding of incomplete nodes is UINT64_MAX too and no x is greater, it
 * never counts, and no address needs special care.
 *
 * Each level is an array of 64-byte lines of eight ends.  The lines of the
 * lowest level hold all of 'ends' in order, so that a position there is the
 * index of a value.  The eight keys of a line above are the last ends of its
 * first eight children, which makes room for nine: child c of line i is line
 * 9 * i + c of the level below. */
struct planb_bt {
    uint32_t n_levels;
    uint32_t values;                    /* First line of the values. */
    uint32_t levels[PLANB_MAX_LEVELS];  /* First line of each, root first. */
};

struct planb_side {
    bool is_tree;
    uint32_t value;             /* The answer, if '!is_tree'. */
    struct planb_bt tree;       /* Over the lower 64 bits otherwise. */
};

struct planb {
    uint64_t *lines;            /* 64-byte lines of keys and of values. */
    struct planb_bt root;       /* Over the upper 64 bits. */
    struct planb_side *side;
    struct planb_stats stats;
};

static inline const uint64_t *
planb_line(const struct planb *tree, uint32_t i)
{
    return &tree->lines[(size_t) i * 8];
}

static inline uint32_t
planb_bt_value(const struct planb *tree, const struct planb_bt *bt, size_t i)
{
    uint32_t value;

    memcpy(&value, (const char *) planb_line(tree, bt->values) + i * 4,
           sizeof value);
    return value;
}

/* Finishes the lookup of 'addr' that came to 'raw'. */
uint32_t planb_resolve(const struct planb *, uint32_t raw,
                       const uint8_t addr[16]);

/* Kernels.  One file each, and each has a function for a batch of any size. */
typedef void planb_lookup_func(const struct planb *,
                               const uint8_t *const addrs[],
                               uint32_t values[], size_t n);

struct planb_kernel {
    const char *name;
    bool (*is_available)(void);
    planb_lookup_func *lookup;
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
