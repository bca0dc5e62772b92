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

#include "util.h"

/* An implementation with a batch size, on a trace. */
struct best {
    size_t impl, batch;         /* Indexes. */
    const struct bench_speed *speed;    /* Null if there is none. */
};

static bool
starts_with(const char *s, const char *start)
{
    return !strncmp(s, start, strlen(start));
}

/* Returns the best on trace 't' of all implementations whose names begin with
 * 'name', with any batch size or, if 'batch' is not zero, with that one. */
static struct best
find_best(const struct bench *b, size_t t, const char *name, size_t batch)
{
    struct best best = { .speed = NULL };

    for (size_t i = 0; i < b->n_impls; i++) {
        for (size_t k = 0; k < b->n_batches; k++) {
            const struct bench_speed *s = bench_speed(b, t, i, k);

            if (starts_with(b->impls[i].name, name)
                && (!batch || b->batches[k] == batch)
                && (!best.speed || s->median > best.speed->median)) {
                best = (struct best) { i, k, s };
            }
        }
    }
    return best;
}

/* How many times as fast 'x' is as 'y': the median, least and greatest of the
 * ratios of each round. */
struct ratio {
    double median, min, max;
};

static struct ratio
get_ratio(const struct bench *b, const struct bench_speed *x,
          const struct bench_speed *y)
{
    double *ratios = xmalloc(b->n_rounds * sizeof *ratios);
    struct ratio r;

    for (size_t i = 0; i < b->n_rounds; i++) {
        ratios[i] = x->mlps[i] / y->mlps[i];
    }
    r.median = bench_percentile(ratios, b->n_rounds, 50);
    r.min = ratios[0];
    r.max = ratios[b->n_rounds - 1];
    free(ratios);
    return r;
}

static const char *
best_name(const struct bench *b, const struct best *best, char s[64])
{
    snprintf(s, 64, "%s, batch %zu", b->impls[best->impl].name,
             b->batches[best->batch]);
    return s;
}

static void
report_speeds(const struct bench *b, FILE *out)
{
    for (size_t t = 0; t < b->n_traces; t++) {
        fprintf(out, "\nTrace %s, million lookups per second, median of %zu "
                "rounds:\n", bench_trace_names[b->traces[t].type],
                b->n_rounds);
        fprintf(out, "  %-18s", "batch");
        for (size_t k = 0; k < b->n_batches; k++) {
            fprintf(out, " %8zu", b->batches[k]);
        }
        fprintf(out, "   best: least-most\n");
        for (size_t i = 0; i < b->n_impls; i++) {
            struct best best = find_best(b, t, b->impls[i].name, 0);

            fprintf(out, "  %-18s", b->impls[i].name);
            for (size_t k = 0; k < b->n_batches; k++) {
                fprintf(out, " %8.1f", bench_speed(b, t, i, k)->median);
            }
            fprintf(out, "   %.1f-%.1f\n", best.speed->min, best.speed->max);
        }
    }
}

static void
report_ratios(const struct bench *b, FILE *out)
{
    bool first = true;

    for (size_t t = 0; t < b->n_traces; t++) {
        struct best planb = find_best(b, t, "planb-", 0);
        struct best fib = find_best(b, t, "rte_fib6-", 0);
        char s1[64], s2[64];
        struct ratio r;

        if (!fib.speed) {
            return;
        }
        if (first) {
            fprintf(out, "\nAgainst the best of rte_fib6, median (least-most) "
                    "of the ratios in each round:\n");
            first = false;
        }
        r = get_ratio(b, planb.speed, fib.speed);
        fprintf(out, "  %-12s %6.2f (%.2f-%.2f)  %s; %s\n",
                bench_trace_names[b->traces[t].type], r.median, r.min, r.max,
                best_name(b, &planb, s1), best_name(b, &fib, s2));
    }
}

static void
report_latencies(const struct bench *b, FILE *out)
{
    for (int c = 1; c >= 0; c--) {
        fprintf(out, "\nLatency of a batch of 32, addresses inside the "
                "routes, %s, in ns:\n",
                c ? "few enough for the cache" : "the whole trace");
        fprintf(out, "  %-18s %8s %8s %8s %10s\n", "", "p50", "p99", "p99.9",
                "p99.9/p50");
        for (size_t i = 0; i < b->n_latencies; i++) {
            const struct bench_latency *l = &b->latencies[i];

            if (l->cached == c) {
                fprintf(out, "  %-18s %8.0f %8.0f %8.0f %10.2f\n",
                        b->impls[l->impl].name, l->median50, l->median99,
                        l->median999, l->ratio);
            }
        }
    }
}

static void
report_rest(const struct bench *b, FILE *out)
{
    fprintf(out, "\nBuilding, and memory for lookups:\n");
    fprintf(out, "  libplanb       build %8.1f ms, %8.1f bytes per route "
            "(%.1f MB; build %.1f-%.1f ms; %zu intervals)\n",
            b->build_median * 1e3,
            (double) b->stats.n_bytes / b->n_prefixes, b->stats.n_bytes / 1e6,
            b->build_min * 1e3, b->build_max * 1e3, b->stats.n_intervals);
#ifdef HAVE_DPDK
    if (b->n_impls > b->n_planb) {
        bench_dpdk_report(out, b->n_prefixes);
        fprintf(out, "  %.1f MB of all are in huge pages\n",
                b->huge_kb / 1e3);
    }
#endif

    fprintf(out, "\nChanging routes:\n");
    for (size_t i = 0; i < b->n_updates; i++) {
        const struct bench_update *u = &b->updates[i];

        fprintf(out, "  %4zu routes    libplanb, published %9.1f us (most "
                "%.1f us, %zu times)", u->k, u->planb * 1e6,
                u->planb_max * 1e6, u->n);
        if (u->fib6 > 0) {
            fprintf(out, "; rte_fib6, in place %.1f us", u->fib6 * 1e6);
        }
        putc('\n', out);
    }

    if (b->churn.measured) {
        fprintf(out, "  while another core looks up: %.0f changes per second "
                "(10,000 wanted) take %.0f %% of a core;\n"
                "    lookups are %.1f %% slower (%.1f instead of %.1f million "
                "per second)\n", b->churn.changes, b->churn.load * 100,
                (1 - b->churn.busy / b->churn.quiet) * 100, b->churn.busy,
                b->churn.quiet);
    }

    if (b->n_scalings) {
        fprintf(out, "\nTwo cores, batch 128, million lookups per second:\n");
    }
    for (size_t i = 0; i < b->n_scalings; i++) {
        const struct bench_scaling *s = &b->scalings[i];

        fprintf(out, "  %-12s %-18s one %8.1f, two %8.1f, %.2f times\n",
                bench_trace_names[s->trace], s->impl->name, s->one, s->two,
                s->two / s->one);
    }
}

/* Returns the index of the trace of 'type', or of none. */
static size_t
find_trace(const struct bench *b, enum bench_trace_type type)
{
    size_t t = 0;

    while (t < b->n_traces && b->traces[t].type != type) {
        t++;
    }
    return t;
}

/* Goals. */

static void
no_goal(FILE *out, const char *what, const char *why)
{
    fprintf(out, "  %-46s not measured: %s\n", what, why);
}

/* Writes whether 'x' is at least (or if 'most' is true, at most) 'bar'. */
static void
goal(FILE *out, const char *what, double x, double bar, const char *unit,
     bool most)
{
    fprintf(out, "  %-46s %-6s %.2f%s, must be at %s %g%s\n", what,
            (most ? x <= bar : x >= bar) ? "met" : "MISSED", x, unit,
            most ? "most" : "least", bar, unit);
}

static void
ratio_goal(const struct bench *b, FILE *out, const char *what,
           const struct best *x, const struct best *y, double bar)
{
    if (!x->speed || !y->speed) {
        no_goal(out, what, "not both were measured");
    } else {
        goal(out, what, get_ratio(b, x->speed, y->speed).median, bar, "",
             false);
    }
}

static void
report_goals(const struct bench *b, FILE *out)
{
    size_t inroute = find_trace(b, TRACE_INROUTE);
    size_t uniform = find_trace(b, TRACE_UNIFORM);
    const bool big = b->n_prefixes >= 500000;
    const bool real = b->n_prefixes >= 100000 && !big;
    struct best none = { .speed = NULL };
    struct best best, x, y;

    fprintf(out, "\nGoals (for 178,000 routes, if nothing else is said):\n");
    if (!real && !big) {
        no_goal(out, "all", "too few routes");
        return;
    }

    x = inroute < b->n_traces ? find_best(b, inroute, "planb-", 0) : none;
    y = inroute < b->n_traces ? find_best(b, inroute, "rte_fib6-", 0) : none;
    best = x;
    if (real) {
        ratio_goal(b, out, "inroute, times the best rte_fib6", &x, &y, 2.5);
        no_goal(out, "inroute, the same with 1,000,000 routes",
                "use --synthetic=1000000");
        x = uniform < b->n_traces ? find_best(b, uniform, "planb-", 0) : none;
        y = (uniform < b->n_traces
             ? find_best(b, uniform, "rte_fib6-", 0) : none);
        ratio_goal(b, out, "uniform, times the best rte_fib6", &x, &y, 3);
    } else {
        ratio_goal(b, out, "inroute, 1,000,000 routes, times rte_fib6", &x, &y,
                   2);
        return;
    }

    x = inroute < b->n_traces ? find_best(b, inroute, "planb-", 1) : none;
    y = inroute < b->n_traces ? find_best(b, inroute, "rte_lpm6", 1) : none;
    ratio_goal(b, out, "inroute, single lookups, times rte_lpm6", &x, &y, 1.5);

    y = inroute < b->n_traces ? find_best(b, inroute, "planb-avx512", 0)
        : none;
    x = inroute < b->n_traces ? find_best(b, inroute, "planb-avx2", 0) : none;
    ratio_goal(b, out, "inroute, planb-avx2, times planb-avx512", &x, &y, .6);
    x = inroute < b->n_traces ? find_best(b, inroute, "planb-scalar", 0)
        : none;
    ratio_goal(b, out, "inroute, planb-scalar, times planb-avx512", &x, &y,
               .25);

    goal(out, "memory per route", (double) b->stats.n_bytes / b->n_prefixes,
         40, " bytes", true);
    goal(out, "build", b->build_median * 1e3, 30, " ms", true);
    goal(out, "one route changed and published, median",
         b->updates[0].planb * 1e6, 100, " us", true);
    goal(out, "1,000 routes changed and published, median",
         b->updates[1].planb * 1e3, 5, " ms", true);
    if (b->churn.measured) {
        goal(out, "changes per second, sustained", b->churn.changes, 9900, "",
             false);
        goal(out, "  load of the core that makes them", b->churn.load * 100,
             25, " %", true);
        goal(out, "  slowdown of lookups on another core",
             (1 - b->churn.busy / b->churn.quiet) * 100, 5, " %", true);
    }
    for (size_t i = 0; i < b->n_latencies && best.speed; i++) {
        if (b->latencies[i].cached && b->latencies[i].impl == best.impl) {
            goal(out, "inroute, p99.9/p50 of batches of 32 in cache",
                 b->latencies[i].ratio, 2, "", true);
        }
    }
}

void
bench_report(const struct bench *b, FILE *out)
{
    fprintf(out, "%s: %zu routes, traces of %zu addresses\n", b->source,
            b->n_prefixes, b->n_traces ? b->traces[0].n : 0);
    fprintf(out, "Every answer of every implementation was right.\n");
    report_speeds(b, out);
    report_ratios(b, out);
    report_latencies(b, out);
    report_rest(b, out);
    report_goals(b, out);
}

void
bench_write_csv(const struct bench *b, FILE *out)
{
    fprintf(out, "routes,trace,impl,batch,median_mlps,min_mlps,max_mlps\n");
    for (size_t t = 0; t < b->n_traces; t++) {
        for (size_t i = 0; i < b->n_impls; i++) {
            for (size_t k = 0; k < b->n_batches; k++) {
                const struct bench_speed *s = bench_speed(b, t, i, k);

                fprintf(out, "%zu,%s,%s,%zu,%.3f,%.3f,%.3f\n", b->n_prefixes,
                        bench_trace_names[b->traces[t].type],
                        b->impls[i].name, b->batches[k], s->median, s->min,
                        s->max);
            }
        }
    }
}

/* Plots. */

static FILE *
start_plot(const char *prefix, const char *name, const char *title,
           const char *ylabel)
{
    FILE *gnuplot = popen("gnuplot", "w");

    if (!gnuplot) {
        die("gnuplot: %s", strerror(errno));
    }
    fprintf(gnuplot, "set terminal pngcairo size 1000,600 noenhanced\n"
            "set output '");
    for (const char *c = prefix; *c; c++) {
        fputs(*c == '\'' ? "''" : (char []) { *c, '\0' }, gnuplot);
    }
    fprintf(gnuplot, "-%s.png'\nset title \"%s\"\nset ylabel \"%s\"\n"
            "set yrange [0:]\nset grid ytics\n"
            "set key outside right top\n", name, title, ylabel);
    return gnuplot;
}

static void
end_plot(FILE *gnuplot)
{
    if (pclose(gnuplot)) {
        die("gnuplot failed");
    }
}

static void
bars(FILE *gnuplot)
{
    fprintf(gnuplot, "set style data histogram\n"
            "set style histogram cluster gap 1\nset style fill solid\n");
}

/* The best speed of each implementation on each trace. */
static void
plot_speeds(const struct bench *b, const char *prefix)
{
    char title[128];
    FILE *gnuplot;

    snprintf(title, sizeof title, "%zu IPv6 routes, one core, best batch size",
             b->n_prefixes);
    gnuplot = start_plot(prefix, "speed", title, "million lookups per second");
    bars(gnuplot);
    fprintf(gnuplot, "$data << END\ntrace");
    for (size_t i = 0; i < b->n_impls; i++) {
        fprintf(gnuplot, " %s", b->impls[i].name);
    }
    for (size_t t = 0; t < b->n_traces; t++) {
        fprintf(gnuplot, "\n%s", bench_trace_names[b->traces[t].type]);
        for (size_t i = 0; i < b->n_impls; i++) {
            fprintf(gnuplot, " %g", find_best(b, t, b->impls[i].name,
                                              0).speed->median);
        }
    }
    fprintf(gnuplot, "\nEND\nplot for [i=2:%zu] $data using i:xtic(1) "
            "title columnheader\n", b->n_impls + 1);
    end_plot(gnuplot);
}

/* The speed by batch size, inside the routes or else on the first trace. */
static void
plot_batches(const struct bench *b, const char *prefix)
{
    size_t t = find_trace(b, TRACE_INROUTE);
    char title[128];
    FILE *gnuplot;

    if (t >= b->n_traces) {
        t = 0;
    }
    snprintf(title, sizeof title, "%zu IPv6 routes, one core, trace %s",
             b->n_prefixes, bench_trace_names[b->traces[t].type]);
    gnuplot = start_plot(prefix, "batch", title, "million lookups per second");
    fprintf(gnuplot, "set xlabel \"batch size\"\nset logscale x 2\n"
            "set style data linespoints\n$data << END\nbatch");
    for (size_t i = 0; i < b->n_impls; i++) {
        fprintf(gnuplot, " %s", b->impls[i].name);
    }
    for (size_t k = 0; k < b->n_batches; k++) {
        fprintf(gnuplot, "\n%zu", b->batches[k]);
        for (size_t i = 0; i < b->n_impls; i++) {
            fprintf(gnuplot, " %g", bench_speed(b, t, i, k)->median);
        }
    }
    fprintf(gnuplot, "\nEND\nplot for [i=2:%zu] $data using 1:i "
            "title columnheader\n", b->n_impls + 1);
    end_plot(gnuplot);
}

static void
plot_latencies(const struct bench *b, const char *prefix)
{
    char title[128];
    FILE *gnuplot;

    snprintf(title, sizeof title, "%zu IPv6 routes, batches of 32 addresses "
             "inside the routes, in cache", b->n_prefixes);
    gnuplot = start_plot(prefix, "latency", title, "ns per batch");
    bars(gnuplot);
    fprintf(gnuplot, "set xtics rotate by -30\n"
            "$data << END\nimpl p50 p99 p99.9\n");
    for (size_t i = 0; i < b->n_latencies; i++) {
        const struct bench_latency *l = &b->latencies[i];

        if (l->cached) {
            fprintf(gnuplot, "%s %g %g %g\n", b->impls[l->impl].name,
                    l->median50, l->median99, l->median999);
        }
    }
    fprintf(gnuplot, "END\nplot for [i=2:4] $data using i:xtic(1) "
            "title columnheader\n");
    end_plot(gnuplot);
}

void
bench_plot(const struct bench *b, const char *prefix)
{
    plot_speeds(b, prefix);
    plot_batches(b, prefix);
    plot_latencies(b, prefix);
}
