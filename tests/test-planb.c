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

/* Tests of libplanb that need nothing but libplanb. */

#include "test-planb.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

static void
report_wrong(const uint8_t addr[16], uint32_t got, uint32_t expected,
             const struct planb_prefix p[], size_t n)
{
    char s[64];

    fprintf(stderr, "%s: kernel %s got %"PRIu32", should be %"PRIu32"\n",
            addr_to_string(addr, s), planb_get_kernel(), got, expected);
    for (size_t i = 0; i < n; i++) {
        if (addr_in_prefix(addr, p[i].addr, p[i].plen)) {
            fprintf(stderr, "  %s/%u priority=%"PRIu32" value=%"PRIu32"\n",
                    addr_to_string(p[i].addr, s), p[i].plen, p[i].priority,
                    p[i].value);
        }
    }
    exit(EXIT_FAILURE);
}

/* Looks up the 'n' addresses in 'addrs' with each kernel, in batches of all
 * sizes and from all alignments, and with the autovalidator, and compares with
 * 'expected'. */
static void
check_lookups(const struct planb *tree, uint8_t (*addrs)[16],
              const uint32_t expected[], size_t n,
              const struct planb_prefix p[], size_t n_p)
{
    enum { MAX = 150 };
    const uint8_t *pointers[MAX];
    uint8_t shifted[MAX * 17 + 16];
    uint32_t values[MAX + 1];
    const char *name;

    for (size_t k = 0; (name = planb_kernel_name(k)); k++) {
        unsigned int batch = rng_below(MAX + 1);

        if (planb_set_kernel(name)) {
            continue;
        }
        for (size_t i = 0; i < n; ) {
            size_t m = n - i < batch ? n - i : batch;

            for (size_t j = 0; j < m; j++) {
                uint8_t *q = &shifted[j * 17 + (batch & 15)];

                memcpy(q, addrs[i + j], 16);
                pointers[j] = q;
            }
            values[m] = 0xdeadbeef;
            planb_lookup_batch(tree, pointers, values, m);
            CHECK_INT(values[m], 0xdeadbeef);
            for (size_t j = 0; j < m; j++) {
                if (values[j] != expected[i + j]) {
                    report_wrong(addrs[i + j], values[j], expected[i + j], p,
                                 n_p);
                }
            }

            /* Again without pointers, also from what is an array. */
            memset(values, 0, m * sizeof *values);
            if (rng_below(2)) {
                planb_lookup_strided(tree, addrs[i], sizeof addrs[i], values,
                                     m);
            } else {
                planb_lookup_strided(tree, &shifted[batch & 15], 17, values,
                                     m);
            }
            CHECK_INT(values[m], 0xdeadbeef);
            for (size_t j = 0; j < m; j++) {
                if (values[j] != expected[i + j]) {
                    report_wrong(addrs[i + j], values[j], expected[i + j], p,
                                 n_p);
                }
            }
            if (m) {
                uint32_t value = planb_lookup(tree, addrs[i]);

                if (value != expected[i]) {
                    report_wrong(addrs[i], value, expected[i], p, n_p);
                }
            }
            i += m;
            batch = rng_below(4) ? rng_below(20) : rng_below(MAX + 1);
        }
    }
    CHECK_INT(planb_autovalidator_errors(), 0);
    CHECK_INT(planb_set_kernel("auto"), 0);
}

/* Compares 'tree' with the 'n' elements of 'p' around all of their ends and
 * elsewhere. */
static void
check_tree(const struct planb *tree, const struct planb_prefix p[], size_t n,
           uint32_t default_value)
{
    size_t n_addrs = (n + 4) * PROBES_PER_PREFIX;
    uint8_t (*addrs)[16] = calloc(n_addrs, sizeof *addrs);
    uint32_t *expected = calloc(n_addrs, sizeof *expected);

    CHECK(addrs && expected);
    for (size_t i = 0; i < n; i++) {
        probes_for_prefix(&p[i], &addrs[i * PROBES_PER_PREFIX]);
    }
    for (size_t i = n * PROBES_PER_PREFIX; i < n_addrs - 2; i++) {
        addr_random(addrs[i]);
    }
    memset(addrs[n_addrs - 1], 0xff, 16);
    for (size_t i = 0; i < n_addrs; i++) {
        expected[i] = brute_force(p, n, default_value, addrs[i]);
    }
    check_lookups(tree, addrs, expected, n_addrs, p, n);
    free(addrs);
    free(expected);
}

static int
compare_order(const struct planb_prefix *a, const struct planb_prefix *b)
{
    int cmp = memcmp(a->addr, b->addr, 16);

    return (cmp ? cmp
            : a->plen != b->plen ? (a->plen < b->plen ? -1 : 1)
            : a->priority != b->priority ? (a->priority < b->priority ? -1 : 1)
            : 0);
}

/* Compares what planb_table_find_conflict() says to what the 'n' elements of
 * 'p' say. */
static void
check_conflict(const struct planb_table *table, const struct planb_prefix p[],
               size_t n)
{
    const struct planb_prefix *inner = NULL;
    const struct planb_prefix *outer = NULL;
    struct planb_prefix pair[2];
    bool found;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            if (p[i].priority != p[j].priority || p[i].plen <= p[j].plen
                || !addr_in_prefix(p[i].addr, p[j].addr, p[j].plen)) {
                continue;
            }
            if (!inner || compare_order(&p[i], inner) < 0
                || (&p[i] == inner && p[j].plen > outer->plen)) {
                inner = &p[i];
                outer = &p[j];
            }
        }
    }

    found = planb_table_find_conflict(table, pair);
    CHECK_INT(found, inner != NULL);
    if (found) {
        CHECK(same_prefix(&pair[0], outer) && pair[0].value == outer->value);
        CHECK(same_prefix(&pair[1], inner) && pair[1].value == inner->value);
    }
}

/* "random": builds of random tables against brute force. */
static void
test_random(unsigned long int n_tables)
{
    for (unsigned long int t = 0; t < n_tables; t++) {
        struct table_style style;
        struct planb_table *table;
        struct planb_prefix p[300];
        struct planb *built, *published;
        struct planb_stats stats;
        size_t n = rng_below(rng_below(2) ? 20 : 300);
        size_t n_unique = 0;
        uint32_t default_value = rng_below(2) ? rng_below(3) : rng();

        random_style(&style);
        for (size_t i = 0; i < n; i++) {
            random_prefix(&style, &p[i]);
        }
        CHECK_INT(planb_build(p, n, default_value, &built), 0);

        table = planb_table_create(default_value);
        CHECK(table);
        for (size_t i = 0; i < n; i++) {
            size_t j = find_prefix(p, n_unique, &p[i]);

            CHECK_INT(planb_table_put(table, &p[i]), 0);
            p[j] = p[i];
            n_unique += j == n_unique;
        }
        CHECK_INT(planb_table_count(table), n_unique);
        CHECK_INT(planb_table_publish(table, &published), 0);
        check_conflict(table, p, n_unique);
        planb_table_destroy(table);

        planb_get_stats(built, &stats);
        CHECK_INT(stats.n_prefixes, n_unique);
        CHECK(stats.n_intervals <= 2 * n_unique + 1);

        check_tree(built, p, n_unique, default_value);
        check_tree(published, p, n_unique, default_value);
        planb_destroy(built);
        planb_destroy(published);
    }
}

/* "changes": a table that lives, against a model, with old trees around. */
static void
test_changes(unsigned long int n_steps)
{
    enum { MAX = 200, KEEP = 4 };
    struct {
        struct planb *tree;
        struct planb_prefix p[MAX];
        size_t n;
    } *kept = calloc(KEEP, sizeof *kept);
    struct planb_prefix *p = calloc(MAX, sizeof *p);
    uint32_t default_value = rng();
    struct planb_table *table = planb_table_create(default_value);
    struct table_style style;
    bool grow = true;
    size_t n = 0;

    CHECK(kept && p && table);
    random_style(&style);
    for (unsigned long int step = 0; step < n_steps; step++) {
        int n_changes = rng_below(4) ? 1 + rng_below(4) : rng_below(60);
        size_t slot = rng_below(KEEP);

        if (!rng_below(20)) {
            random_style(&style);
        }
        if (!rng_below(30)) {
            grow = !grow;
        }
        while (n_changes--) {
            struct planb_prefix q;
            size_t i;

            if (n && rng_below(4) < (grow ? 1 : 3)) {
                q = p[rng_below(n)];
            } else {
                random_prefix(&style, &q);
            }
            i = find_prefix(p, n, &q);

            if (rng_below(4) < (grow ? 1 : 3)) {
                q.value = rng();
                CHECK_INT(planb_table_remove(table, &q), i < n ? 0 : ENOENT);
                if (i < n) {
                    p[i] = p[--n];
                }
            } else if (i < n || n < MAX) {
                struct planb_prefix r = q;

                r.value = ~q.value;
                CHECK_INT(planb_table_get(table, &r), i < n ? 0 : ENOENT);
                CHECK_INT(r.value, i < n ? p[i].value : ~q.value);

                q.value = rng_below(2) ? rng_below(5) : rng();
                CHECK_INT(planb_table_put(table, &q), 0);
                p[i] = q;
                n += i == n;
            }
            CHECK_INT(planb_table_count(table), n);
        }

        planb_destroy(kept[slot].tree);
        CHECK_INT(planb_table_publish(table, &kept[slot].tree), 0);
        memcpy(kept[slot].p, p, n * sizeof *p);
        kept[slot].n = n;
        check_conflict(table, p, n);

        for (int i = 0; i < KEEP; i++) {
            if (kept[i].tree && (i == slot || !rng_below(8))) {
                check_tree(kept[i].tree, kept[i].p, kept[i].n, default_value);
            }
        }
    }

    /* Trees outlive their table. */
    planb_table_destroy(table);
    for (int i = 0; i < KEEP; i++) {
        if (kept[i].tree) {
            check_tree(kept[i].tree, kept[i].p, kept[i].n, default_value);
            planb_destroy(kept[i].tree);
        }
    }
    free(kept);
    free(p);
}

/* Exchanges elements of 'p' at random. */
static void
shuffle(struct planb_prefix p[], size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = rng_below(i);
        struct planb_prefix tmp = p[i - 1];

        p[i - 1] = p[j];
        p[j] = tmp;
    }
}

/* A style of tables with thousands of prefixes close together, which takes
 * nodes of all kinds. */
struct dense_style {
    unsigned int max_plen;
    unsigned int window;        /* Random bits at the end. */
    uint8_t bases[3][16];
};

static void
random_dense_style(struct dense_style *style)
{
    style->max_plen = rng_below(3) ? 48 : 64;
    style->window = 8 + rng_below(14);
    for (int i = 0; i < 3; i++) {
        addr_random(style->bases[i]);
        memset(&style->bases[i][2], rng_below(2) ? 0xff : 0, rng_below(4));
    }
}

/* Makes a random prefix of 'style'.  Only equal prefixes get equal
 * priorities. */
static void
random_dense_prefix(const struct dense_style *style, struct planb_prefix *p)
{
    unsigned int first = style->max_plen - style->window;
    uint8_t r[16];

    memset(p, 0, sizeof *p);
    memcpy(p->addr, style->bases[rng_below(3)], 16);
    p->plen = style->max_plen - (rng_below(3) ? 0 : rng_below(style->window));
    addr_random(r);
    for (unsigned int j = first; j < p->plen; j++) {
        p->addr[j / 8] ^= r[j / 8] & (0x80 >> j % 8);
    }
    addr_mask(p->addr, p->plen);
    p->priority = p->plen;
    p->value = rng_below(50) ? rng_below(1 << 20) : rng();
}

/* "updates": changes of tables too big for brute force.  What old trees
 * answered they must go on answering. */
static void
test_updates(unsigned long int n_steps)
{
    enum { MAX = 3000, KEEP = 5, N_ADDRS = 2000 };
    struct kept {
        struct planb *tree;
        uint8_t addrs[N_ADDRS][16];
        uint32_t expected[N_ADDRS];
    } *kept = calloc(KEEP, sizeof *kept);
    struct planb_prefix *p = calloc(MAX, sizeof *p);
    uint32_t default_value = rng_below(2) ? rng() : UINT32_MAX;
    struct planb_table *table = planb_table_create(default_value);
    struct dense_style dense;
    struct table_style style;
    bool grow = true;
    size_t n = 0;

    CHECK(kept && p && table);
    random_dense_style(&dense);
    random_style(&style);
    style.priorities = PRIO_LENGTH;
    for (unsigned long int step = 0; step < n_steps; step++) {
        size_t n_changes = (rng_below(3) ? 1 + rng_below(3)
                            : rng_below(20) ? rng_below(50) : rng_below(800));
        struct kept *k = &kept[rng_below(KEEP)];
        struct hash_matcher matcher;
        struct planb *built;
        struct planb_stats a, b;
        struct planb_prefix pair[2];

        if (!rng_below(50)) {
            random_dense_style(&dense);
            random_style(&style);
            style.priorities = PRIO_LENGTH;
        }
        if (!rng_below(30)) {
            grow = !grow;
        }
        planb_destroy(k->tree);
        k->tree = NULL;
        for (size_t i = 0; i < n_changes; i++) {
            if (n && (n == MAX || rng_below(8) < (grow ? 2 : 4))) {
                size_t j = rng_below(n);

                if (rng_below(3)) {
                    CHECK_INT(planb_table_remove(table, &p[j]), 0);
                    p[j] = p[--n];
                } else {
                    p[j].value = rng_below(4) ? rng_below(1 << 20) : rng();
                    CHECK_INT(planb_table_put(table, &p[j]), 0);
                }
            } else {
                struct planb_prefix q;
                size_t j;

                if (rng_below(10)) {
                    random_dense_prefix(&dense, &q);
                } else {
                    /* Short ones reach too far to be changed alone. */
                    do {
                        random_prefix(&style, &q);
                    } while (q.plen < 12 && rng_below(50));
                }
                j = find_prefix(p, n, &q);
                p[j] = q;
                n += j == n;
                CHECK_INT(planb_table_put(table, &q), 0);
            }
        }
        CHECK_INT(planb_table_count(table), n);
        CHECK_INT(planb_table_publish(table, &k->tree), 0);
        CHECK(!planb_table_find_conflict(table, pair));

        CHECK_INT(planb_build(p, n, default_value, &built), 0);
        planb_get_stats(built, &a);
        planb_get_stats(k->tree, &b);
        CHECK_INT(b.n_prefixes, n);
        CHECK_INT(b.n_intervals, a.n_intervals);
        planb_destroy(built);

        hash_matcher_init(&matcher, p, n, default_value);
        for (size_t i = 0; i < N_ADDRS; ) {
            uint8_t probes[PROBES_PER_PREFIX][16];

            if (n && rng_below(50)) {
                probes_for_prefix(&p[rng_below(n)], probes);
            } else {
                struct planb_prefix q;

                random_dense_prefix(&dense, &q);
                probes_for_prefix(&q, probes);
            }
            for (int j = 0; j < PROBES_PER_PREFIX && i < N_ADDRS; j++, i++) {
                memcpy(k->addrs[i], probes[j], 16);
                k->expected[i] = hash_match(&matcher, probes[j]);
            }
        }
        hash_matcher_destroy(&matcher);
        for (int i = 0; i < KEEP; i++) {
            if (kept[i].tree) {
                check_lookups(kept[i].tree, kept[i].addrs, kept[i].expected,
                              N_ADDRS, p, kept[i].tree == k->tree ? n : 0);
            }
        }
    }
    planb_table_destroy(table);
    for (int i = 0; i < KEEP; i++) {
        if (kept[i].tree) {
            check_lookups(kept[i].tree, kept[i].addrs, kept[i].expected,
                          N_ADDRS, NULL, 0);
        }
        planb_destroy(kept[i].tree);
    }
    free(kept);
    free(p);
}

/* A prefix of the lengths and with the density that tables of the Internet
 * have. */
static void
random_route(size_t n, struct planb_prefix *p)
{
    static const uint8_t plens[] = {
        48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 32, 32, 32, 44, 44, 40, 40,
        36, 36, 46, 47, 45, 42, 38, 34, 33, 29, 30, 28, 24, 64, 56,
    };
    uint64_t r = rng();

    memset(p, 0, sizeof *p);
    p->plen = plens[rng_below(sizeof plens)];

    /* A /32 for every eight prefixes, in one of 64 /16s. */
    r = (r & UINT32_MAX)
        | ((rng_below(n / 8 + 1) * UINT64_C(0x9e3779b1)) & 0xffff003f) << 32;
    p->addr[0] = 0x20 | ((r >> 34) & 0xf);
    p->addr[1] = (r >> 32) & 3;
    p->addr[2] = r >> 56;
    p->addr[3] = r >> 48;
    p->addr[4] = r >> 24;
    p->addr[5] = r >> 16;
    p->addr[6] = r >> 8;
    p->addr[7] = r;
    addr_mask(p->addr, p->plen);
    p->priority = p->plen;
    p->value = rng() >> 40;
}

static long int
max_rss_kb(void)
{
    struct rusage usage;

    CHECK(!getrusage(RUSAGE_SELF, &usage));
    return usage.ru_maxrss;
}

/* "churn": changes without end in a table that stays as big as it is.  Neither
 * its trees nor the process may grow. */
static void
test_churn(unsigned long int n_changes)
{
    enum { N = 30000, KEEP = 8 };
    struct planb_prefix *p = calloc(N, sizeof *p);
    struct planb_table *table = planb_table_create(UINT32_MAX);
    struct planb *kept[KEEP] = { NULL };
    struct planb_stats first, last;
    unsigned long int n = 0;
    long int rss = 0;
    size_t slot = 0;

    CHECK(p && table);
    for (size_t i = 0; i < N; i++) {
        do {
            random_route(N, &p[i]);
        } while (!planb_table_get(table, &p[i]));
        CHECK_INT(planb_table_put(table, &p[i]), 0);
    }
    CHECK_INT(planb_table_publish(table, &kept[slot]), 0);
    planb_get_stats(kept[slot], &first);

    while (n < n_changes) {
        for (int i = rng_below(20); i >= 0; i--, n++) {
            size_t j = rng_below(N);

            if (rng_below(2)) {
                CHECK_INT(planb_table_remove(table, &p[j]), 0);
                do {
                    random_route(N, &p[j]);
                } while (!planb_table_get(table, &p[j]));
            } else {
                p[j].value = rng() >> 40;
            }
            CHECK_INT(planb_table_put(table, &p[j]), 0);
        }
        slot = (slot + 1) % KEEP;
        planb_destroy(kept[slot]);
        CHECK_INT(planb_table_publish(table, &kept[slot]), 0);
        if (n < n_changes / 4) {
            rss = max_rss_kb();
        }
    }
    planb_get_stats(kept[slot], &last);
    printf("bytes per prefix: %.1f at first, %.1f at last; "
           "memory: %ld kB after a quarter, %ld kB at last\n",
           (double) first.n_bytes / N, (double) last.n_bytes / N, rss,
           max_rss_kb());
    CHECK_INT(last.n_prefixes, N);
    CHECK(last.n_bytes < first.n_bytes * 5 / 4);
    CHECK(max_rss_kb() < rss + rss / 4);

    planb_table_destroy(table);
    for (int i = 0; i < KEEP; i++) {
        planb_destroy(kept[i]);
    }
    free(p);
}

/* "big": a table of 'n' routes, of which some change. */
static void
test_big(unsigned long int n)
{
    enum { N_ADDRS = 200000 };
    struct planb_prefix *p = calloc(n, sizeof *p);
    uint8_t (*addrs)[16] = calloc(N_ADDRS, sizeof *addrs);
    uint32_t *expected = calloc(N_ADDRS, sizeof *expected);
    struct planb_table *table = planb_table_create(UINT32_MAX);
    struct hash_matcher matcher;
    struct planb_stats stats;
    struct planb *tree, *old;
    size_t n_unique = 0;

    CHECK(p && addrs && expected && table);
    for (size_t i = 0; i < n; i++) {
        struct planb_prefix q;

        random_route(n, &p[n_unique]);
        q = p[n_unique];
        if (planb_table_get(table, &q)) {
            CHECK_INT(planb_table_put(table, &p[n_unique++]), 0);
        }
    }
    CHECK_INT(planb_table_publish(table, &old), 0);
    for (int i = 0; i < 1000; i++) {
        struct planb_prefix *q = &p[rng_below(n_unique)];

        q->value = rng() >> 40;
        CHECK_INT(planb_table_put(table, q), 0);
    }
    CHECK_INT(planb_table_publish(table, &tree), 0);
    planb_destroy(old);
    planb_table_destroy(table);
    planb_get_stats(tree, &stats);
    printf("prefixes=%zu intervals=%zu bytes=%zu (%.1f per prefix)\n",
           stats.n_prefixes, stats.n_intervals, stats.n_bytes,
           (double) stats.n_bytes / n_unique);

    hash_matcher_init(&matcher, p, n_unique, UINT32_MAX);
    for (size_t i = 0; i < N_ADDRS; i += PROBES_PER_PREFIX) {
        probes_for_prefix(&p[rng_below(n_unique)], &addrs[i]);
    }
    for (size_t i = 0; i < N_ADDRS; i++) {
        expected[i] = hash_match(&matcher, addrs[i]);
    }
    check_lookups(tree, addrs, expected, N_ADDRS, NULL, 0);
    hash_matcher_destroy(&matcher);
    planb_destroy(tree);
    free(p);
    free(addrs);
    free(expected);
}

static uint32_t
lookup_string(const struct planb *tree, const char *s)
{
    uint8_t addr[16];

    CHECK(inet_pton(AF_INET6, s, addr) == 1);
    return planb_lookup(tree, addr);
}

/* "basic": examples, edges and errors. */
static void
test_basic(unsigned long int n UNUSED)
{
    struct planb_table *table = planb_table_create(99);
    struct planb_prefix p, bad, pair[2];
    struct planb *tree, *tree2;
    struct planb_stats stats;
    uint32_t value = 7;

    /* Nothing. */
    CHECK(table);
    CHECK_INT(planb_table_publish(table, &tree), 0);
    CHECK_INT(lookup_string(tree, "::"), 99);
    CHECK_INT(lookup_string(tree, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
              99);
    planb_lookup_batch(tree, NULL, &value, 0);
    planb_lookup_strided(tree, NULL, 16, &value, 0);
    CHECK_INT(value, 7);
    CHECK(!planb_table_find_conflict(table, pair));
    planb_get_stats(tree, &stats);
    CHECK_INT(stats.n_prefixes, 0);
    CHECK_INT(stats.n_intervals, 1);
    planb_destroy(tree);
    CHECK_INT(planb_build(NULL, 0, 98, &tree), 0);
    CHECK_INT(lookup_string(tree, "1::"), 98);
    planb_destroy(tree);
    planb_destroy(NULL);
    planb_table_destroy(NULL);

    /* What is not a prefix. */
    parse_prefix("2001:db8::/32", 1, 1, &bad);
    bad.plen = 28;
    CHECK_INT(planb_table_put(table, &bad), EINVAL);
    CHECK_INT(planb_build(&bad, 1, 0, &tree), EINVAL);
    bad.plen = 129;
    CHECK_INT(planb_table_put(table, &bad), EINVAL);
    CHECK_INT(planb_table_remove(table, &bad), ENOENT);
    parse_prefix("::1/127", 1, 1, &bad);
    CHECK_INT(planb_table_put(table, &bad), EINVAL);
    parse_prefix("::1:0:0:0/63", 1, 1, &bad);
    CHECK_INT(planb_table_put(table, &bad), EINVAL);
    parse_prefix("::1/0", 1, 1, &bad);
    CHECK_INT(planb_table_put(table, &bad), EINVAL);
    CHECK_INT(planb_table_count(table), 0);
    CHECK_INT(planb_build(&bad, PLANB_MAX_PREFIXES + 1, 0, &tree), ENOSPC);

    /* A short prefix may beat a long one, and the length counts only between
     * equals. */
    parse_prefix("2001:db8::/32", 10, 1, &p);
    CHECK_INT(planb_table_put(table, &p), 0);
    parse_prefix("2001:db8:1::/48", 5, 2, &p);
    CHECK_INT(planb_table_put(table, &p), 0);
    CHECK_INT(planb_table_publish(table, &tree), 0);
    CHECK(!planb_table_find_conflict(table, pair));
    CHECK_INT(lookup_string(tree, "2001:db8:1::1"), 1);
    parse_prefix("2001:db8:1:2::/64", 10, 3, &p);
    CHECK_INT(planb_table_put(table, &p), 0);
    CHECK_INT(planb_table_publish(table, &tree2), 0);
    CHECK_INT(lookup_string(tree2, "2001:db8:1:2::1"), 3);
    CHECK_INT(lookup_string(tree, "2001:db8:1:2::1"), 1);
    CHECK(planb_table_find_conflict(table, pair));
    CHECK_INT(pair[0].plen, 32);
    CHECK_INT(pair[1].plen, 64);
    planb_destroy(tree);
    planb_destroy(tree2);

    /* The same prefix with two priorities is two. */
    parse_prefix("2001:db8::/32", 11, 4, &p);
    CHECK_INT(planb_table_put(table, &p), 0);
    CHECK_INT(planb_table_count(table), 4);
    CHECK_INT(planb_table_publish(table, &tree), 0);
    CHECK_INT(lookup_string(tree, "2001:db8::1"), 4);
    CHECK_INT(lookup_string(tree, "2001:db8:1:2::1"), 4);
    planb_destroy(tree);
    CHECK_INT(planb_table_remove(table, &p), 0);
    CHECK_INT(planb_table_remove(table, &p), ENOENT);
    CHECK_INT(planb_table_publish(table, &tree), 0);
    CHECK_INT(lookup_string(tree, "2001:db8::1"), 1);
    planb_destroy(tree);
    planb_table_destroy(table);

    /* The very last addresses. */
    table = planb_table_create(UINT32_MAX);
    parse_prefix("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 1, 5, &p);
    CHECK_INT(planb_table_put(table, &p), 0);
    parse_prefix("::/128", 1, UINT32_MAX - 1, &p);
    CHECK_INT(planb_table_put(table, &p), 0);
    CHECK_INT(planb_table_publish(table, &tree), 0);
    CHECK_INT(lookup_string(tree, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
              5);
    CHECK_INT(lookup_string(tree, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"),
              UINT32_MAX);
    CHECK_INT(lookup_string(tree, "::"), UINT32_MAX - 1);
    CHECK_INT(lookup_string(tree, "::1"), UINT32_MAX);
    planb_get_stats(tree, &stats);
    CHECK_INT(stats.n_intervals, 3);
    planb_destroy(tree);
    planb_table_destroy(table);
}

/* "nested": all 129 lengths in one address, in both senses of priority. */
static void
test_nested(unsigned long int n UNUSED)
{
    for (int round = 0; round < 6; round++) {
        struct planb_prefix p[129];
        struct planb *tree;
        uint8_t base[16];

        memset(base, round < 2 ? 0 : 0xff, sizeof base);
        if (round >= 4) {
            addr_random(base);
        }
        for (int i = 0; i <= 128; i++) {
            memset(&p[i], 0, sizeof p[i]);
            memcpy(p[i].addr, base, 16);
            addr_mask(p[i].addr, i);
            p[i].plen = i;
            p[i].priority = round & 1 ? 128 - i : i;
            p[i].value = 1000 + i;
        }
        CHECK_INT(planb_build(p, 129, 1, &tree), 0);
        check_tree(tree, p, 129, 1);
        planb_destroy(tree);
    }
}

/* "hosts": many host routes in a few /64s. */
static void
test_hosts(unsigned long int n)
{
    struct planb_prefix *p = calloc(n, sizeof *p);
    struct hash_matcher matcher;
    struct planb_stats stats;
    struct planb *tree;
    uint8_t (*addrs)[16] = calloc(3 * n, sizeof *addrs);
    uint32_t *expected = calloc(3 * n, sizeof *expected);

    CHECK(p && addrs && expected);
    for (size_t i = 0; i < n; i++) {
        p[i].addr[0] = 0xfd;
        p[i].addr[7] = rng_below(4);
        p[i].addr[13] = rng();
        p[i].addr[14] = rng();
        p[i].addr[15] = rng();
        p[i].plen = 128;
        p[i].priority = i;
        p[i].value = i;
    }
    CHECK_INT(planb_build(p, n, 1, &tree), 0);
    planb_get_stats(tree, &stats);
    CHECK(stats.n_bytes < 64 * n);

    hash_matcher_init(&matcher, p, n, 1);
    for (size_t i = 0; i < n; i++) {
        for (int j = 0; j < 3; j++) {
            memcpy(addrs[3 * i + j], p[i].addr, 16);
        }
        addr_add(addrs[3 * i + 1], 1);
        addr_add(addrs[3 * i + 2], -1);
    }
    for (size_t i = 0; i < 3 * n; i++) {
        expected[i] = hash_match(&matcher, addrs[i]);
    }
    check_lookups(tree, addrs, expected, 3 * n, NULL, 0);
    hash_matcher_destroy(&matcher);
    planb_destroy(tree);
    free(p);
    free(addrs);
    free(expected);
}

/* "dense": thousands of prefixes close together. */
static void
test_dense(unsigned long int n_tables)
{
    unsigned int max_depth = 0;

    for (unsigned long int t = 0; t < n_tables; t++) {
        enum { MAX = 3000 };
        size_t n = 300 + rng_below(MAX - 300);
        struct dense_style style;
        struct planb_prefix *p = calloc(MAX, sizeof *p);
        uint8_t (*addrs)[16] = calloc(MAX * PROBES_PER_PREFIX, sizeof *addrs);
        uint32_t *expected = calloc(MAX * PROBES_PER_PREFIX,
                                    sizeof *expected);
        uint32_t default_value = rng_below(2) ? 0 : UINT32_MAX;
        struct hash_matcher matcher;
        struct planb_stats stats;
        struct planb *tree;

        CHECK(p && addrs && expected);
        random_dense_style(&style);
        for (size_t i = 0; i < n; i++) {
            random_dense_prefix(&style, &p[i]);
            p[i].priority = p[i].plen << 16 | i;
            probes_for_prefix(&p[i], &addrs[i * PROBES_PER_PREFIX]);
        }
        CHECK_INT(planb_build(p, n, default_value, &tree), 0);
        planb_get_stats(tree, &stats);
        if (max_depth < stats.depth) {
            max_depth = stats.depth;
        }

        hash_matcher_init(&matcher, p, n, default_value);
        for (size_t i = 0; i < n * PROBES_PER_PREFIX; i++) {
            expected[i] = hash_match(&matcher, addrs[i]);
        }
        check_lookups(tree, addrs, expected, n * PROBES_PER_PREFIX, p, n);
        hash_matcher_destroy(&matcher);
        planb_destroy(tree);
        free(p);
        free(addrs);
        free(expected);
    }

    /* Two tables, an inner node and a leaf at least, or this has missed its
     * purpose. */
    printf("depth %u\n", max_depth);
    CHECK(max_depth >= 4);
}

/* "kernels": names and choice. */
static void
test_kernels(unsigned long int n UNUSED)
{
    const char *best = planb_get_kernel();
    const char *name;

    CHECK(!strcmp(planb_kernel_name(0), "auto"));
    CHECK_INT(planb_set_kernel("scalar"), 0);
    CHECK_INT(planb_set_kernel("nonesuch"), EINVAL);
    CHECK_INT(planb_set_kernel(""), EINVAL);
    CHECK(!strcmp(planb_get_kernel(), "scalar"));
    for (size_t i = 0; (name = planb_kernel_name(i)); i++) {
        int error = planb_set_kernel(name);

        CHECK_INT(error, planb_kernel_is_available(name) ? 0 : ENOTSUP);
        if (i) {
            CHECK(!strcmp(planb_get_kernel(), error ? "scalar" : name));
        }
        printf("%s: %s\n", name, error ? "not available" : "available");
        CHECK_INT(planb_set_kernel("scalar"), 0);
    }
    CHECK_INT(planb_set_kernel("auto"), 0);
    CHECK(!strcmp(planb_get_kernel(), best));
}

/* "threads": readers that look up, a writer that publishes, and a third party
 * that destroys old trees.
 *
 * In tree number v all of 2001:db8::/32 has the value v, through prefixes that
 * come and go, so that a batch that mixes trees betrays itself.  Others make
 * sure that there is much for a tree to share with the next. */
#define N_READERS 2

struct shared {
    _Atomic(struct planb *) tree;
    atomic_ulong epochs[N_READERS]; /* Odd while reading. */
    atomic_bool done;

    /* From the writer to the reaper. */
    _Atomic(struct planb *) old;
};

struct reader {
    struct shared *shared;
    int index;
    pthread_t thread;
    unsigned long int n_batches;
};

static void *
reader_main(void *reader_)
{
    struct reader *r = reader_;
    struct shared *shared = r->shared;
    uint8_t addrs[32][16];
    const uint8_t *pointers[32];
    uint32_t last = 0;

    for (int i = 0; i < 32; i++) {
        pointers[i] = addrs[i];
    }
    memset(addrs, 0, sizeof addrs);
    for (unsigned int n = 0; !shared->done; n++) {
        uint32_t values[32];
        struct planb *tree;

        for (int i = 0; i < 32; i++) {
            memcpy(addrs[i], "\x20\x01\x0d\xb8", 4);
            addrs[i][4] = n * 7 + i;
            addrs[i][5] = n >> 8;
            addrs[i][7] = n;
            addrs[i][15] = i;
        }
        atomic_fetch_add(&shared->epochs[r->index], 1);
        tree = shared->tree;
        planb_lookup_batch(tree, pointers, values, 32);
        atomic_fetch_add(&shared->epochs[r->index], 1);

        CHECK(values[0] >= last);
        last = values[0];
        for (int i = 1; i < 32; i++) {
            CHECK_INT(values[i], last);
        }
        r->n_batches++;
    }
    return NULL;
}

static void *
reaper_main(void *shared_)
{
    struct shared *shared = shared_;

    for (;;) {
        bool done = shared->done;
        struct planb *tree = atomic_exchange(&shared->old, NULL);

        if (!tree) {
            if (done) {
                return NULL;
            }
            sched_yield();
            continue;
        }
        for (int i = 0; i < N_READERS; i++) {
            unsigned long int epoch = shared->epochs[i];

            while (epoch & 1 && shared->epochs[i] == epoch) {
                sched_yield();
            }
        }
        planb_destroy(tree);
    }
}

static void
test_threads(unsigned long int n_versions)
{
    static struct shared shared;
    struct reader readers[N_READERS];
    struct planb_table *table = planb_table_create(UINT32_MAX);
    struct planb_prefix p[2], q;
    struct planb_prefix recent[64] = { 0 };
    unsigned long int n_batches = 0;
    struct planb *tree;
    pthread_t reaper;
    const char *name;
    size_t kernel = 0;

    parse_prefix("2001:db8::/32", 1, 1, &p[0]);
    CHECK_INT(planb_table_put(table, &p[0]), 0);
    for (int i = 0; i < 400; i++) {
        random_route(400, &q);
        CHECK_INT(planb_table_put(table, &q), 0);
    }
    CHECK_INT(planb_table_publish(table, &tree), 0);
    shared.tree = tree;
    shared.done = false;

    for (int i = 0; i < N_READERS; i++) {
        readers[i] = (struct reader) { .shared = &shared, .index = i };
        CHECK(!pthread_create(&readers[i].thread, NULL, reader_main,
                              &readers[i]));
    }
    CHECK(!pthread_create(&reaper, NULL, reaper_main, &shared));

    for (unsigned long int v = 2; v <= n_versions; v++) {
        struct planb *expected = NULL;

        p[0].value = v;
        CHECK_INT(planb_table_put(table, &p[0]), 0);
        for (int i = 0; i < 4; i++) {
            struct planb_prefix *old = &recent[rng_below(64)];

            memset(&q, 0, sizeof q);
            addr_random(q.addr);
            memcpy(q.addr, "\x20\x01\x0d\xb8", 4);
            q.plen = 33 + rng_below(96);
            addr_mask(q.addr, q.plen);
            q.value = v + i;

            /* Below what covers all. */
            CHECK_INT(planb_table_put(table, &q), 0);
            if (old->plen) {
                planb_table_remove(table, old);
            }
            *old = q;
        }
        if (!(v % 50)) {
            /* Too much to be changed alone. */
            memset(&q, 0, sizeof q);
            q.value = v;
            CHECK_INT(planb_table_put(table, &q), 0);
        }
        CHECK_INT(planb_table_publish(table, &tree), 0);
        tree = atomic_exchange(&shared.tree, tree);
        while (!atomic_compare_exchange_weak(&shared.old, &expected, tree)) {
            expected = NULL;
            sched_yield();
        }

        if (!(v % 64)) {
            name = planb_kernel_name(++kernel);
            if (!name) {
                kernel = 0;
                name = planb_kernel_name(0);
            }
            planb_set_kernel(name);
        }
    }
    planb_table_destroy(table);
    shared.done = true;
    for (int i = 0; i < N_READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        n_batches += readers[i].n_batches;
    }
    pthread_join(reaper, NULL);
    planb_destroy(shared.tree);
    CHECK_INT(planb_autovalidator_errors(), 0);
    CHECK_INT(planb_set_kernel("auto"), 0);
    printf("%lu batches\n", n_batches);
}

/* "file": a prefix file against the hash matcher. */
static double
now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int
compare_doubles(const void *a_, const void *b_)
{
    const double *a = a_;
    const double *b = b_;

    return *a < *b ? -1 : *a > *b;
}

/* Makes a table of the 'n' elements of 'p', changes it in steps, and compares
 * the outcome with a build.  'addrs' are addresses to try, which at first have
 * the answers in 'expected', PROBES_PER_PREFIX for each element of 'p'. */
static void
check_file_updates(struct planb_prefix p[], size_t n, uint8_t (*addrs)[16],
                   uint32_t expected[])
{
    enum { N_STEPS = 300, MAX_CHANGES = 1000 };
    size_t n_addrs = n * PROBES_PER_PREFIX;
    struct planb_table *table = planb_table_create(UINT32_MAX);
    struct planb *first, *tree, *built;
    double times[N_STEPS];

    CHECK(table);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(planb_table_put(table, &p[i]), 0);
    }
    CHECK_INT(planb_table_publish(table, &first), 0);
    tree = NULL;
    for (int i = 0; i < N_STEPS; i++) {
        size_t n_changes = i % 50 ? 1 : MAX_CHANGES;

        for (size_t j = 0; j < n_changes; j++) {
            size_t k = rng_below(n);

            if (rng_below(2)) {
                CHECK_INT(planb_table_remove(table, &p[k]), 0);
                p[k] = p[--n];
            } else {
                p[k].value = rng_below(1 << 20);
                CHECK_INT(planb_table_put(table, &p[k]), 0);
            }
        }
        planb_destroy(tree);
        times[i] = now();
        CHECK_INT(planb_table_publish(table, &tree), 0);
        times[i] = now() - times[i];
    }
    qsort(times, N_STEPS, sizeof *times, compare_doubles);
    printf("median time to publish a change: %.1f us\n",
           times[N_STEPS / 2] * 1e6);

    CHECK_INT(planb_build(p, n, UINT32_MAX, &built), 0);
    for (size_t i = 0; i < n_addrs; i++) {
        CHECK_INT(planb_lookup(first, addrs[i]), expected[i]);
        CHECK_INT(planb_lookup(tree, addrs[i]),
                  planb_lookup(built, addrs[i]));
    }
    planb_table_destroy(table);
    planb_destroy(first);
    planb_destroy(tree);
    planb_destroy(built);
}

static void
test_file(const char *file_name)
{
    struct hash_matcher matcher;
    struct planb_prefix *p;
    struct planb_stats stats;
    struct planb *tree;
    uint8_t (*addrs)[16];
    uint32_t *expected;
    double start;
    size_t n;

    p = read_prefixes(file_name, &n);
    CHECK(n > 0);
    shuffle(p, n);
    start = now();
    CHECK_INT(planb_build(p, n, UINT32_MAX, &tree), 0);
    start = now() - start;
    planb_get_stats(tree, &stats);
    printf("prefixes=%zu intervals=%zu bytes=%zu (%.1f per prefix) depth=%u "
           "build=%.1fms\n", stats.n_prefixes, stats.n_intervals,
           stats.n_bytes, (double) stats.n_bytes / n, stats.depth,
           start * 1000);

    hash_matcher_init(&matcher, p, n, UINT32_MAX);
    addrs = calloc(n, PROBES_PER_PREFIX * sizeof *addrs);
    expected = calloc(n, PROBES_PER_PREFIX * sizeof *expected);
    CHECK(addrs && expected);
    for (size_t i = 0; i < n; i++) {
        probes_for_prefix(&p[i], &addrs[i * PROBES_PER_PREFIX]);
    }
    for (size_t i = 0; i < n * PROBES_PER_PREFIX; i++) {
        expected[i] = hash_match(&matcher, addrs[i]);
    }
    check_lookups(tree, addrs, expected, n * PROBES_PER_PREFIX, NULL, 0);
    hash_matcher_destroy(&matcher);
    planb_destroy(tree);

    check_file_updates(p, n, addrs, expected);
    free(p);
    free(addrs);
    free(expected);
}

/* "self": the two matchers against each other. */
static void
test_self(unsigned long int n_tables)
{
    for (unsigned long int t = 0; t < n_tables; t++) {
        struct hash_matcher matcher;
        struct table_style style;
        struct planb_prefix p[100];

        random_style(&style);
        for (int i = 0; i < 100; i++) {
            do {
                random_prefix(&style, &p[i]);
                p[i].priority = p[i].plen * 1000 + rng_below(1000);
            } while (find_prefix(p, i, &p[i]) < i);
        }
        hash_matcher_init(&matcher, p, 100, 5);
        for (int i = 0; i < 100; i++) {
            uint8_t probes[PROBES_PER_PREFIX][16];

            probes_for_prefix(&p[i], probes);
            for (int j = 0; j < PROBES_PER_PREFIX; j++) {
                CHECK_INT(hash_match(&matcher, probes[j]),
                          brute_force(p, 100, 5, probes[j]));
            }
        }
        hash_matcher_destroy(&matcher);
    }
}

int
main(int argc, char *argv[])
{
    static const struct {
        const char *name;
        void (*function)(unsigned long int);
        unsigned long int n;
    } tests[] = {
        { "self", test_self, 200 },
        { "basic", test_basic, 1 },
        { "nested", test_nested, 1 },
        { "kernels", test_kernels, 1 },
        { "random", test_random, 400 },
        { "changes", test_changes, 400 },
        { "updates", test_updates, 800 },
        { "churn", test_churn, 300000 },
        { "dense", test_dense, 60 },
        { "big", test_big, 1000000 },
        { "hosts", test_hosts, 100000 },
        { "threads", test_threads, 500 },
    };

    if (argc < 2) {
        fprintf(stderr, "usage: %s TEST [N] | file FILE\n", argv[0]);
        return EXIT_FAILURE;
    }
    start_rng();

    if (!strcmp(argv[1], "file") && argc == 3) {
        test_file(argv[2]);
        return 0;
    }
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (!strcmp(argv[1], tests[i].name)) {
            tests[i].function(argc > 2 ? strtoul(argv[2], NULL, 0)
                                       : tests[i].n);
            return 0;
        }
    }
    FAIL("unknown test \"%s\"", argv[1]);
}
