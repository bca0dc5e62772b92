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

#include "hash.h"
#include "openvswitch/meta-flow.h"
#include "openvswitch/ofp-actions.h"
#include "ovs-rcu.h"
#include "util.h"

/* Route classes.
 *
 * Two routes of a table are in one class if no translation can tell them
 * apart.  That takes equal actions, and more than that if a translation of
 * those can show something else of the rule. */

/* Protects the membership of the classes, 'classes' and 'last_class_id'. */
static struct ovs_mutex planb_class_mutex = OVS_MUTEX_INITIALIZER;

/* All of the "struct planb_class"es, by 'id'. */
static struct cmap planb_classes = CMAP_INITIALIZER;

/* The last class that was given a number.  No number is ever used again. */
static uint32_t last_class_id OVS_GUARDED_BY(planb_class_mutex);

/* What a translation of some actions can show beyond what they say. */
struct exposure {
    bool own;                   /* The rule. */
    bool cookie;                /* The rule's flow cookie. */
    uint8_t max_ttl;            /* The same, for no more than this hop limit,
                                 * if 'cookie' is false. */
};

/* Finds out what translations of 'actions' can show.  Where in doubt, they can
 * show the flow cookie. */
static struct exposure
get_exposure(const struct rule_actions *actions)
{
    struct exposure e = { .own = false };
    bool ttl_changes = false;
    const struct ofpact *a;

    OFPACT_FOR_EACH (a, actions->ofpacts, actions->ofpacts_len) {
        switch (a->type) {
        case OFPACT_DEC_TTL:
            /* A packet whose hop limit is used up goes to the controller with
             * the cookie.  Which packets these are is only clear from the
             * outset if nothing else changes the hop limit first. */
            if (ttl_changes || e.max_ttl == UINT8_MAX) {
                e.cookie = true;
            } else {
                e.max_ttl++;
            }
            break;

        case OFPACT_OUTPUT:
            if (ofpact_get_OUTPUT(a)->port == OFPP_CONTROLLER) {
                e.cookie = true;
            }
            break;

        case OFPACT_OUTPUT_TRUNC:
            if (ofpact_get_OUTPUT_TRUNC(a)->port == OFPP_CONTROLLER) {
                e.cookie = true;
            }
            break;

        case OFPACT_SET_FIELD:
        case OFPACT_REG_MOVE:
        case OFPACT_STACK_POP:
        case OFPACT_SET_IP_TTL:
        case OFPACT_RESUBMIT:
        case OFPACT_GOTO_TABLE:
            ttl_changes = !(a->type == OFPACT_SET_FIELD
                            && (ofpact_get_SET_FIELD(a)->field->id
                                != MFF_IP_TTL)) || ttl_changes;
            break;

        case OFPACT_SET_VLAN_VID:
        case OFPACT_SET_VLAN_PCP:
        case OFPACT_STRIP_VLAN:
        case OFPACT_PUSH_VLAN:
        case OFPACT_SET_ETH_SRC:
        case OFPACT_SET_ETH_DST:
        case OFPACT_SET_IP_DSCP:
        case OFPACT_SET_IP_ECN:
        case OFPACT_SET_L4_SRC_PORT:
        case OFPACT_SET_L4_DST_PORT:
        case OFPACT_STACK_PUSH:
        case OFPACT_SET_TUNNEL:
        case OFPACT_SET_QUEUE:
        case OFPACT_POP_QUEUE:
        case OFPACT_ENQUEUE:
        case OFPACT_WRITE_METADATA:
        case OFPACT_METER:
        case OFPACT_NOTE:
            break;

        case OFPACT_FIN_TIMEOUT:
            e.own = true;
            break;

        case OFPACT_CONTROLLER:
        case OFPACT_GROUP:
        case OFPACT_OUTPUT_REG:
        case OFPACT_BUNDLE:
        case OFPACT_SET_IPV4_SRC:
        case OFPACT_SET_IPV4_DST:
        case OFPACT_PUSH_MPLS:
        case OFPACT_POP_MPLS:
        case OFPACT_SET_MPLS_LABEL:
        case OFPACT_SET_MPLS_TC:
        case OFPACT_SET_MPLS_TTL:
        case OFPACT_DEC_MPLS_TTL:
        case OFPACT_LEARN:
        case OFPACT_CONJUNCTION:
        case OFPACT_MULTIPATH:
        case OFPACT_EXIT:
        case OFPACT_SAMPLE:
        case OFPACT_UNROLL_XLATE:
        case OFPACT_CT:
        case OFPACT_CT_CLEAR:
        case OFPACT_NAT:
        case OFPACT_CLONE:
        case OFPACT_ENCAP:
        case OFPACT_DECAP:
        case OFPACT_DEC_NSH_TTL:
        case OFPACT_CHECK_PKT_LARGER:
        case OFPACT_DELETE_FIELD:
        case OFPACT_DEBUG_RECIRC:
        case OFPACT_DEBUG_SLOW:
        case OFPACT_CLEAR_ACTIONS:
        case OFPACT_WRITE_ACTIONS:
        default:
            e.cookie = true;
            break;
        }
    }
    return e;
}

/* Returns the class with number 'id', or NULL if there is none any more. */
const struct planb_class *
planb_class_lookup(uint32_t id)
{
    const struct planb_class *class;

    CMAP_FOR_EACH_WITH_HASH (class, id_node, hash_int(id, 0),
                             &planb_classes) {
        if (class->id == id) {
            return class;
        }
    }
    return NULL;
}

/* Creates a class of table 't' with a number of its own.  Returns NULL if
 * there are no more numbers. */
static struct planb_class *
class_create(struct planb_rt *t, uint32_t key_hash)
    OVS_REQUIRES(planb_class_mutex)
{
    struct planb_class *class;

    if (last_class_id == UINT32_MAX) {
        return NULL;
    }

    class = xzalloc(sizeof *class);
    class->table = t;
    class->id = ++last_class_id;
    rculist_init(&class->routes);
    hmap_insert(&t->classes, &class->key_node, key_hash);
    cmap_insert(&planb_classes, &class->id_node, hash_int(class->id, 0));
    return class;
}

static void
class_free(struct planb_class *class)
{
    free(class->ofpacts);
    free(class);
}

static void
class_destroy(struct planb_class *class)
    OVS_REQUIRES(planb_class_mutex)
{
    hmap_remove(&class->table->classes, &class->key_node);
    cmap_remove(&planb_classes, &class->id_node, hash_int(class->id, 0));
    ovsrcu_postpone(class_free, class);
}

/* Creates the class of the addresses without a route in 't', as its 'miss'.
 * Returns false if there are no more numbers. */
bool
planb_class_create_miss(struct planb_rt *t)
{
    ovs_mutex_lock(&planb_class_mutex);
    t->miss = class_create(t, 0);
    ovs_mutex_unlock(&planb_class_mutex);
    return t->miss != NULL;
}

/* Destroys the 'miss' of 't'. */
void
planb_class_destroy_miss(struct planb_rt *t)
{
    ovs_mutex_lock(&planb_class_mutex);
    class_destroy(t->miss);
    ovs_mutex_unlock(&planb_class_mutex);
}

/* Puts 'route' into the class of the routes of its table that translate like
 * it.  Returns false if a new class would be needed but cannot be had. */
bool
planb_class_add_route(struct planb_route *route)
{
    struct planb_rt *t = route->table;
    const struct rule *rule = &route->rule->up;
    const struct rule_actions *actions = rule_get_actions(rule);
    struct exposure e = get_exposure(actions);
    const struct rule_dpif *own = e.own ? route->rule : NULL;
    ovs_be64 cookie = e.cookie ? rule->flow_cookie : 0;
    uint32_t hash = hash_bytes(actions->ofpacts, actions->ofpacts_len,
                               hash_pointer(own, hash_uint64((OVS_FORCE
                                                              uint64_t)
                                                             cookie)));
    struct planb_class *class;

    ovs_mutex_lock(&planb_class_mutex);
    HMAP_FOR_EACH_WITH_HASH (class, key_node, hash, &t->classes) {
        if (class != t->miss
            && class->cookie == cookie
            && class->own == own
            && ofpacts_equal(class->ofpacts, class->ofpacts_len,
                             actions->ofpacts, actions->ofpacts_len)) {
            break;
        }
    }
    if (!class) {
        class = class_create(t, hash);
        if (!class) {
            ovs_mutex_unlock(&planb_class_mutex);
            return false;
        }
        class->ofpacts = xmemdup(actions->ofpacts, actions->ofpacts_len);
        class->ofpacts_len = actions->ofpacts_len;
        class->cookie = cookie;
        class->own = own;
        class->max_exposed_ttl = e.cookie ? 0 : e.max_ttl;
    }

    route->class = class;
    rculist_push_front(&class->routes, &route->class_node);
    ovs_mutex_unlock(&planb_class_mutex);
    return true;
}

/* Takes 'route' out of its class, which goes with its last route. */
void
planb_class_remove_route(struct planb_route *route)
{
    struct planb_class *class = route->class;

    ovs_mutex_lock(&planb_class_mutex);
    route->class = NULL;
    rculist_remove(&route->class_node);
    if (rculist_is_empty(&class->routes)) {
        class_destroy(class);
    }
    ovs_mutex_unlock(&planb_class_mutex);
}

/* Keeps count of the classes that have a route in the flow table, when a route
 * of 'class' has been inserted into it or removed from it. */
void
planb_class_count_route(struct planb_class *class, bool inserted)
{
    ovs_mutex_lock(&planb_class_mutex);
    if (inserted) {
        class->table->n_classes += !class->n_routes++;
    } else {
        class->table->n_classes -= !--class->n_routes;
    }
    ovs_mutex_unlock(&planb_class_mutex);
}
