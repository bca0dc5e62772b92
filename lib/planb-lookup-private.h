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

#ifndef PLANB_LOOKUP_PRIVATE_H
#define PLANB_LOOKUP_PRIVATE_H 1

/* What the search has between its steps. */

#include "planb-private.h"

#define ALWAYS_INLINE inline TARGET __attribute__((always_inline))

#define GROUP 64

/* Where the addresses are: either behind pointers or 'stride' bytes apart. */
struct input {
    bool by_pointer;            /* Known at compile time. */
    const uint8_t *const *pointers;
    const uint8_t *addrs;
    size_t stride;
};

static ALWAYS_INLINE const uint8_t *
get_addr(const struct input *in, size_t i)
{
    return in->by_pointer ? in->pointers[i] : in->addrs + i * in->stride;
}

/* Where a group is.  Addresses come in blocks of BLOCK.  Those for which the
 * first table has all the answers, as is so with addresses that nobody uses,
 * are done.  The others go on in "slots". */
#define BLOCK 8

struct group {
    /* By slot.  These are aligned for vector instructions. */
    uint32_t keys[GROUP];
    uint32_t rests[GROUP];      /* Bits for the next table. */
    uint32_t raws[GROUP];       /* Answers so far, values in unused slots. */
    uint32_t positions[GROUP];  /* Which addresses these are. */

    /* Slots whose answers are not values yet, and those among them that are to
     * go through an inner node next.  Lists may be written to beyond their
     * ends. */
    uint32_t leaves[GROUP + 16];
    uint32_t inner[GROUP + 16];
    uint32_t n_leaves, n_inner;

    uint32_t n_slots;           /* Multiple of BLOCK. */
    size_t n_addrs;
} __attribute__((aligned(PLANB_LINE)));

#endif /* planb-lookup-private.h */
