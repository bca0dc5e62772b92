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

#define TARGET __attribute__((target("avx512f,bmi2,popcnt")))

static bool
avx512_is_available(void)
{
    return (__builtin_cpu_supports("avx512f")
            && __builtin_cpu_supports("bmi2")
            && __builtin_cpu_supports("popcnt"));
}

static inline TARGET unsigned int
count_less(const uint64_t line[8], uint64_t key)
{
    __m512i e = _mm512_load_si512(line);

    return __builtin_popcount(
        _mm512_cmplt_epu64_mask(e, _mm512_set1_epi64((int64_t) key)));
}

#include "planb-lookup.h"

const struct planb_kernel planb_kernel_avx512 = {
    "avx512", avx512_is_available, lookup
};
#endif
