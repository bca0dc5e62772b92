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

#include <stdatomic.h>
#include <stdio.h>

/* Addresses to look up at a time. */
enum { STEP = 64 };

/* Batches for which kernels disagreed. */
static atomic_ullong n_errors;

static bool
autovalidator_is_available(void)
{
    return true;
}

static void
report(const struct planb_kernel *kernel, const uint8_t addr[16],
       uint32_t value, uint32_t expected)
{
    fprintf(stderr, "planb: kernel %s answers %lu instead of %lu for ",
            kernel->name, (unsigned long int) value,
            (unsigned long int) expected);
    for (int i = 0; i < 16; i += 2) {
        fprintf(stderr, "%s%02x%02x", i ? ":" : "", addr[i], addr[i + 1]);
    }
    fputc('\n', stderr);
}

/* Lets the scalar kernel answer the batch, and all others too, and compares.
 * The scalar answers are the ones that the caller gets. */
static void
validate(const struct planb *tree, const uint8_t *const addrs[],
         uint32_t values[], size_t n)
{
    uint32_t other[STEP];

    planb_kernel_scalar.lookup(tree, addrs, values, n);
    for (size_t k = 0; k < planb_n_kernels; k++) {
        const struct planb_kernel *kernel = planb_kernels[k];

        if (kernel == &planb_kernel_autovalidator
            || kernel == &planb_kernel_scalar || !kernel->is_available()) {
            continue;
        }
        kernel->lookup(tree, addrs, other, n);
        for (size_t i = 0; i < n; i++) {
            if (other[i] != values[i]) {
                /* The first few say all. */
                if (atomic_fetch_add(&n_errors, 1) < 10) {
                    report(kernel, addrs[i], other[i], values[i]);
                }
                break;
            }
        }
    }
}

static void
autovalidator_lookup(const struct planb *tree, const uint8_t *const addrs[],
                     uint32_t values[], size_t n)
{
    for (size_t i = 0; i < n; i += STEP) {
        validate(tree, &addrs[i], &values[i], n - i < STEP ? n - i : STEP);
    }
}

static uint32_t
autovalidator_lookup_one(const struct planb *tree, const uint8_t *addr)
{
    uint32_t value;

    validate(tree, &addr, &value, 1);
    return value;
}

static void
autovalidator_lookup_strided(const struct planb *tree, const uint8_t *addrs,
                             size_t stride, uint32_t values[], size_t n)
{
    const uint8_t *pointers[STEP];

    for (size_t i = 0; i < n; i += STEP) {
        size_t m = n - i < STEP ? n - i : STEP;

        for (size_t j = 0; j < m; j++) {
            pointers[j] = addrs + (i + j) * stride;
        }
        validate(tree, pointers, &values[i], m);
    }
}

/* Returns how often the "autovalidator" kernel has found two kernels
 * disagreeing, which it also writes to stderr the first few times. */
uint64_t
planb_autovalidator_errors(void)
{
    return atomic_load(&n_errors);
}

const struct planb_kernel planb_kernel_autovalidator = {
    "autovalidator", autovalidator_is_available, autovalidator_lookup_one,
    autovalidator_lookup, autovalidator_lookup_strided
};
