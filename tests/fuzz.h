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

#ifndef FUZZ_H
#define FUZZ_H 1

/* What the libFuzzer targets of libplanb share: prefixes out of bytes. */

#include "test-planb.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes of an input, followed by zeros without end. */
struct fuzz_input {
    const uint8_t *data;
    size_t left;
};

static inline uint8_t
fuzz_byte(struct fuzz_input *in)
{
    if (!in->left) {
        return 0;
    }
    in->left--;
    return *in->data++;
}

static inline uint32_t
fuzz_value(struct fuzz_input *in)
{
    uint8_t b = fuzz_byte(in);

    /* Mostly small ones, some near the bounds that are special. */
    return (b < 0xc0 ? b : b < 0xe0 ? PLANB_VALUE_FAST_MAX - 0xd0 + b
            : UINT32_MAX - 0xff + b);
}

/* Changes 'p' to another prefix.  So that prefixes nest and adjoin, it keeps
 * a part of the address, which the input chooses.  If 'valid' is true, clears
 * what would make it invalid. */
static inline void
fuzz_prefix(struct fuzz_input *in, struct planb_prefix *p, bool valid)
{
    uint8_t op = fuzz_byte(in);
    unsigned int first = op & 15;
    unsigned int n = op >> 4 & 3;

    p->plen = fuzz_byte(in);
    for (unsigned int i = first; i < first + n && i < 16; i++) {
        p->addr[i] = fuzz_byte(in);
    }
    p->priority = op & 0x40 ? p->plen : fuzz_byte(in);
    p->value = fuzz_value(in);
    if (valid) {
        p->plen %= 129;
    }
    if (valid || !(op & 0x80)) {
        addr_mask(p->addr, p->plen <= 128 ? p->plen : 128);
    }
}

static inline bool
fuzz_prefix_is_valid(const struct planb_prefix *p)
{
    return p->plen <= 128 && addr_in_prefix(p->addr, p->addr, p->plen);
}

/* Compares the answers of 'tree' with those of brute force, around the ends of
 * all 'n' elements of 'p' and at the ends of the address space. */
static inline void
fuzz_compare(const struct planb *tree, const struct planb_prefix p[], size_t n,
             uint32_t default_value)
{
    for (size_t i = 0; i <= n; i++) {
        static const struct planb_prefix all = { .plen = 0 };
        uint8_t probes[PROBES_PER_PREFIX][16];
        const uint8_t *addrs[PROBES_PER_PREFIX];
        uint32_t values[PROBES_PER_PREFIX];

        probes_for_prefix(i < n ? &p[i] : &all, probes);
        for (int j = 0; j < PROBES_PER_PREFIX; j++) {
            addrs[j] = probes[j];
        }
        planb_lookup_batch(tree, addrs, values, PROBES_PER_PREFIX);
        for (int j = 0; j < PROBES_PER_PREFIX; j++) {
            uint32_t expected = brute_force(p, n, default_value, probes[j]);
            char s[64];

            if (values[j] != expected) {
                fprintf(stderr, "%s: got %"PRIu32", should be %"PRIu32"\n",
                        addr_to_string(probes[j], s), values[j], expected);
                abort();
            }
        }
    }
    if (planb_autovalidator_errors()) {
        fprintf(stderr, "kernels differ\n");
        abort();
    }
}

/* All kernels that there are answer each lookup. */
int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void) argc;
    (void) argv;
    return planb_set_kernel("autovalidator");
}

#define FUZZ_CHECK(CONDITION)                                           \
    do {                                                                \
        if (!(CONDITION)) {                                             \
            fprintf(stderr, "%s:%d: %s is not true\n",                  \
                    __FILE__, __LINE__, #CONDITION);                    \
            abort();                                                    \
        }                                                               \
    } while (0)

#endif /* fuzz.h */
