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

#ifndef PLANB_H
#define PLANB_H 1

/* libplanb: exact longest-prefix match for IPv6.
 *
 *
 * What
 * ====
 *
 * A set of IPv6 prefixes of 0 to 128 bits, each with a priority and a 32-bit
 * value, compiled into an immutable "tree" that answers, for any address, the
 * value of the prefix that wins there.
 *
 * Priorities, not lengths, decide: among the prefixes that contain an address
 * the one with the highest priority wins, and only among equal priorities the
 * longer one.  Longest-prefix match is the special case in which every
 * priority equals the prefix's length (or in which all priorities are equal).
 * An address that no prefix contains gets the table's default value.
 *
 *
 * Why
 * ===
 *
 * A trie follows an address bit by bit, or stride by stride, and pays a cache
 * miss for each step.  But prefixes either nest or are disjoint, so that n of
 * them cut the address space into at most 2n + 1 "elementary intervals" within
 * which the answer is constant.  To look up an address is to find its interval
 * in a sorted array, and that is a job for a search tree as wide as a cache
 * line, which SIMD instructions compare in one step, laid out so that children
 * are found by arithmetic instead of through pointers.  Searching for many
 * addresses at once hides what latency remains, hence the batch interface.
 *
 *
 * How
 * ===
 *
 * struct planb_table is the set that a program changes.  A change costs little
 * and shows nowhere until planb_table_publish() compiles all changes since the
 * last time into a new struct planb.  What needs no later change can go
 * straight from an array to a tree with planb_build().
 *
 * The trees of one table share memory, and a new one consists mostly of parts
 * of the one before, so that to publish costs by the number of changes: a few
 * microseconds for each.  Changes of prefixes shorter than 12 bits, or of more
 * than one prefix in 32, compile everything instead, which takes as long as
 * planb_build().  What only old trees need is used again after they have been
 * destroyed; keeping many of them takes memory.
 *
 *     struct planb_prefix p = { .plen = 32, .priority = 32, .value = 7 };
 *     struct planb_table *table = planb_table_create(0);
 *     struct planb *tree;
 *
 *     inet_pton(AF_INET6, "2001:db8::", p.addr);
 *     error = planb_table_put(table, &p);
 *     ...
 *     error = planb_table_publish(table, &tree);
 *     ...
 *     planb_lookup_batch(tree, addrs, values, n);
 *     ...
 *     planb_destroy(tree);
 *     planb_table_destroy(table);
 *
 * Every function that returns 'int' returns 0 or a positive errno value, and
 * when it fails, leaves everything as it was.
 *
 * Any value will do, but those that exceed the default value by more than
 * PLANB_VALUE_FAST_MAX (modulo 2^32) cost a cache line and an extra step each.
 *
 *
 * Thread-safety
 * =============
 *
 * A struct planb never changes.  Any number of threads may look addresses up
 * in it without synchronization, and reading it takes no lock and writes
 * nothing.  The caller decides how readers learn about a new tree and when the
 * last reader of an old one is gone (with RCU, for instance).  A batch is
 * answered from the one tree that was passed in.
 *
 * A struct planb_table has one writer: calls that pass the same table must not
 * overlap.  Different tables are independent.
 *
 * planb_destroy() may be called from any thread at any time after the last
 * lookup in that tree has finished: also while another thread is changing,
 * publishing or destroying the table that the tree came from, and also after
 * that table has been destroyed.
 *
 * The choice of kernel is global to the process.  It may be changed by any
 * thread at any time, also during lookups: a batch is answered wholly by the
 * old kernel or wholly by the new one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct planb;
struct planb_table;

/* Hard limit on the number of prefixes in one table or tree.  A tree cannot
 * take more than 512 MB either, which is enough for 10 million routes of the
 * kind that the Internet has.  What exceeds one of them fails with ENOSPC. */
#define PLANB_MAX_PREFIXES ((size_t) 1 << 24)

/* Values take the least memory and time if they are at most this much greater
 * than the default value (modulo 2^32). */
#define PLANB_VALUE_FAST_MAX UINT32_C(0x7fffffff)

/* A prefix.  Within a table 'addr', 'plen' and 'priority' together identify
 * it: the same prefix may be there more than once with different
 * priorities. */
struct planb_prefix {
    uint8_t addr[16];           /* Network byte order, host bits zero. */
    uint8_t plen;               /* 0...128. */
    uint32_t priority;          /* The highest priority wins. */
    uint32_t value;
};

/* Mutable table. */
struct planb_table *planb_table_create(uint32_t default_value);
void planb_table_destroy(struct planb_table *);

int planb_table_put(struct planb_table *, const struct planb_prefix *);
int planb_table_remove(struct planb_table *, const struct planb_prefix *);
int planb_table_get(const struct planb_table *, struct planb_prefix *);
size_t planb_table_count(const struct planb_table *);
int planb_table_publish(struct planb_table *, struct planb **);
bool planb_table_find_conflict(const struct planb_table *,
                               struct planb_prefix pair[2]);

/* Immutable tree. */
int planb_build(const struct planb_prefix *, size_t n, uint32_t default_value,
                struct planb **);
void planb_destroy(struct planb *);

uint32_t planb_lookup(const struct planb *, const uint8_t addr[16]);
void planb_lookup_batch(const struct planb *, const uint8_t *const addrs[],
                        uint32_t values[], size_t n);
void planb_lookup_strided(const struct planb *, const uint8_t *addrs,
                          size_t stride, uint32_t values[], size_t n);

/* What a tree is made of. */
struct planb_stats {
    size_t n_prefixes;          /* Prefixes it was compiled from. */
    size_t n_intervals;         /* Elementary intervals, neighbors of equal
                                 * value taken as one. */
    size_t n_bytes;             /* Memory that lookups may touch. */
    unsigned int depth;         /* Most steps that a lookup takes, or a few
                                 * more. */
    unsigned int subtree_depth; /* Most further ones, for prefixes that few
                                 * tables have. */
};
void planb_get_stats(const struct planb *, struct planb_stats *);

/* Kernels. */
int planb_set_kernel(const char *name);
const char *planb_get_kernel(void);
const char *planb_kernel_name(size_t i);
bool planb_kernel_is_available(const char *name);
uint64_t planb_autovalidator_errors(void);

#ifdef __cplusplus
}
#endif

#endif /* planb.h */
