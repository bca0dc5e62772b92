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

#ifdef __aarch64__
#include <arm_neon.h>

#define TARGET

static bool
neon_is_available(void)
{
    return true;
}

static inline unsigned int
count_less(const uint64_t line[8], uint64_t key)
{
    uint64x2_t k = vdupq_n_u64(key);
    uint64x2_t sum = vdupq_n_u64(0);

    for (int i = 0; i < 8; i += 2) {
        sum = vsubq_u64(sum, vcltq_u64(vld1q_u64(&line[i]), k));
    }
    return vaddvq_u64(sum);
}

#include "planb-lookup.h"

const struct planb_kernel planb_kernel_neon = {
    "neon", neon_is_available, lookup
};
#endif
