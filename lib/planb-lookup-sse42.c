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

#define TARGET __attribute__((target("sse4.2,popcnt")))

static bool
sse42_is_available(void)
{
    return (__builtin_cpu_supports("sse4.2")
            && __builtin_cpu_supports("popcnt"));
}

/* There are only signed comparisons.  Flipping the top bits on both sides
 * makes that right for unsigned numbers. */
static inline TARGET unsigned int
count_bt(const uint64_t keys[8], uint64_t key)
{
    const __m128i flip = _mm_set1_epi64x(INT64_MIN);
    __m128i k = _mm_xor_si128(_mm_set1_epi64x((int64_t) key), flip);
    __m128i sum = _mm_setzero_si128();

    for (int i = 0; i < 8; i += 2) {
        __m128i e = _mm_load_si128((const void *) &keys[i]);

        sum = _mm_sub_epi64(sum, _mm_cmpgt_epi64(k, _mm_xor_si128(e, flip)));
    }
    return _mm_cvtsi128_si64(sum) + _mm_extract_epi64(sum, 1);
}

/* Compares the eight keys at 'keys' with 'k' and packs the results: all ones
 * where a key is not less. */
static inline TARGET __m128i
compare8(const uint32_t keys[8], __m128i k)
{
    __m128i a = _mm_load_si128((const void *) &keys[0]);
    __m128i b = _mm_load_si128((const void *) &keys[4]);

    return _mm_packs_epi32(_mm_cmpeq_epi32(_mm_max_epu32(a, k), a),
                           _mm_cmpeq_epi32(_mm_max_epu32(b, k), b));
}

static inline TARGET unsigned int
search_node(const uint32_t node[16], const uint32_t *key)
{
    __m128i k = _mm_set1_epi32((int32_t) *key);
    __m128i c = _mm_packs_epi16(compare8(node, k), compare8(&node[8], k));

    return __builtin_ctz(_mm_movemask_epi8(c) | 0x8000);
}

#include "planb-lookup.h"

const struct planb_kernel planb_kernel_sse42 = {
    "sse4.2", sse42_is_available,
    lookup_one, lookup, lookup_strided
};
#endif
