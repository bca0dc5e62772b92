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

/* Compares libplanb with DPDK's rte_rib6, a binary trie that DPDK uses as the
 * reference for its own faster structures. */

#include "test-planb.h"

#include <rte_eal.h>
#include <rte_rib6.h>

static struct rte_rib6 *
create_rib(const struct planb_prefix p[], size_t n)
{
    static unsigned int serial;
    struct rte_rib6_conf conf = { .max_nodes = 2 * n + 1000 };
    struct rte_rib6 *rib;
    char name[32];

    snprintf(name, sizeof name, "rib%u", serial++);
    rib = rte_rib6_create(name, -1, &conf);
    CHECK(rib);
    for (size_t i = 0; i < n; i++) {
        struct rte_rib6_node *node
            = rte_rib6_insert(rib, p[i].addr, p[i].plen);

        CHECK(node);
        rte_rib6_set_nh(node, p[i].value);
    }
    return rib;
}

static uint32_t
rib_match(struct rte_rib6 *rib, uint8_t addr[16], uint32_t default_value)
{
    struct rte_rib6_node *node = rte_rib6_lookup(rib, addr);
    uint64_t nh;

    if (!node) {
        return default_value;
    }
    rte_rib6_get_nh(node, &nh);
    return nh;
}

/* Compares around the ends of all 'n' elements of 'p', whose priorities must
 * be their lengths. */
static void
compare(const struct planb_prefix p[], size_t n, uint32_t default_value)
{
    struct rte_rib6 *rib = create_rib(p, n);
    uint8_t probes[PROBES_PER_PREFIX][16];
    const uint8_t *addrs[PROBES_PER_PREFIX];
    struct planb *tree;

    for (int j = 0; j < PROBES_PER_PREFIX; j++) {
        addrs[j] = probes[j];
    }
    CHECK_INT(planb_build(p, n, default_value, &tree), 0);
    for (size_t i = 0; i < n; i++) {
        uint32_t values[PROBES_PER_PREFIX];

        probes_for_prefix(&p[i], probes);
        planb_lookup_batch(tree, addrs, values, PROBES_PER_PREFIX);
        for (int j = 0; j < PROBES_PER_PREFIX; j++) {
            uint32_t expected = rib_match(rib, probes[j], default_value);
            char s[64];

            if (values[j] != expected) {
                FAIL("%s: got %"PRIu32", rte_rib6 has %"PRIu32,
                     addr_to_string(probes[j], s), values[j], expected);
            }
        }
    }
    planb_destroy(tree);
    rte_rib6_free(rib);
}

static void
compare_random(unsigned long int n_tables)
{
    for (unsigned long int t = 0; t < n_tables; t++) {
        struct planb_prefix p[1000];
        struct table_style style;
        size_t n = rng_below(rng_below(2) ? 20 : 1000);
        size_t n_unique = 0;

        random_style(&style);
        style.priorities = PRIO_LENGTH;
        for (size_t i = 0; i < n; i++) {
            struct planb_prefix q;
            size_t j;

            random_prefix(&style, &q);
            j = find_prefix(p, n_unique, &q);
            p[j] = q;
            n_unique += j == n_unique;
        }
        compare(p, n_unique, rng_below(2) ? 0 : UINT32_MAX);
    }
}

static void
compare_file(const char *file_name)
{
    struct planb_prefix *p;
    size_t n;

    p = read_prefixes(file_name, &n);
    CHECK(n > 0);
    compare(p, n, UINT32_MAX);
    printf("%zu prefixes\n", n);
    free(p);
}

int
main(int argc, char *argv[])
{
    char *eal_args[] = {
        argv[0], (char *) "--no-huge", (char *) "-m", (char *) "256",
        (char *) "--no-pci", (char *) "--no-shconf",
        (char *) "--no-telemetry", (char *) "--log-level=error", NULL
    };

    if (argc < 2) {
        fprintf(stderr, "usage: %s random [N] | file FILE\n", argv[0]);
        return EXIT_FAILURE;
    }
    if (rte_eal_init(sizeof eal_args / sizeof *eal_args - 1, eal_args) < 0) {
        fprintf(stderr, "cannot initialize DPDK\n");
        return 77;
    }

    start_rng();
    if (!strcmp(argv[1], "file") && argc == 3) {
        compare_file(argv[2]);
    } else if (!strcmp(argv[1], "random")) {
        compare_random(argc > 2 ? strtoul(argv[2], NULL, 0) : 200);
    } else {
        FAIL("unknown test \"%s\"", argv[1]);
    }
    rte_eal_cleanup();
    return 0;
}
