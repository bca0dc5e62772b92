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

#ifdef __x86_64__
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi2,popcnt")))

static bool
avx2_is_available(void)
{
    return (__builtin_cpu_supports("avx2")
            && __builtin_cpu_supports("bmi2")
            && __builtin_cpu_supports("popcnt"));
}

/* AVX2 compares signed integers only.  Flipping the top bits on both sides
 * makes that right for unsigned ones. */
static inline TARGET unsigned int
count_less(const uint64_t line[8], uint64_t key)
{
    const __m256i flip = _mm256_set1_epi64x(INT64_MIN);
    __m256i k = _mm256_xor_si256(_mm256_set1_epi64x((int64_t) key), flip);
    __m256i a = _mm256_load_si256((const void *) &line[0]);
    __m256i b = _mm256_load_si256((const void *) &line[4]);

    a = _mm256_cmpgt_epi64(k, _mm256_xor_si256(a, flip));
    b = _mm256_cmpgt_epi64(k, _mm256_xor_si256(b, flip));
    return __builtin_popcount(
        _mm256_movemask_epi8(_mm256_packs_epi32(a, b))) / 4;
}

#include "planb-lookup.h"

const struct planb_kernel planb_kernel_avx2 = {
    "avx2", avx2_is_available, lookup
};
#endif
