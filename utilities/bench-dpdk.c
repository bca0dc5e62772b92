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

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_fib6.h>
#include <rte_lpm6.h>
#include <rte_malloc.h>
#include <rte_version.h>

#include "util.h"

#define HEAP_NAME "planb-bench"
#define HUGE_PAGE ((size_t) 2 << 20)

/* The greatest next hop of rte_lpm6. */
#define LPM6_MAX_NEXT_HOP ((1 << 21) - 1)

static struct rte_fib6 *fib;
static struct rte_lpm6 *lpm;
static uint32_t default_value;

/* For the report. */
static double fib_build, lpm_build;
static size_t fib_bytes, lpm_bytes;
static char fib_problem[128], lpm_problem[128];
static bool fib_vectors;        /* AVX-512 lookups can be used. */

static bool huge_pages;

bool
bench_dpdk_start(int cpu, bool huge)
{
    char lcores[32];
    char *args[] = {
        (char *) program_name, (char *) "--no-huge", (char *) "-m",
        (char *) "64", (char *) "--no-pci", (char *) "--no-shconf",
        (char *) "--no-telemetry", (char *) "--log-level=error",
        (char *) "--force-max-simd-bitwidth=512", lcores, NULL
    };

    huge_pages = huge;
    snprintf(lcores, sizeof lcores, "--lcores=0@%d", cpu);
    return rte_eal_init(sizeof args / sizeof *args - 1, args) >= 0;
}

/* Gives DPDK 'size' bytes of memory.  With huge pages, it is of the kind that
 * libplanb allocates: none are reserved, but the kernel is asked to make them,
 * which it does unless memory is fragmented.  Memory that is not used costs
 * nothing.  Returns the number of the "socket" that stands for it, or -1. */
static int
add_memory(size_t size, void **memory)
{
    static bool created;
    void *p;

    p = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        return -1;
    }
    p = (void *) (((uintptr_t) p + HUGE_PAGE - 1) & -HUGE_PAGE);
    *memory = p;
    madvise(p, size, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if ((!created && rte_malloc_heap_create(HEAP_NAME))
        || rte_malloc_heap_memory_add(HEAP_NAME, p, size, NULL,
                                      size / HUGE_PAGE, HUGE_PAGE)) {
        return -1;
    }
    created = true;
    return rte_malloc_heap_get_socket(HEAP_NAME);
}

static void
remove_memory(void *memory, size_t size)
{
    if (!rte_malloc_heap_memory_remove(HEAP_NAME, memory, size)) {
        munmap(memory, size);
    }
}

static size_t
allocated(int socket)
{
    struct rte_malloc_socket_stats stats;

    return (rte_malloc_get_socket_stats(socket, &stats)
            ? 0 : stats.heap_allocsz_bytes);
}

/* Returns how many groups of 256 entries the 'n' elements of 'p', which are
 * sorted, need below a table for the first 24 bits: one for each string of 24,
 * 32, 40... bits of which there are longer ones. */
static size_t
count_groups(const struct planb_prefix *p, size_t n)
{
    size_t count = 0;

    for (unsigned int bytes = 3; bytes < 16; bytes++) {
        const struct planb_prefix *last = NULL;

        for (size_t i = 0; i < n; i++) {
            if (p[i].plen > bytes * 8
                && (!last || memcmp(last->addr, p[i].addr, bytes))) {
                count++;
                last = &p[i];
            }
        }
    }
    return count;
}

static int
create_fib(const struct planb_prefix *p, size_t n, size_t n_groups, int socket)
{
    struct rte_fib6_conf conf = {
        .type = RTE_FIB6_TRIE,
        .default_nh = default_value,
        .max_routes = n + 16,
        .trie = { .num_tbl8 = n_groups }
    };
    uint32_t max_value = default_value;
    double start;

    for (size_t i = 0; i < n; i++) {
        max_value = p[i].value > max_value ? p[i].value : max_value;
    }
    conf.trie.nh_sz = (max_value <= INT16_MAX && n_groups <= INT16_MAX
                       ? RTE_FIB6_TRIE_2B
                       : max_value <= INT32_MAX ? RTE_FIB6_TRIE_4B
                       : RTE_FIB6_TRIE_8B);

    /* In DPDK 22.11 these crash if there are long prefixes. */
    fib_vectors = conf.trie.nh_sz != RTE_FIB6_TRIE_8B;
    start = bench_cpu_time();
    fib = rte_fib6_create("planb-bench", socket, &conf);
    if (!fib) {
        return rte_errno;
    }
    for (size_t i = 0; i < n; i++) {
        int error = (p[i].plen
                     ? rte_fib6_add(fib, p[i].addr, p[i].plen, p[i].value)
                     : 0);

        if (error) {
            rte_fib6_free(fib);
            fib = NULL;
            return -error;
        }
    }
    fib_build = bench_cpu_time() - start;
    return 0;
}

static int
create_lpm(const struct planb_prefix *p, size_t n, size_t n_groups, int socket)
{
    struct rte_lpm6_config conf = {
        .max_rules = n + 16, .number_tbl8s = n_groups
    };
    double start = bench_cpu_time();

    for (size_t i = 0; i < n; i++) {
        if (p[i].value > LPM6_MAX_NEXT_HOP) {
            return ERANGE;
        }
    }
    lpm = rte_lpm6_create("planb-bench", socket, &conf);
    if (!lpm) {
        return rte_errno;
    }
    for (size_t i = 0; i < n; i++) {
        int error = (p[i].plen
                     ? rte_lpm6_add(lpm, p[i].addr, p[i].plen, p[i].value)
                     : 0);

        if (error) {
            rte_lpm6_free(lpm);
            lpm = NULL;
            return -error;
        }
    }
    lpm_build = bench_cpu_time() - start;
    return 0;
}

/* Runs 'create' with more and more groups, since it may take some more than
 * the table needs in the end. */
static size_t
create(int (*function)(const struct planb_prefix *, size_t n, size_t n_groups,
                       int socket),
       const struct planb_prefix *p, size_t n, size_t group_size,
       const char *what, char problem[128])
{
    size_t n_groups = count_groups(p, n) + 256;
    int error = ENOSPC;

    for (int i = 0; i < 12 && error == ENOSPC; i++) {
        size_t size = ((size_t) 160 << 20) + n_groups * group_size + n * 1024;
        size_t before;
        void *memory;
        int socket;

        size = (size + HUGE_PAGE - 1) & -HUGE_PAGE;
        socket = add_memory(size, &memory);

        if (socket < 0) {
            error = ENOMEM;
            break;
        }
        before = allocated(socket);
        error = function(p, n, n_groups, socket);
        if (!error) {
            return allocated(socket) - before;
        }
        remove_memory(memory, size);
        n_groups += n_groups / 4;
    }
    snprintf(problem, 128, "%s is left out: %s", what, strerror(error));
    return 0;
}

static void
fib_select(const struct bench_impl *impl)
{
    rte_fib6_select_lookup(fib, impl->variant);
}

static void
fib_run(const struct bench_impl *impl __attribute__((unused)),
        const struct bench_trace *trace, size_t first, size_t n, size_t batch,
        void *answers_, bool keep)
{
    uint64_t *answers = answers_;

    for (size_t i = 0; i < n; i += batch) {
        size_t m = n - i < batch ? n - i : batch;

        rte_fib6_lookup_bulk(fib, &trace->addrs[first + i], answers, m);
        answers += keep ? m : 0;
    }
}

static uint32_t
fib_answer(const struct bench_impl *impl __attribute__((unused)),
           const void *answers, size_t i)
{
    return ((const uint64_t *) answers)[i];
}

static void
lpm_select(const struct bench_impl *impl __attribute__((unused)))
{
}

static void
lpm_run(const struct bench_impl *impl __attribute__((unused)),
        const struct bench_trace *trace, size_t first, size_t n, size_t batch,
        void *answers_, bool keep)
{
    int32_t *answers = answers_;

    if (batch == 1) {
        for (size_t i = 0; i < n; i++) {
            uint32_t next_hop;

            *answers = (rte_lpm6_lookup(lpm, trace->addrs[first + i],
                                        &next_hop)
                        ? -1 : (int32_t) next_hop);
            answers += keep;
        }
        return;
    }
    for (size_t i = 0; i < n; i += batch) {
        size_t m = n - i < batch ? n - i : batch;

        rte_lpm6_lookup_bulk_func(lpm, &trace->addrs[first + i], answers, m);
        answers += keep ? m : 0;
    }
}

static uint32_t
lpm_answer(const struct bench_impl *impl __attribute__((unused)),
           const void *answers, size_t i)
{
    int32_t answer = ((const int32_t *) answers)[i];

    return answer < 0 ? default_value : (uint32_t) answer;
}

/* Adds what DPDK has to 'impls' and returns how many there are. */
size_t
bench_dpdk_add(const struct planb_prefix *p, size_t n,
               struct bench_impl *impls)
{
    static const struct {
        const char *name;
        enum rte_fib6_lookup_type type;
    } types[] = {
        { "rte_fib6-default", RTE_FIB6_LOOKUP_DEFAULT },
        { "rte_fib6-scalar", RTE_FIB6_LOOKUP_TRIE_SCALAR },
        { "rte_fib6-avx512", RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512 },
    };
    size_t n_impls = 0;

    /* Neither has a place for the default route, so it becomes the answer
     * where there is none. */
    default_value = BENCH_NO_ROUTE;
    for (size_t i = 0; i < n; i++) {
        if (!p[i].plen) {
            default_value = p[i].value;
        }
    }

    fib_bytes = create(create_fib, p, n, 256 * 8 + 64, "rte_fib6",
                       fib_problem);
    for (size_t i = 0; fib && i < sizeof types / sizeof *types; i++) {
        if ((fib_vectors || types[i].type == RTE_FIB6_LOOKUP_TRIE_SCALAR)
            && !rte_fib6_select_lookup(fib, types[i].type)) {
            struct bench_impl *impl = &impls[n_impls++];

            strcpy(impl->name, types[i].name);
            impl->variant = types[i].type;
            impl->is_fib6 = true;
            impl->select = fib_select;
            impl->run = fib_run;
            impl->answer = fib_answer;
        }
    }

    lpm_bytes = create(create_lpm, p, n, 256 * 4 + 64, "rte_lpm6",
                       lpm_problem);
    if (lpm) {
        struct bench_impl *impl = &impls[n_impls++];

        strcpy(impl->name, "rte_lpm6");
        impl->select = lpm_select;
        impl->run = lpm_run;
        impl->answer = lpm_answer;
    }
    return n_impls;
}

void
bench_dpdk_report(FILE *out, size_t n)
{
    if (fib) {
        fprintf(out, "  rte_fib6       build %8.1f ms, %8.1f bytes per route "
                "(%.1f MB)\n", fib_build * 1e3, (double) fib_bytes / n,
                fib_bytes / 1e6);
        if (!fib_vectors) {
            fprintf(out, "  rte_fib6 with AVX-512 is left out: it does not "
                    "work with values greater than %d\n", INT32_MAX);
        }
    } else {
        fprintf(out, "  %s\n", fib_problem);
    }
    if (lpm) {
        fprintf(out, "  rte_lpm6       build %8.1f ms, %8.1f bytes per route "
                "(%.1f MB)\n", lpm_build * 1e3, (double) lpm_bytes / n,
                lpm_bytes / 1e6);
    } else {
        fprintf(out, "  %s\n", lpm_problem);
    }
}

/* Adds 'p' to rte_fib6, changes its value, or removes it.  Returns false if
 * that is not possible. */
bool
bench_dpdk_change(const struct planb_prefix *p, bool remove_it)
{
    if (!fib || !p->plen) {
        return false;
    }
    return !(remove_it ? rte_fib6_delete(fib, p->addr, p->plen)
             : rte_fib6_add(fib, p->addr, p->plen, p->value));
}

void
bench_dpdk_stop(void)
{
    rte_fib6_free(fib);
    rte_lpm6_free(lpm);
    rte_eal_cleanup();
}
