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

#include "util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *program_name;

/* Prints a message in one line and fails. */
void
die(const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "%s: ", program_name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

static void *
check(void *p)
{
    if (!p) {
        die("out of memory");
    }
    return p;
}

void *
xmalloc(size_t size)
{
    return check(malloc(size ? size : 1));
}

void *
xcalloc(size_t n, size_t size)
{
    return check(calloc(n ? n : 1, size));
}

void *
xrealloc(void *p, size_t size)
{
    return check(realloc(p, size ? size : 1));
}

char *
xstrdup(const char *s)
{
    return check(strdup(s));
}

void *
grow(void *array, size_t n, size_t *allocated, size_t size)
{
    if (n >= *allocated) {
        *allocated = *allocated * 2 + 16;
        if (*allocated > SIZE_MAX / size) {
            die("out of memory");
        }
        array = xrealloc(array, *allocated * size);
    }
    return array;
}

/* Stores in '*number' the decimal number that is all of 's'.  Returns false if
 * there is anything else in 's', a sign or a space included, or the number
 * exceeds 'max'. */
bool
parse_number(const char *s, uint64_t max, uint64_t *number)
{
    uint64_t x = 0;

    if (!*s) {
        return false;
    }
    for (; *s; s++) {
        unsigned int digit = (unsigned char) *s - '0';

        if (digit > 9 || digit > max || x > (max - digit) / 10) {
            return false;
        }
        x = x * 10 + digit;
    }
    *number = x;
    return true;
}

/* Returns the number that is the argument of 'option'. */
uint64_t
parse_option(const char *option, const char *s, uint64_t min, uint64_t max)
{
    uint64_t number;

    if (!parse_number(s, max, &number) || number < min) {
        die("--%s=%s: must be a number from %llu to %llu", option, s,
            (unsigned long long int) min, (unsigned long long int) max);
    }
    return number;
}
