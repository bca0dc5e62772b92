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

#ifndef BENCH_H
#define BENCH_H 1

/* What the parts of planb-bench have in common. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "planb.h"

/* Random numbers. */
void bench_seed(uint64_t seed);
uint64_t bench_random(void);
uint32_t bench_random_below(uint32_t n);

/* Tables: prefixes sorted by address and length, priorities their lengths. */
struct planb_prefix *bench_synthetic(size_t n);

/* The value of addresses without route.  Those of routes are greater. */
#define BENCH_NO_ROUTE 0

/* Longest-prefix match in the plainest way. */
struct bench_reference;
struct bench_reference *bench_reference_create(const struct planb_prefix *,
                                               size_t n);
void bench_reference_destroy(struct bench_reference *);
uint32_t bench_reference_lookup(const struct bench_reference *,
                                const uint8_t addr[16]);

/* Traces: addresses to look up. */
enum bench_trace_type {
    TRACE_UNIFORM,              /* Any address. */
    TRACE_INROUTE,              /* Any address in any route. */
    TRACE_ZIPF,                 /* Some routes more often than others. */
    TRACE_REPEAT,               /* One address in a route. */
    TRACE_ADVERSARIAL,          /* Around the ends of the longest routes. */
    N_TRACES
};
extern const char *const bench_trace_names[N_TRACES];

struct bench_trace {
    enum bench_trace_type type;
    size_t n;
    uint8_t (*addrs)[16];
    const uint8_t **pointers;   /* To the elements of 'addrs'. */
    uint32_t *expected;         /* The right answers. */
};
void bench_trace_init(struct bench_trace *, enum bench_trace_type, size_t n,
                      const struct planb_prefix *, size_t n_prefixes,
                      const struct bench_reference *);
void bench_trace_destroy(struct bench_trace *);

/* Implementations: something that looks up addresses, in one of the ways that
 * it has. */
struct bench_impl {
    char name[32];
    void *aux;
    int variant;                /* Kernel or type of lookup. */
    bool is_fib6;               /* One of those to be compared with. */

    /* Chooses the variant. */
    void (*select)(const struct bench_impl *);

    /* Looks up 'n' addresses of the trace from 'first' on, 'batch' at a time.
     * The answers go to 'answers', in what format ever, those of each batch
     * to the beginning or, if 'keep' is true, behind those before. */
    void (*run)(const struct bench_impl *, const struct bench_trace *,
                size_t first, size_t n, size_t batch, void *answers,
                bool keep);

    /* Returns the 'i'th of 'answers'. */
    uint32_t (*answer)(const struct bench_impl *, const void *answers,
                       size_t i);
};
#define BENCH_ANSWER_SIZE 8     /* Enough for each answer. */
#define BENCH_MAX_IMPLS 16

/* DPDK.  bench_dpdk_start() returns false if DPDK is not to be had. */
bool bench_dpdk_start(int cpu, bool huge_pages);
size_t bench_dpdk_add(const struct planb_prefix *, size_t n,
                      struct bench_impl *);
void bench_dpdk_report(FILE *, size_t n_prefixes);
bool bench_dpdk_change(const struct planb_prefix *, bool remove);
void bench_dpdk_stop(void);

/* Time and statistics. */
double bench_wall_time(void);           /* In seconds. */
double bench_cpu_time(void);            /* Of this thread, in seconds. */
double bench_percentile(double *, size_t n, double percent);

/* The speed in each round of an implementation on a trace with a batch
 * size. */
struct bench_speed {
    double *mlps;
    double median, min, max;
};

struct bench_latency {
    bool cached;                /* The trace fits into the cache. */
    size_t impl;
    double *p50, *p99, *p999;   /* By round, in nanoseconds. */
    double median50, median99, median999, ratio;
};

struct bench_update {
    size_t k;                   /* Routes changed. */
    size_t n;                   /* Times that it was done. */
    double planb, planb_max;    /* Medians and maximum, in seconds. */
    double fib6;                /* Or 0. */
};

struct bench_scaling {
    const struct bench_impl *impl;
    enum bench_trace_type trace;
    double one, two;            /* Million lookups per second. */
};

/* Lookups on one core while another publishes changes. */
struct bench_churn {
    bool measured;
    double changes;             /* Per second. */
    double load;                /* Of the core that changes and publishes. */
    double quiet, busy;         /* Million lookups per second without and with
                                 * changes. */
};

/* What was measured. */
struct bench {
    const char *source;
    struct planb_prefix *prefixes;
    size_t n_prefixes;

    struct bench_trace traces[N_TRACES];
    size_t n_traces;
    struct bench_impl impls[BENCH_MAX_IMPLS];
    size_t n_impls, n_planb;    /* Those of libplanb come first. */
    size_t batches[16];
    size_t n_batches;
    size_t n_rounds;

    struct bench_speed *speeds; /* By trace, implementation, batch. */
    struct bench_latency latencies[2 * BENCH_MAX_IMPLS];
    size_t n_latencies;
    double build_median, build_min, build_max;
    struct bench_update updates[2];
    size_t n_updates;
    struct bench_scaling scalings[2 * BENCH_MAX_IMPLS];
    size_t n_scalings;
    struct bench_churn churn;
    size_t huge_kb;             /* Huge pages of this process. */
    struct planb_stats stats;
};

static inline struct bench_speed *
bench_speed(const struct bench *b, size_t trace, size_t impl, size_t batch)
{
    return &b->speeds[(trace * b->n_impls + impl) * b->n_batches + batch];
}

void bench_report(const struct bench *, FILE *);
void bench_write_csv(const struct bench *, FILE *);
void bench_plot(const struct bench *, const char *prefix);

#endif /* bench.h */
