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

#ifndef FIB_PARSE_H
#define FIB_PARSE_H 1

/* Route tables as other programs print them.
 *
 * A parser takes lines and hands out routes.  In most formats a route may be
 * several lines, so that it comes out, or what is wrong with it, only when a
 * later line or the end of the file shows that it is complete. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fib_format {
    FIB_AUTO,                   /* Not known yet. */
    FIB_PLAIN,                  /* Lines "PREFIX NEXTHOP". */
    FIB_LOCATION,               /* location dump */
    FIB_BGPDUMP,                /* bgpdump -m */
    FIB_IPROUTE,                /* ip -6 route */
    FIB_BIRD,                   /* birdc show route */
    FIB_FRR,                    /* vtysh -c 'show ipv6 route' */
    FIB_N_FORMATS
};
extern const char *const fib_format_names[FIB_N_FORMATS];

/* The longest name of a next hop, with its null byte. */
#define FIB_HOP_LEN 128

/* Names of next hops at which packets end. */
#define FIB_BLACKHOLE "blackhole"
#define FIB_UNREACHABLE "unreachable"
#define FIB_PROHIBIT "prohibit"
#define FIB_THROW "throw"
bool fib_hop_drops(const char *name);

enum fib_action {
    FIB_BETTER,                 /* Counts if its rank is less than that of
                                 * another route to the same prefix. */
    FIB_REPLACE,                /* Replaces an earlier one. */
    FIB_WITHDRAW                /* Removes an earlier one. */
};

struct fib_route {
    uint8_t addr[16];
    uint8_t plen;
    enum fib_action action;
    uint32_t rank;
    size_t line;                /* The line where it begins. */

    /* Next hops, "ADDRESS", "ADDRESS%DEVICE", "%DEVICE", one of the names
     * above, or any word. */
    char (*hops)[FIB_HOP_LEN];
    size_t n_hops, allocated_hops;
};

/* What else there was. */
struct fib_counts {
    size_t n_lines;
    size_t n_bad;               /* Bad lines. */
    size_t n_ipv4;              /* Routes that are for IPv4. */
    size_t n_local;             /* Routes to this host itself. */
    size_t n_unselected;        /* Routes that FRR does not use. */
    size_t n_no_origin;         /* Networks without an AS. */
    size_t n_other_peer;        /* Routes of other peers. */
};

struct fib_parser {
    /* To be set by the user. */
    enum fib_format format;
    const char *peer;           /* bgpdump: the one peer that counts. */
    bool hop_is_optional;       /* Plain: there may be prefixes alone. */
    void (*route)(void *aux, const struct fib_route *);
    void (*bad)(void *aux, size_t line, const char *problem);
    void *aux;

    struct fib_counts counts;

    /* Private. */
    enum fib_state {
        FIB_NONE,               /* Not in a route. */
        FIB_SKIP,               /* In one that does not count. */
        FIB_ROUTE               /* In 'current'. */
    } state;
    bool has_prefix;            /* 'current' has a prefix, also when it does
                                 * not count. */
    bool in_legend;
    bool is_recursive;
    struct fib_route current;
};

enum fib_format fib_guess(const char *line);
void fib_parser_line(struct fib_parser *, const char *line, size_t len);
void fib_parser_end(struct fib_parser *);

#endif /* fib-parse.h */
