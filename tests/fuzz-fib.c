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

/* libFuzzer target: the parsers of planb-fib.  The first byte of an input
 * chooses the format. */

#include <config.h>

#include "fib-parse.h"
#include "prefix-file.h"
#include "test-planb.h"
#include "util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(CONDITION)                                           \
    do {                                                                \
        if (!(CONDITION)) {                                             \
            fprintf(stderr, "%s:%d: %s is not true\n",                  \
                    __FILE__, __LINE__, #CONDITION);                    \
            abort();                                                    \
        }                                                               \
    } while (0)

/* A route as each format has it, which must come out whatever comes before:
 * nothing may make the parser lose a good line. */
#define GOOD_PREFIX "2001:db8:feed::/48"
static const char *const good_lines[FIB_N_FORMATS] = {
    [FIB_AUTO] = GOOD_PREFIX " hop\n",
    [FIB_PLAIN] = GOOD_PREFIX " hop\n",
    [FIB_LOCATION] = "net: " GOOD_PREFIX "\naut-num: 64500\n",
    [FIB_BGPDUMP] = "TABLE_DUMP2|1|B|::1|1|" GOOD_PREFIX "|1|IGP|::1|0|0\n",
    [FIB_IPROUTE] = GOOD_PREFIX " proto static metric 1\n"
                    "\tnexthop via fe80::1 dev eth0 weight 1\n",
    [FIB_BIRD] = GOOD_PREFIX " unicast [bgp1 2022-10-01] * (100)\n"
                 "\tvia fe80::1 on eth0\n",
    [FIB_FRR] = "B>* " GOOD_PREFIX " [20/0] via fe80::1, eth0, 00:00:10\n",
};

struct state {
    const struct fib_parser *parser;
    size_t n_routes, n_bad;
    size_t last_line;           /* Of the latest route. */
    char last_prefix[PREFIX_STRLEN];
};

static void
check_route(void *state_, const struct fib_route *r)
{
    struct state *s = state_;

    FUZZ_CHECK(r->plen <= 128);
    FUZZ_CHECK(!prefix_check(r->addr, r->plen));
    FUZZ_CHECK(r->action == FIB_WITHDRAW || r->n_hops);
    FUZZ_CHECK(r->line && r->line <= s->parser->counts.n_lines);
    FUZZ_CHECK(r->line >= s->last_line);
    for (size_t i = 0; i < r->n_hops; i++) {
        FUZZ_CHECK(*r->hops[i]);
        FUZZ_CHECK(memchr(r->hops[i], '\0', sizeof r->hops[i]));
        FUZZ_CHECK(!strpbrk(r->hops[i], " \t,"));
    }
    s->n_routes++;
    s->last_line = r->line;
    prefix_format(r->addr, r->plen, s->last_prefix);
}

static void
check_bad(void *state_, size_t line, const char *problem)
{
    struct state *s = state_;

    FUZZ_CHECK(line && line <= s->parser->counts.n_lines);
    FUZZ_CHECK(*problem);
    s->n_bad++;
}

static void
feed(struct fib_parser *parser, const char *data, size_t size)
{
    while (size) {
        const char *end = memchr(data, '\n', size);
        size_t len = end ? end - data + 1 : size;

        fib_parser_line(parser, data, len);
        data += len;
        size -= len;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *) data;
    struct state s = { .n_routes = 0 };
    struct fib_parser parser = {
        .route = check_route, .bad = check_bad, .aux = &s
    };
    char *copy;

    program_name = "fuzz-fib";
    s.parser = &parser;
    if (!size) {
        return 0;
    }
    parser.format = *data % FIB_N_FORMATS;
    parser.hop_is_optional = *data & 0x40;
    parser.peer = *data & 0x80 ? "2001:db8::1" : NULL;
    text++;
    size--;

    copy = xmalloc(size + 1);
    memcpy(copy, text, size);
    copy[size] = '\0';
    copy[strcspn(copy, "\n")] = '\0';
    FUZZ_CHECK(fib_guess(copy) < FIB_N_FORMATS);
    free(copy);

    feed(&parser, text, size);
    if (!parser.peer) {
        const char *good = good_lines[parser.format];

        feed(&parser, good, strlen(good));
    }
    fib_parser_end(&parser);
    FUZZ_CHECK(s.n_bad == parser.counts.n_bad);
    FUZZ_CHECK(parser.peer || !strcmp(s.last_prefix, GOOD_PREFIX));
    return 0;
}
