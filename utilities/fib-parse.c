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

#include "fib-parse.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prefix-file.h"
#include "util.h"

const char *const fib_format_names[FIB_N_FORMATS] = {
    [FIB_AUTO] = "auto",
    [FIB_PLAIN] = "plain",
    [FIB_LOCATION] = "location",
    [FIB_BGPDUMP] = "bgpdump",
    [FIB_IPROUTE] = "iproute",
    [FIB_BIRD] = "bird",
    [FIB_FRR] = "frr",
};

#define NOT_A_PREFIX "no IPv6 prefix where one belongs"

/* Words. */

static bool
is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Cuts the next word off '*s' and returns it, or a null pointer if there is
 * none.  Commas and what surrounds the next hops of "ip -o" separate words as
 * spaces do. */
static char *
next_word(char **s)
{
    static const char separators[] = " \t,\\";
    char *word = *s + strspn(*s, separators);

    if (!*word) {
        *s = word;
        return NULL;
    }
    *s = word + strcspn(word, separators);
    if (**s) {
        *(*s)++ = '\0';
    }
    return word;
}

static bool
equals_any(const char *word, const char *const list[])
{
    while (*list && strcmp(word, *list)) {
        list++;
    }
    return *list != NULL;
}

static bool
starts_with(const char *s, const char *start)
{
    return !strncmp(s, start, strlen(start));
}

static bool
is_ipv4(const char *s)
{
    char copy[INET_ADDRSTRLEN];
    size_t len = strcspn(s, "/");
    struct in_addr addr;

    if (len >= sizeof copy) {
        return false;
    }
    memcpy(copy, s, len);
    copy[len] = '\0';
    return inet_pton(AF_INET, copy, &addr) == 1;
}

bool
fib_hop_drops(const char *name)
{
    static const char *const drops[] = {
        FIB_BLACKHOLE, FIB_UNREACHABLE, FIB_PROHIBIT, FIB_THROW, NULL
    };

    return equals_any(name, drops);
}

/* Routes under construction. */

static void
bad_line(struct fib_parser *p, size_t line, const char *problem)
{
    p->counts.n_bad++;
    p->bad(p->aux, line, problem);
}

/* Hands out the route that 'p' is in, if any, and leaves it. */
static void
finish_route(struct fib_parser *p)
{
    if (p->state == FIB_ROUTE) {
        if (p->current.n_hops || p->current.action == FIB_WITHDRAW) {
            p->route(p->aux, &p->current);
        } else if (p->format == FIB_LOCATION) {
            p->counts.n_no_origin++;
        } else {
            bad_line(p, p->current.line, "a route without next hop");
        }
    }
    p->state = FIB_NONE;
}

/* Leaves the route that 'p' is in without handing it out, as its lines have
 * something wrong.  Further lines of it do not count. */
static void
drop_route(struct fib_parser *p, const char *problem)
{
    bad_line(p, p->counts.n_lines, problem);
    p->state = FIB_SKIP;
}

/* Begins a route to the prefix 'word', after finishing the one before.  If the
 * state afterward is not FIB_ROUTE, it does not count, and has been dealt with.
 * If 'bare' is true, addresses without length are prefixes as well. */
static void
begin_route(struct fib_parser *p, const char *word, bool bare)
{
    const char *problem;

    finish_route(p);
    p->current.line = p->counts.n_lines;
    p->current.action = FIB_BETTER;
    p->current.rank = 0;
    p->current.n_hops = 0;
    p->is_recursive = false;

    if (word && is_ipv4(word)) {
        p->counts.n_ipv4++;
        p->has_prefix = false;
        p->state = FIB_SKIP;
        return;
    }
    if (!word) {
        problem = NOT_A_PREFIX;
    } else if (bare && !strchr(word, '/')) {
        problem = (inet_pton(AF_INET6, word, p->current.addr) == 1
                   ? NULL : NOT_A_PREFIX);
        p->current.plen = 128;
    } else {
        problem = prefix_parse(word, p->current.addr, &p->current.plen);
    }
    p->has_prefix = !problem;
    if (problem) {
        drop_route(p, problem);
    } else {
        p->state = FIB_ROUTE;
    }
}

/* Adds a next hop that is called 'address' (if it is not null) and 'device'
 * (the same) to the current route.  Returns a null pointer if successful,
 * otherwise says what is wrong. */
static const char *
add_hop(struct fib_parser *p, const char *address, const char *device)
{
    struct fib_route *r = &p->current;
    int n;

    r->hops = grow(r->hops, r->n_hops, &r->allocated_hops, sizeof *r->hops);
    n = snprintf(r->hops[r->n_hops], sizeof *r->hops, "%s%s%s",
                 address ? address : "", device ? "%" : "",
                 device ? device : "");
    if (n >= sizeof *r->hops) {
        return "the name of a next hop is too long";
    }
    for (size_t i = 0; i < r->n_hops; i++) {
        if (!strcmp(r->hops[i], r->hops[r->n_hops])) {
            return NULL;
        }
    }
    r->n_hops++;
    return NULL;
}

/* Converts the address 'word' to the one way of writing it, in 'address'. */
static const char *
parse_address(const char *word, char address[INET6_ADDRSTRLEN])
{
    int family = word && strchr(word, ':') ? AF_INET6 : AF_INET;
    uint8_t binary[16];

    if (!word || inet_pton(family, word, binary) != 1) {
        return "no address where that of a next hop belongs";
    }
    inet_ntop(family, binary, address, INET6_ADDRSTRLEN);
    return NULL;
}

/* Lists of "PREFIX NEXTHOP". */

static void
plain_line(struct fib_parser *p, char *s)
{
    char *word, *hops, *save = NULL;

    s[strcspn(s, "#")] = '\0';
    word = strtok_r(s, " \t", &save);
    if (!word) {
        return;
    }
    begin_route(p, word, false);
    if (p->state != FIB_ROUTE) {
        return;
    }
    p->current.action = FIB_REPLACE;

    hops = strtok_r(NULL, " \t", &save);
    if (!hops && p->hop_is_optional) {
        add_hop(p, "0", NULL);
    } else if (hops && strtok_r(NULL, " \t", &save)) {
        drop_route(p, "more than a prefix and a next hop");
        return;
    }
    for (save = NULL; hops; hops = NULL) {
        for (word = strtok_r(hops, ",", &save); word;
             word = strtok_r(NULL, ",", &save)) {
            char address[INET6_ADDRSTRLEN];
            bool is_address = !parse_address(word, address);
            const char *problem = add_hop(p, is_address ? address : word,
                                          NULL);

            if (problem) {
                drop_route(p, problem);
                return;
            }
        }
    }
    finish_route(p);
}

/* The output of "location dump": blocks of "KEY: VALUE" lines with empty lines
 * between, of which those that begin with "net:" describe networks. */

static void
location_line(struct fib_parser *p, char *s)
{
    char *value = strchr(s, ':');
    char *word, *rest;

    if (*s == '#') {
        return;
    }
    if (!s[strspn(s, " \t")]) {
        finish_route(p);
        return;
    }
    if (!value || is_space(*s)) {
        bad_line(p, p->counts.n_lines, "not of the form \"KEY: VALUE\"");
        return;
    }
    *value++ = '\0';
    rest = value;
    word = next_word(&rest);
    if (!strcmp(s, "net")) {
        begin_route(p, word, false);
        if (p->state == FIB_ROUTE) {
            p->current.action = FIB_REPLACE;
        }
    } else if (!strcmp(s, "aut-num") && p->state == FIB_ROUTE) {
        uint64_t as;

        if (word && starts_with(word, "AS")) {
            word += 2;
        }
        if (!word || !parse_number(word, UINT32_MAX, &as)) {
            drop_route(p, "no AS number where one belongs");
        } else {
            add_hop(p, word, NULL);
        }
    }
}

/* The output of "bgpdump -m": fields between bars. */

static void
bgpdump_line(struct fib_parser *p, char *s)
{
    enum { TYPE, ACTION = 2, PEER, PREFIX = 5, NEXT_HOP = 8, N_FIELDS };
    char *fields[N_FIELDS];
    char address[INET6_ADDRSTRLEN];
    const char *problem;
    bool withdraw;
    int n = 0;

    if (!*s) {
        return;
    }
    while (n < N_FIELDS && s) {
        fields[n++] = s;
        s = strchr(s, '|');
        if (s) {
            *s++ = '\0';
        }
    }
    if (n <= ACTION || (!starts_with(fields[TYPE], "TABLE_DUMP")
                        && !starts_with(fields[TYPE], "BGP4MP"))) {
        bad_line(p, p->counts.n_lines, "not a line of \"bgpdump -m\"");
        return;
    }
    if (!strcmp(fields[ACTION], "STATE")) {
        return;
    }
    withdraw = !strcmp(fields[ACTION], "W");
    if (!withdraw && strcmp(fields[ACTION], "A")
        && strcmp(fields[ACTION], "B")) {
        bad_line(p, p->counts.n_lines, "neither an announcement nor a "
                 "withdrawal");
        return;
    }
    if (n < (withdraw ? PREFIX + 1 : N_FIELDS)) {
        bad_line(p, p->counts.n_lines, "too few fields");
        return;
    }

    begin_route(p, fields[PREFIX], false);
    if (p->state != FIB_ROUTE) {
        return;
    }
    if (p->peer) {
        problem = parse_address(fields[PEER], address);
        if (problem) {
            drop_route(p, "no address where that of the peer belongs");
            return;
        } else if (strcmp(address, p->peer)) {
            p->counts.n_other_peer++;
            p->state = FIB_SKIP;
            return;
        }
    }
    if (withdraw) {
        p->current.action = FIB_WITHDRAW;
    } else {
        p->current.action = (fields[ACTION][0] == 'A' ? FIB_REPLACE
                             : FIB_BETTER);
        problem = parse_address(fields[NEXT_HOP], address);
        if (!problem) {
            problem = add_hop(p, address, NULL);
        }
        if (problem) {
            drop_route(p, problem);
            return;
        }
    }
    finish_route(p);
}

/* The output of "ip -6 route": the next hops of a route follow in its line or
 * in lines of their own that begin with space. */

static const char *const iproute_types[] = {
    "unicast", FIB_BLACKHOLE, FIB_UNREACHABLE, FIB_PROHIBIT, FIB_THROW,
    "local", "anycast", "multicast", "broadcast", NULL
};

/* Parses the attributes of a route and its next hops in 's'. */
static void
iproute_attributes(struct fib_parser *p, char *s)
{
    char address[INET6_ADDRSTRLEN];
    const char *device = NULL;
    const char *problem = NULL;
    bool has_address = false;

    while (!problem) {
        char *word = next_word(&s);

        if (!word || !strcmp(word, "nexthop")) {
            if (has_address || device) {
                problem = add_hop(p, has_address ? address : NULL, device);
            }
            has_address = false;
            device = NULL;
            if (!word) {
                break;
            }
        } else if (!strcmp(word, "via")) {
            word = next_word(&s);
            if (word && (!strcmp(word, "inet6") || !strcmp(word, "inet"))) {
                word = next_word(&s);
            }
            problem = parse_address(word, address);
            has_address = true;
        } else if (!strcmp(word, "dev")) {
            device = next_word(&s);
            if (!device) {
                problem = "no name after \"dev\"";
            }
        } else if (!strcmp(word, "metric")) {
            uint64_t metric;

            word = next_word(&s);
            if (!word || !parse_number(word, UINT32_MAX, &metric)) {
                problem = "no number after \"metric\"";
            } else {
                p->current.rank = metric;
            }
        } else if (!strcmp(word, "from")) {
            word = next_word(&s);
            if (!word || (strcmp(word, "::/0") && strcmp(word, "default")
                          && strcmp(word, "all"))) {
                problem = "a route for some source addresses only";
            }
        } else if (!strcmp(word, "encap")) {
            problem = "a route with an encapsulation";
        }
    }
    if (problem) {
        drop_route(p, problem);
    }
}

/* Tells whether 's', what follows "default", is that of an IPv4 route. */
static bool
iproute_default_is_ipv4(const char *s)
{
    const char *via = strstr(s, "via ");

    return (via ? strspn(via + 4, "0123456789.") > 6
                  || starts_with(via + 4, "inet6 ")
            : strstr(s, " scope ") != NULL);
}

static void
iproute_line(struct fib_parser *p, char *s)
{
    bool continued = is_space(*s);
    const char *type = NULL;
    char *word;

    if (!s[strspn(s, " \t")]) {
        return;
    }
    if (continued) {
        char *rest = s + strspn(s, " \t");

        if (p->state == FIB_ROUTE && starts_with(rest, "nexthop ")) {
            iproute_attributes(p, rest);
        } else if (p->state == FIB_NONE) {
            bad_line(p, p->counts.n_lines, "a next hop without route");
        } else if (p->state == FIB_ROUTE && !starts_with(rest, "cache")) {
            drop_route(p, "neither a route nor a next hop");
        }
        return;
    }

    word = next_word(&s);
    if (word && equals_any(word, iproute_types)) {
        type = word;
        word = next_word(&s);
    }
    if (word && !strcmp(word, "default")) {
        begin_route(p, iproute_default_is_ipv4(s) ? "0.0.0.0" : "::/0", false);
    } else {
        begin_route(p, word, true);
    }
    if (p->state != FIB_ROUTE) {
        return;
    }
    if (type && fib_hop_drops(type)) {
        iproute_attributes(p, s);
        if (p->state == FIB_ROUTE) {
            p->current.n_hops = 0;
            add_hop(p, type, NULL);
        }
    } else if (type && strcmp(type, "unicast")) {
        p->counts.n_local++;
        p->state = FIB_SKIP;
    } else {
        iproute_attributes(p, s);
    }
}

/* The output of BIRD's "show route", of versions 1.6 to 3. */

/* What BIRD calls a route's type in place of a next hop, and the name of the
 * next hop that we make of it. */
static const char *
bird_drop(const char *word)
{
    return (!strcmp(word, "blackhole") ? FIB_BLACKHOLE
            : !strcmp(word, "unreachable") ? FIB_UNREACHABLE
            : !strcmp(word, "prohibited") || !strcmp(word, "prohibit")
            ? FIB_PROHIBIT : NULL);
}

/* Parses in 's' a next hop, "via ADDRESS on DEVICE ..." or "dev DEVICE ...",
 * whose first word is 'word'. */
static const char *
bird_hop(struct fib_parser *p, const char *word, char *s)
{
    char address[INET6_ADDRSTRLEN];
    bool has_address = false;
    const char *device;

    if (!strcmp(word, "via")) {
        const char *problem = parse_address(next_word(&s), address);

        if (problem) {
            return problem;
        }
        has_address = true;
        word = next_word(&s);
        if (!word || strcmp(word, "on")) {
            return "no device after a next hop";
        }
    }
    device = next_word(&s);
    if (!device) {
        return "no device after a next hop";
    }
    while ((word = next_word(&s)) && *word != '[') {
        if (!strcmp(word, "mpls")) {
            return "a route with an encapsulation";
        }
    }
    return add_hop(p, has_address ? address : NULL, device);
}

static bool
bird_is_type(const char *word)
{
    static const char *const types[] = {
        "unicast", "multipath", "via", "dev", NULL
    };

    return equals_any(word, types) || bird_drop(word);
}

/* Parses what follows the prefix: the route's type and, in BIRD 1, its next
 * hop, then where it comes from, in brackets, and "*" if BIRD uses it. */
static void
bird_route(struct fib_parser *p, char *s)
{
    char *origin = strchr(s, '[');
    const char *problem = NULL;
    const char *word;

    p->current.rank = !(origin && strstr(origin, "] * "));
    if (origin && origin > s && strlen(origin) >= 3
        && !strcmp(origin + strlen(origin) - 3, "] *")) {
        p->current.rank = 0;
    }
    word = next_word(&s);
    if (word && !strcmp(word, "from")) {
        word = next_word(&s);
        if (!word || strcmp(word, "::/0")) {
            problem = "a route for some source addresses only";
        }
        word = next_word(&s);
    }
    if (problem) {
        /* That is it. */
    } else if (!word || !bird_is_type(word)) {
        problem = "not a type of route";
    } else if (!origin) {
        problem = "a route without origin";
    } else if (bird_drop(word)) {
        problem = add_hop(p, bird_drop(word), NULL);
    } else if (!strcmp(word, "via") || !strcmp(word, "dev")) {
        problem = bird_hop(p, word, s);
    }
    if (problem) {
        drop_route(p, problem);
    }
}

static void
bird_line(struct fib_parser *p, char *s)
{
    char *rest = s;
    char *word;

    if (!s[strspn(s, " \t")]) {
        return;
    }
    if (!is_space(*s)) {
        static const char *const headers[] = {
            "BIRD ", "Table ", "Access restricted", "Network not ", NULL
        };

        for (int i = 0; headers[i]; i++) {
            if (starts_with(s, headers[i])) {
                finish_route(p);
                return;
            }
        }
        word = next_word(&rest);
        begin_route(p, word, false);
        if (p->state == FIB_ROUTE) {
            bird_route(p, rest);
        }
        return;
    }

    if (p->state == FIB_NONE) {
        bad_line(p, p->counts.n_lines, "a next hop without route");
        return;
    }
    s += strspn(s, " \t");
    word = xstrdup(s);
    word[strcspn(word, " \t")] = '\0';
    if (!bird_is_type(word)) {
        /* Attributes, as of "show route all", have a colon. */
        if (p->state == FIB_ROUTE && !strchr(s, ':')) {
            drop_route(p, "neither a route nor a next hop");
        }
    } else if (strchr(s, '[')) {
        /* Another route to the same prefix. */
        if (p->has_prefix) {
            char prefix[PREFIX_STRLEN];

            prefix_format(p->current.addr, p->current.plen, prefix);
            begin_route(p, prefix, false);
            bird_route(p, s);
        }
    } else if (p->state == FIB_ROUTE) {
        const char *problem = bird_hop(p, word, s + strlen(word));

        if (problem) {
            drop_route(p, problem);
        }
    }
    free(word);
}

/* The output of FRR's "show ipv6 route". */

/* Tells whether 'word' is an age, "01:02:03", "4d05h06m" or "7w1d02h". */
static bool
frr_is_age(const char *word)
{
    return (isdigit((unsigned char) *word)
            && strlen(word) >= 7
            && strspn(word, "0123456789:dwhmy") == strlen(word));
}

/* Parses a next hop in 's'. */
static void
frr_hop(struct fib_parser *p, char *s)
{
    char address[INET6_ADDRSTRLEN];
    bool has_address = false;
    const char *problem = NULL;
    const char *drop = NULL;
    const char *device = NULL;
    bool is_recursive = strstr(s, "(recursive") != NULL;
    bool is_other = (strstr(s, " inactive") || strstr(s, "(duplicate"));
    const char *word = next_word(&s);

    if (word && *word == '[') {
        word = next_word(&s);
    }
    if (word && !strcmp(word, "via")) {
        problem = parse_address(next_word(&s), address);
        has_address = true;
    } else if (word && !strcmp(word, "is")) {
        static const char connected[] = "directly connected";

        s += strspn(s, " ");
        if (!starts_with(s, connected)) {
            problem = "not a next hop";
        } else {
            s += strlen(connected);
        }
    } else if (word && !strcmp(word, "unreachable")) {
        drop = (strstr(s, "(blackhole") ? FIB_BLACKHOLE
                : strstr(s, "prohibited") ? FIB_PROHIBIT : FIB_UNREACHABLE);
    } else {
        problem = "not a next hop";
    }

    for (bool first = true; !problem && (word = next_word(&s));) {
        static const char *const no_devices[] = { "weight", "inactive", NULL };

        if (!strcmp(word, "label") || starts_with(word, "seg6")) {
            problem = "a route with an encapsulation";
        } else if (*word == '(') {
            while (word && !strchr(word, ')')) {
                word = next_word(&s);
            }
        } else if (first) {
            /* How old the route is ends the line, whether there is a device
             * or not. */
            if (!equals_any(word, no_devices) && !frr_is_age(word)) {
                device = word;
            }
            first = false;
        }
    }
    if (!problem && !has_address && !drop && !device) {
        problem = "no device after a next hop";
    }
    if (device && !strcmp(device, "Null0")) {
        drop = FIB_BLACKHOLE;
    }
    if (!problem && !is_other) {
        /* The next hops that a recursive one resolves to take its place. */
        if (p->is_recursive && !is_recursive) {
            p->current.n_hops = 0;
            p->is_recursive = false;
        } else if (is_recursive) {
            if (p->current.n_hops && !p->is_recursive) {
                return;
            }
            p->is_recursive = true;
        }
        problem = (drop ? add_hop(p, drop, NULL)
                   : add_hop(p, has_address ? address : NULL, device));
    }
    if (problem) {
        drop_route(p, problem);
    }
}

/* Returns the prefix in 's', the line of a route, or a null pointer if it is
 * none.  Before the prefix there are letters for where the route comes from
 * and what became of it. */
static char *
frr_find_prefix(char *s, bool *selected)
{
    char *slash = strchr(s, '/');
    char *prefix;

    if (!isalpha((unsigned char) *s) || !slash) {
        return NULL;
    }
    for (prefix = slash; prefix > s && !is_space(prefix[-1]); prefix--) {
        continue;
    }
    *selected = false;
    for (const char *c = s; c < prefix; c++) {
        *selected |= *c == '>';
        if (c - s > 16 || (c > s && !strchr(" >*qrbto[]0123456789", *c))) {
            return NULL;
        }
    }
    return prefix - s >= 2 ? prefix : NULL;
}

static void
frr_line(struct fib_parser *p, char *s)
{
    bool selected;
    char *prefix;

    if (!s[strspn(s, " \t")]) {
        p->in_legend = false;
        finish_route(p);
        return;
    }
    if (starts_with(s, "Codes:")) {
        finish_route(p);
        p->in_legend = true;
        return;
    }
    prefix = frr_find_prefix(s, &selected);
    if (prefix) {
        char *rest = prefix;

        p->in_legend = false;
        begin_route(p, next_word(&rest), false);
        if (p->state == FIB_ROUTE) {
            if (selected) {
                frr_hop(p, rest);
            } else {
                p->counts.n_unselected++;
                p->state = FIB_SKIP;
            }
        }
    } else if (p->in_legend) {
        return;
    } else if (is_space(*s)) {
        if (p->state == FIB_ROUTE) {
            frr_hop(p, s + strspn(s, " \t>*qrbto"));
        } else if (p->state == FIB_NONE) {
            bad_line(p, p->counts.n_lines, "a next hop without route");
        }
    } else {
        size_t len = strlen(s);

        finish_route(p);
        if (s[len - 1] != ':' || !strstr(s, "VRF ")) {
            bad_line(p, p->counts.n_lines, "not a route");
        }
    }
}

/* Returns the format of a file that has 'line' in it, or FIB_AUTO if that
 * could be more than one. */
enum fib_format
fib_guess(const char *line)
{
    static const char *const iproute_keys[] = {
        "via", "dev", "proto", "metric", "nhid", "encap", "from", "table",
        "scope", "src", "expires", "error", "pref", NULL
    };
    enum fib_format format = FIB_AUTO;
    char *copy, *rest, *first, *second;
    bool selected;

    if (starts_with(line, "TABLE_DUMP") || starts_with(line, "BGP4MP")) {
        return FIB_BGPDUMP;
    } else if (starts_with(line, "# Location Database Export")
               || starts_with(line, "aut-num:") || starts_with(line, "net:")) {
        return FIB_LOCATION;
    } else if (starts_with(line, "BIRD ") || starts_with(line, "Table ")
               || starts_with(line, "Access restricted")) {
        return FIB_BIRD;
    } else if (starts_with(line, "Codes:")) {
        return FIB_FRR;
    } else if (is_space(*line) || *line == '#') {
        return FIB_AUTO;
    }

    copy = rest = xstrdup(line);
    rest[strcspn(rest, "#")] = '\0';
    first = next_word(&rest);
    second = first ? next_word(&rest) : NULL;
    if (first) {
        bool is_prefix = (strchr(first, '/')
                          && (strchr(first, ':') || is_ipv4(first)));

        if (!strcmp(first, "default") || equals_any(first, iproute_types)) {
            format = FIB_IPROUTE;
        } else if (is_prefix && second && bird_is_type(second)
                   && strchr(rest, '[')) {
            format = FIB_BIRD;
        } else if ((is_prefix || strchr(first, ':') || is_ipv4(first))
                   && second && *rest && equals_any(second, iproute_keys)) {
            format = FIB_IPROUTE;
        } else if (is_prefix) {
            format = FIB_PLAIN;
        }
    }
    free(copy);
    if (format == FIB_AUTO) {
        copy = xstrdup(line);
        if (frr_find_prefix(copy, &selected)) {
            format = FIB_FRR;
        }
        free(copy);
    }
    return format;
}

/* Takes the next line, 'len' bytes at 'line', with or without its line
 * feed. */
void
fib_parser_line(struct fib_parser *p, const char *line, size_t len)
{
    static void (*const functions[FIB_N_FORMATS])(struct fib_parser *,
                                                  char *) = {
        [FIB_AUTO] = plain_line,
        [FIB_PLAIN] = plain_line,
        [FIB_LOCATION] = location_line,
        [FIB_BGPDUMP] = bgpdump_line,
        [FIB_IPROUTE] = iproute_line,
        [FIB_BIRD] = bird_line,
        [FIB_FRR] = frr_line,
    };
    char *copy;

    p->counts.n_lines++;
    while (len && strchr("\r\n", line[len - 1]) && line[len - 1]) {
        len--;
    }
    if (memchr(line, '\0', len)) {
        bad_line(p, p->counts.n_lines, "null byte");
        return;
    }
    copy = xmalloc(len + 1);
    memcpy(copy, line, len);
    copy[len] = '\0';
    functions[p->format](p, copy);
    free(copy);
}

/* Must be called after the last line. */
void
fib_parser_end(struct fib_parser *p)
{
    finish_route(p);
    free(p->current.hops);
    memset(&p->current, 0, sizeof p->current);
}
