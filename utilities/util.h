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

#ifndef UTIL_H
#define UTIL_H 1

/* What planb-fib and planb-bench have in common. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The name of the program, for messages. */
extern const char *program_name;

void die(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));

void *xmalloc(size_t);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *, size_t);
char *xstrdup(const char *);

/* Makes room for one more in an array of 'n' elements with space for
 * '*allocated'. */
void *grow(void *array, size_t n, size_t *allocated, size_t size);

bool parse_number(const char *, uint64_t max, uint64_t *);
uint64_t parse_option(const char *option, const char *, uint64_t min,
                      uint64_t max);

#endif /* util.h */
