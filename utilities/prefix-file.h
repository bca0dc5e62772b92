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

#ifndef PREFIX_FILE_H
#define PREFIX_FILE_H 1

/* Prefixes in text, and files of them, see "PREFIX FILES" in planb-fib(1). */

#include <stddef.h>
#include <stdint.h>

#include "planb.h"

#define PREFIX_STRLEN 64

const char *prefix_parse(const char *, uint8_t addr[16], uint8_t *plen);
const char *prefix_check(const uint8_t addr[16], unsigned int plen);
char *prefix_format(const uint8_t addr[16], unsigned int plen,
                    char s[PREFIX_STRLEN]);

struct planb_prefix *prefix_file_read(const char *file_name, size_t *n);

#endif /* prefix-file.h */
