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

#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq," \
                                     "bmi,bmi2,movbe,popcnt")))

static bool
avx512_is_available(void)
{
    return (__builtin_cpu_supports("avx512f")
            && __builtin_cpu_supports("avx512vl")
            && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512dq")
            && __builtin_cpu_supports("bmi")
            && __builtin_cpu_supports("bmi2")
            && __builtin_cpu_supports("popcnt"));
}

static inline TARGET unsigned int
count_bt(const uint64_t keys[8], uint64_t key)
{
    __m512i e = _mm512_load_si512(keys);

    return __builtin_popcount(
        _mm512_cmplt_epu64_mask(e, _mm512_set1_epi64((int64_t) key)));
}

static inline TARGET int32_t
get_key(const void *key)
{
    int32_t k;

    memcpy(&k, key, sizeof k);
    return k;
}

/* The eighth word of a leaf is padding and never counts. */
static inline TARGET unsigned int
count_leaf(const uint32_t node[8], const void *key)
{
    __m256i e = _mm256_load_si256((const void *) node);

    return __builtin_popcount(
        _mm256_cmplt_epu32_mask(e, _mm256_set1_epi32(get_key(key))));
}

static inline TARGET unsigned int
count_inner(const uint32_t node[16], const void *key)
{
    __m512i e = _mm512_load_si512(node);

    return __builtin_popcount(_mm512_mask_cmplt_epu32_mask(
        0x7fff, e, _mm512_set1_epi32(get_key(key))));
}

#include "planb-lookup.h"

const struct planb_kernel planb_kernel_avx512 = {
    "avx512", avx512_is_available, lookup
};
#endif
