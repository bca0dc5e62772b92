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

#include "planb-private.h"

#define TARGET

static bool
scalar_is_available(void)
{
    return true;
}

static inline unsigned int
count_bt(const uint64_t keys[8], uint64_t key)
{
    unsigned int count = 0;

    for (int i = 0; i < 8; i++) {
        count += keys[i] < key;
    }
    return count;
}

/* A binary search without branches, which fits numbers of keys that are one
 * less than a power of two.  In a small leaf it begins with the padding, which
 * leads it to the keys. */
static inline unsigned int
search_node(const uint32_t node[16], const uint32_t *keyp)
{
    uint32_t key = *keyp;
    unsigned int count;

    count = (node[7] < key) * 8;
    count += (node[count + 3] < key) * 4;
    count += (node[count + 1] < key) * 2;
    return count + (node[count] < key);
}

#include "planb-lookup.h"

const struct planb_kernel planb_kernel_scalar = {
    "scalar", scalar_is_available,
    lookup_one, lookup, lookup_strided
};
