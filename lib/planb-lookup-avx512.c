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

static inline TARGET unsigned int
search_node(const uint32_t node[16], const uint32_t *key)
{
    __mmask16 mask = _mm512_cmpge_epu32_mask(
        _mm512_load_si512(node), _mm512_set1_epi32((int32_t) *key));

    return __builtin_ctz((uint32_t) mask | 0x8000);
}

/* Gathers have more loads in flight than scalar instructions. */
#define NEXT_TABLES
#define LANES 16
#include "planb-lookup-private.h"

/* Takes the slots from 'i' on through one more table. */
static ALWAYS_INLINE __m512i
next_table(const struct planb *tree, struct group *g, uint32_t i,
           __m512i raws, __mmask16 mask)
{
    const __m512i shift = _mm512_set1_epi32(31);
    __m512i rest = _mm512_load_si512(&g->rests[i]);
    __m512i index = _mm512_srlv_epi32(rest, _mm512_and_si512(raws, shift));
    __m512i offsets = _mm512_add_epi32(
        _mm512_and_si512(raws, _mm512_set1_epi32(PLANB_OFFSET_MASK)),
        _mm512_slli_epi32(index, 2));
    __m512i stride = _mm512_and_si512(
        _mm512_sub_epi32(_mm512_setzero_si512(), raws), shift);

    _mm512_store_si512(&g->rests[i], _mm512_sllv_epi32(rest, stride));
    return _mm512_mask_i32gather_epi32(raws, mask, offsets, tree->lines, 1);
}

/* Prefetches what the slots from 'i' on read next. */
static ALWAYS_INLINE void
prefetch(const struct planb *tree, const struct group *g, uint32_t i,
         __m512i raws)
{
    const __m512i table = _mm512_set1_epi32((int32_t) PLANB_TABLE);
    uint32_t offsets[LANES] __attribute__((aligned(PLANB_LINE)));
    __m512i rest = _mm512_load_si512(&g->rests[i]);
    __m512i index = _mm512_srlv_epi32(
        rest, _mm512_and_si512(raws, _mm512_set1_epi32(31)));
    __m512i lines = _mm512_maskz_and_epi32(
        _mm512_movepi32_mask(raws), raws,
        _mm512_set1_epi32(PLANB_OFFSET_MASK));

    _mm512_store_si512(offsets, _mm512_mask_add_epi32(
                           lines, _mm512_cmpge_epu32_mask(raws, table),
                           lines, _mm512_slli_epi32(index, 2)));
    for (int j = 0; j < LANES; j++) {
        __builtin_prefetch(tree->lines + offsets[j]);
    }
}

/* Stores the answers of a block. */
static ALWAYS_INLINE void
store_values(uint32_t values[], const struct group *g, uint32_t slot,
             __m256i block)
{
    uint32_t first = g->positions[slot];
    size_t left = g->n_addrs - first;

    _mm256_mask_storeu_epi32(&values[first],
                             left < BLOCK ? (1u << left) - 1 : 0xff, block);
}

static ALWAYS_INLINE void
next_tables(const struct planb *tree, uint32_t values[], struct group *g)
{
    const __m512i ramp = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8,
                                          7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i table = _mm512_set1_epi32((int32_t) PLANB_TABLE);
    const __m512i inner = _mm512_set1_epi32((int32_t) PLANB_INNER);
    const __m512i default_value
        = _mm512_set1_epi32((int32_t) tree->default_value);
    uint32_t n = g->n_slots;
    uint32_t n_leaves = 0;
    uint32_t n_inner = 0;

    if (n % LANES) {
        _mm256_store_si256((void *) &g->raws[n], _mm256_setzero_si256());
        _mm256_store_si256((void *) &g->rests[n], _mm256_setzero_si256());
    }
    for (int depth = 1; depth < PLANB_MAX_TABLES; depth++) {
        for (uint32_t i = 0; i < n; i += LANES) {
            __m512i raws = _mm512_load_si512(&g->raws[i]);
            __mmask16 mask = _mm512_cmpge_epu32_mask(raws, table);

            if (mask) {
                raws = next_table(tree, g, i, raws, mask);
                _mm512_store_si512(&g->raws[i], raws);
            }
            prefetch(tree, g, i, raws);
        }
    }
    for (uint32_t i = 0; i < n; i += LANES) {
        __m512i positions = _mm512_add_epi32(ramp, _mm512_set1_epi32((int) i));
        __m512i raws = _mm512_load_si512(&g->raws[i]);
        __m512i answers = _mm512_add_epi32(raws, default_value);
        __mmask16 mask = _mm512_movepi32_mask(raws);

        store_values(values, g, i, _mm512_castsi512_si256(answers));
        if (i + BLOCK < n) {
            store_values(values, g, i + BLOCK,
                         _mm512_extracti32x8_epi32(answers, 1));
        }

        _mm512_storeu_si512(&g->leaves[n_leaves],
                            _mm512_maskz_compress_epi32(mask, positions));
        n_leaves += __builtin_popcount(mask);
        mask = _mm512_cmpge_epu32_mask(raws, inner);
        _mm512_storeu_si512(&g->inner[n_inner],
                            _mm512_maskz_compress_epi32(mask, positions));
        n_inner += __builtin_popcount(mask);
    }
    g->n_leaves = n_leaves;
    g->n_inner = n_inner;
}

#include "planb-lookup.h"

const struct planb_kernel planb_kernel_avx512 = {
    "avx512", avx512_is_available,
    lookup_one, lookup, lookup_strided
};
#endif
