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

/* planb-bench: measures libplanb, see planb-bench(1). */

#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "bench.h"
#include "prefix-file.h"
#include "util.h"

/* How long one measurement of speed takes at least, in seconds. */
#define MIN_TIME 2e-3

/* The batch size of latencies, and how many addresses fit into a cache of the
 * usual size with what they touch. */
#define LATENCY_BATCH 32
#define CACHED_ADDRS 4096

struct options {
    const char *file_name;
    uint64_t synthetic;
    bool file_values;
    uint64_t n_addrs;
    uint64_t seed;
    const char *csv, *plot;
    bool traces[N_TRACES];
    bool quick;
    bool small_pages;
};

/* Time. */

static double
get_time(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

double
bench_wall_time(void)
{
    return get_time(CLOCK_MONOTONIC);
}

/* What other processes do on the same CPU does not count. */
double
bench_cpu_time(void)
{
    return get_time(CLOCK_THREAD_CPUTIME_ID);
}

/* The finest clock there is, for latencies. */
static inline uint64_t
ticks(void)
{
#ifdef __x86_64__
    unsigned int aux;
    uint64_t t;

    _mm_lfence();
    t = __rdtscp(&aux);
    _mm_lfence();
    return t;
#else
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
#endif
}

static double
ns_per_tick(void)
{
    double wall = bench_wall_time();
    uint64_t t = ticks();

    while (bench_wall_time() < wall + 20e-3) {
        continue;
    }
    wall = bench_wall_time() - wall;
    return wall * 1e9 / (ticks() - t);
}

static int
compare_doubles(const void *a_, const void *b_)
{
    double a = *(const double *) a_;
    double b = *(const double *) b_;

    return a < b ? -1 : a > b;
}

/* Sorts the 'n' elements of 'x' and returns the one that 'percent' percent of
 * them do not exceed. */
double
bench_percentile(double *x, size_t n, double percent)
{
    qsort(x, n, sizeof *x, compare_doubles);
    if (percent == 50) {
        return (x[(n - 1) / 2] + x[n / 2]) / 2;
    }
    return x[(size_t) ((n - 1) * percent / 100 + .5)];
}

static double
median_of(const double *x, size_t n)
{
    double *copy = xmalloc(n * sizeof *copy);
    double median;

    memcpy(copy, x, n * sizeof *copy);
    median = bench_percentile(copy, n, 50);
    free(copy);
    return median;
}

/* Keeps this thread on 'cpu'. */
static void
pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/* libplanb as an implementation. */

static void
planb_select(const struct bench_impl *impl)
{
    planb_set_kernel(planb_kernel_name(impl->variant));
}

static void
planb_run(const struct bench_impl *impl, const struct bench_trace *trace,
          size_t first, size_t n, size_t batch, void *answers_, bool keep)
{
    const struct planb *tree = impl->aux;
    uint32_t *answers = answers_;

    if (batch == 1) {
        for (size_t i = 0; i < n; i++) {
            *answers = planb_lookup(tree, trace->addrs[first + i]);
            answers += keep;
        }
        return;
    }
    for (size_t i = 0; i < n; i += batch) {
        size_t m = n - i < batch ? n - i : batch;

        planb_lookup_batch(tree, &trace->pointers[first + i], answers, m);
        answers += keep ? m : 0;
    }
}

static uint32_t
planb_answer(const struct bench_impl *impl __attribute__((unused)),
             const void *answers, size_t i)
{
    return ((const uint32_t *) answers)[i];
}

static size_t
add_planb(struct planb *tree, struct bench_impl *impls)
{
    size_t n = 0;

    for (size_t i = 0; planb_kernel_name(i); i++) {
        const char *name = planb_kernel_name(i);

        if (strcmp(name, "auto") && strcmp(name, "autovalidator")
            && planb_kernel_is_available(name)) {
            struct bench_impl *impl = &impls[n++];
            char *p = impl->name + sprintf(impl->name, "planb-");

            for (; *name && p < &impl->name[sizeof impl->name - 1]; name++) {
                if (isalnum((unsigned char) *name)) {
                    *p++ = *name;
                }
            }
            *p = '\0';
            impl->aux = tree;
            impl->variant = i;
            impl->select = planb_select;
            impl->run = planb_run;
            impl->answer = planb_answer;
        }
    }
    return n;
}

/* Compares all answers of all implementations with the right ones, and does
 * not return if any is wrong. */
static void
check_answers(const struct bench *b)
{
    for (size_t t = 0; t < b->n_traces; t++) {
        const struct bench_trace *trace = &b->traces[t];
        void *answers = xmalloc(trace->n * BENCH_ANSWER_SIZE);

        for (size_t i = 0; i < b->n_impls; i++) {
            const struct bench_impl *impl = &b->impls[i];

            for (size_t k = 0; k < b->n_batches; k++) {
                memset(answers, 0xa5, trace->n * BENCH_ANSWER_SIZE);
                impl->select(impl);
                impl->run(impl, trace, 0, trace->n, b->batches[k], answers,
                          true);
                for (size_t j = 0; j < trace->n; j++) {
                    char s[PREFIX_STRLEN];
                    uint32_t answer = impl->answer(impl, answers, j);

                    if (answer != trace->expected[j]) {
                        prefix_format(trace->addrs[j], 128, s);
                        die("wrong answer: %s, batch %zu, %s: %u instead of "
                            "%u", impl->name, b->batches[k], s, answer,
                            trace->expected[j]);
                    }
                }
            }
        }
        free(answers);
    }
}

/* Speed. */

static double
measure_pass(const struct bench_impl *impl, const struct bench_trace *trace,
             size_t batch, size_t reps, void *answers)
{
    double start;

    start = bench_cpu_time();
    for (size_t i = 0; i < reps; i++) {
        impl->run(impl, trace, 0, trace->n, batch, answers, false);
    }
    return bench_cpu_time() - start;
}

/* Passes that warm up the caches.  One is not enough: with a big table, what
 * was measured before still shows. */
#define WARM_UP 3

/* In every round, measures every implementation in every case, so that if the
 * machine becomes slower or faster, it does so for all of them.  Their order
 * is random, so that none always comes behind one that left the caches as it
 * likes them. */
static void
measure_speeds(struct bench *b, bool quick)
{
    size_t n = b->n_traces * b->n_impls * b->n_batches;
    void *answers = xmalloc(8192 * BENCH_ANSWER_SIZE);
    size_t *reps = xcalloc(n, sizeof *reps);

    b->speeds = xcalloc(n, sizeof *b->speeds);
    for (size_t i = 0; i < n; i++) {
        b->speeds[i].mlps = xcalloc(b->n_rounds, sizeof(double));
    }
    for (size_t round = 0; round < b->n_rounds; round++) {
        for (size_t t = 0; t < b->n_traces; t++) {
            for (size_t k = 0; k < b->n_batches; k++) {
                size_t order[BENCH_MAX_IMPLS];

                for (size_t j = 0; j < b->n_impls; j++) {
                    size_t other = bench_random_below(j + 1);

                    order[j] = order[other];
                    order[other] = j;
                }
                for (size_t j = 0; j < b->n_impls; j++) {
                    size_t i = order[j];
                    const struct bench_impl *impl = &b->impls[i];
                    struct bench_speed *s = bench_speed(b, t, i, k);
                    size_t *r = &reps[s - b->speeds];
                    double time;

                    impl->select(impl);
                    time = measure_pass(impl, &b->traces[t], b->batches[k],
                                        quick ? 1 : WARM_UP, answers);
                    if (!*r) {
                        time /= WARM_UP;
                        *r = (quick ? 1 : time < MIN_TIME
                              ? MIN_TIME / (time + 1e-6) + 1 : 1);
                    }
                    time = measure_pass(impl, &b->traces[t], b->batches[k], *r,
                                        answers);
                    s->mlps[round] = *r * b->traces[t].n / (time * 1e6 + 1e-3);
                }
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        struct bench_speed *s = &b->speeds[i];
        double *copy = xmalloc(b->n_rounds * sizeof *copy);

        memcpy(copy, s->mlps, b->n_rounds * sizeof *copy);
        s->median = bench_percentile(copy, b->n_rounds, 50);
        s->min = copy[0];
        s->max = copy[b->n_rounds - 1];
        free(copy);
    }
    free(reps);
    free(answers);
}

/* Latency. */

/* Times each batch of 'trace', 'passes' times over, with the cost of taking
 * the time left out, and stores the percentiles of 'round' in 'l'. */
static void
measure_latency(const struct bench *b, struct bench_latency *l, size_t round,
                const struct bench_trace *trace, size_t passes,
                double tick_length)
{
    const struct bench_impl *impl = &b->impls[l->impl];
    size_t per_pass = trace->n / LATENCY_BATCH;
    double *samples = xmalloc(per_pass * passes * sizeof *samples);
    uint64_t answers[LATENCY_BATCH];
    double overhead[101];
    size_t n = 0;

    for (int i = 0; i < 101; i++) {
        uint64_t start = ticks();

        overhead[i] = ticks() - start;
    }
    bench_percentile(overhead, 101, 50);

    impl->select(impl);
    for (int i = 0; i < 3; i++) {
        impl->run(impl, trace, 0, trace->n, LATENCY_BATCH, answers, false);
    }
    for (size_t pass = 0; pass < passes; pass++) {
        for (size_t i = 0; i < per_pass; i++) {
            uint64_t start = ticks();

            impl->run(impl, trace, i * LATENCY_BATCH, LATENCY_BATCH,
                      LATENCY_BATCH, answers, false);
            samples[n++] = ticks() - start;
        }
    }
    for (size_t i = 0; i < n; i++) {
        samples[i] -= overhead[50] < samples[i] ? overhead[50] : samples[i];
        samples[i] = (samples[i] + 1e-3) * tick_length;
    }
    l->p50[round] = bench_percentile(samples, n, 50);
    l->p99[round] = bench_percentile(samples, n, 99);
    l->p999[round] = bench_percentile(samples, n, 99.9);
    free(samples);
}

static void
measure_latencies(struct bench *b, const struct bench_trace *inroute,
                  bool quick)
{
    double tick_length = ns_per_tick();
    struct bench_trace cached = *inroute;

    if (cached.n > CACHED_ADDRS) {
        cached.n = CACHED_ADDRS;
    }
    for (int c = 1; c >= 0; c--) {
        for (size_t i = 0; i < b->n_impls; i++) {
            struct bench_latency *l = &b->latencies[b->n_latencies++];

            l->impl = i;
            l->cached = c;
            l->p50 = xcalloc(b->n_rounds, sizeof *l->p50);
            l->p99 = xcalloc(b->n_rounds, sizeof *l->p99);
            l->p999 = xcalloc(b->n_rounds, sizeof *l->p999);
        }
    }
    for (size_t round = 0; round < b->n_rounds; round++) {
        for (size_t i = 0; i < b->n_latencies; i++) {
            struct bench_latency *l = &b->latencies[i];
            const struct bench_trace *trace = l->cached ? &cached : inroute;
            size_t passes = quick ? 1 : 32768 / (trace->n / LATENCY_BATCH + 1);

            measure_latency(b, l, round, trace, passes + 1, tick_length);
        }
    }
    for (size_t i = 0; i < b->n_latencies; i++) {
        struct bench_latency *l = &b->latencies[i];
        double *ratios = xmalloc(b->n_rounds * sizeof *ratios);

        for (size_t round = 0; round < b->n_rounds; round++) {
            ratios[round] = l->p999[round] / l->p50[round];
        }
        l->median50 = median_of(l->p50, b->n_rounds);
        l->median99 = median_of(l->p99, b->n_rounds);
        l->median999 = median_of(l->p999, b->n_rounds);
        l->ratio = median_of(ratios, b->n_rounds);
        free(ratios);
    }
}

/* Building and changing. */

static void
measure_build(struct bench *b)
{
    struct planb_prefix *p = xmalloc(b->n_prefixes * sizeof *p);
    double *times = xmalloc(b->n_rounds * sizeof *times);

    memcpy(p, b->prefixes, b->n_prefixes * sizeof *p);
    for (size_t i = b->n_prefixes; i > 1; i--) {
        size_t j = bench_random_below(i);
        struct planb_prefix tmp = p[i - 1];

        p[i - 1] = p[j];
        p[j] = tmp;
    }
    for (size_t i = 0; i < b->n_rounds; i++) {
        struct planb *tree;
        double start = bench_cpu_time();
        int error = planb_build(p, b->n_prefixes, BENCH_NO_ROUTE, &tree);

        times[i] = bench_cpu_time() - start;
        if (error) {
            die("building the tree: %s", strerror(error));
        }
        planb_destroy(tree);
    }
    b->build_median = bench_percentile(times, b->n_rounds, 50);
    b->build_min = times[0];
    b->build_max = times[b->n_rounds - 1];
    free(times);
    free(p);
}

/* Changes 'k' routes in all ways there are, and publishes that.  A random
 * route gets another value, goes, or comes back. */
static void
change_routes(const struct bench *b, struct planb_table *table, bool *absent,
              size_t k, double *planb_time, double *fib6_time)
{
    struct planb_prefix *changes = xmalloc(k * sizeof *changes);
    bool *remove_it = xmalloc(k * sizeof *remove_it);
    struct planb *tree;
    double start;
    int error = 0;

    for (size_t i = 0; i < k; i++) {
        size_t j;

        do {
            j = bench_random_below(b->n_prefixes);
        } while (!b->prefixes[j].plen && b->n_prefixes > 1);
        changes[i] = b->prefixes[j];
        changes[i].value = 1 + bench_random_below(b->n_prefixes);
        remove_it[i] = !absent[j] && bench_random_below(2);
        absent[j] = remove_it[i];
    }
    start = bench_cpu_time();
    for (size_t i = 0; i < k && !error; i++) {
        error = (remove_it[i] ? planb_table_remove(table, &changes[i])
                 : planb_table_put(table, &changes[i]));
    }
    if (!error) {
        error = planb_table_publish(table, &tree);
    }
    *planb_time = bench_cpu_time() - start;
    if (error) {
        die("changing the table: %s", strerror(error));
    }
    planb_destroy(tree);

    *fib6_time = 0;
#ifdef HAVE_DPDK
    start = bench_cpu_time();
    for (size_t i = 0; i < k; i++) {
        if (!bench_dpdk_change(&changes[i], remove_it[i])) {
            goto out;
        }
    }
    *fib6_time = bench_cpu_time() - start;
out:
#endif
    free(changes);
    free(remove_it);
}

static void
measure_updates(struct bench *b, bool quick)
{
    struct planb_table *table = planb_table_create(BENCH_NO_ROUTE);
    bool *absent = xcalloc(b->n_prefixes, sizeof *absent);
    struct planb *tree;
    int error = table ? 0 : ENOMEM;

    for (size_t i = 0; i < b->n_prefixes && !error; i++) {
        error = planb_table_put(table, &b->prefixes[i]);
    }
    if (!error) {
        error = planb_table_publish(table, &tree);
    }
    if (error) {
        die("filling the table: %s", strerror(error));
    }
    planb_destroy(tree);

    for (size_t k = 1; k <= 1000; k *= 1000) {
        struct bench_update *u = &b->updates[b->n_updates++];
        size_t max = quick ? 3 : k == 1 ? 1001 : 101;
        double *planb = xmalloc(max * sizeof *planb);
        double *fib6 = xmalloc(max * sizeof *fib6);
        double start = bench_wall_time();

        u->k = k;
        while (u->n < max && (u->n < 5 || bench_wall_time() < start + 3)) {
            change_routes(b, table, absent, k, &planb[u->n], &fib6[u->n]);
            u->n++;
        }
        u->planb = bench_percentile(planb, u->n, 50);
        u->planb_max = planb[u->n - 1];
        u->fib6 = bench_percentile(fib6, u->n, 50);
        free(planb);
        free(fib6);
    }
    planb_table_destroy(table);
    free(absent);
}

/* Two cores. */

struct worker {
    pthread_t thread;
    int cpu;
    const struct bench_impl *impl;
    const struct bench_trace *trace;
    double seconds;
    pthread_barrier_t *barrier;
    double mlps;
};

static void
work_for(const struct worker *w, double seconds, size_t *n)
{
    double end = bench_wall_time() + seconds;
    uint64_t answers[256];

    do {
        w->impl->run(w->impl, w->trace, 0, w->trace->n, 128, answers, false);
        *n += w->trace->n;
    } while (bench_wall_time() < end);
}

static void *
work(void *w_)
{
    struct worker *w = w_;
    double start;
    size_t n = 0;

    pin(w->cpu);

    /* An idle CPU takes a while until it is at full speed. */
    work_for(w, w->seconds / 3, &n);
    pthread_barrier_wait(w->barrier);

    n = 0;
    start = bench_cpu_time();
    work_for(w, w->seconds, &n);
    w->mlps = n / (bench_cpu_time() - start) * 1e-6;
    return NULL;
}

/* Returns the speed of the 'n' CPUs in 'cpus' together. */
static double
measure_threads(const struct bench_impl *impl, const struct bench_trace *trace,
                const int cpus[], unsigned int n, double seconds)
{
    struct worker workers[2];
    pthread_barrier_t barrier;
    double mlps = 0;

    impl->select(impl);
    pthread_barrier_init(&barrier, NULL, n);
    for (unsigned int i = 0; i < n; i++) {
        struct worker *w = &workers[i];

        w->cpu = cpus[i];
        w->impl = impl;
        w->trace = trace;
        w->seconds = seconds;
        w->barrier = &barrier;
        if (pthread_create(&w->thread, NULL, work, w)) {
            die("cannot create a thread");
        }
    }
    for (unsigned int i = 0; i < n; i++) {
        pthread_join(workers[i].thread, NULL);
        mlps += workers[i].mlps;
    }
    pthread_barrier_destroy(&barrier);
    return mlps;
}

/* Returns the implementation that is fastest on the 't'th trace, with any
 * batch size, among those of libplanb or of rte_fib6. */
static const struct bench_impl *
fastest(const struct bench *b, size_t t, bool fib6)
{
    const struct bench_impl *best = NULL;
    double best_mlps = 0;

    for (size_t i = 0; i < b->n_impls; i++) {
        for (size_t k = 0; k < b->n_batches; k++) {
            if ((fib6 ? b->impls[i].is_fib6 : i < b->n_planb)
                && bench_speed(b, t, i, k)->median > best_mlps) {
                best_mlps = bench_speed(b, t, i, k)->median;
                best = &b->impls[i];
            }
        }
    }
    return best;
}

static void
measure_scaling(struct bench *b, const cpu_set_t *set, bool quick)
{
    int cpus[2], n_cpus = 0;

    for (int i = 0; i < CPU_SETSIZE && n_cpus < 2; i++) {
        if (CPU_ISSET(i, set)) {
            cpus[n_cpus++] = i;
        }
    }
    if (n_cpus < 2) {
        return;
    }
    for (size_t t = 0; t < b->n_traces; t++) {
        if (b->traces[t].type != TRACE_INROUTE
            && b->traces[t].type != TRACE_UNIFORM) {
            continue;
        }
        for (int fib6 = 0; fib6 < 2; fib6++) {
            const struct bench_impl *impl = fastest(b, t, fib6);
            size_t n_rounds = quick ? 1 : 7;
            double one[7], two[7];

            for (size_t i = 0; impl && i < n_rounds; i++) {
                double seconds = quick ? 1e-3 : 30e-3;

                /* Neither may be the better one. */
                one[i] = (measure_threads(impl, &b->traces[t], &cpus[0], 1,
                                          seconds)
                          + measure_threads(impl, &b->traces[t], &cpus[1], 1,
                                            seconds)) / 2;
                two[i] = measure_threads(impl, &b->traces[t], cpus, 2,
                                         seconds);
            }
            if (impl) {
                struct bench_scaling *s = &b->scalings[b->n_scalings++];

                s->impl = impl;
                s->trace = b->traces[t].type;
                s->one = bench_percentile(one, n_rounds, 50);
                s->two = bench_percentile(two, n_rounds, 50);
            }
        }
    }
}

/* Lookups while routes change. */

#define CHANGES_PER_SECOND 10000
#define PUBLISHES_PER_SECOND 100

struct reader {
    const struct bench_impl *impl;
    const struct bench_trace *trace;
    int cpu;
    _Atomic(struct planb *) tree;
    atomic_ulong n_batches;     /* Done, each with one tree. */
    atomic_bool stop;
    double mlps;
};

static void *
read_tree(void *r_)
{
    struct reader *r = r_;
    struct bench_impl impl = *r->impl;
    uint64_t answers[128];
    size_t n = 0;
    double start;

    pin(r->cpu);
    start = bench_cpu_time();
    while (!atomic_load(&r->stop)) {
        for (size_t i = 0; i + 128 <= r->trace->n; i += 128) {
            impl.aux = atomic_load(&r->tree);
            impl.run(&impl, r->trace, i, 128, 128, answers, false);
            n += 128;
            atomic_store(&r->n_batches, n / 128);
        }
    }
    r->mlps = n / (bench_cpu_time() - start) * 1e-6;
    return NULL;
}

/* Frees 'tree' once 'r', which had done 'n_batches' when it got another one,
 * cannot use it any more. */
static void
destroy_unread(struct reader *r, struct planb *tree, unsigned long n_batches)
{
    const struct timespec pause = { .tv_nsec = 100000 };

    while (tree && atomic_load(&r->n_batches) <= n_batches) {
        nanosleep(&pause, NULL);
    }
    planb_destroy(tree);
}

/* Has 'impl' look up 'trace' for some time, while this thread publishes
 * changes of 'table' if 'change' is true.  Returns the speed. */
static double
churn(struct bench *b, const struct bench_impl *impl,
      const struct bench_trace *trace, struct planb_table *table, bool *absent,
      const int cpus[2], double seconds, bool change)
{
    const size_t k = CHANGES_PER_SECOND / PUBLISHES_PER_SECOND;
    struct reader r = { .impl = impl, .trace = trace, .cpu = cpus[0] };
    struct planb *tree = NULL, *old = NULL;
    unsigned long old_batches = 0;
    double start, cpu, end, next;
    pthread_t thread;
    size_t n = 0;

    if (planb_table_publish(table, &tree)) {
        die("changing the table: %s", strerror(ENOMEM));
    }
    atomic_init(&r.tree, tree);
    impl->select(impl);
    pin(cpus[1]);
    if (pthread_create(&thread, NULL, read_tree, &r)) {
        die("cannot create a thread");
    }

    start = next = bench_wall_time();
    cpu = bench_cpu_time();
    end = start + seconds;
    do {
        if (change) {
            int error = 0;

            destroy_unread(&r, old, old_batches);
            old = tree;
            for (size_t i = 0; i < k && !error; i++) {
                size_t j = bench_random_below(b->n_prefixes);
                struct planb_prefix p = b->prefixes[j];

                p.value = 1 + bench_random_below(b->n_prefixes);
                if (!absent[j] && bench_random_below(2)) {
                    error = planb_table_remove(table, &p);
                    absent[j] = true;
                } else {
                    error = planb_table_put(table, &p);
                    absent[j] = false;
                }
            }
            if (!error) {
                error = planb_table_publish(table, &tree);
            }
            if (error) {
                die("changing the table: %s", strerror(error));
            }
            atomic_store(&r.tree, tree);
            old_batches = atomic_load(&r.n_batches);
            n += k;
        }
        next += 1.0 / PUBLISHES_PER_SECOND;
        if (next > bench_wall_time()) {
            double left = next - bench_wall_time();
            struct timespec ts = { .tv_nsec = left > 0 ? left * 1e9 : 0 };

            nanosleep(&ts, NULL);
        }
    } while (bench_wall_time() < end);
    if (change) {
        double wall = bench_wall_time() - start;

        b->churn.load = (bench_cpu_time() - cpu) / wall;
        b->churn.changes = n / wall;
    }
    atomic_store(&r.stop, true);
    pthread_join(thread, NULL);
    planb_destroy(old);
    planb_destroy(tree);
    return r.mlps;
}

static void
measure_churn(struct bench *b, const struct bench_impl *impl,
              const struct bench_trace *inroute, const cpu_set_t *set,
              bool quick)
{
    struct planb_table *table = planb_table_create(BENCH_NO_ROUTE);
    bool *absent = xcalloc(b->n_prefixes, sizeof *absent);
    size_t n_rounds = quick ? 1 : 3;
    double quiet[3], busy[3];
    int cpus[2], n_cpus = 0;
    int error = table ? 0 : ENOMEM;

    for (int i = 0; i < CPU_SETSIZE && n_cpus < 2; i++) {
        if (CPU_ISSET(i, set)) {
            cpus[n_cpus++] = i;
        }
    }
    for (size_t i = 0; i < b->n_prefixes && !error; i++) {
        error = planb_table_put(table, &b->prefixes[i]);
    }
    if (error) {
        die("filling the table: %s", strerror(error));
    }
    if (n_cpus == 2 && inroute->n >= 128) {
        double seconds = quick ? 20e-3 : .5;

        for (size_t i = 0; i < n_rounds; i++) {
            quiet[i] = churn(b, impl, inroute, table, absent, cpus, seconds,
                             false);
            busy[i] = churn(b, impl, inroute, table, absent, cpus, seconds,
                            true);
        }
        b->churn.quiet = bench_percentile(quiet, n_rounds, 50);
        b->churn.busy = bench_percentile(busy, n_rounds, 50);
        b->churn.measured = true;
    }
    planb_table_destroy(table);
    free(absent);
}

/* Returns how many KB of the memory of this process are in huge pages. */
static size_t
get_huge_pages(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    unsigned long int kb = 0;
    char line[256];

    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "AnonHugePages: %lu kB", &kb) == 1) {
            break;
        }
    }
    if (file) {
        fclose(file);
    }
    return kb;
}

/* Options. */

static void
parse_batches(struct bench *b, const char *s)
{
    char *copy = xstrdup(s);
    char *save = NULL;

    b->n_batches = 0;
    for (char *word = strtok_r(copy, ",", &save); word;
         word = strtok_r(NULL, ",", &save)) {
        if (b->n_batches >= sizeof b->batches / sizeof *b->batches) {
            die("--batches=%s: too many", s);
        }
        b->batches[b->n_batches++] = parse_option("batches", word, 1, 8192);
    }
    if (!b->n_batches) {
        die("--batches: must not be empty");
    }
    free(copy);
}

static void
parse_traces(struct options *o, const char *s)
{
    char *copy = xstrdup(s);
    char *save = NULL;
    bool any = false;

    memset(o->traces, 0, sizeof o->traces);
    for (char *word = strtok_r(copy, ",", &save); word;
         word = strtok_r(NULL, ",", &save)) {
        size_t i = 0;

        while (i < N_TRACES && strcmp(word, bench_trace_names[i])) {
            i++;
        }
        if (i >= N_TRACES) {
            die("--traces=%s: must be some of uniform, inroute, zipf, repeat, "
                "adversarial", s);
        }
        o->traces[i] = true;
        any = true;
    }
    if (!any) {
        die("--traces: must not be empty");
    }
    free(copy);
}

static void
usage(void)
{
    printf("\
Usage: %s [OPTION...] FILE\n\
       %s [OPTION...] --synthetic=N\n\
Measures libplanb with the prefixes in FILE or N made-up ones, beside DPDK's\n\
rte_fib6 and rte_lpm6.\n\
\n\
  --synthetic=N        make N prefixes with the lengths of the real table\n\
  --values=distinct    each prefix gets a value of its own (default)\n\
  --values=file        use the values in FILE\n\
  --traces=NAME,...    uniform, inroute, zipf, repeat, adversarial; default\n\
                       all\n\
  --batches=N,...      sizes of batches (default: 1,8,32,64,128,256)\n\
  --addresses=N        length of each trace (default: 65536)\n\
  --rounds=N           measure everything N times (default: 11)\n\
  --quick              measure as briefly as possible, to try it out\n\
  --seed=N             of random numbers (default: 1)\n\
  --no-dpdk            leave DPDK out\n\
  --pages=huge         have the kernel give DPDK huge pages (default), which\n\
                       it does without any that are reserved\n\
  --pages=small        have it not do so\n\
  --csv=FILE           write the speeds to FILE as well\n\
  --plot=PREFIX        draw PREFIX-speed.png, -batch.png and -latency.png\n\
  -h, --help           show this text\n\
  -V, --version        show the version\n", program_name, program_name);
}

static void
free_bench(struct bench *b)
{
    for (size_t i = 0; i < b->n_traces; i++) {
        bench_trace_destroy(&b->traces[i]);
    }
    for (size_t i = 0; i < b->n_traces * b->n_impls * b->n_batches; i++) {
        free(b->speeds[i].mlps);
    }
    free(b->speeds);
    for (size_t i = 0; i < b->n_latencies; i++) {
        free(b->latencies[i].p50);
        free(b->latencies[i].p99);
        free(b->latencies[i].p999);
    }
    free(b->prefixes);
}

int
main(int argc, char *argv[])
{
    enum {
        OPT_SYNTHETIC = 256, OPT_VALUES, OPT_TRACES, OPT_BATCHES,
        OPT_ADDRESSES, OPT_ROUNDS, OPT_QUICK, OPT_SEED, OPT_NO_DPDK,
        OPT_PAGES, OPT_CSV, OPT_PLOT
    };
    static const struct option options[] = {
        { "synthetic", required_argument, NULL, OPT_SYNTHETIC },
        { "values", required_argument, NULL, OPT_VALUES },
        { "traces", required_argument, NULL, OPT_TRACES },
        { "batches", required_argument, NULL, OPT_BATCHES },
        { "addresses", required_argument, NULL, OPT_ADDRESSES },
        { "rounds", required_argument, NULL, OPT_ROUNDS },
        { "quick", no_argument, NULL, OPT_QUICK },
        { "seed", required_argument, NULL, OPT_SEED },
        { "no-dpdk", no_argument, NULL, OPT_NO_DPDK },
        { "pages", required_argument, NULL, OPT_PAGES },
        { "csv", required_argument, NULL, OPT_CSV },
        { "plot", required_argument, NULL, OPT_PLOT },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { NULL, 0, NULL, 0 }
    };
    struct options o = { .n_addrs = 65536, .seed = 1 };
    struct bench b = { .n_rounds = 11 };
    struct bench_trace inroute = { .n = 0 };
    struct bench_reference *reference;
    bool use_dpdk = true;
    struct planb *tree;
    char source[32];
    FILE *csv = NULL;
    cpu_set_t set;
    int opt, error, cpu = 0;

    program_name = "planb-bench";
    memset(o.traces, true, sizeof o.traces);
    parse_batches(&b, "1,8,32,64,128,256");
    while ((opt = getopt_long(argc, argv, "hV", options, NULL)) >= 0) {
        switch (opt) {
        case OPT_SYNTHETIC:
            o.synthetic = parse_option("synthetic", optarg, 1,
                                       PLANB_MAX_PREFIXES);
            break;
        case OPT_VALUES:
            if (strcmp(optarg, "distinct") && strcmp(optarg, "file")) {
                die("--values=%s: must be distinct or file", optarg);
            }
            o.file_values = !strcmp(optarg, "file");
            break;
        case OPT_TRACES:
            parse_traces(&o, optarg);
            break;
        case OPT_BATCHES:
            parse_batches(&b, optarg);
            break;
        case OPT_ADDRESSES:
            o.n_addrs = parse_option("addresses", optarg, LATENCY_BATCH,
                                     1 << 28);
            break;
        case OPT_ROUNDS:
            b.n_rounds = parse_option("rounds", optarg, 1, 10000);
            break;
        case OPT_QUICK:
            o.quick = true;
            break;
        case OPT_SEED:
            o.seed = parse_option("seed", optarg, 0, UINT64_MAX);
            break;
        case OPT_NO_DPDK:
            use_dpdk = false;
            break;
        case OPT_PAGES:
            if (strcmp(optarg, "huge") && strcmp(optarg, "small")) {
                die("--pages=%s: must be huge or small", optarg);
            }
            o.small_pages = !strcmp(optarg, "small");
            break;
        case OPT_CSV:
            o.csv = optarg;
            break;
        case OPT_PLOT:
            o.plot = optarg;
            break;
        case 'h':
            usage();
            return 0;
        case 'V':
            printf("%s (%s) %s\n", program_name, PACKAGE_NAME,
                   PACKAGE_VERSION);
            return 0;
        default:
            fprintf(stderr, "Try \"%s --help\".\n", program_name);
            return EXIT_FAILURE;
        }
    }
    if (optind + 1 < argc) {
        die("%s: only one file can be measured at a time", argv[optind + 1]);
    }
    o.file_name = argv[optind];
    if (!o.file_name == !o.synthetic) {
        die("give either a prefix file or --synthetic=N");
    }
    if (o.plot && system("gnuplot --version > /dev/null 2>&1")) {
        die("--plot needs gnuplot: install the Debian package gnuplot-nox");
    }
    bench_seed(o.seed);

    if (o.synthetic) {
        b.prefixes = bench_synthetic(o.synthetic);
        b.n_prefixes = o.synthetic;
        snprintf(source, sizeof source, "synthetic");
        b.source = source;
    } else {
        b.prefixes = prefix_file_read(o.file_name, &b.n_prefixes);
        b.source = o.file_name;
    }
    if (!b.n_prefixes) {
        die("%s: no prefixes", b.source);
    }
    for (size_t i = 0; i < b.n_prefixes; i++) {
        if (!o.file_values) {
            b.prefixes[i].value = i + 1;
        } else if (b.prefixes[i].value == BENCH_NO_ROUTE) {
            die("%s: value 0 stands for addresses without route, and cannot "
                "be used with --values=file", b.source);
        }
    }
    if (o.csv) {
        csv = fopen(o.csv, "w");
        if (!csv) {
            die("%s: %s", o.csv, strerror(errno));
        }
    }

    reference = bench_reference_create(b.prefixes, b.n_prefixes);
    for (int i = 0; i < N_TRACES; i++) {
        if (o.traces[i]) {
            bench_trace_init(&b.traces[b.n_traces++], i, o.n_addrs,
                             b.prefixes, b.n_prefixes, reference);
        }
    }
    bench_trace_init(&inroute, TRACE_INROUTE, o.n_addrs, b.prefixes,
                     b.n_prefixes, reference);
    bench_reference_destroy(reference);

    error = planb_build(b.prefixes, b.n_prefixes, BENCH_NO_ROUTE, &tree);
    if (error) {
        die("building the tree: %s", error == ENOSPC
            ? "more prefixes than libplanb can take" : strerror(error));
    }
    planb_get_stats(tree, &b.stats);
    b.n_planb = b.n_impls = add_planb(tree, b.impls);

    /* Stay on one CPU, the last one: the first has more interrupts. */
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        cpu = CPU_ISSET(i, &set) ? i : cpu;
    }
    if (use_dpdk) {
#ifdef HAVE_DPDK
        if (!bench_dpdk_start(cpu, !o.small_pages)) {
            die("cannot initialize DPDK (--no-dpdk leaves it out)");
        }
        b.n_impls += bench_dpdk_add(b.prefixes, b.n_prefixes,
                                    &b.impls[b.n_impls]);
#else
        printf("Built without DPDK: only libplanb is measured.\n");
#endif
    }
    pin(cpu);

    check_answers(&b);
    b.huge_kb = get_huge_pages();
    measure_speeds(&b, o.quick);
    measure_latencies(&b, &inroute, o.quick);
    measure_build(&b);
    measure_scaling(&b, &set, o.quick);
    measure_churn(&b, fastest(&b, 0, false), &inroute, &set, o.quick);
    pin(cpu);
    measure_updates(&b, o.quick);

    bench_report(&b, stdout);
#ifdef HAVE_DPDK
    if (use_dpdk) {
        bench_dpdk_stop();
    }
#endif
    if (csv) {
        bench_write_csv(&b, csv);
        if (fflush(csv) || ferror(csv) || fclose(csv)) {
            die("%s: %s", o.csv, strerror(errno));
        }
    }
    if (o.plot) {
        bench_plot(&b, o.plot);
    }
    planb_destroy(tree);
    bench_trace_destroy(&inroute);
    free_bench(&b);
    if (fflush(stdout) || ferror(stdout)) {
        die("standard output: %s", strerror(errno));
    }
    return 0;
}
