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

#include "ofproto-dpif-planb.h"
#include "ofproto-dpif-planb-provider.h"

#include "classifier.h"
#include "flow.h"
#include "netlink.h"
#include "odp-netlink.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/meta-flow.h"
#include "openvswitch/ofp-actions.h"
#include "openvswitch/ofpbuf.h"
#include "packets.h"
#include "util.h"

/* What a translation has to know of route tables. */

/* Looks 'flow' up in table 'table_id' of 'ofproto' by the route class that it
 * carries.  Returns true if that tells the result, and stores it in '*rulep':
 * a rule, or NULL if no route matches.  Returns false if the caller should ask
 * the classifier.  Adds to 'wc', if it is nonnull, the fields that the answer
 * depends on in either case.
 *
 * 'flow' carries no class if its destination is not the one with which the
 * packet has come, see planb_note_action(). */
bool
planb_lookup_rule(const struct ofproto_dpif *ofproto, ovs_version_t version,
                  uint8_t table_id, const struct flow *flow,
                  struct flow_wildcards *wc, struct rule_dpif **rulep)
{
    const struct planb_rt *t = planb_rt_lookup(ofproto, table_id);
    const struct planb_class *class;
    const struct planb_route *route;

    if (OVS_LIKELY(!t)
        || flow->dl_type != htons(ETH_TYPE_IPV6)
        || flow->packet_type != htonl(PT_ETH)
        || !planb_rt_is_accelerated(t, version)) {
        return false;
    }

    if (wc) {
        WC_MASK_FIELD(wc, planb);
    }
    if (!flow->planb) {
        return false;
    }
    class = planb_class_lookup(flow->planb);
    if (!class || class->table != t) {
        return false;
    }
    if (class == t->miss) {
        *rulep = NULL;
        return true;
    }

    if (class->max_exposed_ttl) {
        if (wc) {
            WC_MASK_FIELD(wc, nw_ttl);
        }
        if (flow->nw_ttl <= class->max_exposed_ttl) {
            return false;
        }
    }

    RCULIST_FOR_EACH (route, class_node, &class->routes) {
        if (cls_rule_visible_in_version(&route->rule->up.cr, version)) {
            *rulep = route->rule;
            return true;
        }
    }
    return false;
}

/* Tells what a lookup in table 'table_id' of 'ofproto' that un-wildcarded the
 * route class and had 'rule' as its result made of the class.  'upcall_flow'
 * is the flow as it has come from the datapath and 'flow' is what was looked
 * up.  For PLANB_USE_BIND, stores in '*dp_table_id' the table to bind to. */
enum planb_use
planb_get_use(const struct ofproto_dpif *ofproto, uint8_t table_id,
              const struct rule_dpif *rule, const struct flow *upcall_flow,
              const struct flow *flow, uint32_t *dp_table_id)
{
    const struct planb_rt *t = planb_rt_lookup(ofproto, table_id);

    if (!t || !planb_rt_is_accelerated(t, OVS_VERSION_MAX)) {
        return PLANB_USE_NONE;
    }
    if (flow->planb) {
        const struct planb_class *class = planb_class_lookup(flow->planb);
        uint32_t rule_class = 0;

        if (rule) {
            atomic_read_relaxed(&CONST_CAST(struct rule_dpif *,
                                            rule)->planb.class_id,
                                &rule_class);
        }
        if (rule_class == flow->planb) {
            return PLANB_USE_ROUTE;
        }
        if (class && class == t->miss) {
            return PLANB_USE_CLASS;
        }
    }
    if (flow->dl_type == htons(ETH_TYPE_IPV6)
        && ipv6_addr_equals(&flow->ipv6_dst, &upcall_flow->ipv6_dst)) {
        *dp_table_id = t->dp_id;
        return PLANB_USE_BIND;
    }
    return PLANB_USE_NONE;
}

/* Called before 'flow' is looked up.  Takes the route class away from 'flow'
 * if its destination is not the one with which the packet has come. */
void
planb_check_destination(const struct flow *upcall_flow, struct flow *flow)
{
    if (flow->planb
        && !ipv6_addr_equals(&flow->ipv6_dst, &upcall_flow->ipv6_dst)) {
        flow->planb = 0;
    }
}

/* Called before the OpenFlow action 'a' is carried out on 'flow'.  If it may
 * write the IPv6 destination, takes the route class away from 'flow': the
 * class tells about the destination with which the packet has come, and the
 * action gives the same destination, equal or not, to all packets. */
void
planb_note_action(const struct ofpact *a, struct flow *flow)
{
    const struct mf_field *dst = NULL;

    if (OVS_LIKELY(!flow->planb)) {
        return;
    }
    if (a->type == OFPACT_SET_FIELD) {
        dst = ofpact_get_SET_FIELD(a)->field;
    } else if (a->type == OFPACT_REG_MOVE) {
        dst = ofpact_get_REG_MOVE(a)->dst.field;
    } else if (a->type == OFPACT_STACK_POP) {
        dst = ofpact_get_STACK_POP(a)->subfield.field;
    } else if (a->type == OFPACT_BUNDLE || a->type == OFPACT_MULTIPATH
               || a->type == OFPACT_ENCAP || a->type == OFPACT_DECAP
               || a->type == OFPACT_PUSH_MPLS || a->type == OFPACT_POP_MPLS) {
        flow->planb = 0;
    }
    if (dst && dst->id == MFF_IPV6_DST) {
        flow->planb = 0;
    }
}

/* Puts 'n' count_route actions before 'odp_actions'.  They come first because
 * a packet counts for the rules that it meets no matter what becomes of it. */
void
planb_put_count_route(struct ofpbuf *odp_actions, unsigned int n)
{
    while (n--) {
        struct nlattr *a = ofpbuf_push_uninit(odp_actions, NLA_HDRLEN);

        a->nla_len = NLA_HDRLEN;
        a->nla_type = OVS_ACTION_ATTR_COUNT_ROUTE;
    }
}

static unsigned int
get_n_count_route(const struct ofpbuf *odp_actions)
{
    const struct nlattr *a;
    unsigned int left, n = 0;

    NL_ATTR_FOR_EACH_UNSAFE (a, left, odp_actions->data, odp_actions->size) {
        if (nl_attr_type(a) != OVS_ACTION_ATTR_COUNT_ROUTE) {
            break;
        }
        n++;
    }
    return n;
}

/* Does the datapath count packets as often with 'odp_actions_a' as with
 * 'odp_actions_b'?  If not, what one translation has to credit is not what the
 * other has to, so that a megaflow cannot change in place from one to the
 * other: there would be no telling how many packets belong to which. */
bool
planb_counts_equally(const struct ofpbuf *odp_actions_a,
                     const struct ofpbuf *odp_actions_b)
{
    return (get_n_count_route(odp_actions_a)
            == get_n_count_route(odp_actions_b));
}

/* Appends to 's' the class of 'rule', for a trace of a lookup in a route table
 * with 'flow'. */
void
planb_report(const struct rule_dpif *rule, const struct flow *flow,
             struct ds *s)
{
    uint32_t class_id = 0;

    if (rule) {
        atomic_read_relaxed(&CONST_CAST(struct rule_dpif *,
                                        rule)->planb.class_id, &class_id);
    }
    if (class_id) {
        ds_put_format(s, "route class %"PRIu32, class_id);
    } else {
        ds_put_cstr(s, "no route");
    }
    if (!flow->planb) {
        ds_put_cstr(s, ", found by address");
    } else if (class_id && flow->planb != class_id) {
        ds_put_format(s, ", found by address (packet has class %"PRIu32")",
                      flow->planb);
    } else {
        ds_put_cstr(s, ", found by class");
    }
}
