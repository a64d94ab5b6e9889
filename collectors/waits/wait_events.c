/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A wait of WAIT_MIN_NS or more is an event of its own, with its stack; shorter ones are counted by
 * thread and kind. What was counted is sent by the same thread from time to time, and at the end of
 * the process by the thread that ends it: with the waits that last until then.
 */
#include "collectors/waits/wait_events.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/producer/label.h"
#include "agent/producer/producer.h"
#include "agent/producer/schedule.h"
#include "collectors/waits/wakes.h"
#include "shim/hooks.h"
#include "shim/libc/thread.h"
#include "shim/sys.h"
#include "shim/waits/wait_calls.h"

#define WAIT_MIN_NS UINT64_C(50000)
#define LIKELY_MIN_NS UINT64_C(1000000) /* after such a read or poll the next one may wait, too */
#define ATTRIBUTE "waits"
#define ATTRIBUTE_VALUE "recorded"
/* Between two pieces of a wait for Python's lock: after more the thread has got the lock. */
#define GIL_GAP_NS UINT64_C(1000000)
#define SEND_EVERY_NS UINT64_C(100000000)

/* By the slot of the thread's producer; a slot's next thread goes on with the entry. */
struct wait_entry {
	_Atomic int tid; /* 0: no thread had the slot yet */
	_Atomic uint32_t kind; /* of the wait in progress, and 1; 0: none */
	_Atomic uint32_t wake; /* of that: struct wait_hook's; 0: none, or it was left */
	_Atomic uint64_t begin_ns, object, awaited; /* of that */
	/* The object, and 1, of the last read and the last poll, if it waited; 0: it didn't. */
	_Atomic uint64_t waited[2];
	/* The thread requested Python's lock, and last gave up for a moment; 0: neither. */
	_Atomic uint64_t gil_begin_ns, gil_end_ns;
	_Atomic uint64_t sent_ns; /* when counts were last sent */
	struct {
		_Atomic uint64_t n, ns;
	} shorter[N_THREAD_WAIT_KINDS];
};

#define PIECE_SLOTS 64u
#define N_PIECES (CHANNEL_THREADS / PIECE_SLOTS)

/* Pages that fork zeroes in the child. */
static void *_Atomic pieces[N_PIECES];
static void *_Atomic wake_slots; /* NULL: no thread waited yet for what another one ends */

static uint64_t monotonic_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct wait_entry *entry_of(const struct producer *producer)
{
	struct wait_entry *entries = torsh_sys_own_once(&pieces[producer->slot / PIECE_SLOTS],
							PIECE_SLOTS * sizeof(struct wait_entry));

	return entries ? &entries[producer->slot % PIECE_SLOTS] : NULL;
}

_Atomic uint32_t torsh_wait_n_files;

/* Within a hook: once for each process, a forked child's recording needs it too. */
static void announce(struct producer *producer)
{
	static _Atomic int announced;
	struct event event = {.id = EVENT_FACT};
	int mark = torsh_process_mark();

	if (atomic_exchange_explicit(&announced, mark, memory_order_relaxed) == mark)
		return;
	/* The threads of the parent wait there. */
	atomic_store_explicit(&torsh_wait_n_files, 0, memory_order_relaxed);
	event.fact.name = torsh_label(ATTRIBUTE, strlen(ATTRIBUTE));
	event.fact.value = torsh_label(ATTRIBUTE_VALUE, strlen(ATTRIBUTE_VALUE));
	torsh_producer_event(producer, &event, NULL);
}

/* ---- who ends a wait ------------------------------------------------------------------------- */

static __attribute__((noinline, cold)) void leave_record(struct wake_slot *slots, uint64_t object,
							 enum wake_whom whom)
{
	torsh_wakes_post(slots, object, whom, (uint32_t)torsh_thread_tid(), monotonic_ns());
}

void torsh_wait_wakes(uint64_t object, enum wake_whom whom)
{
	struct wake_slot *slots = atomic_load_explicit(&wake_slots, memory_order_acquire);

	if (slots && torsh_wakes_has_waiter(slots, object))
		leave_record(slots, object, whom);
}

static bool has_waker(uint32_t kind)
{
	return kind == THREAD_WAIT_SEMAPHORE || kind == THREAD_WAIT_CONDITION ||
	       kind == THREAD_WAIT_MUTEX || kind == THREAD_WAIT_RWLOCK ||
	       kind == THREAD_WAIT_BARRIER || kind == THREAD_WAIT_GIL;
}

static void leave_slot(struct wait_entry *entry, uint64_t awaited)
{
	uint32_t wake = atomic_exchange_explicit(&entry->wake, 0, memory_order_relaxed);

	if (!wake)
		return;
	torsh_wakes_leave(atomic_load_explicit(&wake_slots, memory_order_acquire), wake, awaited);
	if (awaited & WAKE_FILE)
		atomic_fetch_sub(&torsh_wait_n_files, 1);
}

/*
 * Leave the slot of a wait that ended by a cancellation or a jump, or that a signal handler waits
 * within: before the entry has the next wait, of whatever kind.
 */
static void leave_last_slot(struct wait_entry *entry)
{
	if (atomic_load_explicit(&entry->wake, memory_order_relaxed))
		leave_slot(entry, atomic_load_explicit(&entry->awaited, memory_order_relaxed));
}

static void enter_slot(struct wait_hook *hook)
{
	struct wake_slot *slots = torsh_sys_own_once(&wake_slots, WAKE_SLOTS * sizeof(*slots));

	if (!slots)
		return;
	hook->wake = torsh_wakes_enter(slots, hook->awaited);
	atomic_store_explicit(&hook->entry->awaited, hook->awaited, memory_order_relaxed);
	atomic_store_explicit(&hook->entry->wake, hook->wake, memory_order_relaxed);
}

/* The wait of the hook is over. */
static struct wake take_wake(const struct wait_hook *hook, long returned, uint64_t now_ns)
{
	struct wake_slot *slots = atomic_load_explicit(&wake_slots, memory_order_acquire);
	struct wake wake = {0};

	if (!hook->wake)
		return wake;
	/* What came while the slot was left isn't known. */
	if (atomic_load_explicit(&hook->entry->wake, memory_order_relaxed) != hook->wake)
		return wake;
	/* What became readable may be a number of bytes. */
	if ((hook->awaited != hook->object ? returned >= 0 : !returned) && !hook->is_free)
		wake = torsh_wakes_take(slots, hook->wake, hook->awaited,
					hook->kind == THREAD_WAIT_MUTEX, hook->begin_ns, now_ns);
	leave_slot(hook->entry, hook->awaited);
	return wake;
}

/* ---- what was counted ------------------------------------------------------------------------ */

/* Within a hook: send the counts of an entry. */
static void send_counts(struct producer *producer, struct wait_entry *entry)
{
	struct event event = {.id = EVENT_WAITS_SHORTER};

	event.waits_shorter.tid = (uint32_t)atomic_load_explicit(&entry->tid, memory_order_relaxed);
	for (uint32_t kind = 0; kind < N_THREAD_WAIT_KINDS; kind++) {
		if (!atomic_load_explicit(&entry->shorter[kind].n, memory_order_relaxed))
			continue;
		event.waits_shorter.kind = kind;
		event.waits_shorter.n =
			atomic_exchange_explicit(&entry->shorter[kind].n, 0, memory_order_relaxed);
		event.waits_shorter.total_ns =
			atomic_exchange_explicit(&entry->shorter[kind].ns, 0, memory_order_relaxed);
		torsh_producer_event(producer, &event, NULL);
	}
}

/* Within a hook of the producer's thread: what another thread left in the entry is sent first. */
static void use_entry(struct producer *producer, struct wait_entry *entry)
{
	if (atomic_load_explicit(&entry->tid, memory_order_relaxed) == producer->tid)
		return;
	announce(producer);
	send_counts(producer, entry);
	leave_last_slot(entry);
	atomic_store_explicit(&entry->kind, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->gil_begin_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->sent_ns, monotonic_ns(), memory_order_relaxed);
	atomic_store_explicit(&entry->tid, producer->tid, memory_order_release);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/*
 * The entry of the calling thread; NULL: its waits are not recorded, or it is in a hook. The
 * thread's first wait creates its producer, so that a wait without an end is known.
 */
static inline __attribute__((always_inline)) struct wait_entry *own_entry(void)
{
	struct producer *producer = torsh_producer_self;
	struct wait_entry *entry;

	if (atomic_load_explicit(&producer->state, memory_order_relaxed) == PRODUCER_IDLE) {
		entry = entry_of(producer);
		if (entry &&
		    atomic_load_explicit(&entry->tid, memory_order_relaxed) == producer->tid)
			return entry;
	}
	producer = torsh_producer_enter();
	if (!producer)
		return NULL;
	/* The shared producer is of several threads: their waits are events only. */
	entry = producer == torsh_producer_self ? entry_of(producer) : NULL;
	if (entry)
		use_entry(producer, entry);
	torsh_producer_leave(producer);
	return entry;
}

/*
 * The thread got Python's lock at the moment when it gave up waiting: no call returned with it, and
 * the stack of that wait is not known any more.
 */
static void settle_gil(struct wait_entry *entry)
{
	uint64_t begin_ns = atomic_load_explicit(&entry->gil_begin_ns, memory_order_relaxed);
	struct event event = {
		.id = EVENT_THREAD_WAIT,
		.thread_wait = {.kind = THREAD_WAIT_GIL,
				.begin = begin_ns,
				.duration_ns = atomic_load_explicit(&entry->gil_end_ns,
								    memory_order_relaxed) -
					       begin_ns,
				.object =
					atomic_load_explicit(&entry->object, memory_order_relaxed)},
	};
	struct producer *producer = torsh_producer_enter();

	atomic_store_explicit(&entry->gil_begin_ns, 0, memory_order_relaxed);
	if (!producer)
		return;
	event.thread_wait.tid = (uint32_t)producer->tid;
	if (torsh_schedule_is_on(producer))
		torsh_producer_event(producer, &event, NULL);
	torsh_producer_leave(producer);
}

static bool has_got_gil(struct wait_entry *entry, uint32_t kind, uint64_t now_ns)
{
	return atomic_load_explicit(&entry->gil_begin_ns, memory_order_relaxed) &&
	       (kind != THREAD_WAIT_GIL ||
		now_ns - atomic_load_explicit(&entry->gil_end_ns, memory_order_relaxed) >
			GIL_GAP_NS);
}

void torsh_wait_begins(struct wait_hook *hook, uint32_t kind, uint64_t object)
{
	int saved = errno;
	struct wait_entry *entry = own_entry();

	hook->kind = kind;
	hook->wake = 0;
	hook->is_free = false;
	hook->object = hook->awaited = object;
	hook->entry = entry;
	/* The agent's own call, or that of a signal handler within a hook: its hook is not ours. */
	hook->is_inner = !entry && atomic_load_explicit(&torsh_producer_self->state,
							memory_order_relaxed) >= N_PRODUCER_STATES;
	if (torsh_waits_is_of_python((uintptr_t)object))
		hook->kind = THREAD_WAIT_GIL;
	hook->begin_ns = monotonic_ns();
	if (entry && has_got_gil(entry, hook->kind, hook->begin_ns))
		settle_gil(entry);
	if (entry) {
		leave_last_slot(entry);
		if (has_waker(hook->kind))
			enter_slot(hook);
		atomic_store_explicit(&entry->begin_ns, hook->begin_ns, memory_order_relaxed);
		atomic_store_explicit(&entry->object, object, memory_order_relaxed);
		atomic_store_explicit(&entry->kind, hook->kind + 1, memory_order_relaxed);
	}
	errno = saved;
}

bool torsh_wait_is_likely(struct wait_hook *hook)
{
	_Atomic uint64_t *waited;

	if (!hook->entry)
		return false;
	waited = &hook->entry->waited[hook->kind == THREAD_WAIT_POLL];
	if (atomic_load_explicit(waited, memory_order_relaxed) != hook->object + 1)
		return false;
	atomic_store_explicit(waited, 0, memory_order_relaxed);
	return true;
}

void torsh_wait_awaits(struct wait_hook *hook, uint64_t file)
{
	hook->awaited = file;
	enter_slot(hook);
	if (hook->wake)
		atomic_fetch_add(&torsh_wait_n_files, 1);
}

/*
 * A thread waits for Python's lock in pieces of its switch interval, and requests the lock after
 * each: these are one wait. Returns whether it goes on.
 */
static bool join_gil(struct wait_hook *hook, long returned, uint64_t now_ns)
{
	struct wait_entry *entry = hook->entry;
	uint64_t begin_ns;

	if (hook->kind != THREAD_WAIT_GIL || !entry)
		return false;
	begin_ns = atomic_load_explicit(&entry->gil_begin_ns, memory_order_relaxed);
	hook->begin_ns = begin_ns ? begin_ns : hook->begin_ns;
	atomic_store_explicit(&entry->gil_begin_ns, returned == ETIMEDOUT ? hook->begin_ns : 0,
			      memory_order_relaxed);
	atomic_store_explicit(&entry->gil_end_ns, now_ns, memory_order_relaxed);
	return returned == ETIMEDOUT;
}

static void count_wait(struct wait_hook *hook, uint64_t ns)
{
	struct wait_entry *entry = hook->entry;

	atomic_fetch_add_explicit(&entry->shorter[hook->kind].n, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&entry->shorter[hook->kind].ns, ns, memory_order_relaxed);
}

/* Within a hook. */
static void send_wait(struct producer *producer, const struct wait_hook *hook, struct wake wake,
		      uint64_t now_ns, const void *frame)
{
	struct event event = {
		.id = EVENT_THREAD_WAIT,
		.thread_wait = {.kind = hook->kind,
				.begin = hook->begin_ns,
				.duration_ns = now_ns - hook->begin_ns,
				.object = hook->object,
				.waker = wake.tid,
				.woken_ns = wake.tid ? wake.at_ns - hook->begin_ns : 0},
	};

	if (torsh_schedule_is_on(producer))
		torsh_producer_event(producer, &event, torsh_config.with_stack ? frame : NULL);
}

/* Within a hook of a thread without an entry, as when it has run its last destructor. */
static void send_short(struct producer *producer, const struct wait_hook *hook, uint64_t ns)
{
	const struct event event = {
		.id = EVENT_WAITS_SHORTER,
		.waits_shorter = {.tid = (uint32_t)torsh_thread_tid(),
				  .kind = hook->kind,
				  .n = 1,
				  .total_ns = ns},
	};

	torsh_producer_event(producer, &event, NULL);
}

static void send_if_due(struct producer *producer, struct wait_entry *entry, uint64_t now_ns)
{
	if (!entry ||
	    now_ns - atomic_load_explicit(&entry->sent_ns, memory_order_relaxed) <= SEND_EVERY_NS)
		return;
	atomic_store_explicit(&entry->sent_ns, now_ns, memory_order_relaxed);
	send_counts(producer, entry);
}

void torsh_wait_ends(struct wait_hook *hook, long returned, const void *frame)
{
	int saved = errno;
	struct wait_entry *entry = hook->entry;
	struct producer *producer;
	uint64_t now_ns = monotonic_ns(), ns;
	struct wake wake = take_wake(hook, returned, now_ns);
	bool is_short;

	if (entry)
		atomic_store_explicit(&entry->kind, 0, memory_order_relaxed);
	if (hook->is_inner || join_gil(hook, returned, now_ns)) {
		errno = saved;
		return;
	}
	ns = now_ns - hook->begin_ns;
	is_short = ns < WAIT_MIN_NS;
	if (is_short && entry)
		count_wait(hook, ns);
	if (ns >= LIKELY_MIN_NS && entry &&
	    (hook->kind == THREAD_WAIT_READ || hook->kind == THREAD_WAIT_POLL))
		atomic_store_explicit(&entry->waited[hook->kind == THREAD_WAIT_POLL],
				      hook->object + 1, memory_order_relaxed);
	if (!is_short || !entry ||
	    now_ns - atomic_load_explicit(&entry->sent_ns, memory_order_relaxed) > SEND_EVERY_NS) {
		producer = torsh_producer_enter();
		if (producer) {
			send_if_due(producer, entry, now_ns);
			if (!is_short)
				send_wait(producer, hook, wake, now_ns, frame);
			else if (!entry)
				send_short(producer, hook, ns);
			torsh_producer_leave(producer);
		}
	}
	errno = saved;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* A cancelled thread leaves its wait in the entry. */
static bool has_thread(uint32_t slot, int tid)
{
	const struct thread_slot *of = torsh_channel_slot(&torsh_process->channel, slot);

	return of && atomic_load_explicit(&of->state, memory_order_acquire) == THREAD_SLOT_ACTIVE &&
	       of->tid == (uint32_t)tid;
}

/*
 * A wait that lasts: of another thread than the one that ends the process. One that was left by a
 * jump counts as lasting if the thread made no other such call since.
 */
static void send_unfinished(struct producer *producer, struct wait_entry *entry, uint32_t slot,
			    uint64_t now_ns)
{
	uint32_t kind = atomic_load_explicit(&entry->kind, memory_order_relaxed);
	uint64_t begin_ns = atomic_load_explicit(&entry->gil_begin_ns, memory_order_relaxed);
	struct event event = {
		.id = EVENT_THREAD_WAIT,
		.thread_wait = {.kind = kind - 1,
				.object =
					atomic_load_explicit(&entry->object, memory_order_relaxed),
				.tid = (uint32_t)atomic_load_explicit(&entry->tid,
								      memory_order_relaxed)},
	};

	if (!begin_ns || kind - 1 != THREAD_WAIT_GIL)
		begin_ns = atomic_load_explicit(&entry->begin_ns, memory_order_relaxed);
	if (!kind || now_ns < begin_ns || now_ns - begin_ns < WAIT_MIN_NS ||
	    event.thread_wait.tid == (uint32_t)producer->tid ||
	    !has_thread(slot, (int)event.thread_wait.tid))
		return;
	event.thread_wait.begin = begin_ns;
	event.thread_wait.duration_ns = now_ns - begin_ns;
	torsh_producer_event(producer, &event, NULL);
}

/* Inlined, as torsh_producer_enter requires. */
static inline __attribute__((always_inline)) void send_all(bool is_end)
{
	struct producer *producer;
	uint64_t now_ns;
	int saved = errno;

	if (!(torsh_config.activities & ACTIVITY_WAITS) || torsh_agent_is_borrowed())
		return;
	now_ns = monotonic_ns();
	producer = torsh_producer_enter();
	if (producer)
		announce(producer);
	for (uint32_t i = 0; producer && i < N_PIECES; i++) {
		struct wait_entry *entries = atomic_load_explicit(&pieces[i], memory_order_acquire);

		for (uint32_t k = 0; entries && k < PIECE_SLOTS; k++) {
			if (!atomic_load_explicit(&entries[k].tid, memory_order_acquire))
				continue;
			send_counts(producer, &entries[k]);
			if (is_end)
				send_unfinished(producer, &entries[k], i * PIECE_SLOTS + k, now_ns);
		}
	}
	if (producer)
		torsh_producer_leave(producer);
	errno = saved;
}

void torsh_waits_execute(void)
{
	send_all(false);
}

void torsh_waits_end(void)
{
	send_all(true);
}
