/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The collector of NCCL's work, as its profiler interface reports it (shim/nccl/nccl_profiler.c):
 * each event's begin with what it is, its states, and its end. Called on the program's threads and
 * on NCCL's proxy threads. Nothing is kept for an event: its handle is its number.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/process/agent.h"
#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/producer/label.h"
#include "agent/producer/producer.h"
#include "agent/producer/schedule.h"
#include "agent/wire/event.h"
#include "collectors/nccl/nccl_calls.h"
#include "collectors/torch/operator_events.h"
#include "collectors/torch/torch_collectives.h"
#include "shim/loader/objects.h"
#include "shim/sys.h"

#define N_COMMUNICATORS 4096u /* that are there at once; of more, names and ranks are not known */

/* A communicator that has not ended. */
struct communicator {
	_Atomic uint32_t number; /* 0: free */
	_Atomic bool has_hash;
	struct event_nccl_communicator event;
};

/* In pages that are zeroed in a forked child, which has no NCCL. */
struct state {
	_Atomic uint64_t last_event;
	_Atomic uint32_t last_number;
	struct communicator communicators[N_COMMUNICATORS];
};

static void *_Atomic state; /* struct state */

static struct state *get_state(void)
{
	return torsh_sys_own_once(&state, sizeof(struct state));
}

int torsh_nccl_mask(void)
{
	int mask = 0;

	if (atomic_load_explicit(&torsh_agent_state, memory_order_acquire) != AGENT_ON)
		return 0;
	if (torsh_config.activities & ACTIVITY_NCCL)
		mask |= NCCL_TYPE_GROUP | NCCL_TYPE_COLLECTIVE | NCCL_TYPE_MESSAGE |
			NCCL_TYPE_KERNEL_CHANNEL | NCCL_TYPE_GROUP_API | NCCL_TYPE_COLLECTIVE_API |
			NCCL_TYPE_MESSAGE_API | NCCL_TYPE_LAUNCH | NCCL_TYPE_CE_COLLECTIVE |
			NCCL_TYPE_CE_SYNC | NCCL_TYPE_CE_BATCH;
	if (torsh_config.activities & ACTIVITY_NCCL_FULL)
		mask |= NCCL_TYPE_PROXY_OPERATION | NCCL_TYPE_PROXY_STEP | NCCL_TYPE_NETWORK;
	return mask;
}

static uint64_t next_event(void)
{
	struct state *all = get_state();

	return all ? atomic_fetch_add_explicit(&all->last_event, 1, memory_order_relaxed) + 1 : 0;
}

uint64_t torsh_nccl_unrecorded(void)
{
	return next_event() << NCCL_HANDLE_BITS;
}

static uint64_t number_of(uint64_t handle)
{
	return handle & NCCL_HANDLE_RECORDED ? handle >> NCCL_HANDLE_BITS : 0;
}

/* ---- Communicators --------------------------------------------------------------------------- */

/* A context is a communicator's number, and its place + 1. */
static uint64_t context_of(uint32_t number, uint32_t place)
{
	return (uint64_t)number << 16 | (place + 1);
}

static struct communicator *communicator_of(uint64_t context)
{
	struct state *all = get_state();
	uint32_t place = (uint32_t)(context & 0xffff) - 1;

	return all && place < N_COMMUNICATORS && all->communicators[place].number == context >> 16
		       ? &all->communicators[place]
		       : NULL;
}

static void send_communicator(struct producer *producer, const struct communicator *communicator)
{
	torsh_producer_event(producer,
			     &(struct event){.id = EVENT_NCCL_COMMUNICATOR,
					     .nccl_communicator = communicator->event},
			     NULL);
}

static uint32_t label(const char *text)
{
	return text ? torsh_label(text, strlen(text)) : 0;
}

/* Whether the communicator is described with each call instead of once. */
static bool names_communicators(uint32_t version)
{
	return version != NCCL_BY_CALLS && version < 4;
}

uint64_t torsh_nccl_made(const struct nccl_start *start)
{
	struct producer *producer = torsh_producer_enter();
	struct state *all = get_state();
	struct event_nccl_communicator event = {
		.hash = start->hash,
		.n_nodes = (uint32_t)start->n_nodes,
		.n_ranks = (uint32_t)start->n_ranks,
		.rank = names_communicators(start->version) ? 0 : (uint32_t)start->rank + 1,
		.version = start->version,
	};
	uint32_t place = 0, none;

	event.number =
		all ? atomic_fetch_add_explicit(&all->last_number, 1, memory_order_relaxed) + 1 : 1;
	if (producer)
		event.name = label(start->name);
	for (; all && place < N_COMMUNICATORS; place++) {
		struct communicator *communicator = &all->communicators[place];

		none = 0;
		if (!atomic_compare_exchange_strong(&communicator->number, &none, event.number))
			continue;
		communicator->event = event;
		communicator->has_hash = !names_communicators(start->version);
		break;
	}
	if (producer) {
		torsh_producer_event(
			producer,
			&(struct event){.id = EVENT_NCCL_COMMUNICATOR, .nccl_communicator = event},
			NULL);
		torsh_producer_leave(producer);
	}
	return context_of(event.number, place);
}

void torsh_nccl_finalized(uint64_t context)
{
	struct communicator *communicator = communicator_of(context);
	struct producer *producer = torsh_producer_enter();

	if (communicator && producer) {
		communicator->event.is_ended = 1;
		send_communicator(producer, communicator);
	}
	if (producer)
		torsh_producer_leave(producer);
	if (communicator)
		communicator->number = 0;
}

/* Interfaces 1 to 3 name the communicator with each call; once is enough. */
static void tell_hash(struct producer *producer, struct communicator *communicator, int rank,
		      const struct nccl_named *named)
{
	bool no = false;

	if (!communicator || !named->hash || communicator->has_hash ||
	    !atomic_compare_exchange_strong(&communicator->has_hash, &no, true))
		return;
	communicator->event.hash = named->hash;
	communicator->event.name = label(named->name);
	communicator->event.rank = (uint32_t)rank + 1;
	send_communicator(producer, communicator);
}

/* ---- Events ---------------------------------------------------------------------------------- */

bool torsh_nccl_is_elsewhere(uint32_t version, const struct nccl_descriptor *descriptor)
{
	return nccl_type_of(version, descriptor) == NCCL_TYPE_PROXY_OPERATION &&
	       descriptor->proxy_operation.process != torsh_sys_getpid();
}

/* Send the begin; returns whether it was. */
static bool send_begin(struct producer *producer, struct nccl_begin *begin)
{
	const struct torch_collective *around;
	struct communicator *communicator =
		begin->is_foreign ? NULL : communicator_of(begin->context);
	struct event event = {0};

	begin->communicator = communicator ? communicator->number : 0;
	if (!torsh_nccl_describe(begin, &event))
		return false;
	if (event.id == EVENT_NCCL_CALL) {
		around = torsh_operators_collective(producer);
		event.nccl_call.collective = around ? around->number : 0;
		tell_hash(producer, communicator, begin->descriptor->rank, &begin->named);
	}
	torsh_producer_event(producer, &event, NULL);
	return true;
}

uint64_t torsh_nccl_begins(uint32_t version, uint64_t context,
			   const struct nccl_descriptor *descriptor)
{
	bool is_elsewhere = torsh_nccl_is_elsewhere(version, descriptor);
	uint64_t parent = (uint64_t)descriptor->parent, number = 0;
	struct nccl_begin begin = {
		.version = version,
		.context = context,
		.descriptor = descriptor,
		.parent = is_elsewhere ? 0 : number_of(parent),
		.is_foreign = is_elsewhere || parent & NCCL_HANDLE_FOREIGN,
	};
	struct producer *producer;

	if (!(torsh_nccl_mask() & (int)nccl_type_of(version, descriptor)))
		return 0;
	producer = torsh_producer_enter();
	if (!producer)
		return 0;
	if (torsh_schedule_is_on(producer)) {
		begin.number = next_event();
		if (begin.number && send_begin(producer, &begin))
			number = begin.number;
	}
	torsh_producer_leave(producer);
	return number ? number << NCCL_HANDLE_BITS | NCCL_HANDLE_RECORDED |
				(begin.is_foreign ? NCCL_HANDLE_FOREIGN : 0u)
		      : 0;
}

void torsh_nccl_enters(uint32_t version, uint64_t handle, int number,
		       const union nccl_state_arguments *arguments)
{
	struct event event = {
		.id = EVENT_NCCL_STATE,
		.nccl_state = {.number = number_of(handle), .state = (uint32_t)number}};

	if (!event.nccl_state.number)
		return;
	if (arguments)
		torsh_nccl_describe_state(version, number, arguments, &event.nccl_state);
	torsh_producer_send(&event, NULL);
}

void torsh_nccl_ends(uint64_t handle)
{
	struct event event = {.id = EVENT_NCCL_END, .nccl_end = {.number = number_of(handle)}};

	if (event.nccl_end.number)
		torsh_producer_send(&event, NULL);
}

void torsh_nccl_note(const char *sentence)
{
	struct producer *producer = torsh_producer_enter();

	if (!producer)
		return;
	torsh_channel_note(&torsh_process->channel, sentence);
	torsh_producer_leave(producer);
}

/*
 * At the end by exit: where NCCL was used and is too old for plugins, a note says so. Not by _exit,
 * which a signal handler may call: this takes the loader's lock.
 */
static void note_old_nccl(void)
{
	int (*get_version)(int *version);
	int version = 0;

	if (!torsh_nccl_mask() || !torsh_objects_has("libnccl.so"))
		return;
	*(void **)&get_version = torsh_objects_find_in("libnccl.so", "ncclGetVersion");
	if (get_version && !get_version(&version) && version < 22300)
		torsh_nccl_note("NCCL: this version, older than 2.23, has no interface for "
				"profilers: calls of its functions are recorded, and its kernels");
}

static void at_exit(int status, void *unused)
{
	(void)status;
	(void)unused;
	note_old_nccl();
}

/* exit comes to no hook. */
__attribute__((constructor)) static void construct(void)
{
	torsh_agent_start();
	if (torsh_nccl_mask())
		on_exit(at_exit, NULL);
}
