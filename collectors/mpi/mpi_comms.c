/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/mpi/mpi_comms.h"

#include <errno.h>
#include <string.h>

#include "agent/process/text_buffer.h"
#include "agent/producer/key_map.h"
#include "agent/producer/label.h"
#include "agent/producer/producer.h"
#include "agent/wire/event.h"
#include "collectors/mpi/mpi_calls.h"
#include "shim/sys.h"

#define COMMS 4096u
#define COMM_WAYS 64u /* places that a handle may have */
#define COUNTS 65536u
#define COUNT_WAYS 32u
#define RANKS_BYTES 256u /* of the list in a group's event */
#define RANKS_AT_ONCE 16u
#define BEING_ADDED 1u /* no handle */

struct count {
	_Atomic uint64_t key; /* 0: free */
	_Atomic uint64_t n;
};

/* In pages that are zeroed in a forked child, which may not use its parent's communicators. */
struct state {
	_Atomic uint32_t n_groups;
	struct mpi_comm comms[COMMS];
	struct count counts[COUNTS];
};

static void *_Atomic state; /* struct state */

static struct state *get_state(void)
{
	return torsh_sys_own_once(&state, sizeof(struct state));
}

uint64_t torsh_mpi_count_call(uint64_t key)
{
	struct state *all = get_state();

	for (uint32_t i = 0; all && i < COUNT_WAYS; i++) {
		struct count *count = &all->counts[(key + i) % COUNTS];
		uint64_t there = 0;

		if (atomic_compare_exchange_strong(&count->key, &there, key) || there == key)
			return atomic_fetch_add_explicit(&count->n, 1, memory_order_relaxed);
	}
	return COLLECTIVE_NO_SEQUENCE;
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct mpi_comm *place_of(struct state *all, uint64_t handle, uint32_t way)
{
	return &all->comms[(torsh_key_map_mix(handle, 0) + way) % COMMS];
}

static struct mpi_comm *find(uint64_t handle)
{
	struct state *all = atomic_load_explicit(&state, memory_order_acquire);

	for (uint32_t i = 0; all && i < COMM_WAYS; i++) {
		struct mpi_comm *comm = place_of(all, handle, i);

		if (atomic_load_explicit(&comm->handle, memory_order_acquire) == handle)
			return comm;
	}
	return NULL;
}

/* A free place, taken; NULL if there is none. */
static struct mpi_comm *take_place(uint64_t handle)
{
	struct state *all = get_state();

	for (uint32_t i = 0; all && i < COMM_WAYS; i++) {
		struct mpi_comm *comm = place_of(all, handle, i);
		uint64_t there = 0;

		if (!atomic_compare_exchange_strong(&comm->handle, &there, BEING_ADDED))
			continue;
		atomic_store_explicit(&comm->n_calls, 0, memory_order_relaxed);
		atomic_store_explicit(&comm->n_made, 0, memory_order_relaxed);
		atomic_store_explicit(&comm->n_prepared, 0, memory_order_relaxed);
		atomic_store_explicit(&comm->n_uncertain, 0, memory_order_relaxed);
		atomic_store_explicit(&comm->n_joined, 0, memory_order_relaxed);
		atomic_store_explicit(&comm->is_lost, false, memory_order_relaxed);
		comm->number = NUMBER_OF_MPI + 1 +
			       atomic_fetch_add_explicit(&all->n_groups, 1, memory_order_relaxed);
		return comm;
	}
	return NULL;
}

static void put(struct mpi_comm *comm, uint64_t handle)
{
	/* Pairs with the acquire in find. */
	atomic_store_explicit(&comm->handle, handle, memory_order_release);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* "0,1,5": ranks in MPI_COMM_WORLD, as many as there is room for. */
static __attribute__((noinline)) uint32_t ranks_label(uint64_t handle, uint32_t size)
{
	char buffer[RANKS_BYTES];
	struct text text = TEXT_IN(buffer);
	int ranks[RANKS_AT_ONCE];

	for (uint32_t first = 0; first < size;) {
		uint32_t n = torsh_mpi_world_ranks(handle, first, size - first, ranks);

		for (uint32_t i = 0; i < n && text.length + 12 < text.capacity; i++) {
			torsh_text_put(&text, first + i ? "," : "");
			if (ranks[i] < 0)
				torsh_text_put(&text, "?");
			else
				torsh_text_put_number(&text, (uint64_t)ranks[i]);
		}
		first += n;
		if (!n || text.length + 12 >= text.capacity)
			break;
	}
	return torsh_label(text.bytes, text.length);
}

static uint32_t label_of(const char *text)
{
	return torsh_label(text, strlen(text));
}

/* same: a communicator with the same processes, which may be asked. */
static void send_group(const struct mpi_comm *comm, uint64_t same, const char *function)
{
	struct event event = {
		.id = EVENT_PROCESS_GROUP,
		.process_group = {.number = comm->number,
				  .n_ranks = comm->size,
				  .own_rank = comm->rank + 1,
				  .is_world = same == torsh_mpi.world && !function ? WORLD_OF_MPI
										   : NO_WORLD},
	};
	struct producer *producer = torsh_producer_enter();

	if (!producer)
		return;
	event.process_group.name = label_of(comm->name);
	event.process_group.description = function ? label_of(function) : 0;
	event.process_group.backend = label_of(torsh_mpi.name);
	event.process_group.ranks = ranks_label(same, comm->size);
	torsh_producer_event(producer, &event, NULL);
	torsh_producer_leave(producer);
}

/* ---- communicators of MPI itself ------------------------------------------------------------- */

static struct mpi_comm *add_own(uint64_t handle)
{
	struct mpi_comm *comm;
	struct text name;
	uint32_t rank, size;
	int world_rank = 0;

	if (!torsh_mpi_is_up() || !torsh_mpi_describe(handle, &rank, &size))
		return NULL;
	comm = take_place(handle);
	if (!comm)
		return NULL;
	comm->rank = rank;
	comm->size = size;
	name = (struct text)TEXT_IN(comm->name);
	torsh_text_put(&name, handle == torsh_mpi.world ? "world" : "self");
	if (handle == torsh_mpi.self && torsh_mpi_world_ranks(handle, 0, 1, &world_rank) &&
	    world_rank >= 0) {
		torsh_text_put(&name, ":");
		torsh_text_put_number(&name, (uint64_t)world_rank);
	}
	send_group(comm, handle, NULL);
	put(comm, handle);
	return comm;
}

struct mpi_comm *torsh_mpi_comm_find(uint64_t handle)
{
	struct mpi_comm *comm = handle > BEING_ADDED ? find(handle) : NULL;

	if (comm || (handle != torsh_mpi.world && handle != torsh_mpi.self))
		return comm;
	return add_own(handle);
}

struct mpi_comm *torsh_mpi_comm_of(const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;
	enum mpi_object object =
		now->call->role == MPI_MAKE ? MPI_COMMUNICATOR : (enum mpi_object)at->object;

	return torsh_mpi_comm_find(
		torsh_mpi_object(now->arguments, at->comm, now->call->role == MPI_FREE, object));
}

void torsh_mpi_comm_start(void)
{
	torsh_mpi_comm_find(torsh_mpi.world);
}

/* ---- those that the program makes ------------------------------------------------------------ */

/* "world/2:4": the second of world, whose rank 0 is 4 in world. */
static void name_child(struct mpi_comm *comm, uint64_t same, const struct mpi_origin *origin)
{
	struct text name = TEXT_IN(comm->name);
	const char *parent = origin->parent->name;
	uint64_t hash = 0, order = origin->order;
	int first = 0;

	/* A long chain is shown by a number that stands for it. */
	if (strlen(parent) + 48 > sizeof(comm->name)) {
		for (const char *c = parent; *c; c++)
			hash = torsh_key_map_mix(hash, (uint64_t)(unsigned char)*c);
		torsh_text_put(&name, "~");
		torsh_text_put_number(&name, hash);
	} else {
		torsh_text_put(&name, parent);
	}
	if (origin->is_part && (!torsh_mpi_world_ranks(same, 0, 1, &first) || first < 0))
		first = 0;
	torsh_text_put(&name, "/");
	if (origin->tag) {
		torsh_text_put(&name, "t");
		torsh_text_put_number(&name, (uint32_t)*origin->tag);
		torsh_text_put(&name, ".");
		order = torsh_mpi_count_call(torsh_key_map_mix(
			origin->parent->number,
			torsh_key_map_mix((uint64_t)first << 32 | (uint32_t)*origin->tag,
					  UINT64_MAX)));
	}
	torsh_text_put_number(&name, order + 1);
	if (!origin->is_part)
		return;
	torsh_text_put(&name, ":");
	torsh_text_put_number(&name, (uint64_t)first);
}

void torsh_mpi_comm_add(uint64_t handle, const struct mpi_origin *origin)
{
	/* A duplicate may not be complete yet; its parent is. */
	uint64_t same =
		origin->is_part || !origin->parent
			? handle
			: atomic_load_explicit(&origin->parent->handle, memory_order_relaxed);
	uint32_t rank, size;
	struct mpi_comm *comm;

	if (handle <= BEING_ADDED || handle == torsh_mpi.comm_null || !origin->parent)
		return;
	torsh_mpi_comm_forget(handle);
	if (!torsh_mpi_describe(same, &rank, &size))
		return;
	comm = take_place(handle);
	if (!comm)
		return;
	comm->rank = rank;
	comm->size = size;
	name_child(comm, same, origin);
	send_group(comm, same, origin->function);
	put(comm, handle);
}

void torsh_mpi_comm_forget(uint64_t handle)
{
	struct mpi_comm *comm = find(handle);

	if (comm)
		atomic_store_explicit(&comm->handle, 0, memory_order_release);
}

void torsh_mpi_comms_end(void)
{
	struct state *all = atomic_load_explicit(&state, memory_order_acquire);

	for (uint32_t i = 0; all && i < COMMS; i++)
		if (atomic_load_explicit(&all->comms[i].handle, memory_order_relaxed))
			atomic_store_explicit(&all->comms[i].handle, 0, memory_order_relaxed);
}
