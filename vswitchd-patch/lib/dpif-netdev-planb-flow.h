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

#ifndef DPIF_NETDEV_PLANB_FLOW_H
#define DPIF_NETDEV_PLANB_FLOW_H 1

/* Compiled flows of route classes.
 * ================================
 *
 * What
 * ----
 *
 * A cache of datapath flows that match on a route class, in front of the
 * datapath's other flow caches, for each thread that processes packets.  A
 * flow in the cache is compiled: its match to a mask and a value for the first
 * bytes of an Ethernet frame that has an IPv6 packet in it, its actions to
 * bytes to store over these, and a port to send the packet to.
 *
 * dp_planb_input() takes a batch of packets that have just been received,
 * finds their route classes and forwards those of them whose flow is in the
 * cache.  dp_planb_learn() tells the cache about a flow that packets have
 * found in another way.
 *
 * Why
 * ---
 *
 * Once the route class is known, it nearly is the flow.  To parse the packet
 * into a miniflow, to hash that, to look it up, and to interpret the flow's
 * actions for the one or two packets of a batch that have the same class then
 * takes several times as long as finding the class.  Simple match, from which
 * a flow that sends all IPv6 packets of a port to another profits, has the
 * same idea for the flows that it can do.
 *
 * The cache knows only a common shape of flow: packets without VLAN tag or
 * IPv6 extension header, and actions that count the route, set Ethernet
 * addresses, traffic class, flow label or hop limit, and then output to one
 * port or drop.  These need no checksum to be adjusted.  Everything else, and
 * every packet that is not in the cache, takes the ordinary path, to the same
 * result.
 *
 * Packets that the cache forwards leave before the others of their batch.  A
 * packet that cannot be in the cache, like a fragment, may so be overtaken by
 * one that came after it, as it may be by one that found its flow in the exact
 * match cache while it did not.
 *
 * Packets that the cache forwards are counted for their flow and their route
 * and, in the thread's statistics, as simple match hits.
 *
 * Thread-safety
 * -------------
 *
 * The cache belongs to the thread, other threads only call
 * dp_planb_flow_changed().  The cache has no references to its flows.
 * Instead, before a flow or its actions are handed to RCU to be freed, a
 * sequence number changes, and the cache is emptied if the number has changed
 * since the last batch.  So a flow that is found in the cache was alive at the
 * start of the batch, and will not be freed before the thread quiesces. */

#include "dpif-netdev-planb.h"
#include "dpif-netdev-private-thread.h"

#ifdef  __cplusplus
extern "C" {
#endif

struct dp_planb_flows *dp_planb_flows_create(void);
void dp_planb_flows_destroy(struct dp_planb_flows *);

void dp_planb_forward(struct dp_netdev_pmd_thread *, struct dp_packet_batch *,
                      odp_port_t in_port, struct dp_planb_result[]);
void dp_planb_learn__(struct dp_planb_pmd *, struct dp_netdev_flow *,
                      const struct dp_packet *);
void dp_planb_flow_changed(struct dp_planb_pmd *,
                           const struct dp_netdev_flow *);

/* In dpif-netdev.c. */
bool dp_execute_output_action(struct dp_netdev_pmd_thread *,
                              struct dp_packet_batch *, bool should_steal,
                              odp_port_t);
void dp_netdev_flow_used(struct dp_netdev_flow *, int cnt, int size,
                         uint16_t tcp_flags, long long now);

/* Like dp_planb_lookup(), but first forwards packets that need nothing else,
 * and removes them from 'batch', which may become empty. */
static inline bool
dp_planb_input(struct dp_netdev_pmd_thread *pmd, struct dp_packet_batch *batch,
               bool md_is_valid, odp_port_t in_port,
               struct dp_planb_result results[NETDEV_MAX_BURST])
{
    if (!dp_planb_lookup(pmd->planb, batch, md_is_valid, in_port, results)) {
        return false;
    }
    dp_planb_forward(pmd, batch, in_port, results);
    return true;
}

/* Tells the cache of 'pmd' that the packets in 'batch', which must not be
 * empty and must not have been changed yet, belong to 'flow'. */
static inline void
dp_planb_learn(struct dp_planb_pmd *pmd, struct dp_netdev_flow *flow,
               const struct dp_packet_batch *batch)
{
    if (OVS_UNLIKELY(batch->packets[0]->md.planb)) {
        dp_planb_learn__(pmd, flow, batch->packets[0]);
    }
}

#ifdef  __cplusplus
}
#endif

#endif /* dpif-netdev-planb-flow.h */
