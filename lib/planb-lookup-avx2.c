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

#define TARGET __attribute__((target("avx2,bmi,bmi2,movbe,popcnt")))

static bool
avx2_is_available(void)
{
    /* All CPUs with AVX2 have MOVBE, which older compilers cannot check. */
    return (__builtin_cpu_supports("avx2")
            && __builtin_cpu_supports("bmi")
            && __builtin_cpu_supports("bmi2")
            && __builtin_cpu_supports("popcnt"));
}

/* There are only signed comparisons.  Flipping the top bits on both sides
 * makes that right for unsigned numbers. */
static inline TARGET unsigned int
count_bt(const uint64_t keys[8], uint64_t key)
{
    const __m256i flip = _mm256_set1_epi64x(INT64_MIN);
    __m256i k = _mm256_xor_si256(_mm256_set1_epi64x((int64_t) key), flip);
    __m256i a = _mm256_load_si256((const void *) &keys[0]);
    __m256i b = _mm256_load_si256((const void *) &keys[4]);

    a = _mm256_cmpgt_epi64(k, _mm256_xor_si256(a, flip));
    b = _mm256_cmpgt_epi64(k, _mm256_xor_si256(b, flip));
    return (unsigned int) __builtin_popcount(
        _mm256_movemask_epi8(_mm256_packs_epi32(a, b))) / 4;
}

/* Compares the eight keys at 'keys' with 'k': all ones where a key is not
 * less. */
static inline TARGET __m256i
compare8(const uint32_t keys[8], __m256i k)
{
    __m256i e = _mm256_load_si256((const void *) keys);

    return _mm256_cmpeq_epi32(_mm256_max_epu32(e, k), e);
}

static inline TARGET unsigned int
search_node(const uint32_t node[16], const uint32_t *key)
{
    __m256i k = _mm256_set1_epi32((int32_t) *key);
    uint32_t a = _mm256_movemask_ps(_mm256_castsi256_ps(compare8(node, k)));
    uint32_t b = _mm256_movemask_ps(
        _mm256_castsi256_ps(compare8(&node[8], k)));

    return __builtin_ctz(a | (b | 0x80) << 8);
}

#include "planb-lookup.h"

const struct planb_kernel planb_kernel_avx2 = {
    "avx2", avx2_is_available,
    lookup_one, lookup, lookup_strided
};
#endif
