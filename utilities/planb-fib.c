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

/* planb-fib: converts route tables, see planb-fib(1). */

#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fib-parse.h"
#include "prefix-file.h"
#include "util.h"

/* Next hops by name. */
struct hop {
    char *name;
    char *actions;              /* From --next-hops, or null. */
    uint32_t number;            /* 0 if no route has it yet. */
};

struct route {
    uint8_t addr[16];
    uint8_t plen;
    bool withdrawn;
    uint32_t rank;
    uint32_t hop;               /* Index into 'hops'. */
};

/* A hash table of indexes into an array, plus 1. */
struct index {
    uint32_t *slots;
    size_t mask;
};

struct converter {
    /* Options. */
    enum fib_format format;
    const char *output;
    const char *actions;
    const char *peer;
    uint64_t table, priority, spread;
    bool flows, strict, set, quiet;

    const char *file_name;
    size_t n_lines, n_bad, n_ipv4, n_local, n_unselected, n_no_origin;
    size_t n_other_peer, n_replaced, n_worse, n_withdrawn, n_ecmp;

    struct hop *hops;
    size_t n_hops, allocated_hops;
    struct index hop_index;

    struct route *routes;
    size_t n_routes, allocated_routes;
    struct index route_index;
};

static uint64_t
hash_bytes(const void *p_, size_t n, uint64_t hash)
{
    const uint8_t *p = p_;

    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return hash ^ hash >> 32;
}

static uint64_t
hash_prefix(const uint8_t addr[16], uint8_t plen)
{
    return hash_bytes(&plen, 1, hash_bytes(addr, 16, 14695981039346656037u));
}

static uint64_t
hash_name(const char *name)
{
    return hash_bytes(name, strlen(name), 14695981039346656037u);
}

static uint64_t
hash_element(const struct converter *c, const struct index *index, size_t i)
{
    return (index == &c->hop_index ? hash_name(c->hops[i].name)
            : hash_prefix(c->routes[i].addr, c->routes[i].plen));
}

/* Adds the element 'i' to 'index', which has all elements before it. */
static void
index_add(const struct converter *c, struct index *index, size_t i)
{
    size_t first = i;
    uint64_t h;

    if (!index->slots || i >= index->mask / 2) {
        index->mask = index->slots ? index->mask * 4 + 3 : 1023;
        free(index->slots);
        index->slots = xcalloc(index->mask + 1, sizeof *index->slots);
        first = 0;
    }
    for (; first <= i; first++) {
        for (h = hash_element(c, index, first); index->slots[h & index->mask];
             h++) {
            continue;
        }
        index->slots[h & index->mask] = first + 1;
    }
}

/* Returns the index of the next hop called 'name'. */
static size_t
intern_hop(struct converter *c, const char *name)
{
    const struct index *index = &c->hop_index;
    struct hop *hop;

    if (index->slots) {
        for (uint64_t h = hash_name(name); index->slots[h & index->mask];
             h++) {
            size_t i = index->slots[h & index->mask] - 1;

            if (!strcmp(c->hops[i].name, name)) {
                return i;
            }
        }
    }
    c->hops = grow(c->hops, c->n_hops, &c->allocated_hops, sizeof *c->hops);
    hop = &c->hops[c->n_hops];
    memset(hop, 0, sizeof *hop);
    hop->name = xstrdup(name);
    index_add(c, &c->hop_index, c->n_hops);
    return c->n_hops++;
}

static struct route *
find_route(const struct converter *c, const uint8_t addr[16], uint8_t plen)
{
    const struct index *index = &c->route_index;

    if (index->slots) {
        for (uint64_t h = hash_prefix(addr, plen);
             index->slots[h & index->mask]; h++) {
            struct route *r = &c->routes[index->slots[h & index->mask] - 1];

            if (r->plen == plen && !memcmp(r->addr, addr, sizeof r->addr)) {
                return r;
            }
        }
    }
    return NULL;
}

static int
compare_strings(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Returns the next hop of the new route 'r': the first, or the set of all,
 * sorted, so that equal sets have equal names. */
static size_t
choose_hop(struct converter *c, const struct fib_route *r)
{
    size_t i, hop;
    char *name, *p;

    if (c->spread) {
        char number[32];

        snprintf(number, sizeof number, "%u", (unsigned int)
                 (hash_prefix(r->addr, r->plen) % c->spread));
        return intern_hop(c, number);
    }
    if (!c->set || r->n_hops == 1) {
        return intern_hop(c, r->hops[0]);
    }
    qsort(r->hops, r->n_hops, sizeof *r->hops, compare_strings);
    p = name = xmalloc(r->n_hops * sizeof *r->hops);
    for (i = 0; i < r->n_hops; i++) {
        p += sprintf(p, "%s%s", i ? "," : "", r->hops[i]);
    }
    hop = intern_hop(c, name);
    free(name);
    return hop;
}

static void
add_route(void *c_, const struct fib_route *new)
{
    struct converter *c = c_;
    struct route *r = find_route(c, new->addr, new->plen);

    if (new->action == FIB_WITHDRAW) {
        if (r && !r->withdrawn) {
            r->withdrawn = true;
            c->n_withdrawn++;
        }
        return;
    }
    c->n_ecmp += new->n_hops > 1;
    if (!r) {
        c->routes = grow(c->routes, c->n_routes, &c->allocated_routes,
                         sizeof *c->routes);
        r = &c->routes[c->n_routes];
        memcpy(r->addr, new->addr, sizeof r->addr);
        r->plen = new->plen;
        index_add(c, &c->route_index, c->n_routes);
        c->n_routes++;
    } else if (r->withdrawn) {
        /* It is back. */
    } else if (new->action == FIB_REPLACE) {
        c->n_replaced++;
    } else {
        c->n_worse++;
        if (new->rank >= r->rank) {
            return;
        }
    }
    r->withdrawn = false;
    r->rank = new->rank;
    r->hop = choose_hop(c, new);
}

static void
bad_line(void *c_, size_t line, const char *problem)
{
    struct converter *c = c_;

    if (c->strict) {
        die("%s:%zu: %s", c->file_name, line, problem);
    }
    fprintf(stderr, "%s: %s:%zu: %s\n", program_name, c->file_name, line,
            problem);
}

struct line {
    char *s;
    size_t len;
};

/* Reads 'file_name' ("-" is the standard input).  While the format is unknown,
 * puts lines by. */
static void
read_file(struct converter *c, const char *file_name)
{
    FILE *file = strcmp(file_name, "-") ? fopen(file_name, "r") : stdin;
    size_t n_waiting = 0, allocated = 0, size = 0;
    struct fib_parser parser = {
        .format = c->format,
        .peer = c->peer,
        .hop_is_optional = c->spread != 0,
        .route = add_route,
        .bad = bad_line,
        .aux = c,
    };
    struct line *waiting = NULL;
    char *line = NULL;
    bool end = false;

    if (!file) {
        die("%s: %s", file_name, strerror(errno));
    }
    c->file_name = file == stdin ? "<stdin>" : file_name;
    while (!end) {
        ssize_t len;

        errno = 0;
        len = getline(&line, &size, file);
        if (len < 0) {
            if (errno || ferror(file)) {
                die("%s: %s", c->file_name, strerror(errno));
            }
            end = true;
        }
        if (parser.format == FIB_AUTO) {
            if (end) {
                /* Then every line is a bad one, and will be named. */
                parser.format = FIB_PLAIN;
            } else {
                struct line *w;

                waiting = grow(waiting, n_waiting, &allocated,
                               sizeof *waiting);
                w = &waiting[n_waiting++];
                w->s = xmalloc(len + 1);
                memcpy(w->s, line, len + 1);
                w->len = len;
                w->s[strcspn(w->s, "\r\n")] = '\0';
                parser.format = fib_guess(w->s);
                memcpy(w->s, line, len + 1);
            }
            if (parser.format != FIB_AUTO) {
                for (size_t i = 0; i < n_waiting; i++) {
                    fib_parser_line(&parser, waiting[i].s, waiting[i].len);
                    free(waiting[i].s);
                }
                n_waiting = 0;
            }
        } else if (!end) {
            fib_parser_line(&parser, line, len);
        }
    }
    fib_parser_end(&parser);
    free(waiting);
    free(line);
    if (file != stdin) {
        fclose(file);
    }

    c->n_lines += parser.counts.n_lines;
    c->n_bad += parser.counts.n_bad;
    c->n_ipv4 += parser.counts.n_ipv4;
    c->n_local += parser.counts.n_local;
    c->n_unselected += parser.counts.n_unselected;
    c->n_no_origin += parser.counts.n_no_origin;
    c->n_other_peer += parser.counts.n_other_peer;
}

/* Reads the file for --next-hops: lines "NEXTHOP ACTIONS". */
static void
read_next_hops(struct converter *c, const char *file_name)
{
    FILE *file = fopen(file_name, "r");
    size_t size = 0, line_number = 0;
    char *line = NULL;

    if (!file) {
        die("%s: %s", file_name, strerror(errno));
    }
    while (errno = 0, getline(&line, &size, file) >= 0) {
        static const char spaces[] = " \t";
        char *name, *actions;
        size_t hop;

        line_number++;
        line[strcspn(line, "\r\n")] = '\0';
        name = line + strspn(line, spaces);
        if (!*name || *name == '#') {
            continue;
        }
        actions = name + strcspn(name, spaces);
        if (*actions) {
            *actions++ = '\0';
            actions += strspn(actions, spaces);
        }
        if (!*actions) {
            die("%s:%zu: no actions after next hop %s", file_name,
                line_number, name);
        }
        hop = intern_hop(c, name);
        if (c->hops[hop].actions) {
            die("%s:%zu: next hop %s is there twice", file_name, line_number,
                name);
        }
        c->hops[hop].actions = xstrdup(actions);
    }
    if (errno) {
        die("%s: %s", file_name, strerror(errno));
    }
    free(line);
    fclose(file);
}

/* Gives every next hop of a route a number: its name, if all of them are
 * numbers, otherwise from 1 up.  Returns whether they are, and stores how many
 * routes and next hops there are. */
static bool
number_hops(struct converter *c, size_t *n_routesp, size_t *n_hopsp)
{
    bool *used = xcalloc(c->n_hops, sizeof *used);
    size_t n_routes = 0, n_hops = 0;
    bool numeric = true;
    uint64_t number;

    for (size_t i = 0; i < c->n_routes; i++) {
        const struct route *r = &c->routes[i];

        if (!r->withdrawn) {
            struct hop *hop = &c->hops[r->hop];

            n_routes++;
            if (!used[r->hop]) {
                used[r->hop] = true;
                hop->number = ++n_hops;
                numeric = (numeric
                           && parse_number(hop->name, UINT32_MAX, &number));
            }
        }
    }
    for (size_t i = 0; numeric && i < c->n_hops; i++) {
        if (used[i]) {
            parse_number(c->hops[i].name, UINT32_MAX, &number);
            c->hops[i].number = number;
        }
    }
    free(used);
    *n_routesp = n_routes;
    *n_hopsp = n_hops;
    return numeric;
}

static void
write_prefixes(const struct converter *c, bool numeric, FILE *out)
{
    char s[PREFIX_STRLEN];

    if (!numeric) {
        bool *written = xcalloc(c->n_hops, sizeof *written);

        for (size_t i = 0; i < c->n_routes; i++) {
            const struct route *r = &c->routes[i];

            if (!r->withdrawn && !written[r->hop]) {
                written[r->hop] = true;
                fprintf(out, "# %u is %s\n", c->hops[r->hop].number,
                        c->hops[r->hop].name);
            }
        }
        free(written);
    }
    for (size_t i = 0; i < c->n_routes; i++) {
        const struct route *r = &c->routes[i];

        if (!r->withdrawn) {
            fprintf(out, "%s %u\n", prefix_format(r->addr, r->plen, s),
                    c->hops[r->hop].number);
        }
    }
}

/* Stores in '*s' and '*len' what takes the place of the word in braces at 't',
 * for the route 'r'.  'number' and 'prefix' are space for it.  Returns a null
 * pointer if successful, otherwise says what is wrong. */
static const char *
expand_word(const char *t, const struct hop *hop, const struct route *r,
            char number[16], char prefix[PREFIX_STRLEN], const char **s,
            int *len)
{
    const char *percent = strchr(hop->name, '%');
    size_t n = strcspn(t, "}") + 1;

    if (!strncmp(t, "{nexthop}", n)) {
        *s = hop->name;
    } else if (!strncmp(t, "{number}", n)) {
        snprintf(number, 16, "%u", hop->number);
        *s = number;
    } else if (!strncmp(t, "{prefix}", n)) {
        *s = prefix_format(r->addr, r->plen, prefix);
    } else if (!strncmp(t, "{address}", n)) {
        *s = hop->name;
        *len = strcspn(hop->name, "%");
        return (*len && !strchr(hop->name, ',') ? NULL
                : "has no address, or several, for {address}");
    } else if (!strncmp(t, "{device}", n)) {
        *s = percent ? percent + 1 : "";
        *len = strlen(*s);
        return (*len && !strchr(hop->name, ',') ? NULL
                : "has no device, or several, for {device}");
    } else {
        return "has actions with other words in braces than {nexthop}, "
               "{address}, {device}, {number} and {prefix}";
    }
    *len = strlen(*s);
    return NULL;
}

/* Returns the actions of 'hop', or a null pointer if there are none. */
static const char *
hop_actions(const struct converter *c, const struct hop *hop)
{
    return (hop->actions ? hop->actions
            : fib_hop_drops(hop->name) ? "drop" : c->actions);
}

/* Writes the flow of 'r' to 'out', or if that is null, only looks whether it
 * can be done. */
static void
write_flow(const struct converter *c, const struct route *r, FILE *out)
{
    const struct hop *hop = &c->hops[r->hop];
    const char *t = hop_actions(c, hop);
    char number[16], prefix[PREFIX_STRLEN];

    if (out) {
        fprintf(out, "table=%u,priority=%u,ipv6,ipv6_dst=%s,actions=",
                (unsigned int) c->table,
                (unsigned int) c->priority + r->plen,
                prefix_format(r->addr, r->plen, prefix));
    } else if (!t) {
        die("no actions for next hop %s: give --actions, or a line for it in "
            "a file for --next-hops", hop->name);
    }
    while (*t) {
        const char *s = t;
        int len = strcspn(t, "{");

        if (len) {
            t += len;
        } else {
            const char *problem = expand_word(t, hop, r, number, prefix, &s,
                                              &len);

            if (problem) {
                die("next hop %s %s", hop->name, problem);
            }
            t += strcspn(t, "}") + 1;
        }
        if (out) {
            fwrite(s, 1, len, out);
        }
    }
    if (out) {
        putc('\n', out);
    }
}

static void
write_flows(const struct converter *c, FILE *out)
{
    for (size_t i = 0; i < c->n_routes; i++) {
        if (!c->routes[i].withdrawn) {
            write_flow(c, &c->routes[i], out);
        }
    }
}

static void
print_count(size_t n, const char *what)
{
    if (n) {
        fprintf(stderr, ", %zu %s", n, what);
    }
}

static void
usage(void)
{
    printf("\
Usage: %s [OPTION...] [FILE...]\n\
Converts IPv6 route tables, from FILEs or the standard input, to a prefix file\n\
or to OpenFlow flows.\n\
\n\
  -f, --format=FORMAT   what the input is: auto (default), plain, location,\n\
                        bgpdump, iproute, bird or frr\n\
  -o, --output=FILE     write to FILE instead of the standard output\n\
  -s, --strict          stop at the first bad line\n\
  -q, --quiet           do not tell how many routes there were\n\
      --peer=ADDRESS    bgpdump: take the routes of this peer alone\n\
      --ecmp=first|set  of several next hops, take the first (default), or all\n\
                        as a next hop of its own\n\
      --spread=N        give each route one of the next hops 0 to N - 1\n\
\n\
  -F, --flows           write flows for \"ovs-ofctl add-flows\"\n\
      --table=N         into table N (default: 10)\n\
      --priority=BASE   of priority BASE + prefix length (default: 1000)\n\
      --actions=ACTIONS with these actions; {nexthop}, {address}, {device},\n\
                        {number} and {prefix} are replaced\n\
      --next-hops=FILE  lines \"NEXTHOP ACTIONS\" in FILE go before --actions\n\
\n\
  -h, --help            show this text\n\
  -V, --version         show the version\n", program_name);
}

int
main(int argc, char *argv[])
{
    enum {
        OPT_PEER = 256, OPT_ECMP, OPT_SPREAD, OPT_TABLE, OPT_PRIORITY,
        OPT_ACTIONS, OPT_NEXT_HOPS
    };
    static const struct option options[] = {
        { "format", required_argument, NULL, 'f' },
        { "output", required_argument, NULL, 'o' },
        { "strict", no_argument, NULL, 's' },
        { "quiet", no_argument, NULL, 'q' },
        { "peer", required_argument, NULL, OPT_PEER },
        { "ecmp", required_argument, NULL, OPT_ECMP },
        { "spread", required_argument, NULL, OPT_SPREAD },
        { "flows", no_argument, NULL, 'F' },
        { "table", required_argument, NULL, OPT_TABLE },
        { "priority", required_argument, NULL, OPT_PRIORITY },
        { "actions", required_argument, NULL, OPT_ACTIONS },
        { "next-hops", required_argument, NULL, OPT_NEXT_HOPS },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { NULL, 0, NULL, 0 }
    };
    struct converter c = { .table = 10, .priority = 1000 };
    const char *flow_option = NULL, *next_hops = NULL;
    char peer[INET6_ADDRSTRLEN];
    size_t n_routes, n_hops;
    FILE *out = stdout;
    bool numeric;
    int opt;

    program_name = "planb-fib";
    while ((opt = getopt_long(argc, argv, "f:o:sqFhV", options, NULL)) >= 0) {
        uint8_t addr[16];
        int family;

        switch (opt) {
        case 'f':
            for (c.format = 0; c.format < FIB_N_FORMATS; c.format++) {
                if (!strcmp(optarg, fib_format_names[c.format])) {
                    break;
                }
            }
            if (c.format == FIB_N_FORMATS) {
                die("--format=%s: must be auto, plain, location, bgpdump, "
                    "iproute, bird or frr", optarg);
            }
            break;
        case 'o':
            c.output = optarg;
            break;
        case 's':
            c.strict = true;
            break;
        case 'q':
            c.quiet = true;
            break;
        case OPT_PEER:
            family = strchr(optarg, ':') ? AF_INET6 : AF_INET;
            if (inet_pton(family, optarg, addr) != 1) {
                die("--peer=%s: must be an address", optarg);
            }
            inet_ntop(family, addr, peer, sizeof peer);
            c.peer = peer;
            break;
        case OPT_ECMP:
            if (strcmp(optarg, "first") && strcmp(optarg, "set")) {
                die("--ecmp=%s: must be first or set", optarg);
            }
            c.set = !strcmp(optarg, "set");
            break;
        case OPT_SPREAD:
            c.spread = parse_option("spread", optarg, 1, UINT32_MAX);
            break;
        case 'F':
            c.flows = true;
            break;
        case OPT_TABLE:
            c.table = parse_option("table", optarg, 0, 254);
            flow_option = "table";
            break;
        case OPT_PRIORITY:
            c.priority = parse_option("priority", optarg, 0, 65535 - 128);
            flow_option = "priority";
            break;
        case OPT_ACTIONS:
            if (!*optarg || strpbrk(optarg, "\r\n")) {
                die("--actions: must be one line, and not empty");
            }
            c.actions = optarg;
            flow_option = "actions";
            break;
        case OPT_NEXT_HOPS:
            next_hops = optarg;
            flow_option = "next-hops";
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
    if (flow_option && !c.flows) {
        die("--%s is of use with --flows only", flow_option);
    }
    if (c.flows && !c.actions && !next_hops) {
        die("--flows needs --actions, --next-hops, or both");
    }

    if (next_hops) {
        read_next_hops(&c, next_hops);
    }
    if (optind >= argc) {
        read_file(&c, "-");
    }
    for (int i = optind; i < argc; i++) {
        read_file(&c, argv[i]);
    }
    numeric = number_hops(&c, &n_routes, &n_hops);
    if (!c.quiet || c.n_bad) {
        fprintf(stderr, "%s: %zu routes, %zu next hops", program_name,
                n_routes, n_hops);
        print_count(c.n_ecmp, "with several next hops");
        print_count(c.n_worse, "worse than another to the same prefix");
        print_count(c.n_replaced, "replaced by a later line");
        print_count(c.n_withdrawn, "withdrawn");
        print_count(c.n_ipv4, "IPv4 routes ignored");
        print_count(c.n_local, "routes to the host itself ignored");
        print_count(c.n_unselected, "routes not selected by FRR ignored");
        print_count(c.n_no_origin, "networks without AS ignored");
        print_count(c.n_other_peer, "routes of other peers ignored");
        fprintf(stderr, ", %zu bad lines\n", c.n_bad);
    }
    if (!n_routes) {
        die("no routes");
    }

    if (c.flows) {
        write_flows(&c, NULL);
    }
    if (c.output) {
        out = fopen(c.output, "w");
        if (!out) {
            die("%s: %s", c.output, strerror(errno));
        }
    }
    if (c.flows) {
        write_flows(&c, out);
    } else {
        write_prefixes(&c, numeric, out);
    }
    if (fflush(out) || ferror(out) || (out != stdout && fclose(out))) {
        die("%s: %s", c.output ? c.output : "standard output",
            strerror(errno));
    }

    for (size_t i = 0; i < c.n_hops; i++) {
        free(c.hops[i].name);
        free(c.hops[i].actions);
    }
    free(c.hops);
    free(c.routes);
    free(c.hop_index.slots);
    free(c.route_index.slots);
    return 0;
}
