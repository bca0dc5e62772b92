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

/* libFuzzer target: changes of a table, against a sorted array, with trees of
 * earlier times kept. */

#include "fuzz.h"

#define MAX_PREFIXES 96
#define MAX_TREES 6

/* A sorted array of prefixes. */
struct model {
    struct planb_prefix p[MAX_PREFIXES];
    size_t n;
};

struct kept {
    struct planb *tree;         /* Null if the place is free. */
    struct model model;         /* What the table was then. */
};

static int
compare(const struct planb_prefix *a, const struct planb_prefix *b)
{
    int cmp = memcmp(a->addr, b->addr, sizeof a->addr);

    if (!cmp) {
        cmp = a->plen - b->plen;
    }
    return cmp ? cmp : a->priority < b->priority ? -1
           : a->priority > b->priority;
}

/* Returns the position of 'p' in 'm', or where it would be. */
static size_t
find(const struct model *m, const struct planb_prefix *p, bool *found)
{
    size_t i = 0;

    while (i < m->n && compare(&m->p[i], p) < 0) {
        i++;
    }
    *found = i < m->n && !compare(&m->p[i], p);
    return i;
}

static void
put(struct planb_table *table, struct model *m, const struct planb_prefix *p)
{
    bool found;
    size_t i = find(m, p, &found);

    if (!fuzz_prefix_is_valid(p)) {
        FUZZ_CHECK(planb_table_put(table, p) == EINVAL);
    } else if (found || m->n < MAX_PREFIXES) {
        FUZZ_CHECK(!planb_table_put(table, p));
        if (!found) {
            memmove(&m->p[i + 1], &m->p[i], (m->n - i) * sizeof *m->p);
            m->n++;
        }
        m->p[i] = *p;
    }
}

static void
remove_prefix(struct planb_table *table, struct model *m,
              const struct planb_prefix *p)
{
    bool found;
    size_t i = find(m, p, &found);

    FUZZ_CHECK(planb_table_remove(table, p) == (found ? 0 : ENOENT));
    if (found) {
        m->n--;
        memmove(&m->p[i], &m->p[i + 1], (m->n - i) * sizeof *m->p);
    }
}

static void
get(const struct planb_table *table, const struct model *m,
    struct planb_prefix p)
{
    bool found;
    size_t i = find(m, &p, &found);

    FUZZ_CHECK(planb_table_get(table, &p) == (found ? 0 : ENOENT));
    FUZZ_CHECK(!found || p.value == m->p[i].value);
    FUZZ_CHECK(planb_table_count(table) == m->n);
}

static void
check_conflict(const struct planb_table *table, const struct model *m)
{
    struct planb_prefix pair[2];
    bool expected = false;

    for (size_t i = 0; i < m->n; i++) {
        for (size_t j = 0; j < m->n; j++) {
            expected |= (i != j && m->p[i].priority == m->p[j].priority
                         && m->p[i].plen < m->p[j].plen
                         && addr_in_prefix(m->p[j].addr, m->p[i].addr,
                                           m->p[i].plen));
        }
    }
    FUZZ_CHECK(planb_table_find_conflict(table, pair) == expected);
    if (expected) {
        bool found[2];

        find(m, &pair[0], &found[0]);
        find(m, &pair[1], &found[1]);
        FUZZ_CHECK(found[0] && found[1]);
        FUZZ_CHECK(pair[0].priority == pair[1].priority
                   && pair[0].plen < pair[1].plen
                   && addr_in_prefix(pair[1].addr, pair[0].addr,
                                     pair[0].plen));
    }
}

static void
destroy(struct kept *k, uint32_t default_value)
{
    if (k->tree) {
        fuzz_compare(k->tree, k->model.p, k->model.n, default_value);
        planb_destroy(k->tree);
        k->tree = NULL;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct kept kept[MAX_TREES];
    struct fuzz_input in = { data, size };
    uint32_t default_value = fuzz_value(&in);
    struct planb_table *table = planb_table_create(default_value);
    struct planb_prefix last;
    struct model m;
    size_t i;

    rng_seed(size);
    memset(&m, 0, sizeof m);
    memset(&last, 0, sizeof last);
    FUZZ_CHECK(table);
    while (in.left) {
        uint8_t op = fuzz_byte(&in);
        struct kept *k = &kept[(op >> 4) % MAX_TREES];

        switch (op & 15) {
        default:
            fuzz_prefix(&in, &last, op & 0x80);
            put(table, &m, &last);
            break;
        case 8:
        case 9:
        case 10:
            /* One that is there. */
            if (m.n) {
                struct planb_prefix p = m.p[fuzz_byte(&in) % m.n];

                remove_prefix(table, &m, &p);
            }
            break;
        case 11:
            fuzz_prefix(&in, &last, op & 0x80);
            remove_prefix(table, &m, &last);
            break;
        case 12:
            /* Another value for one that is there. */
            if (m.n) {
                struct planb_prefix p = m.p[fuzz_byte(&in) % m.n];

                p.value = fuzz_value(&in);
                put(table, &m, &p);
            }
            break;
        case 13:
            get(table, &m, last);
            if (m.n) {
                get(table, &m, m.p[fuzz_byte(&in) % m.n]);
            }
            break;
        case 14:
            destroy(k, default_value);
            break;
        case 15:
            destroy(k, default_value);
            FUZZ_CHECK(!planb_table_publish(table, &k->tree));
            k->model = m;
            fuzz_compare(k->tree, m.p, m.n, default_value);
            check_conflict(table, &m);
            break;
        }
    }

    /* Some trees go before their table, some after. */
    for (i = 0; i < MAX_TREES / 2; i++) {
        destroy(&kept[i], default_value);
    }
    planb_table_destroy(table);
    for (; i < MAX_TREES; i++) {
        destroy(&kept[i], default_value);
    }
    return 0;
}
