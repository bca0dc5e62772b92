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

#include "prefix-file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

/* Returns a null pointer if no bit of 'addr' past the first 'plen' is set, and
 * otherwise says so. */
const char *
prefix_check(const uint8_t addr[16], unsigned int plen)
{
    for (unsigned int i = plen / 8; i < 16; i++) {
        unsigned int host = i == plen / 8 ? 0xff >> plen % 8 : 0xff;

        if (addr[i] & host) {
            return "bits past the prefix length";
        }
    }
    return NULL;
}

/* Parses "ADDRESS/LENGTH".  Returns a null pointer if successful, otherwise
 * says what is wrong with it. */
const char *
prefix_parse(const char *s, uint8_t addr[16], uint8_t *plen)
{
    const char *slash = strchr(s, '/');
    char copy[INET6_ADDRSTRLEN];
    uint64_t n;

    if (!slash || slash - s >= sizeof copy
        || !parse_number(slash + 1, 128, &n)) {
        return "not an IPv6 prefix";
    }
    memcpy(copy, s, slash - s);
    copy[slash - s] = '\0';
    if (inet_pton(AF_INET6, copy, addr) != 1) {
        return "not an IPv6 prefix";
    }
    *plen = n;
    return prefix_check(addr, n);
}

char *
prefix_format(const uint8_t addr[16], unsigned int plen, char s[PREFIX_STRLEN])
{
    inet_ntop(AF_INET6, addr, s, PREFIX_STRLEN);
    sprintf(s + strlen(s), "/%u", plen);
    return s;
}

struct entry {
    struct planb_prefix prefix;
    size_t line;
};

static int
compare_entries(const void *a_, const void *b_)
{
    const struct entry *a = a_;
    const struct entry *b = b_;
    int cmp = memcmp(a->prefix.addr, b->prefix.addr, sizeof a->prefix.addr);

    if (!cmp) {
        cmp = a->prefix.plen - b->prefix.plen;
    }
    return cmp ? cmp : a->line < b->line ? -1 : a->line > b->line;
}

/* Reads the prefix file 'file_name' ("-" is the standard input).  Returns its
 * prefixes, sorted, with their lengths as priorities, and stores their number
 * in '*np'.  Of lines for the same prefix, the last one counts.  A line
 * without a value gets value 0.  Does not return if anything is wrong with the
 * file. */
struct planb_prefix *
prefix_file_read(const char *file_name, size_t *np)
{
    FILE *file = strcmp(file_name, "-") ? fopen(file_name, "r") : stdin;
    size_t n = 0, allocated = 0, line_number = 0, size = 0, n_unique = 0;
    struct planb_prefix *prefixes;
    struct entry *entries = NULL;
    char *line = NULL;
    ssize_t len;

    if (!file) {
        die("%s: %s", file_name, strerror(errno));
    }
    while (errno = 0, (len = getline(&line, &size, file)) >= 0) {
        char *words[3] = { NULL, NULL, NULL };
        struct planb_prefix *p;
        const char *problem;
        char *save = NULL;
        uint64_t value = 0;

        line_number++;
        if (strlen(line) != len) {
            die("%s:%zu: null byte", file_name, line_number);
        }
        line[strcspn(line, "#")] = '\0';
        for (int i = 0; i < 3; i++) {
            words[i] = strtok_r(i ? NULL : line, " \t\r\n", &save);
            if (!words[i]) {
                break;
            }
        }
        if (!words[0]) {
            continue;
        }

        entries = grow(entries, n, &allocated, sizeof *entries);
        memset(&entries[n], 0, sizeof entries[n]);
        p = &entries[n].prefix;
        problem = prefix_parse(words[0], p->addr, &p->plen);
        if (problem) {
            die("%s:%zu: %s: %s", file_name, line_number, words[0], problem);
        }
        if (words[1] && !parse_number(words[1], UINT32_MAX, &value)) {
            die("%s:%zu: %s: not a value from 0 to %u", file_name, line_number,
                words[1], UINT32_MAX);
        }
        if (words[2]) {
            die("%s:%zu: %s: more than a prefix and a value", file_name,
                line_number, words[2]);
        }
        p->priority = p->plen;
        p->value = value;
        entries[n].line = line_number;
        n++;
    }
    if (errno) {
        die("%s: %s", file_name, strerror(errno));
    }
    free(line);
    if (file != stdin) {
        fclose(file);
    }

    if (n) {
        qsort(entries, n, sizeof *entries, compare_entries);
    }
    prefixes = xcalloc(n, sizeof *prefixes);
    for (size_t i = 0; i < n; i++) {
        const struct planb_prefix *p = &entries[i].prefix;

        if (n_unique && prefixes[n_unique - 1].plen == p->plen
            && !memcmp(prefixes[n_unique - 1].addr, p->addr, 16)) {
            n_unique--;
        }
        prefixes[n_unique++] = *p;
    }
    free(entries);
    *np = n_unique;
    return prefixes;
}
