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

/* Four bits for each key that is not less. */
static inline unsigned int
search_node(const uint32_t node[16], const uint32_t *key)
{
    uint32x4_t k = vld1q_dup_u32(key);
    uint32x4_t a = vcgeq_u32(vld1q_u32(&node[0]), k);
    uint32x4_t b = vcgeq_u32(vld1q_u32(&node[4]), k);
    uint32x4_t c = vcgeq_u32(vld1q_u32(&node[8]), k);
    uint32x4_t d = vcgeq_u32(vld1q_u32(&node[12]), k);
    uint16x8_t ab = vcombine_u16(vmovn_u32(a), vmovn_u32(b));
    uint16x8_t cd = vcombine_u16(vmovn_u32(c), vmovn_u32(d));
    uint8x16_t all = vcombine_u8(vmovn_u16(ab), vmovn_u16(cd));
    uint64x1_t mask = vreinterpret_u64_u8(
        vshrn_n_u16(vreinterpretq_u16_u8(all), 4));

    return __builtin_ctzll(vget_lane_u64(mask, 0) | UINT64_C(1) << 60) / 4;
}

#include "planb-lookup.h"

const struct planb_kernel planb_kernel_neon = {
    "neon", neon_is_available,
    lookup_one, lookup, lookup_strided
};
#endif
