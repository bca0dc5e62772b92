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

/* libFuzzer target: planb_build() against brute force. */

#include "fuzz.h"

#define MAX_PREFIXES 200

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct planb_prefix p[MAX_PREFIXES];
    struct planb_prefix last;
    uint32_t default_value = fuzz_value(&in);
    bool valid = true;
    struct planb *tree = NULL;
    size_t n = 0;
    int error;

    rng_seed(size);
    memset(&last, 0, sizeof last);
    while (in.left && n < MAX_PREFIXES) {
        fuzz_prefix(&in, &last, (size & 15) != 0);
        valid = valid && fuzz_prefix_is_valid(&last);
        p[n++] = last;
    }
    error = planb_build(p, n, default_value, &tree);
    FUZZ_CHECK(error == (valid ? 0 : EINVAL));
    if (!error) {
        fuzz_compare(tree, p, n, default_value);
        planb_destroy(tree);
    }
    return 0;
}
