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

#include <config.h>

#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "util.h"

/* Random numbers (xorshift64*). */
static uint64_t random_state = 1;

void
bench_seed(uint64_t seed)
{
    random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    random_state += !random_state;
    for (int i = 0; i < 8; i++) {
        bench_random();
    }
}

uint64_t
bench_random(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

uint32_t
bench_random_below(uint32_t n)
{
    return ((bench_random() >> 32) * n) >> 32;
}

static double
random_fraction(void)
{
    return (bench_random() >> 11) * 0x1p-53;
}

/* Addresses. */

static uint64_t
get_be64(const uint8_t *p)
{
    uint64_t x = 0;

    for (int i = 0; i < 8; i++) {
        x = x << 8 | p[i];
    }
    return x;
}

static void
put_be64(uint8_t *p, uint64_t x)
{
    for (int i = 7; i >= 0; i--, x >>= 8) {
        p[i] = x;
    }
}

/* Clears, or if 'random' is true, chooses the bits of 'addr' past the first
 * 'plen'. */
static void
set_host_bits(uint8_t addr[16], unsigned int plen, bool random)
{
    uint8_t r[16] = { 0 };

    if (random) {
        put_be64(r, bench_random());
        put_be64(r + 8, bench_random());
    }
    for (unsigned int i = plen / 8; i < 16; i++) {
        unsigned int host = i == plen / 8 ? 0xff >> plen % 8 : 0xff;

        addr[i] = (addr[i] & ~host) | (r[i] & host);
    }
}

/* Adds 'delta' to 'addr'. */
static void
addr_add(uint8_t addr[16], int delta)
{
    for (int i = 15; i >= 0; i--) {
        addr[i] += delta;
        if (addr[i] != (delta > 0 ? 0 : 0xff)) {
            break;
        }
    }
}

static int
compare_prefixes(const void *a_, const void *b_)
{
    const struct planb_prefix *a = a_;
    const struct planb_prefix *b = b_;
    int cmp = memcmp(a->addr, b->addr, sizeof a->addr);

    return cmp ? cmp : a->plen - b->plen;
}

/* A hash table of prefixes. */

struct bench_reference {
    const struct planb_prefix *prefixes;
    uint32_t *slots;            /* Index into 'prefixes' plus 1. */
    size_t mask;
    bool lengths[129];
};

static uint64_t
hash_prefix(const uint8_t addr[16], unsigned int plen)
{
    uint64_t h = get_be64(addr) ^ plen;

    h = (h ^ h >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ h >> 29 ^ get_be64(addr + 8)) * UINT64_C(0x94d049bb133111eb);
    return h ^ h >> 32;
}

/* Returns the slot of 'addr' and 'plen' in 'r', or the empty one where it
 * would be. */
static uint32_t *
find_slot(const struct bench_reference *r, const uint8_t addr[16],
          unsigned int plen)
{
    uint64_t h = hash_prefix(addr, plen);

    for (;; h++) {
        uint32_t *slot = &r->slots[h & r->mask];

        if (!*slot || (r->prefixes[*slot - 1].plen == plen
                       && !memcmp(r->prefixes[*slot - 1].addr, addr, 16))) {
            return slot;
        }
    }
}

static void
init_reference(struct bench_reference *r, const struct planb_prefix *prefixes,
               size_t n)
{
    memset(r, 0, sizeof *r);
    r->prefixes = prefixes;
    for (r->mask = 1; r->mask < 2 * n; r->mask = 2 * r->mask + 1) {
        continue;
    }
    r->slots = xcalloc(r->mask + 1, sizeof *r->slots);
}

struct bench_reference *
bench_reference_create(const struct planb_prefix *prefixes, size_t n)
{
    struct bench_reference *r = xmalloc(sizeof *r);

    init_reference(r, prefixes, n);
    for (size_t i = 0; i < n; i++) {
        *find_slot(r, prefixes[i].addr, prefixes[i].plen) = i + 1;
        r->lengths[prefixes[i].plen] = true;
    }
    return r;
}

void
bench_reference_destroy(struct bench_reference *r)
{
    free(r->slots);
    free(r);
}

uint32_t
bench_reference_lookup(const struct bench_reference *r, const uint8_t addr[16])
{
    uint8_t masked[16];

    memcpy(masked, addr, sizeof masked);
    for (int plen = 128; plen >= 0; plen--) {
        if (r->lengths[plen]) {
            uint32_t slot;

            set_host_bits(masked, plen, false);
            slot = *find_slot(r, masked, plen);
            if (slot) {
                return r->prefixes[slot - 1].value;
            }
        }
    }
    return BENCH_NO_ROUTE;
}

/* Synthetic tables. */

/* How many prefixes of each length, from /19 up, there were among the 177,846
 * that had an origin AS in October 2022. */
#define FIRST_LENGTH 19
static const unsigned int lengths[] = {
    1, 16, 3, 7, 7, 29, 9, 16, 20, 199, 4423, 830, 281, 23046,
    3776, 3524, 1427, 6670, 991, 1792, 1248, 13572, 932, 2450, 1254, 16836,
    1701, 3834, 3245, 85709,
};
#define N_LENGTHS (sizeof lengths / sizeof *lengths)

/* The first 16 bits of most of them. */
static const struct {
    uint16_t bits;
    unsigned int n;
} tops[] = {
    { 0x2001, 23203 }, { 0x2804, 22139 }, { 0x2409, 9924 }, { 0x2408, 8699 },
    { 0x2a02, 8093 }, { 0x2402, 7622 }, { 0x2600, 5733 }, { 0x2a0e, 5322 },
    { 0x2401, 5299 }, { 0x240a, 4503 }, { 0x2a00, 3467 }, { 0x2400, 3454 },
    { 0x2800, 3421 }, { 0x2803, 3368 }, { 0x2405, 3211 }, { 0x2604, 3189 },
    { 0x2806, 3129 }, { 0x2a10, 3043 }, { 0x240e, 2966 }, { 0x2a01, 2961 },
    { 0x2607, 2908 }, { 0x2620, 2898 }, { 0x2a03, 2604 }, { 0x2602, 2591 },
    { 0x2a06, 2563 }, { 0x2605, 2517 }, { 0x2404, 2428 }, { 0x2606, 2208 },
    { 0x2407, 2160 }, { 0x2406, 2038 }, { 0x2a0b, 1981 }, { 0x2a04, 1965 },
    { 0x2a0d, 1552 }, { 0x2a05, 1507 }, { 0x2c0f, 1501 }, { 0x2a0f, 1424 },
    { 0x2403, 1355 }, { 0x2a0c, 1280 }, { 0x2a0a, 1263 }, { 0x2a09, 1245 },
};
#define N_TOPS (sizeof tops / sizeof *tops)

/* Chooses an allocation, 32 bits. */
static uint32_t
random_allocation(unsigned int tops_total)
{
    unsigned int r = bench_random_below(tops_total);
    size_t i = 0;

    while (r >= tops[i].n) {
        r -= tops[i++].n;
    }
    return (uint32_t) tops[i].bits << 16 | (bench_random() >> 48);
}

/* Makes a table of 'n' prefixes, with values from 1 to 'n' in the order of
 * addresses.
 *
 * It follows the real table in the lengths of prefixes, in their first 16
 * bits, and in two more things that matter for lookups.  Prefixes longer than
 * /32 are in few allocations of /32, one for 14 prefixes on average, and most
 * in very few of these: the numbers follow a Pareto distribution.  Every other
 * one of them adjoins the one before. */
struct planb_prefix *
bench_synthetic(size_t n)
{
    struct planb_prefix *p = xcalloc(n, sizeof *p);
    unsigned int tops_total = 0, lengths_total = 0;
    struct bench_reference seen;
    size_t n_allocations = n / 14 + 8;
    uint32_t *allocations = xmalloc(n_allocations * sizeof *allocations);
    double *weights = xmalloc(n_allocations * sizeof *weights);
    double total = 0, quota = 0;
    size_t count = 0;

    for (size_t i = 0; i < N_TOPS; i++) {
        tops_total += tops[i].n;
    }
    for (size_t i = 0; i < N_LENGTHS; i++) {
        lengths_total += lengths[i];
    }
    for (size_t i = 0; i < n_allocations; i++) {
        double w = 1 / (random_fraction() + 1e-9);

        allocations[i] = random_allocation(tops_total);
        total += w < 5000 ? w : 5000;
        weights[i] = total;
    }

    init_reference(&seen, p, n);
    for (size_t i = 0; i < N_LENGTHS; i++) {
        unsigned int plen = FIRST_LENGTH + i;
        uint64_t step = UINT64_C(1) << (64 - plen);
        unsigned int n_failed = 0;
        uint64_t addr = 0;

        quota += (double) n * lengths[i] / lengths_total;
        while (count < n && (count < (size_t) (quota + .5)
                             || i == N_LENGTHS - 1)) {
            struct planb_prefix *q = &p[count];
            uint32_t *slot;

            if (addr && bench_random_below(2) && n_failed < 4) {
                addr += step;
            } else if (plen <= 32 || n_failed > 64) {
                addr = (uint64_t) random_allocation(tops_total) << 32;
                addr |= n_failed > 64 ? bench_random() >> 32 : 0;
            } else {
                double w = random_fraction() * total;
                size_t low = 0, high = n_allocations - 1;

                while (low < high) {
                    size_t mid = (low + high) / 2;

                    if (weights[mid] < w) {
                        low = mid + 1;
                    } else {
                        high = mid;
                    }
                }
                addr = (uint64_t) allocations[low] << 32;
                addr |= bench_random() >> 32;
            }
            addr &= -step;
            put_be64(q->addr, addr);
            q->plen = plen;
            q->priority = plen;
            slot = find_slot(&seen, q->addr, plen);
            if (*slot) {
                /* Where there is no room for more, make do with longer
                 * ones. */
                if (++n_failed > 1000 && i < N_LENGTHS - 1) {
                    break;
                } else if (n_failed > 1000000) {
                    die("--synthetic=%zu: cannot make so many prefixes", n);
                }
                continue;
            }
            *slot = ++count;
            n_failed = 0;
        }
    }
    free(seen.slots);
    free(allocations);
    free(weights);

    qsort(p, n, sizeof *p, compare_prefixes);
    for (size_t i = 0; i < n; i++) {
        p[i].value = i + 1;
    }
    return p;
}

/* Traces. */

const char *const bench_trace_names[N_TRACES] = {
    [TRACE_UNIFORM] = "uniform",
    [TRACE_INROUTE] = "inroute",
    [TRACE_ZIPF] = "zipf",
    [TRACE_REPEAT] = "repeat",
    [TRACE_ADVERSARIAL] = "adversarial",
};

static void
random_in_route(uint8_t addr[16], const struct planb_prefix *p)
{
    memcpy(addr, p->addr, 16);
    set_host_bits(addr, p->plen, true);
}

/* Zipf's law with exponent 1: the route that comes 'i'th has weight 1 / i. */
static void
zipf(struct bench_trace *t, const struct planb_prefix *p, size_t n)
{
    double *sums = xmalloc(n * sizeof *sums);
    uint32_t *order = xmalloc(n * sizeof *order);
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        size_t j = bench_random_below(i + 1);

        order[i] = order[j];
        order[j] = i;
        sum += 1.0 / (i + 1);
        sums[i] = sum;
    }
    for (size_t i = 0; i < t->n; i++) {
        double x = random_fraction() * sum;
        size_t low = 0, high = n - 1;

        while (low < high) {
            size_t mid = (low + high) / 2;

            if (sums[mid] < x) {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
        random_in_route(t->addrs[i], &p[order[low]]);
    }
    free(sums);
    free(order);
}

/* Ends of routes are where a search must go on to the last bit, and long
 * routes are where the steps are most. */
static void
adversarial(struct bench_trace *t, const struct planb_prefix *p, size_t n)
{
    size_t n_longer = 0;
    int min_plen = 129;

    while (min_plen > 0 && n_longer < (n + 9) / 10) {
        min_plen--;
        for (size_t i = 0; i < n; i++) {
            n_longer += p[i].plen == min_plen;
        }
    }
    for (size_t i = 0; i < t->n; i++) {
        const struct planb_prefix *q;
        uint8_t *addr = t->addrs[i];

        do {
            q = &p[bench_random_below(n)];
        } while (q->plen < min_plen);
        memcpy(addr, q->addr, 16);
        if (i & 1) {
            /* The last address, by way of the one behind it. */
            for (unsigned int bit = q->plen; bit < 128; bit++) {
                addr[bit / 8] |= 0x80 >> bit % 8;
            }
            if (i & 2) {
                addr_add(addr, 1);
            }
        } else if (i & 2) {
            addr_add(addr, -1);
        }
    }
}

void
bench_trace_init(struct bench_trace *t, enum bench_trace_type type, size_t n,
                 const struct planb_prefix *p, size_t n_prefixes,
                 const struct bench_reference *reference)
{
    t->type = type;
    t->n = n;
    t->addrs = xmalloc(n * sizeof *t->addrs);
    t->pointers = xmalloc(n * sizeof *t->pointers);
    t->expected = xmalloc(n * sizeof *t->expected);

    switch (type) {
    case TRACE_UNIFORM:
        for (size_t i = 0; i < n; i++) {
            set_host_bits(t->addrs[i], 0, true);
        }
        break;
    case TRACE_INROUTE:
        for (size_t i = 0; i < n; i++) {
            random_in_route(t->addrs[i], &p[bench_random_below(n_prefixes)]);
        }
        break;
    case TRACE_ZIPF:
        zipf(t, p, n_prefixes);
        break;
    case TRACE_REPEAT:
        random_in_route(t->addrs[0], &p[bench_random_below(n_prefixes)]);
        for (size_t i = 1; i < n; i++) {
            memcpy(t->addrs[i], t->addrs[0], 16);
        }
        break;
    case TRACE_ADVERSARIAL:
        adversarial(t, p, n_prefixes);
        break;
    case N_TRACES:
    default:
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        t->pointers[i] = t->addrs[i];
        t->expected[i] = bench_reference_lookup(reference, t->addrs[i]);
    }
}

void
bench_trace_destroy(struct bench_trace *t)
{
    free(t->addrs);
    free(t->pointers);
    free(t->expected);
}
