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

#include <errno.h>

#include "coverage.h"
#include "hash.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "packets.h"
#include "seq.h"
#include "timeval.h"
#include "util.h"

/* The compiler.
 *
 * One thread for each datapath takes the changes that planb_commit() hands
 * over, builds trees from them, and installs these in the datapath, so that
 * neither a flow-mod nor a packet ever waits for a build.  All changes that
 * have come in while a tree was built go into the next one.
 *
 * The same thread binds ports to route tables, on request of the threads that
 * translate, lets bindings age out, and makes the datapath note when routes
 * have been used. */

VLOG_DEFINE_THIS_MODULE(ofproto_dpif_planb_compile);

COVERAGE_DEFINE(planb_build);
COVERAGE_DEFINE(planb_build_failed);
COVERAGE_DEFINE(planb_bind);
COVERAGE_DEFINE(planb_bind_refused);
COVERAGE_DEFINE(planb_unbind);

/* How often to look for routes that have been used, and how long a binding
 * lasts that serves nobody, both in msec. */
#define SWEEP_INTERVAL 1000
#define BINDING_IDLE 60000

/* A binding that has not served anybody for this long, in msec, makes room for
 * another table.  Megaflows credit the binding at least this often. */
#define BINDING_YIELD 10000

/* How long an upcall may count on a request to be served, how long packets
 * without a class may still come after that, and how long a request is not
 * made again after it was refused, all in msec. */
#define REQUEST_PATIENCE 50
#define REQUEST_GRACE 100
#define REQUEST_REFUSED 1000

/* Routes to get rid of when all threads have gone through a quiescent state
 * since the tree without them was installed. */
struct drain_batch {
    struct planb_rt *table;         /* Holds a reference. */
    uint64_t n_commits;             /* What will have settled. */
    struct planb_drain *drains;
    size_t n;
};

static void
drain_batch_cb(struct drain_batch *batch)
{
    struct planb_rt *t = batch->table;
    size_t i;

    for (i = 0; i < batch->n; i++) {
        struct planb_drain *drain = &batch->drains[i];

        planb_counter_retire(drain->counter);
        if (drain->rule) {
            ofproto_rule_unref(&drain->rule->up);
        }
    }
    free(batch->drains);

    ovs_mutex_lock(&t->mutex);
    t->n_settled = MAX(t->n_settled, batch->n_commits);
    ovs_mutex_unlock(&t->mutex);
    seq_change(t->backer->seq);

    planb_rt_unref(t);
    free(batch);
}

static uint32_t
binding_hash(odp_port_t in_port, uint32_t recirc_id)
{
    return hash_2words(odp_to_u32(in_port), recirc_id);
}

static struct planb_binding *
binding_lookup(struct planb_backer *backer, odp_port_t in_port,
               uint32_t recirc_id)
{
    struct planb_binding *b;

    CMAP_FOR_EACH_WITH_HASH (b, node, binding_hash(in_port, recirc_id),
                             &backer->bindings) {
        if (b->in_port == in_port && b->recirc_id == recirc_id) {
            return b;
        }
    }
    return NULL;
}

/* Gives up a reference to 'b'. */
static void
binding_unref(struct planb_binding *b)
{
    if (b && ovs_refcount_unref_relaxed(&b->ref_cnt) == 1) {
        ovsrcu_postpone(free, b);
    }
}

/* Forgets 'b', and has the datapath forget it too. */
static void
binding_remove(struct planb_backer *backer, struct planb_binding *b)
{
    COVERAGE_INC(planb_unbind);
    dpif_planb_unbind(backer->dpif, b->in_port, b->recirc_id);
    ovs_mutex_lock(&backer->mutex);
    cmap_remove(&backer->bindings, &b->node,
                binding_hash(b->in_port, b->recirc_id));
    ovs_mutex_unlock(&backer->mutex);
    binding_unref(b);
}

/* Forgets the bindings to 't'. */
static void
remove_bindings_to(struct planb_rt *t)
{
    struct planb_backer *backer = t->backer;
    struct planb_binding *b;

    CMAP_FOR_EACH (b, node, &backer->bindings) {
        if (b->table == t) {
            binding_remove(backer, b);
        }
    }
}

/* Has packets from 'in_port' with 'recirc_id' looked up in 't', unless they
 * are of more use to another table.  Returns true if successful. */
static bool
bind_table(struct planb_rt *t, odp_port_t in_port, uint32_t recirc_id,
           long long int now)
{
    struct planb_backer *backer = t->backer;
    struct planb_binding *b = binding_lookup(backer, in_port, recirc_id);
    int error;

    if (b && b->table != t) {
        long long int used;

        atomic_read_relaxed(&b->used, &used);
        if (now < used + BINDING_YIELD) {
            COVERAGE_INC(planb_bind_refused);
            ovs_mutex_lock(&t->mutex);
            t->n_refused++;
            ovs_mutex_unlock(&t->mutex);
            return false;
        }
        binding_remove(backer, b);
        b = NULL;
    }

    /* The datapath may have dropped a binding that we remember, together with
     * its port.  But if it has not, and packets come without a class all the
     * same, then megaflows must take care of them. */
    error = dpif_planb_bind(backer->dpif, in_port, recirc_id, t->dp_id);
    if (error == EEXIST) {
        return b && now < b->bound + REQUEST_GRACE;
    } else if (error) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_DBG_RL(&rl, "cannot bind port %"PRIu32", recirc_id %#"PRIx32" "
                    "to table %"PRIu8" (%s)", in_port, recirc_id, t->table_id,
                    ovs_strerror(error));
        return false;
    }
    COVERAGE_INC(planb_bind);
    if (b) {
        b->bound = now;
    } else {
        b = xzalloc(sizeof *b);
        ovs_refcount_init(&b->ref_cnt);
        b->in_port = in_port;
        b->recirc_id = recirc_id;
        b->table = t;
        b->bound = now;
        atomic_init(&b->used, now);
        ovs_mutex_lock(&backer->mutex);
        cmap_insert(&backer->bindings, &b->node,
                    binding_hash(in_port, recirc_id));
        ovs_mutex_unlock(&backer->mutex);
    }
    return true;
}

static void
serve_requests(struct planb_rt *t, long long int now)
{
    struct planb_request *r;

    for (r = t->requests; r < &t->requests[PLANB_N_REQUESTS]; r++) {
        uint32_t state, in_port, recirc_id;
        long long int when;

        atomic_read_explicit(&r->state, &state, memory_order_acquire);
        atomic_read_relaxed(&r->in_port, &in_port);
        atomic_read_relaxed(&r->recirc_id, &recirc_id);
        atomic_read_relaxed(&r->when, &when);
        if (state == PLANB_REQUEST_READY) {
            bool ok = (ovsrcu_get_protected(struct planb *, &t->tree)
                       && bind_table(t, u32_to_odp(in_port), recirc_id, now));

            atomic_store_relaxed(&r->when, now);
            atomic_store_explicit(&r->state, (ok ? PLANB_REQUEST_FREE
                                              : PLANB_REQUEST_REFUSED),
                                  memory_order_release);
        } else if (state == PLANB_REQUEST_REFUSED
                   && now >= when + REQUEST_REFUSED) {
            atomic_store_explicit(&r->state, PLANB_REQUEST_FREE,
                                  memory_order_release);
        }
    }
}

static void
age_bindings(struct planb_backer *backer, long long int now)
{
    struct planb_binding *b;

    CMAP_FOR_EACH (b, node, &backer->bindings) {
        long long int used;

        atomic_read_relaxed(&b->used, &used);
        if (now >= used + BINDING_IDLE) {
            binding_remove(backer, b);
        }
    }
}

/* Takes the tree of 't' out of the datapath. */
static void
withdraw_tree(struct planb_rt *t)
{
    if (ovsrcu_get_protected(struct planb *, &t->tree)) {
        ovsrcu_set(&t->tree, NULL);
        remove_bindings_to(t);
        dpif_planb_del_table(t->backer->dpif, t->dp_id);
        t->unpublished = true;
    }
}

/* Applies 'changes' to the prefixes of 't'.  After an error, it does no harm
 * to apply the same changes again. */
static int
apply_changes(struct planb_rt *t, const struct planb_change changes[],
              size_t n)
{
    struct dpif_planb_route *routes = xmalloc((n + 1) * sizeof *routes);
    size_t n_routes = 0;
    int error = 0;
    size_t i;

    routes[n_routes].index = t->miss_index;
    routes[n_routes++].class_id = t->miss_id;
    for (i = 0; i < n; i++) {
        const struct planb_change *c = &changes[i];

        if (c->class_id) {
            routes[n_routes].index = c->prefix.value;
            routes[n_routes++].class_id = c->class_id;
        }
    }
    error = dpif_planb_add_routes(t->backer->dpif, routes, n_routes);
    free(routes);

    for (i = 0; i < n; i++) {
        const struct planb_change *c = &changes[i];
        int retval = (c->class_id
                      ? planb_table_put(t->prefixes, &c->prefix)
                      : planb_table_remove(t->prefixes, &c->prefix));

        if (retval && retval != ENOENT && !error) {
            error = retval;
        }
    }
    return error;
}

/* Builds a tree from the prefixes of 't' and installs it, unless two of them
 * overlap with equal priority: then stores these in 'pair' and returns 0 all
 * the same. */
static int
publish_tree(struct planb_rt *t, uint64_t generation,
             struct planb_prefix pair[2], struct planb_stats *stats)
{
    struct planb *tree;
    int error;

    error = planb_table_publish(t->prefixes, &tree);
    if (error) {
        return error;
    }
    if (planb_table_find_conflict(t->prefixes, pair)) {
        planb_destroy(tree);
        return 0;
    }
    planb_get_stats(tree, stats);
    error = dpif_planb_set_table(t->backer->dpif, t->dp_id, tree, generation,
                                 t->miss_index);
    if (error) {
        planb_destroy(tree);
        return error;
    }

    /* The datapath frees the old tree by RCU.  That cannot happen before this
     * thread has gone through a quiescent state. */
    ovsrcu_set(&t->tree, tree);
    t->unpublished = false;
    return 0;
}

/* Brings the datapath's tree for 't' up to date.  If the last attempt has
 * failed and nothing has changed since, tries again only if 'retry'. */
static void
compile(struct planb_rt *t, bool retry)
{
    struct planb_stats stats = { .n_prefixes = 0 };
    struct planb_prefix pair[2];
    struct planb_change *changes;
    struct drain_batch *batch;
    enum planb_failure failure;
    long long int start, end;
    uint64_t generation;
    bool wanted, built;
    size_t n_changes;
    int error;

    ovs_mutex_lock(&t->mutex);
    if (t->n_commits == t->n_compiled && !retry) {
        ovs_mutex_unlock(&t->mutex);
        return;
    }
    changes = t->changes;
    n_changes = t->n_changes;
    t->changes = NULL;
    t->n_changes = t->allocated_changes = 0;
    batch = xmalloc(sizeof *batch);
    ovs_refcount_ref(&t->ref_cnt);
    batch->table = t;
    batch->n_commits = t->n_commits;
    batch->drains = t->drains;
    batch->n = t->n_drains;
    t->drains = NULL;
    t->n_drains = t->allocated_drains = 0;
    wanted = t->wanted;
    failure = t->failure;
    generation = t->generation;
    ovs_mutex_unlock(&t->mutex);

    start = time_usec();
    built = false;
    error = apply_changes(t, changes, n_changes);
    t->unpublished = t->unpublished || n_changes;
    if (!error && wanted && t->unpublished) {
        error = publish_tree(t, generation + 1, pair, &stats);
        built = !error && !t->unpublished;
        generation += built;
        failure = (error ? PLANB_BUILD_ERROR
                   : built ? PLANB_BUILD_OK
                   : PLANB_BUILD_CONFLICT);
    } else if (error) {
        failure = PLANB_BUILD_ERROR;
    }
    if (!wanted || failure != PLANB_BUILD_OK) {
        withdraw_tree(t);
    }
    end = time_usec();

    if (error) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        COVERAGE_INC(planb_build_failed);
        VLOG_ERR_RL(&rl, "bridge %s: table %"PRIu8": cannot build a tree for "
                    "%"PRIuSIZE" routes (%s), using the stock path",
                    t->ofproto->up.name, t->table_id,
                    planb_table_count(t->prefixes), ovs_strerror(error));
    }

    ovs_mutex_lock(&t->mutex);
    t->n_compiled = batch->n_commits;
    t->failure = failure;
    t->error = error;
    if (error) {
        /* The next attempt starts with these changes. */
        changes = xrealloc(changes, MAX(n_changes + t->n_changes, 1)
                                    * sizeof *changes);
        memcpy(&changes[n_changes], t->changes,
               t->n_changes * sizeof *changes);
        free(t->changes);
        t->changes = changes;
        t->n_changes += n_changes;
        t->allocated_changes = MAX(t->n_changes, 1);
    } else {
        free(changes);
    }
    if (failure == PLANB_BUILD_CONFLICT) {
        memcpy(t->conflict, pair, sizeof t->conflict);
    }
    if (built) {
        COVERAGE_INC(planb_build);
        t->stats = stats;
        t->generation = generation;
        t->n_builds++;
        t->build_usec = end - start;
        t->batch_size = n_changes;
    }

    /* Whatever keeps the table from being accelerated shows in 'wanted' before
     * a translation can see it in the flow tables, so as long as 'wanted' is
     * true, class translations are right for all versions since the last
     * commit. */
    ovs_version_t since;
    bool on = t->wanted && ovsrcu_get_protected(struct planb *, &t->tree);

    atomic_read_relaxed(&t->since, &since);
    if (on != (since != OVS_VERSION_MAX)) {
        atomic_store_relaxed(&t->since, on ? t->version : OVS_VERSION_MAX);
        atomic_store_relaxed(&t->backer->need_revalidate, true);
    }
    ovs_mutex_unlock(&t->mutex);

    seq_change(t->backer->seq);
    ovsrcu_postpone(drain_batch_cb, batch);
}

/* Frees what the compiler holds of 't', which is dead and has been compiled
 * for the last time, and gives up the compiler's reference. */
static void
forget_table(struct planb_rt *t)
{
    struct planb_backer *backer = t->backer;

    ovs_mutex_lock(&backer->mutex);
    ovs_list_remove(&t->compile_node);
    ovs_mutex_unlock(&backer->mutex);
    planb_table_destroy(t->prefixes);
    t->prefixes = NULL;
    planb_rt_unref(t);
}

/* Does everything that is due for 'backer'.  Returns true if there are tables
 * left. */
static bool
compiler_run(struct planb_backer *backer, long long int *next_sweep)
{
    long long int now = time_msec();
    struct planb_rt **tables;
    size_t n = 0, n_left = 0, i;

    ovs_mutex_lock(&backer->mutex);
    tables = xmalloc(MAX(ovs_list_size(&backer->tables), 1) * sizeof *tables);
    struct planb_rt *iter;
    LIST_FOR_EACH (iter, compile_node, &backer->tables) {
        tables[n++] = iter;
    }
    ovs_mutex_unlock(&backer->mutex);

    for (i = 0; i < n; i++) {
        struct planb_rt *t = tables[i];
        bool dead, failed;

        ovs_mutex_lock(&t->mutex);
        dead = t->dead;
        failed = t->failure == PLANB_BUILD_ERROR;
        ovs_mutex_unlock(&t->mutex);

        compile(t, failed && now >= *next_sweep);
        if (dead) {
            forget_table(t);
        } else {
            serve_requests(t, now);
            n_left++;
        }
    }
    free(tables);

    if (n && now >= *next_sweep) {
        dpif_planb_sweep(backer->dpif, now);
        age_bindings(backer, now);
        *next_sweep = now + SWEEP_INTERVAL;
    }
    return n_left > 0;
}

static void *
compiler_main(void *backer_)
{
    struct planb_backer *backer = backer_;
    long long int next_sweep = LLONG_MIN;

    while (!latch_is_set(&backer->exit)) {
        latch_poll(&backer->wake);
        if (compiler_run(backer, &next_sweep)) {
            poll_timer_wait_until(next_sweep);
        }
        latch_wait(&backer->wake);
        latch_wait(&backer->exit);
        poll_block();
    }
    return NULL;
}

/* Starts to compile 't'. */
void
planb_compiler_add_table(struct planb_rt *t)
{
    struct planb_backer *backer = t->backer;

    t->prefixes = planb_table_create(t->miss_index);
    t->unpublished = true;
    ovs_refcount_ref(&t->ref_cnt);
    ovs_mutex_lock(&backer->mutex);
    ovs_list_push_back(&backer->tables, &t->compile_node);
    ovs_mutex_unlock(&backer->mutex);

    if (!backer->running) {
        backer->running = true;
        backer->thread = ovs_thread_create("planb", compiler_main, backer);
    }
    latch_set(&backer->wake);
}

/* Stops the compiler of 'backer'. */
void
planb_compiler_stop(struct planb_backer *backer)
{
    if (backer->running) {
        latch_set(&backer->exit);
        xpthread_join(backer->thread, NULL);
        latch_poll(&backer->exit);
        backer->running = false;
    }
}

/* Makes sure that the compiler of 'backer' has let go of all tables that are
 * dead. */
void
planb_compiler_flush(struct planb_backer *backer)
{
    bool more;

    planb_compiler_stop(backer);
    compiler_run(backer, &(long long int) { LLONG_MAX });

    ovs_mutex_lock(&backer->mutex);
    more = !ovs_list_is_empty(&backer->tables);
    ovs_mutex_unlock(&backer->mutex);
    if (more) {
        backer->running = true;
        backer->thread = ovs_thread_create("planb", compiler_main, backer);
    }
}

/* Bindings. */

/* Asks for packets from 'in_port_' with 'recirc_id' to be looked up in the
 * route table that the datapath knows as 'dp_table_id'.
 * Takes no lock and allocates nothing; if too many requests are pending, the
 * next upcall asks again.
 *
 * Returns true if the binding can be expected so soon that a megaflow for
 * packets without it is not worthwhile. */
bool
planb_request_binding(uint32_t dp_table_id, odp_port_t in_port_,
                      uint32_t recirc_id)
{
    uint32_t in_port = odp_to_u32(in_port_);
    struct planb_rt *t = planb_rt_from_dp_id(dp_table_id);
    struct planb_request *r, *free_request = NULL;
    uint32_t state;

    if (!t) {
        return false;
    }
    for (r = t->requests; r < &t->requests[PLANB_N_REQUESTS]; r++) {
        atomic_read_explicit(&r->state, &state, memory_order_acquire);
        if (state == PLANB_REQUEST_FREE) {
            free_request = free_request ? free_request : r;
        } else if (state != PLANB_REQUEST_BUSY) {
            uint32_t r_in_port, r_recirc_id;
            long long int when;

            atomic_read_relaxed(&r->in_port, &r_in_port);
            atomic_read_relaxed(&r->recirc_id, &r_recirc_id);
            atomic_read_relaxed(&r->when, &when);
            if (r_in_port == in_port && r_recirc_id == recirc_id) {
                return (state == PLANB_REQUEST_READY
                        && time_msec() < when + REQUEST_PATIENCE);
            }
        }
    }

    r = free_request;
    state = PLANB_REQUEST_FREE;
    if (!r || !atomic_compare_exchange_strong_explicit(
            &r->state, &state, PLANB_REQUEST_BUSY,
            memory_order_acquire, memory_order_relaxed)) {
        return false;
    }
    atomic_store_relaxed(&r->in_port, in_port);
    atomic_store_relaxed(&r->recirc_id, recirc_id);
    atomic_store_relaxed(&r->when, time_msec());
    atomic_store_explicit(&r->state, PLANB_REQUEST_READY,
                          memory_order_release);
    latch_set(&t->backer->wake);
    return true;
}

/* Initializes 'use' for packets like 'upcall_flow', which is as it came from
 * the datapath of 'backer'.  If 'dp_table_id' is nonzero, the packets should
 * be looked up in the route table that the datapath knows by it, otherwise
 * they have been looked up. */
void
planb_binding_use_init(struct planb_binding_use *use,
                       struct planb_backer *backer, uint32_t dp_table_id,
                       const struct flow *upcall_flow)
{
    use->dp_table_id = dp_table_id;
    use->in_port = upcall_flow->in_port.odp_port;
    use->recirc_id = upcall_flow->recirc_id;
    use->binding = NULL;
    if (!dp_table_id) {
        struct planb_binding *b = binding_lookup(backer, use->in_port,
                                                 use->recirc_id);

        if (b && ovs_refcount_try_ref_rcu(&b->ref_cnt)) {
            use->binding = b;
        }
    }
}

/* Notes that packets like those of 'use' have come. */
void
planb_binding_use_push(const struct planb_binding_use *use)
{
    if (use->dp_table_id) {
        planb_request_binding(use->dp_table_id, use->in_port, use->recirc_id);
    } else if (use->binding) {
        atomic_store_relaxed(&use->binding->used, time_msec());
    }
}

/* Frees what 'use' refers to. */
void
planb_binding_use_uninit(struct planb_binding_use *use)
{
    binding_unref(use->binding);
}
