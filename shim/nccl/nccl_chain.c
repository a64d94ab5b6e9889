/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Another profiler plugin of NCCL's behind the agent. NCCL asks for the events that either wants;
 * the other one gets those that its own mask asks for, as NCCL would decide alone. Its handles are
 * found again by the agent's, in a ring: NCCL refers to an event after it has stopped.
 */
#include <stdatomic.h>
#include <string.h>

#include "shim/nccl/nccl.h"
#include "shim/sys.h"

#define N_HANDLES (1u << 18)
#define N_CONTEXTS 4096u
#define N_MASKS 16u /* libraries of NCCL's that are there at once; each has one mask */

/* The plugin's own handle for what the agent gave a handle. */
struct link {
	_Atomic uint64_t key; /* 0: free */
	void *_Atomic other;
};

/* The plugin believes that this is NCCL's mask; it may change it at any time. */
struct mask {
	int *_Atomic nccl; /* NULL: free */
	int other, own;
};

struct chain {
	struct link handles[N_HANDLES];
	struct link contexts[N_CONTEXTS];
	struct mask *masks[N_CONTEXTS]; /* by context */
};

static struct chain *_Atomic chain;
static struct mask masks[N_MASKS];
static const struct nccl_plugin *_Atomic plugins[NCCL_VERSIONS + 1];

static const struct nccl_plugin *plugin_of(uint32_t version)
{
	return atomic_load_explicit(&plugins[version], memory_order_acquire);
}

void torsh_nccl_chain(uint32_t version, const struct nccl_plugin *plugin)
{
	if (plugin && !chain)
		chain = torsh_sys_pages(sizeof(*chain));
	atomic_store_explicit(&plugins[version], chain ? plugin : NULL, memory_order_release);
}

static struct link *handle_of(uint64_t handle)
{
	struct link *link = &chain->handles[(handle >> NCCL_HANDLE_BITS) % N_HANDLES];

	return atomic_load_explicit(&link->key, memory_order_acquire) == handle ? link : NULL;
}

static void *other_handle(uint64_t handle)
{
	struct link *link = handle ? handle_of(handle) : NULL;

	return link ? link->other : NULL;
}

static struct link *context_of(uint64_t context)
{
	struct link *link = &chain->contexts[context % N_CONTEXTS];

	return link->key == context ? link : NULL;
}

/* The plugin's view of NCCL's mask. Called under NCCL's own lock or not: a claim is atomic. */
static struct mask *mask_of(int *nccl)
{
	for (uint32_t i = 0; i < N_MASKS; i++) {
		int *there = NULL;

		if (masks[i].nccl == nccl)
			return &masks[i];
		if (atomic_compare_exchange_strong(&masks[i].nccl, &there, nccl)) {
			masks[i].other = __atomic_load_n(nccl, __ATOMIC_RELAXED);
			return &masks[i];
		}
		if (there == nccl)
			return &masks[i];
	}
	return NULL;
}

/* NCCL's mask follows both. */
static void update(struct mask *mask)
{
	int wanted = mask->own | __atomic_load_n(&mask->other, __ATOMIC_RELAXED);
	int *nccl = mask->nccl;

	if (nccl && __atomic_load_n(nccl, __ATOMIC_RELAXED) != wanted)
		__atomic_store_n(nccl, wanted, __ATOMIC_RELAXED);
}

static int init_other(const struct nccl_plugin *plugin, const struct nccl_start *start,
		      void **context, int *mask, void *log)
{
	if (start->version < 4)
		return plugin->init.of_1(context, mask);
	if (start->version < 5)
		return plugin->init.of_4(context, mask, start->name, start->hash, start->n_nodes,
					 start->n_ranks, start->rank, log);
	return plugin->init.of_5(context, start->hash, mask, start->name, start->n_nodes,
				 start->n_ranks, start->rank, log);
}

void torsh_nccl_chain_init(const struct nccl_start *start, uint64_t context, int *mask, int own,
			   void *log)
{
	const struct nccl_plugin *plugin = plugin_of(start->version);
	struct mask *view = plugin ? mask_of(mask) : NULL;
	struct link *link;
	void *other = NULL;
	int result;

	if (!view) {
		__atomic_store_n(mask, own, __ATOMIC_RELAXED);
		return;
	}
	view->own = own;
	result = init_other(plugin, start, &other, &view->other, log);
	update(view);
	/* NCCL alone would go on without it. */
	if (result)
		return;
	link = &chain->contexts[context % N_CONTEXTS];
	link->other = other;
	chain->masks[context % N_CONTEXTS] = view;
	atomic_store_explicit(&link->key, context, memory_order_release);
}

/*
 * The bits of a mask of which one is enough for NCCL to report an event of this type: what others
 * are part of is reported with them.
 */
static int enough_for(uint32_t type)
{
	enum {
		STEPS = NCCL_TYPE_PROXY_STEP | NCCL_TYPE_NETWORK,
		OPERATIONS = NCCL_TYPE_PROXY_OPERATION | STEPS,
		TASKS = OPERATIONS | NCCL_TYPE_KERNEL_CHANNEL,
		CE = NCCL_TYPE_CE_COLLECTIVE | NCCL_TYPE_CE_SYNC | NCCL_TYPE_CE_BATCH,
	};

	switch (type) {
	case NCCL_TYPE_GROUP:
		return NCCL_TYPE_GROUP | NCCL_TYPE_COLLECTIVE | NCCL_TYPE_MESSAGE | TASKS;
	case NCCL_TYPE_COLLECTIVE:
		return NCCL_TYPE_COLLECTIVE | TASKS;
	case NCCL_TYPE_MESSAGE:
		return NCCL_TYPE_MESSAGE | TASKS;
	case NCCL_TYPE_PROXY_OPERATION:
		return OPERATIONS;
	case NCCL_TYPE_PROXY_STEP:
		return STEPS;
	case NCCL_TYPE_GROUP_API:
		return NCCL_TYPE_GROUP_API | NCCL_TYPE_COLLECTIVE_API | NCCL_TYPE_MESSAGE_API |
		       NCCL_TYPE_LAUNCH | NCCL_TYPE_GROUP | NCCL_TYPE_COLLECTIVE |
		       NCCL_TYPE_MESSAGE | TASKS | CE;
	case NCCL_TYPE_COLLECTIVE_API:
		return NCCL_TYPE_COLLECTIVE_API | NCCL_TYPE_COLLECTIVE | TASKS | CE;
	case NCCL_TYPE_MESSAGE_API:
		return NCCL_TYPE_MESSAGE_API | NCCL_TYPE_MESSAGE | TASKS;
	case NCCL_TYPE_CE_COLLECTIVE:
		return CE;
	default:
		return (int)type;
	}
}

/* The place of the event's group, which interfaces from 5 on have, too; NULL: it has none. */
static void **group_in(uint32_t version, struct nccl_descriptor *descriptor)
{
	uint32_t type = nccl_type_of(version, descriptor);

	if (version < 5)
		return NULL;
	return type == NCCL_TYPE_COLLECTIVE ? &descriptor->collective_4.group
	       : type == NCCL_TYPE_MESSAGE  ? &descriptor->message_4.group
					    : NULL;
}

/* Remember the plugin's handle: the event gets a number of its own if it isn't recorded. */
static void keep(uint64_t *handle, void *other, bool is_foreign)
{
	struct link *link;

	if (!other)
		return;
	if (!*handle)
		*handle = torsh_nccl_unrecorded() | (is_foreign ? NCCL_HANDLE_FOREIGN : 0u);
	link = &chain->handles[(*handle >> NCCL_HANDLE_BITS) % N_HANDLES];
	atomic_store_explicit(&link->key, 0, memory_order_relaxed);
	link->other = other;
	/* Pairs with the acquire in handle_of. */
	atomic_store_explicit(&link->key, *handle, memory_order_release);
}

/* Call the plugin with its own context and handles in the descriptor, which is NCCL's for now. */
static int start_other(uint32_t version, void *context, void **other,
		       struct nccl_descriptor *descriptor, bool is_foreign_parent)
{
	void *parent = descriptor->parent, *group = NULL, **place = group_in(version, descriptor);
	int result;

	if (!is_foreign_parent)
		descriptor->parent = other_handle((uint64_t)parent);
	if (place) {
		group = *place;
		*place = other_handle((uint64_t)group);
	}
	result = plugin_of(version)->start(context, other, descriptor);
	descriptor->parent = parent;
	if (place)
		*place = group;
	return result;
}

int torsh_nccl_chain_start(uint32_t version, uint64_t context, uint64_t *handle,
			   struct nccl_descriptor *descriptor)
{
	const struct nccl_plugin *plugin = plugin_of(version);
	bool is_elsewhere = plugin && torsh_nccl_is_elsewhere(version, descriptor);
	bool is_foreign = is_elsewhere || (uint64_t)descriptor->parent & NCCL_HANDLE_FOREIGN;
	struct link *link = plugin && !is_foreign ? context_of(context) : NULL;
	struct mask *mask = link ? chain->masks[context % N_CONTEXTS] : &masks[0];
	void *other = NULL;
	int result;

	/* A foreign context and parent are another process's: the plugin knows that, too. */
	if (!plugin || (!link && !is_foreign))
		return 0;
	update(mask);
	if (!(mask->other & enough_for(nccl_type_of(version, descriptor))))
		return 0;
	result = start_other(version, link ? link->other : (void *)context, &other, descriptor,
			     is_elsewhere);
	keep(handle, other, is_foreign);
	return result;
}

int torsh_nccl_chain_stop(uint32_t version, uint64_t handle)
{
	const struct nccl_plugin *plugin = plugin_of(version);
	void *other = plugin ? other_handle(handle) : NULL;

	return other ? plugin->stop(other) : 0;
}

int torsh_nccl_chain_state(uint32_t version, uint64_t handle, int state,
			   union nccl_state_arguments *arguments)
{
	const struct nccl_plugin *plugin = plugin_of(version);
	void *other = plugin ? other_handle(handle) : NULL;

	return other ? plugin->state(other, state, arguments) : 0;
}

int torsh_nccl_chain_finalize(uint32_t version, uint64_t context)
{
	const struct nccl_plugin *plugin = plugin_of(version);
	struct link *link = plugin ? context_of(context) : NULL;
	void *other = link ? link->other : NULL;

	if (!link)
		return 0;
	atomic_store_explicit(&link->key, 0, memory_order_relaxed);
	/* NCCL 2.29, the first with interface 6, finalizes no context that is NULL. */
	return other || version < 6 ? plugin->finalize(other) : 0;
}
