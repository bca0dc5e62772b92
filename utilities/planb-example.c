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

/* An example for libplanb, in C and C++: reads a prefix file, lines
 * "ADDRESS/LENGTH VALUE", and answers addresses from the standard input.
 *
 *     cc planb-example.c $(pkg-config --cflags --libs libplanb) */

#include <arpa/inet.h>
#include <errno.h>
#include <planb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_ROUTE 0              /* The answer where there is no prefix. */

/* Puts the prefix in 'line' into 'table'.  Returns 0 or an errno value. */
static int
put_line(struct planb_table *table, const char *line)
{
    char addr[INET6_ADDRSTRLEN];
    struct planb_prefix prefix;
    unsigned int plen, value;

    char more;

    if (sscanf(line, " %45[0-9a-fA-F:.]/%3u %u %c",
               addr, &plen, &value, &more) != 3
        || inet_pton(AF_INET6, addr, prefix.addr) != 1 || plen > 128) {
        return EINVAL;
    }
    prefix.plen = (uint8_t) plen;
    prefix.priority = plen;     /* The longest prefix wins. */
    prefix.value = value;
    return planb_table_put(table, &prefix);
}

int
main(int argc, char *argv[])
{
    struct planb_table *table = planb_table_create(NO_ROUTE);
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    struct planb *tree;
    char line[256];
    int error;

    if (!table || !file) {
        fprintf(stderr, "%s\n", argc == 2 ? strerror(errno)
                : "usage: planb-example PREFIX-FILE < ADDRESSES");
        return EXIT_FAILURE;
    }
    for (int n = 1; fgets(line, sizeof line, file); n++) {
        line[strcspn(line, "#\r\n")] = '\0';
        error = line[strspn(line, " \t")] ? put_line(table, line) : 0;
        if (error) {
            fprintf(stderr, "%s:%d: %s\n", argv[1], n, strerror(error));
            return EXIT_FAILURE;
        }
    }
    fclose(file);
    error = planb_table_publish(table, &tree);
    if (error) {
        fprintf(stderr, "%s: %s\n", argv[1], strerror(error));
        return EXIT_FAILURE;
    }

    while (fgets(line, sizeof line, stdin)) {
        uint8_t addr[16];

        line[strcspn(line, "\r\n")] = '\0';
        if (inet_pton(AF_INET6, line, addr) == 1) {
            printf("%s %u\n", line, (unsigned int) planb_lookup(tree, addr));
        } else {
            printf("%s is no IPv6 address\n", line);
        }
    }
    planb_destroy(tree);
    planb_table_destroy(table);
    return 0;
}
