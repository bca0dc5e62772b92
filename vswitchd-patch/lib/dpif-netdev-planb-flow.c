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

#include <config.h>
#include "dpif-netdev-planb-flow.h"

#include "coverage.h"
#include "dpif-netdev-perf.h"
#include "dpif-netdev-private-flow.h"
#include "flow.h"
#include "netdev-offload.h"
#include "netlink.h"
#include "odp-execute.h"
#include "odp-util.h"
#include "packets.h"

/* The headers as words of 8 bytes, of which the last starts early because
 * their number is not a multiple of 8. */
#define N_MATCH_WORDS 7
BUILD_ASSERT_DECL(DIV_ROUND_UP(DP_PLANB_HEADERS_LEN, 8) == N_MATCH_WORDS);

/* How many of these words may be changed: all up to the hop limit. */
#define N_REWRITE_WORDS 3
BUILD_ASSERT_DECL(DP_PLANB_IP6_OFS(ip6_hlim) < N_REWRITE_WORDS * 8);

COVERAGE_DEFINE(dp_planb_forwarded);

/* What is compared of a word. */
struct dp_planb_match {
    uint64_t value;
    uint64_t mask;
};

/* A compiled flow.  Most flows match on no more than the words that may be
 * changed, so that the first two cache lines serve a packet. */
OVS_ALIGNED_STRUCT(CACHE_LINE_SIZE, dp_planb_flow) {
    struct dp_planb_match match[N_REWRITE_WORDS]; /* The packets it is for. */
    struct dp_netdev_flow *flow;

    /* The flow's actions. */
    odp_port_t out_port;        /* ODPP_NONE to drop packets. */
    bool count_route;
    bool match_more;            /* Is any mask in 'more' nonzero? */
    uint16_t tcp_flags;         /* Of the current batch. */
    uint64_t keep[N_REWRITE_WORDS]; /* Bits that do not change. */
    uint64_t set[N_REWRITE_WORDS];

    /* The current batch. */
    uint32_t n_packets;
    uint32_t n_bytes;

    const struct nlattr *drop;  /* OVS_ACTION_ATTR_DROP, or NULL. */

    struct dp_planb_match more[N_MATCH_WORDS - N_REWRITE_WORDS];
};

/* A flow is found by its tag, the route class, input port and hop limit of a
 * packet, among the flows of a set.
 *
 * A flow that cannot be compiled is kept too, so that it is not tried again.
 * A bit that is in no packet's tag is set in its own. */
#define TAG_NOT_COMPILED (UINT64_C(1) << 31)
#define TAG_MAX_PORT ((UINT32_C(1) << 23) - 1)
#define N_WAYS 4
#define N_SETS 512
BUILD_ASSERT_DECL(IS_POW2(N_SETS));

struct dp_planb_flows {
    uint64_t seen_seq;          /* Of 'flows_seq' in struct dp_planb_pmd. */
    unsigned int n_conflicts;   /* Flows to be learned that found no room. */
    uint64_t tags[N_SETS][N_WAYS]; /* 0 where there is no flow. */
    OVS_ALIGNED_VAR(CACHE_LINE_SIZE)
        struct dp_planb_flow flows[N_SETS][N_WAYS];
};

static inline uint64_t
make_tag(uint32_t class_id, odp_port_t in_port, uint8_t hlimit)
{
    return ((uint64_t) class_id << 32) ^ (odp_to_u32(in_port) << 8) ^ hlimit;
}

/* Classes are numbered, and so are ports: neighbors shall not share sets. */
static inline size_t
tag_to_set(uint64_t tag)
{
    return (tag * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - 9);
}
BUILD_ASSERT_DECL(N_SETS == 1 << 9);

/* Returns the offset of word 'i' in the headers. */
static inline size_t
word_ofs(size_t i)
{
    return i < N_MATCH_WORDS - 1 ? i * 8 : DP_PLANB_HEADERS_LEN - 8;
}

static inline uint64_t
get_word(const uint8_t *headers, size_t i)
{
    uint64_t word;

    memcpy(&word, headers + word_ofs(i), sizeof word);
    return word;
}

static inline void
put_word(uint8_t *headers, size_t i, uint64_t word)
{
    memcpy(headers + word_ofs(i), &word, sizeof word);
}

/* Returns the TCP flags of the packet with 'headers', 0 if it has none. */
static inline uint16_t
get_tcp_flags(const uint8_t *headers)
{
    const struct tcp_header *tcp
        = (const void *) (headers + DP_PLANB_HEADERS_LEN);
    const size_t payload_len = dp_planb_payload_len(headers);

    if (headers[DP_PLANB_IP6_OFS(ip6_nxt)] == IPPROTO_TCP
        && payload_len >= TCP_HEADER_LEN) {
        size_t tcp_len = TCP_OFFSET(tcp->tcp_ctl) * 4;

        if (tcp_len >= TCP_HEADER_LEN && tcp_len <= payload_len) {
            return TCP_FLAGS(tcp->tcp_ctl);
        }
    }
    return 0;
}

/* Compiling flows. */

/* Stores in 'headers' those fields of 'flow' that are in the headers. */
static void
put_headers(const struct flow *flow, uint8_t headers[DP_PLANB_HEADERS_LEN])
{
    struct {
        struct eth_header eth;
        struct ovs_16aligned_ip6_hdr ip6;
    } *h = (void *) headers;
    BUILD_ASSERT(sizeof *h == DP_PLANB_HEADERS_LEN);

    memset(headers, 0, DP_PLANB_HEADERS_LEN);
    h->eth.eth_dst = flow->dl_dst;
    h->eth.eth_src = flow->dl_src;
    h->eth.eth_type = flow->dl_type;
    put_16aligned_be32(&h->ip6.ip6_flow,
                       htonl(flow->nw_tos << 20) | flow->ipv6_label);
    h->ip6.ip6_nxt = flow->nw_proto;
    h->ip6.ip6_hlim = flow->nw_ttl;
    memcpy(&h->ip6.ip6_src, &flow->ipv6_src, sizeof h->ip6.ip6_src);
    memcpy(&h->ip6.ip6_dst, &flow->ipv6_dst, sizeof h->ip6.ip6_dst);
}

/* Compiles the match of 'flow' to 'f->match' and 'f->more'.  Returns false if
 * that cannot be done. */
static bool
compile_match(const struct dp_netdev_flow *flow, struct dp_planb_flow *f)
{
    OVS_ALIGNED_VAR(2) uint8_t value[DP_PLANB_HEADERS_LEN];
    OVS_ALIGNED_VAR(2) uint8_t mask[DP_PLANB_HEADERS_LEN];
    struct flow_wildcards wc, can;

    memset(&wc, 0, sizeof wc);
    miniflow_expand(&flow->cr.mask->mf, &wc.masks);
    /* An exact match has all 32 bits, of which the headers have other uses. */
    wc.masks.ipv6_label &= htonl(IPV6_LABEL_MASK);

    /* The fields that are in the headers, and those that are the same for all
     * packets that have just been received and have no more than these
     * headers.  The input port is not in the mask of any flow, because each
     * port has a classifier of its own, and so has been compared. */
    flow_wildcards_init_catchall(&can);
    WC_MASK_FIELD(&can, dl_dst);
    WC_MASK_FIELD(&can, dl_src);
    WC_MASK_FIELD(&can, dl_type);
    WC_MASK_FIELD(&can, nw_tos);
    WC_MASK_FIELD(&can, ipv6_label);
    WC_MASK_FIELD(&can, nw_proto);
    WC_MASK_FIELD(&can, nw_ttl);
    WC_MASK_FIELD(&can, ipv6_src);
    WC_MASK_FIELD(&can, ipv6_dst);
    WC_MASK_FIELD(&can, recirc_id);
    WC_MASK_FIELD(&can, planb);
    WC_MASK_FIELD(&can, packet_type);
    WC_MASK_FIELD(&can, vlans[0]);
    WC_MASK_FIELD(&can, nw_frag);
    WC_MASK_FIELD(&can, dp_hash);
    WC_MASK_FIELD(&can, skb_priority);
    WC_MASK_FIELD(&can, pkt_mark);
    WC_MASK_FIELD(&can, ct_state);
    WC_MASK_FIELD(&can, ct_zone);
    WC_MASK_FIELD(&can, ct_mark);
    WC_MASK_FIELD(&can, ct_label);
    if (flow_wildcards_has_extra(&can, &wc)
        || wc.masks.planb != UINT32_MAX
        || flow->flow.packet_type != htonl(PT_ETH)
        || flow->flow.dl_type != htons(ETH_TYPE_IPV6)
        || flow->flow.vlans[0].tci
        || flow->flow.nw_frag
        || flow->flow.dp_hash & wc.masks.dp_hash
        || flow->flow.skb_priority & wc.masks.skb_priority
        || flow->flow.pkt_mark & wc.masks.pkt_mark
        || flow->flow.ct_state) {
        return false;
    }

    put_headers(&flow->flow, value);
    put_headers(&wc.masks, mask);
    for (size_t i = 0; i < N_MATCH_WORDS; i++) {
        bool more = i >= N_REWRITE_WORDS;
        struct dp_planb_match *m = (more ? &f->more[i - N_REWRITE_WORDS]
                                    : &f->match[i]);

        m->mask = get_word(mask, i);
        m->value = get_word(value, i) & m->mask;
        f->match_more |= more && m->mask;
    }
    return true;
}

/* Has 'f' set to 0 the bits that are 1-bits in the 'n' bytes 'mask' at 'ofs'
 * in the headers, and then to 1 those that are 1-bits in 'value'.  As with
 * odp_execute_actions(), 'mask' need not cover 'value'. */
static void
compile_bytes(struct dp_planb_flow *f, size_t ofs, const void *value_,
              const void *mask_, size_t n)
{
    const uint8_t *value = value_, *mask = mask_;

    for (size_t i = 0; i < n; i++) {
        uint8_t *keep = (uint8_t *) f->keep + ofs + i;
        uint8_t *set = (uint8_t *) f->set + ofs + i;

        *keep &= ~mask[i];
        *set = (*set & ~mask[i]) | value[i];
    }
}

/* Compiles 'a', an OVS_ACTION_ATTR_SET or, if 'masked', an
 * OVS_ACTION_ATTR_SET_MASKED.  Returns false if that cannot be done. */
static bool
compile_set(const struct nlattr *a, bool masked, struct dp_planb_flow *f)
{
    const struct nlattr *field = nl_attr_get(a);

    if (nl_attr_type(field) == OVS_KEY_ATTR_ETHERNET) {
        static const struct ovs_key_ethernet exact = {
            .eth_src = ETH_ADDR_C(ff,ff,ff,ff,ff,ff),
            .eth_dst = ETH_ADDR_C(ff,ff,ff,ff,ff,ff),
        };
        const struct ovs_key_ethernet *key = nl_attr_get(field);
        const struct ovs_key_ethernet *mask = masked ? key + 1 : &exact;

        compile_bytes(f, offsetof(struct eth_header, eth_src),
                      &key->eth_src, &mask->eth_src, ETH_ADDR_LEN);
        compile_bytes(f, offsetof(struct eth_header, eth_dst),
                      &key->eth_dst, &mask->eth_dst, ETH_ADDR_LEN);
        return true;
    } else if (masked && nl_attr_type(field) == OVS_KEY_ATTR_IPV6) {
        const struct ovs_key_ipv6 *key = nl_attr_get(field);
        const struct ovs_key_ipv6 *mask = key + 1;
        ovs_be32 word, word_mask;

        /* With the addresses, checksums would have to change. */
        if (!is_all_zeros(&mask->ipv6_src, sizeof mask->ipv6_src)
            || !is_all_zeros(&mask->ipv6_dst, sizeof mask->ipv6_dst)) {
            return false;
        }
        word = htonl(key->ipv6_tclass << 20) | key->ipv6_label;
        word_mask = htonl(mask->ipv6_tclass << 20) | mask->ipv6_label;
        compile_bytes(f, DP_PLANB_IP6_OFS(ip6_flow), &word, &word_mask,
                      sizeof word);
        compile_bytes(f, DP_PLANB_IP6_OFS(ip6_hlim), &key->ipv6_hlimit,
                      &mask->ipv6_hlimit, 1);
        return true;
    }
    return false;
}

/* Compiles the actions of 'flow'.  Returns false if that cannot be done. */
static bool
compile_actions(const struct dp_netdev_flow *flow, struct dp_planb_flow *f)
{
    const struct dp_netdev_actions *actions
        = ovsrcu_get(struct dp_netdev_actions *, &flow->actions);
    const struct nlattr *a;
    unsigned int left;

    f->out_port = ODPP_NONE;
    memset(f->keep, 0xff, sizeof f->keep);
    NL_ATTR_FOR_EACH (a, left, actions->actions, actions->size) {
        switch (nl_attr_type(a)) {
        case OVS_ACTION_ATTR_COUNT_ROUTE:
            if (f->count_route) {
                return false;
            }
            f->count_route = true;
            break;

        case OVS_ACTION_ATTR_SET:
        case OVS_ACTION_ATTR_SET_MASKED:
            if (!compile_set(a, nl_attr_type(a) == OVS_ACTION_ATTR_SET_MASKED,
                             f)) {
                return false;
            }
            break;

        case OVS_ACTION_ATTR_OUTPUT:
            f->out_port = nl_attr_get_odp_port(a);
            return NLA_ALIGN(a->nla_len) >= left;

        case OVS_ACTION_ATTR_DROP:
            f->drop = a;
            return true;

        default:
            return false;
        }
    }
    return true;
}

/* The cache. */

/* Returns a new cache, or a null pointer if there is no memory for it.  The
 * caller must eventually pass it to dp_planb_flows_destroy(). */
struct dp_planb_flows *
dp_planb_flows_create(void)
{
    return dp_planb_alloc(sizeof(struct dp_planb_flows));
}

void
dp_planb_flows_destroy(struct dp_planb_flows *flows)
{
    free(flows);
}

/* Returns the cache of 'pmd', or a null pointer if it has none. */
static inline struct dp_planb_flows *
get_flows(const struct dp_planb_pmd *pmd)
{
    struct dp_planb_flows *flows;

    atomic_read_explicit(&CONST_CAST(struct dp_planb_pmd *, pmd)->flows,
                         &flows, memory_order_acquire);
    return flows;
}

/* Tells the cache of 'pmd' that 'flow' has been removed from the flow table or
 * been given new actions.  Must be called before what is old is handed to RCU,
 * with the 'flow_mutex' of the thread held. */
void
dp_planb_flow_changed(struct dp_planb_pmd *pmd,
                      const struct dp_netdev_flow *flow)
{
    if (flow->flow.planb) {
        uint64_t seq;

        atomic_read_relaxed(&pmd->flows_seq, &seq);
        atomic_store_explicit(&pmd->flows_seq, seq + 1, memory_order_release);
    }
}

/* Empties 'flows', of 'pmd', if any flow may have gone away since the last
 * time. */
static inline void
flows_revalidate(struct dp_planb_pmd *pmd, struct dp_planb_flows *flows)
{
    uint64_t seq;

    atomic_read_explicit(&pmd->flows_seq, &seq, memory_order_acquire);
    if (OVS_UNLIKELY(seq != flows->seen_seq)) {
        flows->seen_seq = seq;
        memset(flows->tags, 0, sizeof flows->tags);
    }
}

/* Implements dp_planb_learn() for a packet with a class. */
void
dp_planb_learn__(struct dp_planb_pmd *pmd, struct dp_netdev_flow *flow,
                 const struct dp_packet *packet)
{
    struct dp_planb_flows *flows = get_flows(pmd);
    const uint8_t *headers = dp_planb_get_headers(packet);
    odp_port_t in_port = flow->flow.in_port.odp_port;
    size_t set, way, free_way = N_WAYS;
    struct dp_planb_flow f;
    uint64_t tag;

    if (!flows || !headers || flow->flow.planb != packet->md.planb
        || flow->flow.recirc_id || odp_to_u32(in_port) > TAG_MAX_PORT) {
        return;
    }
    tag = make_tag(flow->flow.planb, in_port,
                   headers[DP_PLANB_IP6_OFS(ip6_hlim)]);
    set = tag_to_set(tag);
    for (way = 0; way < N_WAYS; way++) {
        if (!flows->tags[set][way]) {
            free_way = MIN(free_way, way);
        } else if ((flows->tags[set][way] & ~TAG_NOT_COMPILED) == tag
                   && flows->flows[set][way].flow == flow) {
            return;
        }
    }
    if (free_way == N_WAYS && ++flows->n_conflicts % 64) {
        /* Compiling flows that take turns in the cache would take longer than
         * it saves. */
        return;
    }

    memset(&f, 0, sizeof f);
    f.flow = flow;
    if (!compile_match(flow, &f) || !compile_actions(flow, &f)) {
        tag |= TAG_NOT_COMPILED;
    }
    if (free_way == N_WAYS) {
        if (tag & TAG_NOT_COMPILED) {
            return;
        }
        free_way = flows->n_conflicts / 64 % N_WAYS;
        for (way = 0; way < N_WAYS; way++) {
            if (flows->tags[set][way] & TAG_NOT_COMPILED) {
                free_way = way;
            }
        }
    }
    flows->flows[set][free_way] = f;
    flows->tags[set][free_way] = tag;
}

/* Returns 0 if 'm' matches word 'i' of 'headers'. */
static inline uint64_t
compare_word(const struct dp_planb_match *m, const uint8_t *headers, size_t i)
{
    return (get_word(headers, i) & m->mask) ^ m->value;
}

/* Returns true if 'f' matches 'headers'. */
static inline bool
flow_matches(const struct dp_planb_flow *f, const uint8_t *headers)
{
    return (!(compare_word(&f->match[0], headers, 0)
              | compare_word(&f->match[1], headers, 1)
              | compare_word(&f->match[2], headers, 2))
            && (OVS_LIKELY(!f->match_more)
                || !(compare_word(&f->more[0], headers, 3)
                     | compare_word(&f->more[1], headers, 4)
                     | compare_word(&f->more[2], headers, 5)
                     | compare_word(&f->more[3], headers, 6))));
}

/* Changes word 'i' of 'headers' as 'f' has it. */
static inline void
rewrite_word(const struct dp_planb_flow *f, uint8_t *headers, size_t i)
{
    put_word(headers, i, (get_word(headers, i) & f->keep[i]) | f->set[i]);
}

/* Returns the flow in 'flows' for a packet with 'headers' that comes from
 * 'in_port' and has class 'class_id', or a null pointer if there is none. */
static inline struct dp_planb_flow *
flows_find(struct dp_planb_flows *flows, uint32_t class_id,
           odp_port_t in_port, const uint8_t *headers)
{
    uint64_t tag = make_tag(class_id, in_port,
                            headers[DP_PLANB_IP6_OFS(ip6_hlim)]);
    size_t set = tag_to_set(tag);

    for (size_t way = 0; way < N_WAYS; way++) {
        if (OVS_LIKELY(flows->tags[set][way] == tag)) {
            struct dp_planb_flow *f = &flows->flows[set][way];

            if (OVS_LIKELY(flow_matches(f, headers))) {
                return f;
            }
        }
    }
    return NULL;
}

/* What is sent to one port, or dropped for one reason. */
struct output {
    odp_port_t port_no;
    const struct nlattr *drop;
    struct dp_packet_batch batch;
};

/* Adds 'packet' to what is sent or dropped as 'f' has it. */
static inline void
add_output(struct output outputs[], size_t *n_outputs,
           const struct dp_planb_flow *f, struct dp_packet *packet)
{
    struct output *output = outputs;

    while (output < &outputs[*n_outputs]
           && (output->port_no != f->out_port || output->drop != f->drop)) {
        output++;
    }
    if (output == &outputs[*n_outputs]) {
        output->port_no = f->out_port;
        output->drop = f->drop;
        dp_packet_batch_init(&output->batch);
        ++*n_outputs;
    }
    dp_packet_batch_add(&output->batch, packet);
}

/* Sends or drops the packets of 'output'. */
static void
execute_output(struct dp_netdev_pmd_thread *pmd, struct output *output)
{
    if (output->port_no != ODPP_NONE) {
        dp_execute_output_action(pmd, &output->batch, true, output->port_no);
    } else {
        odp_execute_actions(pmd, &output->batch, true, output->drop,
                            output->drop ? output->drop->nla_len : 0, NULL);
    }
}

/* Forwards those packets in 'batch' whose flows 'pmd' has in its cache, and
 * removes them from it.  The packets have come from 'in_port', 'results' are
 * what dp_planb_lookup() has found for them.  Removes from 'results' too what
 * belongs to the packets that were forwarded. */
void
dp_planb_forward(struct dp_netdev_pmd_thread *pmd,
                 struct dp_packet_batch *batch, odp_port_t in_port,
                 struct dp_planb_result results[])
{
    const size_t cnt = dp_packet_batch_size(batch);
    struct dp_planb_flows *flows = get_flows(pmd->planb);
    struct dp_planb_flow *used[NETDEV_MAX_BURST + 1];
    struct output outputs[NETDEV_MAX_BURST];
    struct {
        uint32_t route;
        uint32_t size;
    } counts[NETDEV_MAX_BURST];
    size_t n_outputs = 0, n_used = 0, n_counts = 0, n_forwarded;
    struct dp_packet *packet;
    int i;

    /* Packets from hardware that knows flows need to be looked at first. */
    if (!flows || netdev_is_flow_api_enabled()
        || odp_to_u32(in_port) > TAG_MAX_PORT) {
        return;
    }
    flows_revalidate(pmd->planb, flows);

    DP_PACKET_BATCH_REFILL_FOR_EACH (i, cnt, packet, batch) {
        const uint32_t size = dp_packet_size(packet);
        uint8_t *headers = results[i].headers;
        struct dp_planb_flow *f;

        f = (OVS_LIKELY(headers && results[i].class_id)
             ? flows_find(flows, results[i].class_id, in_port, headers)
             : NULL);
        if (OVS_UNLIKELY(!f)) {
            results[dp_packet_batch_size(batch)] = results[i];
            dp_packet_batch_refill(batch, packet, i);
            continue;
        }

        used[n_used] = f;       /* No branch, for it would be a random one. */
        n_used += !f->n_packets++;
        f->n_bytes += size;
        f->tcp_flags |= get_tcp_flags(headers);
        counts[n_counts].route = results[i].route;
        counts[n_counts].size = size;
        n_counts += f->count_route;

        /* As miniflow_extract() would have left the packet. */
        pkt_metadata_init(&packet->md, in_port);
        dp_packet_reset_offsets(packet);
        packet->l3_ofs = ETH_HEADER_LEN;
        packet->l4_ofs = DP_PLANB_HEADERS_LEN;
        dp_packet_set_l2_pad_size(packet, (size - DP_PLANB_HEADERS_LEN
                                           - dp_planb_payload_len(headers)));

        rewrite_word(f, headers, 0);
        rewrite_word(f, headers, 1);
        rewrite_word(f, headers, 2);
        add_output(outputs, &n_outputs, f, packet);
    }

    /* By now the counters are in the cache. */
    for (size_t j = 0; j < n_counts; j++) {
        dp_planb_count_packet(pmd->planb, counts[j].route, counts[j].size);
    }
    for (size_t j = 0; j < n_used; j++) {
        struct dp_planb_flow *f = used[j];

        dp_netdev_flow_used(f->flow, f->n_packets, f->n_bytes, f->tcp_flags,
                            pmd->ctx.now / 1000);
        f->n_packets = 0;
        f->n_bytes = 0;
        f->tcp_flags = 0;
    }

    n_forwarded = cnt - dp_packet_batch_size(batch);
    COVERAGE_ADD(dp_planb_forwarded, n_forwarded);
    pmd_perf_update_counter(&pmd->perf_stats, PMD_STAT_RECV, n_forwarded);
    pmd_perf_update_counter(&pmd->perf_stats, PMD_STAT_SIMPLE_HIT,
                            n_forwarded);

    for (size_t j = 0; j < n_outputs; j++) {
        execute_output(pmd, &outputs[j]);
    }
}
