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
count_bt(const uint64_t keys[8], uint64_t key)
{
    uint64x2_t k = vdupq_n_u64(key);
    uint64x2_t sum = vdupq_n_u64(0);

    for (int i = 0; i < 8; i += 2) {
        sum = vsubq_u64(sum, vcltq_u64(vld1q_u64(&keys[i]), k));
    }
    return vaddvq_u64(sum);
}

/* The eighth word of a leaf is padding and never counts. */
static inline unsigned int
count_leaf(const uint32_t node[8], const void *key)
{
    uint32x4_t k = vld1q_dup_u32(key);
    uint32x4_t a = vcltq_u32(vld1q_u32(&node[0]), k);
    uint32x4_t b = vcltq_u32(vld1q_u32(&node[4]), k);

    return -vaddvq_u32(vaddq_u32(a, b));
}

static inline unsigned int
count_inner(const uint32_t node[16], const void *key)
{
    static const uint32_t keys_only[4] = {
        UINT32_MAX, UINT32_MAX, UINT32_MAX, 0
    };
    uint32x4_t k = vld1q_dup_u32(key);
    uint32x4_t a = vcltq_u32(vld1q_u32(&node[0]), k);
    uint32x4_t b = vcltq_u32(vld1q_u32(&node[4]), k);
    uint32x4_t c = vcltq_u32(vld1q_u32(&node[8]), k);
    uint32x4_t d = vcltq_u32(vld1q_u32(&node[12]), k);

    /* The last word is not a key. */
    d = vandq_u32(d, vld1q_u32(keys_only));
    return -vaddvq_u32(vaddq_u32(vaddq_u32(a, b), vaddq_u32(c, d)));
}

#include "planb-lookup.h"

const struct planb_kernel planb_kernel_neon = {
    "neon", neon_is_available, lookup
};
#endif
