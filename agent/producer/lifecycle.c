/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/producer/lifecycle.h"
#include "agent/process/callbacks.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "agent/process/memory_lock.h"
#include "agent/process/process.h"
#include "agent/producer/backpressure.h"
#include "agent/producer/counter.h"
#include "agent/producer/producers.h"
#include "agent/producer/rings.h"
#include "shim/libc/thread.h"

/*
 * How often to try for the shared producer, which is held for one event, or while its ring is full.
 */
#define SHARED_SPINS 1000u
#define SHARED_STEP_NS UINT64_C(100000)
#define SHARED_TRIES_MAX 20000u

/*
 * With more ended slots than this that the writer has not freed, a new thread waits for one of
 * them.
 */
#define ENDED_MAX 256u

/*
 * In a process that locks all memory, producers take at most 1/LOCK_SHARE of RLIMIT_MEMLOCK; each
 * takes some 230 KiB.
 */
#define LOCK_SHARE 8u
#define LOCKED_BYTES_PER_PRODUCER (256u << 10)

/* handlers that interrupt each other in hooks, including hooks that were abandoned */
#define INTERRUPT_LEVELS 16

/* Stand-ins, so that hooks never test for NULL. */
struct producer torsh_producer_not_created = {.state = PRODUCER_NOT_CREATED};
struct producer torsh_producer_quiet = {.state = PRODUCER_QUIET};
struct producer torsh_producer_mute = {.state = PRODUCER_MUTE};
struct producer torsh_producer_ended = {.state = PRODUCER_ENDED};

_Thread_local struct producer *torsh_producer_self = &torsh_producer_not_created;

/* frame of the running torsh_lifecycle_producer, else 0 */
static _Thread_local uint64_t creation_holder;

/* the hook through which this thread holds, or held, the shared producer */
static _Thread_local uint64_t shared_holder;
static pthread_key_t end_key;
static bool has_end_key;

static bool has_ended_slots(void *unused)
{
	const struct channel_header *header = torsh_process->channel.header;

	(void)unused;
	return (uint32_t)atomic_load_explicit(&header->free_slots, memory_order_acquire) != 0;
}

/* Sleep until the writer has freed a slot, or for one step. */
static void await_slot(void *unused)
{
	struct channel_header *header = torsh_process->channel.header;
	uint32_t n_freed = atomic_load_explicit(&header->n_freed, memory_order_acquire);

	/* Sequentially consistent, as the writer's exchange: one side sees the other. */
	atomic_store_explicit(&header->freed_awaited, 1, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	if (has_ended_slots(unused))
		return;
	torsh_channel_ring_doorbell(header);
	torsh_sys_futex_wait(&header->n_freed, n_freed, BACKPRESSURE_STEP_NS);
}

/*
 * Take a slot for the calling thread; waits for ended ones before it uses many more. Returns a
 * negative value without a slot.
 */
static int take_slot(enum thread_slot_kind kind, uint64_t *waited_ns)
{
	const struct producer_await await = {.is_there = has_ended_slots, .await = await_slot};
	struct channel *channel = &torsh_process->channel;
	int slot = torsh_channel_take_slot(channel, kind, ENDED_MAX);
	bool is_waited_for = true;

	while (slot == -EAGAIN && is_waited_for) {
		is_waited_for = torsh_producer_await(&await, waited_ns);
		slot = torsh_channel_take_slot(channel, kind,
					       is_waited_for ? ENDED_MAX : UINT32_MAX);
	}
	return slot;
}

/* Count one more producer, unless that exceeds the share of locked memory. */
static bool count_producer(void)
{
	uint32_t n =
		atomic_fetch_add_explicit(&torsh_process->n_producers, 1, memory_order_relaxed);

	if (!torsh_memory_lock_is_limited() ||
	    n < torsh_memory_lock_limit() / LOCK_SHARE / LOCKED_BYTES_PER_PRODUCER)
		return true;
	atomic_fetch_sub_explicit(&torsh_process->n_producers, 1, memory_order_relaxed);
	return false;
}

/* Make a producer for the calling thread on a slot of its own, not yet open. */
static struct producer *make_producer(enum thread_slot_kind kind, uint64_t *waited_ns)
{
	int slot = take_slot(kind, waited_ns);
	struct producer *producer;

	if (slot < 0)
		return NULL;
	if (!count_producer())
		goto give_back;
	producer = torsh_producers_take_block();
	if (!producer)
		goto uncount;
	if (torsh_rings_take(slot, &producer->ring))
		goto drop;
	producer->slot = (uint32_t)slot;
	torsh_producers_add(producer);
	return producer;
drop:
	torsh_producers_drop_block(producer);
uncount:
	atomic_fetch_sub_explicit(&torsh_process->n_producers, 1, memory_order_relaxed);
give_back:
	torsh_channel_return_slot(&torsh_process->channel, slot);
	return NULL;
}

static void open_producer(struct producer *producer, uint64_t waited_ns)
{
	struct channel *channel = &torsh_process->channel;
	uint64_t stamp;

	torsh_stamp_disown(producer);
	producer->generation =
		atomic_load_explicit(&torsh_process->generation, memory_order_acquire);
	producer->tid = (int)torsh_channel_slot(channel, producer->slot)->tid;
	producer->n_opened++;
	producer->end_rounds = 0;
	producer->has_lost = producer->is_torn = false;
	producer->n_before = 0;
	producer->may_not_grow = false;
	producer->sampler = (struct heap_sampler){0};
	memset(producer->lost, 0, sizeof(producer->lost));
	torsh_schedule_reset(producer);
	torsh_stack_reset(producer->stack);
	producer->codec.stamp = 0;
	stamp = torsh_producer_stamp(producer);
	torsh_codec_start(&producer->codec, stamp);
	torsh_channel_open_slot(channel, (int)producer->slot, &producer->ring, stamp);
	atomic_store_explicit(&producer->ring.slot->waited_ns, waited_ns, memory_order_relaxed);
	/* The writer queries the kernel for the thread's name while the thread lives. */
	torsh_channel_ring_doorbell(channel->header);
}

bool torsh_lifecycle_renew(struct producer *producer)
{
	struct ring small = producer->ring;
	uint32_t end_rounds = producer->end_rounds;

	if (small.mask + 1 > CHANNEL_RING_SMALL_BYTES) {
		if (torsh_rings_take((int)producer->slot, &small))
			return false;
		torsh_rings_drop(producer->slot, &producer->ring);
		producer->ring.bytes = small.bytes;
		producer->ring.mask = small.mask;
	}
	open_producer(producer, 0);
	/* Its thread may be ending. */
	producer->end_rounds = end_rounds;
	return true;
}

static struct producer *new_producer(enum thread_slot_kind kind)
{
	uint64_t waited_ns = 0;
	struct producer *producer = make_producer(kind, &waited_ns);

	if (!producer) {
		torsh_count(COUNTER_threads_without_slot);
		return NULL;
	}
	open_producer(producer, waited_ns);
	atomic_store_explicit(&producer->state, PRODUCER_IDLE, memory_order_relaxed);
	return producer;
}

/* Once closed, another thread may reuse the producer: this thread must not touch it again. */
static void close_producer(struct producer *producer)
{
	struct thread_slot *slot = producer->ring.slot;

	if (producer->interrupt) {
		close_producer(producer->interrupt);
		producer->interrupt = NULL;
	}
	/* The thread ended inside a hook: it was cancelled there. */
	if (atomic_load_explicit(&producer->state, memory_order_relaxed) >= N_PRODUCER_STATES)
		torsh_producer_mend(producer);
	torsh_producers_remove(producer);
	torsh_rings_drop(producer->slot, &producer->ring);
	torsh_producers_drop_block(producer);
	atomic_fetch_sub_explicit(&torsh_process->n_producers, 1, memory_order_relaxed);
	torsh_channel_close_slot(&torsh_process->channel, slot);
}

/* Destructors of other keys may still free: rerun until PTHREAD_DESTRUCTOR_ITERATIONS. */
static void end_thread(void *value)
{
	struct producer *producer = value;

	if (producer != torsh_producer_self ||
	    atomic_load_explicit(&producer->state, memory_order_relaxed) == PRODUCER_FORKED)
		return;
	if (++producer->end_rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(end_key, producer);
		return;
	}
	torsh_callbacks.thread_ends();
	torsh_producer_self = &torsh_producer_ended;
	close_producer(producer);
}

int torsh_lifecycle_start(void)
{
	int error = pthread_key_create(&end_key, end_thread);

	torsh_memory_lock_start();
	has_end_key = !error;
	return -error;
}

struct producer *torsh_lifecycle_producer(void)
{
	struct producer *producer;

	torsh_producer_self = &torsh_producer_quiet;
	creation_holder = torsh_producer_holder(__builtin_frame_address(0));
	producer = new_producer(THREAD_SLOT_MAIN);
	/* The first 32 keys take no memory; the agent's was made before any of the program's. */
	if (producer && has_end_key)
		pthread_setspecific(end_key, producer);
	/* A thread without a slot of its own uses the shared producer. */
	creation_holder = 0;
	torsh_producer_self = producer ? producer : &torsh_producer_ended;
	if (producer)
		torsh_callbacks.thread_starts();
	return producer;
}

static struct producer *enter(struct producer *producer, uint64_t holder)
{
	uint64_t idle = PRODUCER_IDLE;

	if (!producer)
		return NULL;
	/* Acquire pairs with the release in torsh_producer_leave, for the shared producer. */
	if (!atomic_compare_exchange_strong_explicit(&producer->state, &idle, holder,
						     memory_order_acquire, memory_order_relaxed))
		return NULL;
	producer->n_before = producer->ring.n_events;
	return producer;
}

/* Enter an idle producer, or recover one with an abandoned hook. */
static struct producer *enter_own(struct producer *producer, const void *frame)
{
	uint64_t holder = torsh_producer_holder(frame), state;

	if (!producer || enter(producer, holder))
		return producer;
	state = atomic_load_explicit(&producer->state, memory_order_relaxed);
	/* Taken first: a signal handler that interrupts here uses a producer of its own. */
	if (!torsh_producer_is_abandoned(state, frame) ||
	    !atomic_compare_exchange_strong(&producer->state, &state, holder))
		return NULL;
	torsh_producer_mend(producer);
	return producer;
}

/*
 * For hooks called from a signal handler that interrupted a hook, to any depth, or after a handler
 * abandoned all of them.
 */
static struct producer *enter_interrupt(struct producer *outer, const void *frame)
{
	struct producer *producer = enter_own(outer, frame);

	if (producer)
		return producer;
	for (int i = 0; outer && i < INTERRUPT_LEVELS; i++) {
		if (!outer->interrupt)
			outer->interrupt = new_producer(THREAD_SLOT_INTERRUPT);
		outer = outer->interrupt;
		producer = enter_own(outer, frame);
		if (producer)
			break;
	}
	torsh_count(producer ? COUNTER_interrupts : COUNTER_interrupts_lost);
	return producer;
}

void torsh_lifecycle_reserve(void)
{
	torsh_process->reserved = make_producer(THREAD_SLOT_MAIN, &(uint64_t){0});
}

/* Open the shared producer on first use. */
static struct producer *open_shared(void)
{
	struct producer *shared =
		atomic_load_explicit(&torsh_process->shared, memory_order_acquire);

	if (shared || !torsh_process->reserved ||
	    atomic_exchange_explicit(&torsh_process->is_shared_open, 1, memory_order_relaxed))
		return shared;
	shared = torsh_process->reserved;
	torsh_channel_slot(&torsh_process->channel, shared->slot)->tid =
		(uint32_t)torsh_thread_tid();
	open_producer(shared, 0);
	atomic_store_explicit(&shared->state, PRODUCER_IDLE, memory_order_relaxed);
	atomic_store_explicit(&torsh_process->shared, shared, memory_order_release);
	return shared;
}

/* Take the shared producer, marked with this thread, if it is idle or its hook is abandoned. */
static struct producer *hold_shared(struct producer *shared, uint64_t mark, const void *frame)
{
	uint64_t holder = shared_holder;

	if (atomic_load_explicit(&shared->state, memory_order_relaxed) == mark) {
		if (!torsh_producer_is_abandoned(holder, frame))
			return NULL;
		shared_holder = torsh_producer_holder(frame);
		torsh_producer_mend(shared);
		return shared;
	}
	shared_holder = 0;
	if (!enter(shared, mark))
		return NULL;
	shared_holder = torsh_producer_holder(frame);
	if (shared->user != mark) {
		/* The cached stack belongs to another thread. */
		torsh_stamp_disown(shared);
		torsh_stack_reset(shared->stack);
		shared->user = mark;
	}
	atomic_store_explicit(&torsh_process->shared_stuck, 0, memory_order_relaxed);
	return shared;
}

/*
 * The producer shared by threads past their last destructor (the C library still frees then) and
 * threads without a slot. Its holder may wait for the writer, or never leave: a thread waits for
 * such a holder only once.
 */
static struct producer *enter_shared(const void *frame)
{
	uint64_t mark = (uintptr_t)&torsh_producer_self, held;
	_Atomic uint64_t *stuck = &torsh_process->shared_stuck;
	struct producer *shared = open_shared();

	for (uint32_t i = 0; i < SHARED_TRIES_MAX; i++) {
		if (shared && hold_shared(shared, mark, frame))
			return shared;
		shared = shared ? shared : open_shared();
		held = shared ? atomic_load_explicit(&shared->state, memory_order_relaxed)
			      : PRODUCER_IDLE;
		/*
		 * This thread holds it below a signal handler, or an earlier wait for the same
		 * holder timed out.
		 */
		if (held == mark ||
		    (i && held == atomic_load_explicit(stuck, memory_order_relaxed)))
			break;
		if (i < SHARED_SPINS || !shared)
			torsh_cpu_pause();
		else
			torsh_sys_futex_wait(&shared->state, (uint32_t)held, SHARED_STEP_NS);
		if (i == SHARED_TRIES_MAX - 1)
			atomic_store_explicit(stuck, held, memory_order_relaxed);
	}
	torsh_count(COUNTER_shared_stream_lost);
	return NULL;
}

static struct producer *enter_not_created(const void *frame)
{
	switch (atomic_load_explicit(&torsh_agent_state, memory_order_acquire)) {
	case AGENT_UNSTARTED:
		torsh_callbacks.process_starts();
		break;
	case AGENT_ON:
		if (!torsh_process->pid)
			torsh_callbacks.child_starts();
		break;
	case AGENT_DORMANT:
		/* The hook that arms it may have been chosen by what a dormant process records. */
		torsh_callbacks.process_armed();
		return NULL;
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
	if (torsh_lifecycle_producer())
		return enter(torsh_producer_self, torsh_producer_holder(frame));
	return enter_shared(frame);
}

/* Handles all states other than idle. Keeps errno: the hook's caller gets the real function's. */
struct producer *torsh_producer_enter_slowly(struct producer *producer, const void *frame)
{
	int saved = errno;
	struct producer *entered = NULL;

	switch (atomic_load_explicit(&producer->state, memory_order_relaxed)) {
	case PRODUCER_NOT_CREATED:
		entered = enter_not_created(frame);
		break;
	case PRODUCER_QUIET:
		/* A signal handler abandoned the hook that was creating this thread's producer. */
		if (torsh_producer_is_abandoned(creation_holder, frame)) {
			creation_holder = 0;
			torsh_producer_self = &torsh_producer_not_created;
			entered = enter_not_created(frame);
		}
		break;
	case PRODUCER_MUTE:
		torsh_count(COUNTER_muted_lost);
		break;
	case PRODUCER_IDLE:
		/* A signal handler has recovered it meanwhile. */
		entered = enter_own(producer, frame);
		break;
	case PRODUCER_ENDED:
		if (torsh_process->pid)
			entered = enter_shared(frame);
		else
			entered = enter_not_created(frame);
		break;
	case PRODUCER_FORKED:
		torsh_producer_self = &torsh_producer_not_created;
		entered = enter_not_created(frame);
		break;
	default:
		entered = enter_interrupt(producer, frame);
	}
	errno = saved;
	return entered;
}

void torsh_producer_send(const struct event *event, const void *frame)
{
	struct producer *producer = torsh_producer_enter();

	if (!producer)
		return;
	torsh_producer_event(producer, event, frame);
	torsh_producer_leave(producer);
}
