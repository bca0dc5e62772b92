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

/* Lets each allocation of the library fail in turn and checks that nothing
 * but an error code comes of it.  To be linked with -Wl,--wrap for the
 * allocation functions. */

#include "test-planb.h"

/* Allocations until failure, negative for none. */
static int countdown = -1;
static bool failed;

static bool
must_fail(void)
{
    if (countdown < 0 || countdown--) {
        return false;
    }
    failed = true;
    return true;
}

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
int __real_posix_memalign(void **, size_t, size_t);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
int __wrap_posix_memalign(void **, size_t, size_t);

void *
__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    return must_fail() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
    return must_fail() ? NULL : __real_realloc(p, size);
}

int
__wrap_posix_memalign(void **p, size_t alignment, size_t size)
{
    return must_fail() ? ENOMEM : __real_posix_memalign(p, alignment, size);
}

static void
check_tree(const struct planb *tree, const struct planb_prefix p[], size_t n)
{
    uint8_t probes[PROBES_PER_PREFIX][16];

    for (size_t i = 0; i < n; i++) {
        probes_for_prefix(&p[i], probes);
        for (int j = 0; j < PROBES_PER_PREFIX; j++) {
            CHECK_INT(planb_lookup(tree, probes[j]),
                      brute_force(p, n, 3, probes[j]));
        }
    }
}

/* Runs 'STATEMENT', an expression that returns an error code, with the first,
 * second... allocation failing, as long as that makes it fail, and counts the
 * times. */
#define WITHOUT_MEMORY(EXPRESSION)                              \
    do {                                                        \
        int error__;                                            \
                                                                \
        for (int i__ = 0; ; i__++) {                            \
            failed = false;                                     \
            countdown = i__;                                    \
            error__ = (EXPRESSION);                             \
            countdown = -1;                                     \
            if (!failed) {                                      \
                CHECK_INT(error__, 0);                          \
                break;                                          \
            }                                                   \
            if (!error__) {                                     \
                /* Did without. */                              \
                break;                                          \
            }                                                   \
            CHECK_INT(error__, ENOMEM);                         \
            n_failures++;                                       \
        }                                                       \
    } while (0)

int
main(void)
{
    unsigned int n_failures = 0;

    start_rng();
    for (int round = 0; round < 8; round++) {
        enum { MAX = 600 };
        struct planb_prefix p[MAX], old_p[MAX];
        struct planb_table *table;
        struct planb *tree = NULL;
        struct planb *old = NULL;
        struct table_style style;
        size_t n = 0;
        size_t old_n = 0;

        random_style(&style);

        countdown = 0;
        CHECK(!planb_table_create(3));
        countdown = -1;
        table = planb_table_create(3);
        CHECK(table);

        for (int step = 0; step < 40; step++) {
            for (int i = 0; i < 15; i++) {
                struct planb_prefix q;
                size_t pos;

                random_prefix(&style, &q);
                WITHOUT_MEMORY(planb_table_put(table, &q));
                pos = find_prefix(p, n, &q);
                p[pos] = q;
                n += pos == n;
                CHECK_INT(planb_table_count(table), n);
                if (i % 3 == 2) {
                    pos = rng_below(n);

                    /* Removing never needs memory that might be lacking. */
                    countdown = 0;
                    CHECK_INT(planb_table_remove(table, &p[pos]), 0);
                    countdown = -1;
                    p[pos] = p[--n];
                }
            }
            old = tree;
            if (!rng_below(4)) {
                WITHOUT_MEMORY(planb_build(p, n, 3, &tree));
                check_tree(tree, p, n);
                planb_destroy(tree);
            }
            tree = old;
            WITHOUT_MEMORY(planb_table_publish(table, &tree));
            check_tree(tree, p, n);
            if (old) {
                check_tree(old, old_p, old_n);
            }
            planb_destroy(old);
            memcpy(old_p, p, n * sizeof *p);
            old_n = n;
        }
        planb_table_destroy(table);
        planb_destroy(tree);
    }
    printf("%u failures\n", n_failures);
    CHECK(n_failures > 1000);
    return 0;
}
