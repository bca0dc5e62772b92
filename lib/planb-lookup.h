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

/* The search itself, for inclusion by the file of each kernel, which defines:
 *
 *     - TARGET, the attribute that allows its instructions.
 *
 *     - count_less(line, key), which returns how many of the eight elements of
 *       'line' are less than 'key'.
 *
 * A batch walks down in step, GROUP addresses at a time.  Their loads do not
 * depend on one another and so their latencies overlap. */

#define GROUP 16

static inline TARGET __attribute__((always_inline)) void
lookup_group(const struct planb *tree, const uint8_t *const addrs[],
             uint32_t values[], size_t n)
{
    const struct planb_bt *bt = &tree->root;
    uint32_t all = 0;
    uint64_t keys[GROUP];
    size_t pos[GROUP];

    for (size_t i = 0; i < n; i++) {
        keys[i] = planb_get_be64(addrs[i]);
        pos[i] = 0;
    }
    for (uint32_t level = 0; level + 1 < bt->n_levels; level++) {
        const uint64_t *lines = planb_line(tree, bt->levels[level]);

        for (size_t i = 0; i < n; i++) {
            pos[i] = pos[i] * 9 + count_less(&lines[pos[i] * 8], keys[i]);
        }
    }
    {
        const uint64_t *lines = planb_line(tree,
                                           bt->levels[bt->n_levels - 1]);

        for (size_t i = 0; i < n; i++) {
            pos[i] = pos[i] * 8 + count_less(&lines[pos[i] * 8], keys[i]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = planb_bt_value(tree, bt, pos[i]);
        all |= values[i];
    }

    if (__builtin_expect(all & PLANB_INDIRECT, 0)) {
        for (size_t i = 0; i < n; i++) {
            if (values[i] & PLANB_INDIRECT) {
                values[i] = planb_resolve(tree, values[i], addrs[i]);
            }
        }
    }
}

static TARGET void
lookup(const struct planb *tree, const uint8_t *const addrs[],
       uint32_t values[], size_t n)
{
    while (n >= GROUP) {
        lookup_group(tree, addrs, values, GROUP);
        addrs += GROUP;
        values += GROUP;
        n -= GROUP;
    }
    if (n) {
        lookup_group(tree, addrs, values, n);
    }
}
