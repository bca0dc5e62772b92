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

#ifndef TEST_PLANB_H
#define TEST_PLANB_H 1

/* What the test programs of libplanb share: random numbers, random tables, and
 * two other ways to find the right answer, one too simple to be wrong and one
 * fast enough for big tables. */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planb.h"

#define UNUSED __attribute__((unused))

#define FAIL(...)                                               \
    do {                                                        \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);         \
        fprintf(stderr, __VA_ARGS__);                           \
        fputc('\n', stderr);                                    \
        exit(EXIT_FAILURE);                                     \
    } while (0)

#define CHECK(CONDITION)                                        \
    do {                                                        \
        if (!(CONDITION)) {                                     \
            FAIL("%s is not true", #CONDITION);                 \
        }                                                       \
    } while (0)

#define CHECK_INT(A, B)                                                 \
    do {                                                                \
        long long int a__ = (A), b__ = (B);                             \
        if (a__ != b__) {                                               \
            FAIL("%s is %lld, should be %lld", #A, a__, b__);           \
        }                                                               \
    } while (0)

/* Random numbers (xorshift64*). */
static uint64_t rng_state;

static inline uint64_t
rng(void)
{
    rng_state ^= rng_state >> 12;
    rng_state ^= rng_state << 25;
    rng_state ^= rng_state >> 27;
    return rng_state * UINT64_C(0x2545f4914f6cdd1d);
}

static inline uint32_t
rng_below(uint32_t n)
{
    return (rng() >> 32) % n;
}

static inline void
rng_seed(uint64_t seed)
{
    rng_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    rng_state += !rng_state;
    for (int i = 0; i < 8; i++) {
        rng();
    }
}

/* Takes the seed from the environment, or the time, and tells it, so that any
 * run can be repeated. */
static inline void
start_rng(void)
{
    const char *s = getenv("PLANB_TEST_SEED");
    uint64_t seed = s ? strtoull(s, NULL, 0) : (uint64_t) time(NULL);

    fprintf(stderr, "PLANB_TEST_SEED=%"PRIu64"\n", seed);
    rng_seed(seed);
}

/* Addresses. */
static inline void
addr_mask(uint8_t addr[16], unsigned int plen)
{
    for (unsigned int i = 0; i < 16; i++) {
        unsigned int bits = plen < i * 8 ? 0 : plen - i * 8;

        if (bits < 8) {
            addr[i] &= ~(0xff >> bits);
        }
    }
}

static inline bool
addr_in_prefix(const uint8_t addr[16], const uint8_t net[16],
               unsigned int plen)
{
    uint8_t tmp[16];

    memcpy(tmp, addr, sizeof tmp);
    addr_mask(tmp, plen);
    return !memcmp(tmp, net, sizeof tmp);
}

static inline void
addr_last(uint8_t addr[16], unsigned int plen)
{
    for (unsigned int i = plen; i < 128; i++) {
        addr[i / 8] |= 0x80 >> i % 8;
    }
}

static inline void
addr_add(uint8_t addr[16], int delta)
{
    for (int i = 15; i >= 0; i--) {
        addr[i] += delta;
        if (addr[i] != (delta > 0 ? 0 : 0xff)) {
            break;
        }
    }
}

static inline void
addr_random(uint8_t addr[16])
{
    uint64_t x[2] = { rng(), rng() };

    memcpy(addr, x, 16);
}

static inline const char *
addr_to_string(const uint8_t addr[16], char s[64])
{
    char *p = s;

    for (int i = 0; i < 16; i += 2) {
        p += sprintf(p, "%s%02x%02x", i ? ":" : "", addr[i], addr[i + 1]);
    }
    return s;
}

/* The matcher that cannot be wrong. */
static inline uint32_t
brute_force(const struct planb_prefix p[], size_t n, uint32_t default_value,
            const uint8_t addr[16])
{
    const struct planb_prefix *best = NULL;

    for (size_t i = 0; i < n; i++) {
        if (addr_in_prefix(addr, p[i].addr, p[i].plen)
            && (!best || p[i].priority > best->priority
                || (p[i].priority == best->priority
                    && p[i].plen >= best->plen))) {
            best = &p[i];
        }
    }
    return best ? best->value : default_value;
}

/* The matcher for many prefixes: a hash table of all of them, asked for each
 * length in turn. */
struct hash_matcher {
    const struct planb_prefix *p;
    uint32_t default_value;
    uint32_t *slots;            /* Index into 'p' plus one, 0 if empty. */
    size_t mask;
    bool lengths[129];
};

static inline size_t
hash_prefix(const uint8_t addr[16], unsigned int plen)
{
    uint64_t x[2];

    memcpy(x, addr, sizeof x);
    x[0] = (x[0] ^ (x[1] * UINT64_C(0x9e3779b97f4a7c15)) ^ plen)
           * UINT64_C(0xbf58476d1ce4e5b9);
    return x[0] ^ x[0] >> 29;
}

static inline void
hash_matcher_init(struct hash_matcher *m, const struct planb_prefix p[],
                  size_t n, uint32_t default_value)
{
    memset(m, 0, sizeof *m);
    m->p = p;
    m->default_value = default_value;
    for (m->mask = 1; m->mask < 2 * n; m->mask = 2 * m->mask + 1) {
        continue;
    }
    m->slots = calloc(m->mask + 1, sizeof *m->slots);
    CHECK(m->slots);
    for (size_t i = 0; i < n; i++) {
        size_t h = hash_prefix(p[i].addr, p[i].plen);

        while (m->slots[h & m->mask]) {
            h++;
        }
        m->slots[h & m->mask] = i + 1;
        m->lengths[p[i].plen] = true;
    }
}

static inline void
hash_matcher_destroy(struct hash_matcher *m)
{
    free(m->slots);
}

static inline uint32_t
hash_match(const struct hash_matcher *m, const uint8_t addr[16])
{
    const struct planb_prefix *best = NULL;
    uint8_t masked[16];

    memcpy(masked, addr, sizeof masked);
    for (int plen = 128; plen >= 0; plen--) {
        if (!m->lengths[plen]) {
            continue;
        }
        addr_mask(masked, plen);
        for (size_t h = hash_prefix(masked, plen); m->slots[h & m->mask];
             h++) {
            const struct planb_prefix *p
                = &m->p[m->slots[h & m->mask] - 1];

            if (p->plen == plen && !memcmp(p->addr, masked, sizeof masked)
                && (!best || p->priority > best->priority)) {
                best = p;
            }
        }
    }
    return best ? best->value : m->default_value;
}

/* Random tables.
 *
 * Uniformly random prefixes would hardly ever meet.  These are derived from a
 * few base addresses, so that they nest, adjoin and repeat, and have the
 * lengths and the addresses at which mistakes happen more often than
 * others. */
enum priorities { PRIO_LENGTH, PRIO_FEW, PRIO_CONTRARY, PRIO_ANY, PRIO_MAX };
enum values { VALUE_FEW, VALUE_SMALL, VALUE_ANY, VALUE_MAX };

struct table_style {
    uint8_t bases[8][16];
    int n_bases;
    unsigned int min_plen, max_plen;
    enum priorities priorities;
    enum values values;
};

static inline void
random_style(struct table_style *style)
{
    style->n_bases = 1 + rng_below(8);
    for (int i = 0; i < style->n_bases; i++) {
        uint8_t *base = style->bases[i];

        switch (rng_below(6)) {
        case 0:
            memset(base, 0, 16);
            break;
        case 1:
            memset(base, 0xff, 16);
            break;
        case 2:
            /* Near an earlier one. */
            if (i) {
                memcpy(base, style->bases[rng_below(i)], 16);
                base[rng_below(16)] ^= 1 << rng_below(8);
                break;
            }
            /* Fall through. */
        default:
            addr_random(base);
            break;
        }
    }
    switch (rng_below(4)) {
    case 0:
        style->min_plen = 0;
        style->max_plen = 64;
        break;
    case 1:
        style->min_plen = 60;
        style->max_plen = 128;
        break;
    case 2:
        style->min_plen = 20;
        style->max_plen = 52;
        break;
    default:
        style->min_plen = 0;
        style->max_plen = 128;
        break;
    }
    style->priorities = rng_below(PRIO_MAX);
    style->values = rng_below(VALUE_MAX);
}

static inline void
random_prefix(const struct table_style *style, struct planb_prefix *p)
{
    static const uint8_t special[] = {
        0, 1, 15, 16, 17, 29, 31, 32, 33, 47, 48, 49,
        63, 64, 65, 66, 80, 95, 96, 97, 112, 126, 127, 128,
    };

    memset(p, 0, sizeof *p);
    p->plen = (rng_below(2)
               ? special[rng_below(sizeof special)]
               : style->min_plen + rng_below(style->max_plen
                                             - style->min_plen + 1));
    memcpy(p->addr, style->bases[rng_below(style->n_bases)], 16);
    if (p->plen && rng_below(4)) {
        /* A neighbor, a cousin, or a longer way off. */
        unsigned int n = 1 + rng_below(rng_below(2) ? 3 : 12);

        for (unsigned int i = 0; i < n; i++) {
            unsigned int back = rng_below(rng_below(2) ? 4 : 20);
            unsigned int bit = p->plen - 1 - (back < p->plen ? back : 0);

            p->addr[bit / 8] ^= 0x80 >> bit % 8;
        }
    }
    addr_mask(p->addr, p->plen);

    switch (style->priorities) {
    case PRIO_LENGTH:
        p->priority = p->plen;
        break;
    case PRIO_FEW:
        p->priority = rng_below(4);
        break;
    case PRIO_CONTRARY:
        p->priority = 128 - p->plen;
        break;
    case PRIO_ANY:
    case PRIO_MAX:
    default:
        p->priority = (rng_below(8) ? (uint32_t) rng()
                       : rng_below(2) ? UINT32_MAX : 0);
        break;
    }

    switch (style->values) {
    case VALUE_FEW:
        p->value = rng_below(3);
        break;
    case VALUE_SMALL:
        p->value = rng_below(1000000);
        break;
    case VALUE_ANY:
    case VALUE_MAX:
    default:
        p->value = (rng_below(8) ? (uint32_t) rng()
                    : PLANB_VALUE_FAST_MAX + rng_below(2));
        break;
    }
}

static inline bool
same_prefix(const struct planb_prefix *a, const struct planb_prefix *b)
{
    return (a->plen == b->plen && a->priority == b->priority
            && !memcmp(a->addr, b->addr, sizeof a->addr));
}

/* Returns the position in 'p' of the prefix that equals 'q' in all but value,
 * or 'n'. */
static inline size_t
find_prefix(const struct planb_prefix p[], size_t n,
            const struct planb_prefix *q)
{
    size_t i = 0;

    while (i < n && !same_prefix(&p[i], q)) {
        i++;
    }
    return i;
}

/* Probes: the addresses at which 'p' may make a difference and some others. */
#define PROBES_PER_PREFIX 8

static inline void
probes_for_prefix(const struct planb_prefix *p,
                  uint8_t probes[PROBES_PER_PREFIX][16])
{
    for (int i = 0; i < PROBES_PER_PREFIX; i++) {
        memcpy(probes[i], p->addr, 16);
    }
    addr_add(probes[1], -1);
    addr_last(probes[2], p->plen);
    addr_last(probes[3], p->plen);
    addr_add(probes[3], 1);
    for (int i = 4; i < PROBES_PER_PREFIX; i++) {
        uint8_t r[16];

        addr_random(r);
        for (unsigned int bit = p->plen; bit < 128; bit++) {
            probes[i][bit / 8] |= r[bit / 8] & (0x80 >> bit % 8);
        }
    }
    /* Well inside, and just beyond the boundary between the halves. */
    memset(&probes[6][8], 0xff, 8);
    memset(&probes[7][8], 0, 8);
}

static inline void
parse_prefix(const char *s, uint32_t priority, uint32_t value,
             struct planb_prefix *p)
{
    const char *slash = strchr(s, '/');
    char addr[INET6_ADDRSTRLEN];

    CHECK(slash && slash - s < sizeof addr);
    memcpy(addr, s, slash - s);
    addr[slash - s] = '\0';
    memset(p, 0, sizeof *p);
    CHECK(inet_pton(AF_INET6, addr, p->addr) == 1);
    p->plen = atoi(slash + 1);
    p->priority = priority;
    p->value = value;
}

/* Reads a file of lines "ADDRESS/LENGTH VALUE".  The priorities are the
 * lengths. */
static inline struct planb_prefix *
read_prefixes(const char *file_name, size_t *np)
{
    FILE *file = fopen(file_name, "r");
    struct planb_prefix *p = NULL;
    size_t n = 0, allocated = 0;
    char line[256];

    if (!file) {
        FAIL("%s: %s", file_name, strerror(errno));
    }
    while (fgets(line, sizeof line, file)) {
        char *space = strchr(line, ' ');

        CHECK(space);
        *space = '\0';
        if (n >= allocated) {
            allocated = allocated * 2 + 64;
            p = realloc(p, allocated * sizeof *p);
            CHECK(p);
        }
        parse_prefix(line, 0, strtoul(space + 1, NULL, 10), &p[n]);
        p[n].priority = p[n].plen;
        n++;
    }
    fclose(file);
    *np = n;
    return p;
}

#endif /* test-planb.h */
