/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/birth.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "agent/counter.h"
#include "agent/process.h"

#define LATE_SPINS 10000
#define INTERRUPT_LEVELS 4 /* handlers that interrupt each other in hooks */

/* Stand-ins, so that entering a hook never has to test for "no flow". */
struct flow torsh_flow_unborn = {.state = FLOW_UNBORN};
struct flow torsh_flow_quiet = {.state = FLOW_QUIET};
struct flow torsh_flow_ended = {.state = FLOW_ENDED};

_Thread_local struct flow *torsh_flow_self = &torsh_flow_unborn;

static _Thread_local uint64_t birth_holder; /* of torsh_birth_flow, which is under way; 0: it is not */

static pthread_key_t end_key;
static int has_end_key;

static size_t flow_bytes(void)
{
	return (sizeof(struct flow) + 4095) & ~(size_t)4095;
}

static struct flow *make_flow(int slot)
{
	struct flow *flow = torsh_sys_own_pages(flow_bytes());

	if (!flow)
		return NULL;
	flow->stack = torsh_stack_create();
	if (!flow->stack)
		goto unmap;
	if (torsh_channel_map_ring(&torsh_process->channel, slot, &flow->ring))
		goto destroy;
	flow->slot = (uint32_t)slot;
	torsh_process->flows[slot] = flow;
	return flow;
destroy:
	torsh_stack_destroy(flow->stack);
unmap:
	torsh_sys_munmap(flow, flow_bytes());
	return NULL;
}

/* A flow of the calling thread on a slot of its own, idle. */
static struct flow *open_flow(enum thread_slot_kind kind)
{
	struct process *process = torsh_process;
	int slot = torsh_channel_take_slot(&process->channel, kind);
	struct flow *flow;
	uint64_t stamp;

	if (slot < 0)
		goto none;
	flow = process->flows[slot];
	if (!flow)
		flow = make_flow(slot);
	if (!flow) {
		atomic_store_explicit(&process->channel.slots[slot].state, THREAD_SLOT_FREE, memory_order_release);
		goto none;
	}
	torsh_stamp_disown(flow);
	flow->tid = (int)process->channel.slots[slot].tid;
	flow->end_rounds = 0;
	flow->has_lost = flow->is_torn = 0;
	flow->n_before = 0;
	memset(flow->lost, 0, sizeof(flow->lost));
	torsh_schedule_forget(flow->open);
	torsh_stack_reset(flow->stack);
	flow->codec.stamp = 0;
	stamp = torsh_flow_stamp(flow);
	torsh_codec_start(&flow->codec, stamp);
	torsh_channel_open_slot(&process->channel, slot, &flow->ring, stamp);
	/* The writer asks the kernel for the thread's name while it is there. */
	torsh_channel_ring_doorbell(process->channel.header);
	atomic_store_explicit(&flow->state, FLOW_IDLE, memory_order_relaxed);
	return flow;
none:
	torsh_count(COUNTER_threads_without_slot);
	return NULL;
}

/* Flows that were closed may be reopened by others at once: nothing of this thread may use it from here on. */
static void close_flow(struct flow *flow)
{
	if (flow->interrupt) {
		close_flow(flow->interrupt);
		flow->interrupt = NULL;
	}
	/* The thread ended in the middle of a hook: it was cancelled there. */
	if (atomic_load_explicit(&flow->state, memory_order_relaxed) >= N_FLOW_STATES)
		torsh_flow_mend(flow);
	/* Pairs with the acquire of the writer, which drains up to the last head. */
	atomic_store_explicit(&flow->ring.slot->state, THREAD_SLOT_CLOSED, memory_order_release);
	/* The slot is free again only when the writer has been there. */
	torsh_channel_ring_doorbell(torsh_process->channel.header);
}

/*
 * Other keys' destructors may free after this one ran: come back until the last round that the C library grants.
 */
static void end_thread(void *value)
{
	struct flow *flow = value;

	if (flow != torsh_flow_self || atomic_load_explicit(&flow->state, memory_order_relaxed) == FLOW_WIPED)
		return;
	if (++flow->end_rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(end_key, flow);
		return;
	}
	torsh_flow_self = &torsh_flow_ended;
	close_flow(flow);
}

int torsh_birth_start(void)
{
	int error = pthread_key_create(&end_key, end_thread);

	has_end_key = !error;
	return -error;
}

struct flow *torsh_birth_flow(void)
{
	struct flow *flow;

	torsh_flow_self = &torsh_flow_quiet;
	birth_holder = torsh_flow_holder(__builtin_frame_address(0));
	flow = open_flow(THREAD_SLOT_MAIN_FLOW);
	/* The first 32 keys take no memory; ours was made before the program made any. */
	if (flow && has_end_key)
		pthread_setspecific(end_key, flow);
	/* Without a slot of its own the thread shares the late flow. */
	birth_holder = 0;
	torsh_flow_self = flow ? flow : &torsh_flow_ended;
	return flow;
}

static struct flow *enter(struct flow *flow, uint64_t holder)
{
	uint64_t idle = FLOW_IDLE;

	if (!flow)
		return NULL;
	/* Acquire pairs with the release in torsh_flow_leave, for the late flow. */
	if (!atomic_compare_exchange_strong_explicit(&flow->state, &idle, holder, memory_order_acquire,
						     memory_order_relaxed))
		return NULL;
	flow->n_before = flow->ring.n_events;
	return flow;
}

/* Enter if it is idle, or held by a hook that is gone. */
static struct flow *enter_own(struct flow *flow, const void *frame)
{
	uint64_t holder = torsh_flow_holder(frame), state;

	if (!flow || enter(flow, holder))
		return flow;
	state = atomic_load_explicit(&flow->state, memory_order_relaxed);
	/* Taken first: a handler that comes meanwhile has a flow of its own. */
	if (!torsh_flow_is_abandoned(state, frame) ||
	    !atomic_compare_exchange_strong(&flow->state, &state, holder))
		return NULL;
	torsh_flow_mend(flow);
	return flow;
}

/*
 * A signal handler interrupted a hook of this thread and calls hooks itself, or was interrupted in that, and so on; or
 * one of them jumped out of all.
 */
static struct flow *enter_interrupt(struct flow *outer, const void *frame)
{
	struct flow *flow = enter_own(outer, frame);

	if (flow)
		return flow;
	for (int i = 0; outer && i < INTERRUPT_LEVELS; i++) {
		if (!outer->interrupt)
			outer->interrupt = open_flow(THREAD_SLOT_INTERRUPT);
		outer = outer->interrupt;
		flow = enter_own(outer, frame);
		if (flow)
			break;
	}
	torsh_count(flow ? COUNTER_interrupts : COUNTER_interrupts_lost);
	return flow;
}

static struct flow *late_flow(void)
{
	struct flow *late = atomic_load_explicit(&torsh_process->late, memory_order_acquire), *other = NULL;

	if (late)
		return late;
	late = open_flow(THREAD_SLOT_MAIN_FLOW);
	if (!late || atomic_compare_exchange_strong_explicit(&torsh_process->late, &other, late, memory_order_acq_rel,
							     memory_order_acquire))
		return late;
	close_flow(late);
	return other;
}

/*
 * The C library frees some things of a thread after every destructor ran: all such threads share one flow, and so do
 * those that found no slot.
 */
static struct flow *enter_late(void)
{
	struct flow *late = late_flow(), *flow;

	for (int i = 0; late && i < LATE_SPINS; i++) {
		flow = enter(late, FLOW_BUSY);
		if (flow) {
			torsh_stamp_disown(flow);
			return flow;
		}
		torsh_cpu_pause();
	}
	torsh_count(COUNTER_shared_stream_lost);
	return NULL;
}

static struct flow *enter_unborn(const void *frame)
{
	switch (atomic_load_explicit(&torsh_agent_state, memory_order_acquire)) {
	case AGENT_UNSTARTED:
		torsh_agent_start();
		break;
	case AGENT_ON:
		if (!torsh_process->pid)
			torsh_agent_restart_in_child();
		break;
	default:
		return NULL;
	}
	switch (atomic_load_explicit(&torsh_agent_state, memory_order_acquire)) {
	case AGENT_ON:
		break;
	case AGENT_STARTING:
		torsh_count(COUNTER_start_lost);
		return NULL;
	default:
		return NULL;
	}
	if (torsh_birth_flow())
		return enter(torsh_flow_self, torsh_flow_holder(frame));
	return enter_late();
}

/* Everything that is not an idle flow. errno is kept: a hook's caller sees the real function's. */
struct flow *torsh_flow_enter_slowly(struct flow *flow, const void *frame)
{
	int saved = errno;
	struct flow *entered = NULL;

	switch (atomic_load_explicit(&flow->state, memory_order_relaxed)) {
	case FLOW_UNBORN:
		entered = enter_unborn(frame);
		break;
	case FLOW_QUIET:
		/* A handler jumped out of the hook that was making this thread's flow. */
		if (torsh_flow_is_abandoned(birth_holder, frame)) {
			birth_holder = 0;
			torsh_flow_self = &torsh_flow_unborn;
			entered = enter_unborn(frame);
		}
		break;
	case FLOW_IDLE:
		/* A handler has mended it since it was looked at. */
		entered = enter_own(flow, frame);
		break;
	case FLOW_ENDED:
		if (torsh_process->pid)
			entered = enter_late();
		else
			entered = enter_unborn(frame);
		break;
	case FLOW_WIPED:
		torsh_flow_self = &torsh_flow_unborn;
		entered = enter_unborn(frame);
		break;
	default:
		entered = enter_interrupt(flow, frame);
	}
	errno = saved;
	return entered;
}
