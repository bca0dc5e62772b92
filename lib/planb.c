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

#include "planb.h"

#include <errno.h>
#include <stdatomic.h>

#include "planb-private.h"

/* The kernels, see planb-private.h. */
const struct planb_kernel *const planb_kernels[] = {
    &planb_kernel_autovalidator,
    &planb_kernel_scalar,
#ifdef __x86_64__
    &planb_kernel_sse42,
    &planb_kernel_avx2,
    &planb_kernel_avx512,
#endif
#ifdef __aarch64__
    &planb_kernel_neon,
#endif
};
const size_t planb_n_kernels = sizeof planb_kernels / sizeof *planb_kernels;

/* The kernel in use.  Null until the first lookup or choice. */
static _Atomic(const struct planb_kernel *) current_kernel;

static const struct planb_kernel *
best_kernel(void)
{
    size_t i = planb_n_kernels - 1;

    while (!planb_kernels[i]->is_available()) {
        i--;
    }
    return planb_kernels[i];
}

static const struct planb_kernel *
choose_first_kernel(void)
{
    const struct planb_kernel *expected = NULL;
    const struct planb_kernel *best = best_kernel();

    /* Somebody else may have been faster. */
    return (atomic_compare_exchange_strong(&current_kernel, &expected, best)
            ? best : expected);
}

static inline const struct planb_kernel *
get_kernel(void)
{
    const struct planb_kernel *kernel;

    kernel = atomic_load_explicit(&current_kernel, memory_order_relaxed);
    return __builtin_expect(kernel != NULL, 1) ? kernel
                                               : choose_first_kernel();
}

static const struct planb_kernel *
find_kernel(const char *name)
{
    for (size_t i = 0; i < planb_n_kernels; i++) {
        if (!strcmp(planb_kernels[i]->name, name)) {
            return planb_kernels[i];
        }
    }
    return NULL;
}

/* Names that planb_set_kernel() knows on any machine, in the order in which
 * users should read them. */
static const char *const kernel_names[] = {
    "auto", "scalar", "sse4.2", "avx2", "avx512", "neon", "autovalidator",
};

/* Returns the name of the 'i'th kernel, counting from 0, or a null pointer if
 * there are not that many.  The list is the same on every machine and begins
 * with "auto". */
const char *
planb_kernel_name(size_t i)
{
    return i < sizeof kernel_names / sizeof *kernel_names ? kernel_names[i]
                                                          : NULL;
}

/* Tells whether planb_set_kernel() would accept 'name' on this machine. */
bool
planb_kernel_is_available(const char *name)
{
    const struct planb_kernel *kernel = find_kernel(name);

    return !strcmp(name, "auto") || (kernel && kernel->is_available());
}

/* Makes all lookups of the process use the kernel called 'name': "auto" for
 * the best one that the CPU has, which is also the initial choice, or one of
 * "scalar", "sse4.2", "avx2", "avx512", "neon", or "autovalidator", which runs
 * all available ones on each batch and compares their answers (see
 * planb_autovalidator_errors()).
 *
 * Returns 0 if successful, EINVAL if there is no kernel of that name, ENOTSUP
 * if it exists but the CPU or this build of the library lacks it.  If it fails
 * the choice stays as it was. */
int
planb_set_kernel(const char *name)
{
    const struct planb_kernel *kernel;
    size_t i = 0;

    while (strcmp(kernel_names[i], name)) {
        if (!planb_kernel_name(++i)) {
            return EINVAL;
        }
    }

    kernel = strcmp(name, "auto") ? find_kernel(name) : best_kernel();
    if (!kernel || !kernel->is_available()) {
        return ENOTSUP;
    }
    atomic_store_explicit(&current_kernel, kernel, memory_order_relaxed);
    return 0;
}

/* Returns the name of the kernel in use, never "auto". */
const char *
planb_get_kernel(void)
{
    return get_kernel()->name;
}

/* Returns the answer of 'tree' for 'addr'. */
uint32_t
planb_lookup(const struct planb *tree, const uint8_t addr[16])
{
    return get_kernel()->lookup_one(tree, addr);
}

/* Stores in 'values[i]', for each i less than 'n', the answer of 'tree' for
 * the 16-byte address, in network byte order, at 'addrs[i]', which need not be
 * aligned.  'n' may be anything; from 8 up it pays. */
void
planb_lookup_batch(const struct planb *tree, const uint8_t *const addrs[],
                   uint32_t values[], size_t n)
{
    get_kernel()->lookup(tree, addrs, values, n);
}

/* Does the same for 'n' addresses that are in memory 'stride' bytes apart, the
 * first of them at 'addrs'. */
void
planb_lookup_strided(const struct planb *tree, const uint8_t *addrs,
                     size_t stride, uint32_t values[], size_t n)
{
    get_kernel()->lookup_strided(tree, addrs, stride, values, n);
}

/* Returns the answer for 'addr' of the B+ tree in 'other'. */
static uint32_t
search_other(const struct planb_other *other, const uint8_t addr[16])
{
    uint64_t key = planb_get_be64(other->lower ? addr + 8 : addr);
    const char *line = (const char *) other;
    size_t pos = 0;
    uint32_t raw;

    for (uint32_t level = 0; level < other->n_levels; level++) {
        const void *node = line + (other->levels[level] + pos) * PLANB_LINE;
        const uint64_t *keys = node;
        unsigned int count = 0;

        for (int i = 0; i < 8; i++) {
            count += keys[i] < key;
        }
        pos = pos * (level + 1 < other->n_levels ? 9 : 8) + count;
    }
    memcpy(&raw, line + other->answers * PLANB_LINE + pos * 4, sizeof raw);
    return raw;
}

/* Finishes a lookup for 'addr' that came to 'raw', which is of any kind but
 * PLANB_TABLE. */
uint32_t
planb_resolve(const struct planb *tree, uint32_t raw, const uint8_t addr[16])
{
    uint32_t key = planb_key(planb_get_be64(addr));

    while (raw & PLANB_INDIRECT) {
        const void *line = planb_line(tree, raw);
        const uint32_t *keys = line;
        const struct planb_other *other = line;
        unsigned int i = 0;

        switch (planb_raw_kind(raw)) {
        case PLANB_INNER:
            while (i < PLANB_INNER_KEYS && keys[i] < key) {
                i++;
            }
            raw = keys[PLANB_INNER_KEYS] + i * PLANB_LINE;
            break;
        case PLANB_LEAF:
            while (keys[i] < key) {
                i++;
            }
            raw = keys[planb_raw_aux(raw) + i];
            break;
        default:
            if (!other->n_levels) {
                return other->value;
            }
            raw = search_other(other, addr);
            break;
        }
    }
    return raw;
}
