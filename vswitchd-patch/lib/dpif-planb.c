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
#include "dpif-planb.h"

#include <errno.h>

#include "dpif-provider.h"

/* Stores what 'dpif' offers in '*features'.  Returns 0 if successful,
 * EOPNOTSUPP if 'dpif' does not know route tables at all. */
int
dpif_planb_get_features(const struct dpif *dpif,
                        struct dpif_planb_features *features)
{
    const struct dpif_planb_class *class = dpif->dpif_class->planb;

    return class ? class->get_features(dpif, features) : EOPNOTSUPP;
}

/* Gives the 'n' route indexes in 'routes' their classes in 'dpif'. */
int
dpif_planb_add_routes(struct dpif *dpif,
                      const struct dpif_planb_route routes[], size_t n)
{
    const struct dpif_planb_class *class = dpif->dpif_class->planb;

    return class ? class->add_routes(dpif, routes, n) : EOPNOTSUPP;
}

/* Makes 'tree' the route table 'table_id' of 'dpif'.  Takes ownership of
 * 'tree' only if successful. */
int
dpif_planb_set_table(struct dpif *dpif, uint32_t table_id, struct planb *tree,
                     uint64_t generation, uint32_t miss_index)
{
    const struct dpif_planb_class *class = dpif->dpif_class->planb;

    return (class
            ? class->set_table(dpif, table_id, tree, generation, miss_index)
            : EOPNOTSUPP);
}

/* Removes route table 'table_id' from 'dpif', with all of its bindings. */
int
dpif_planb_del_table(struct dpif *dpif, uint32_t table_id)
{
    const struct dpif_planb_class *class = dpif->dpif_class->planb;

    return class ? class->del_table(dpif, table_id) : EOPNOTSUPP;
}

/* Has 'dpif' look up the packets from 'in_port' with 'recirc_id' in route
 * table 'table_id'. */
int
dpif_planb_bind(struct dpif *dpif, odp_port_t in_port, uint32_t recirc_id,
                uint32_t table_id)
{
    const struct dpif_planb_class *class = dpif->dpif_class->planb;

    return (class
            ? class->bind(dpif, in_port, recirc_id, table_id)
            : EOPNOTSUPP);
}

/* Removes the binding of 'in_port' and 'recirc_id' from 'dpif'. */
int
dpif_planb_unbind(struct dpif *dpif, odp_port_t in_port, uint32_t recirc_id)
{
    const struct dpif_planb_class *class = dpif->dpif_class->planb;

    return class ? class->unbind(dpif, in_port, recirc_id) : EOPNOTSUPP;
}

/* Stores in '*bindingsp' a new array of '*n' elements that tell which packets
 * 'dpif' looks up in route table 'table_id'.  The caller must free()
 * '*bindingsp'. */
int
dpif_planb_get_bindings(const struct dpif *dpif, uint32_t table_id,
                        struct dpif_planb_binding **bindingsp, size_t *n)
{
    const struct dpif_planb_class *class = dpif->dpif_class->planb;

    *bindingsp = NULL;
    *n = 0;
    return class ? class->get_bindings(dpif, table_id, bindingsp, n)
                 : EOPNOTSUPP;
}

/* Stores in '*stats' what "count_route" has counted for route 'index'. */
int
dpif_planb_get_route_stats(const struct dpif *dpif, uint32_t index,
                           struct dpif_flow_stats *stats)
{
    const struct dpif_planb_class *class = dpif->dpif_class->planb;

    return class ? class->get_route_stats(dpif, index, stats) : EOPNOTSUPP;
}

/* Has 'dpif' note which routes were used since the last sweep, 'now' being the
 * time in msec. */
int
dpif_planb_sweep(struct dpif *dpif, long long int now)
{
    const struct dpif_planb_class *class = dpif->dpif_class->planb;

    return class ? class->sweep(dpif, now) : EOPNOTSUPP;
}

/* Stores in '*statsp' a new array of '*n' elements that tell what each thread
 * of 'dpif' did with route table 'table_id'.  The caller must free()
 * '*statsp'. */
int
dpif_planb_get_table_stats(const struct dpif *dpif, uint32_t table_id,
                           struct dpif_planb_pmd_stats **statsp, size_t *n)
{
    const struct dpif_planb_class *class = dpif->dpif_class->planb;

    *statsp = NULL;
    *n = 0;
    return class ? class->get_table_stats(dpif, table_id, statsp, n)
                 : EOPNOTSUPP;
}
