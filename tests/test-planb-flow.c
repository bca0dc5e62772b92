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

/* Compares dp_planb_find_ipv6_dst() with miniflow_extract() for random
 * packets, sane and otherwise, and checks that a route class in the metadata of a
 * packet changes nothing in its flow but the class.  Before that, checks how
 * a class gets into datapath keys and out of them, where the keys come in a
 * form that cannot be expressed as text.
 *
 * Usage: ovstest test-planb-flow [N_PACKETS [SEED]] */

#include <config.h>
#undef NDEBUG
#include "flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dp-packet.h"
#include "dpif-netdev-planb.h"
#include "netlink.h"
#include "odp-util.h"
#include "openvswitch/match.h"
#include "openvswitch/ofp-match.h"
#include "openvswitch/ofpbuf.h"
#include "ovstest.h"
#include "packets.h"
#include "random.h"
#include "timeval.h"
#include "util.h"

/* More than a payload length can express, to exceed the limit of padding. */
#define MAX_PACKET (2 * 65536 + 200)

static bool
one_in(int n)
{
    return !random_range(n);
}

static size_t
put_be16(uint8_t *frame, size_t ofs, uint16_t value)
{
    frame[ofs] = value >> 8;
    frame[ofs + 1] = value;
    return ofs + 2;
}

/* Composes a random frame in 'frame', which has room for MAX_PACKET bytes, and
 * returns its size. */
static size_t
compose_frame(uint8_t *frame)
{
    static const uint16_t tpids[] = { ETH_TYPE_VLAN_8021Q,
                                      ETH_TYPE_VLAN_8021AD };
    static const uint16_t types[] = { ETH_TYPE_IP, ETH_TYPE_ARP,
                                      ETH_TYPE_MPLS, ETH_TYPE_NSH,
                                      ETH_TYPE_VLAN_8021Q, 0, 100, 0x5ff };
    static const uint8_t protos[] = { IPPROTO_TCP, IPPROTO_UDP,
                                      IPPROTO_ICMPV6, IPPROTO_FRAGMENT,
                                      IPPROTO_HOPOPTS, IPPROTO_AH, 99 };
    size_t payload = one_in(4) ? random_range(200) : 8;
    size_t padding = one_in(4) ? random_range(100) : 0;
    size_t ofs = 12, plen_ofs, l3_ofs, size;

    random_bytes(frame, 300);
    for (int n = one_in(2) ? 0 : random_range(5); n > 0; n--) {
        ofs = put_be16(frame, ofs, tpids[random_range(ARRAY_SIZE(tpids))]);
        ofs += 2;
    }
    if (one_in(8)) {
        ofs = put_be16(frame, ofs, types[random_range(ARRAY_SIZE(types))]);
    } else {
        if (one_in(8)) {
            /* 802.3 with an LLC and SNAP header, or with something else. */
            ofs = put_be16(frame, ofs, random_range(0x600));
            memcpy(frame + ofs, "\xaa\xaa\x03\0\0\0", 6);
            if (one_in(4)) {
                frame[ofs + random_range(6)] = random_uint32();
            }
            ofs += 6;
        }
        ofs = put_be16(frame, ofs, ETH_TYPE_IPV6);
    }

    l3_ofs = ofs;
    plen_ofs = l3_ofs + 4;
    frame[l3_ofs] = 0x60;
    frame[l3_ofs + 6] = protos[random_range(ARRAY_SIZE(protos))];
    put_be16(frame, plen_ofs, payload);
    size = l3_ofs + IPV6_HEADER_LEN + payload + padding;

    switch (random_range(8)) {
    case 0:                     /* Truncate anywhere. */
        size = random_range(size + 1);
        break;
    case 1:                     /* Truncate near the IPv6 header's end. */
        size = l3_ofs + IPV6_HEADER_LEN - 2 + random_range(5);
        break;
    case 2:                     /* Be off by little. */
        put_be16(frame, plen_ofs, payload + padding + random_range(5) - 2);
        break;
    case 3:                     /* Be off. */
        put_be16(frame, plen_ofs, random_uint32());
        break;
    case 4:                     /* Be near the limit of padding. */
        if (one_in(16)) {
            size = l3_ofs + IPV6_HEADER_LEN + payload + UINT16_MAX - 2
                   + random_range(5);
        }
        break;
    }
    return size;
}

/* Fills in all metadata that goes to the same segment of the flow. */
static void
randomize_metadata(struct pkt_metadata *md)
{
    pkt_metadata_init(md, u32_to_odp(random_range(100)));
    if (one_in(2)) {
        md->skb_priority = random_range(2);
        md->pkt_mark = random_range(2);
    }
    md->dp_hash = random_range(2);
    md->recirc_id = random_range(3);
    if (one_in(2)) {
        md->ct_state = CS_TRACKED | CS_ESTABLISHED;
        md->ct_zone = random_range(3);
        md->ct_mark = random_range(3);
        md->ct_label.u64.lo = random_range(2);
        md->ct_label.u64.hi = random_range(2);
        md->ct_orig_tuple_ipv6 = true;
        memset(&md->ct_orig_tuple, 0x55, sizeof md->ct_orig_tuple);
    }
    if (one_in(2)) {
        memset(&md->tunnel, 0, sizeof md->tunnel);
        md->tunnel.ip_dst = htonl(random_uint32() | 1);
        md->tunnel.tun_id = htonll(random_uint32());
    }
}

static void
test_frame(const uint8_t *frame, size_t size)
{
    /* A buffer of just the right size, to have overruns noticed. */
    uint8_t *copy = xmemdup(frame, size ? size : 1);
    struct flow flow, classed;
    struct dp_packet packet;
    const uint8_t *dst;

    dp_packet_use_const(&packet, copy, size);
    packet.packet_type = (!one_in(8) ? htonl(PT_ETH)
                          : PACKET_TYPE_BE(OFPHTN_ETHERTYPE, ETH_TYPE_IPV6));
    randomize_metadata(&packet.md);

    dst = dp_planb_find_ipv6_dst(&packet);
    flow_extract(&packet, &flow);
    ovs_assert(flow.planb == 0);
    if (packet.packet_type == htonl(PT_ETH)
        && flow.dl_type == htons(ETH_TYPE_IPV6)) {
        ovs_assert(dst && !memcmp(dst, &flow.ipv6_dst, sizeof flow.ipv6_dst));
    } else {
        ovs_assert(!dst);
    }

    packet.md.planb = random_uint32() | 1;
    packet.md.planb_route = random_uint32();
    flow_extract(&packet, &classed);
    ovs_assert(classed.planb == packet.md.planb);
    classed.planb = 0;
    ovs_assert(flow_equal(&flow, &classed));

    free(copy);
}

/* Appends a key (or a mask, if 'mask' is true) for 'match' to 'key'. */
static void
put_key(const struct match *match, bool mask, struct ofpbuf *key)
{
    struct odp_flow_key_parms parms = {
        .flow = &match->flow,
        .mask = &match->wc.masks,
        .support = { .recirc = true },
    };

    if (mask) {
        odp_flow_key_from_mask(&parms, key);
    } else {
        odp_flow_key_from_flow(&parms, key);
    }
}

static void
check_match_string(const struct match *match, const char *expected)
{
    char *s = match_to_string(match, NULL, OFP_DEFAULT_PRIORITY);

    ovs_assert(!strcmp(s, expected));
    free(s);
}

static void
test_keys(void)
{
    struct ofpbuf key, mask;
    struct flow_wildcards wc;
    struct match match;
    struct flow flow;

    ofpbuf_init(&key, 0);
    ofpbuf_init(&mask, 0);
    match_init_catchall(&match);

    /* Not there unless the flow depends on it. */
    put_key(&match, false, &key);
    put_key(&match, true, &mask);
    ovs_assert(!nl_attr_find(&key, 0, OVS_KEY_ATTR_PLANB));
    ovs_assert(!nl_attr_find(&mask, 0, OVS_KEY_ATTR_PLANB));
    check_match_string(&match, "");

    /* A mask without a key: class 0. */
    nl_msg_put_u32(&mask, OVS_KEY_ATTR_PLANB, UINT32_MAX);
    ovs_assert(odp_flow_key_to_flow(key.data, key.size, &flow, NULL)
               == ODP_FIT_PERFECT);
    ovs_assert(odp_flow_key_to_mask(mask.data, mask.size, &wc, &flow, NULL)
               == ODP_FIT_PERFECT);
    ovs_assert(flow.planb == 0 && wc.masks.planb == UINT32_MAX);

    /* Types that the kernel may use for something are ignored, whatever their
     * length, as are those that are out of range. */
    nl_msg_put_u16(&key, OVS_KEY_ATTR_TUNNEL_INFO + 1, 0);
    nl_msg_put_u64(&key, OVS_KEY_ATTR_PLANB - 1, 0);
    nl_msg_put_u64(&key, OVS_KEY_ATTR_PLANB + 1, 0);
    ovs_assert(odp_flow_key_to_flow(key.data, key.size, &flow, NULL)
               == ODP_FIT_PERFECT);

    /* Class 0 is in both if the flow depends on it. */
    match.wc.masks.planb = UINT32_MAX;
    ofpbuf_clear(&key);
    ofpbuf_clear(&mask);
    put_key(&match, false, &key);
    put_key(&match, true, &mask);
    ovs_assert(nl_attr_find(&key, 0, OVS_KEY_ATTR_PLANB));
    ovs_assert(nl_attr_find(&mask, 0, OVS_KEY_ATTR_PLANB));
    check_match_string(&match, "planb=0");

    match.flow.planb = 7;
    check_match_string(&match, "planb=7");
    match.wc.masks.planb = 0xff;
    check_match_string(&match, "planb=7/0xff");

    ofpbuf_uninit(&key);
    ofpbuf_uninit(&mask);
}

static void
test_planb_flow_main(int argc, char *argv[])
{
    int n_packets = argc > 1 ? atoi(argv[1]) : 200000;
    uint32_t seed = argc > 2 ? strtoul(argv[2], NULL, 0) : time_wall_msec();
    uint8_t *frame = xzalloc(MAX_PACKET);

    set_program_name(argv[0]);
    printf("seed %"PRIu32"\n", seed);
    fflush(stdout);

    test_keys();
    random_set_seed(seed | 1);
    for (int i = 0; i < n_packets; i++) {
        size_t size = compose_frame(frame);

        flow_limit_vlans(random_range(FLOW_MAX_VLAN_HEADERS + 1));
        test_frame(frame, size);
    }
    printf("%d packets\n", n_packets);
    free(frame);
}

OVSTEST_REGISTER("test-planb-flow", test_planb_flow_main);
