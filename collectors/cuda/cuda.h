/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The device collector: what CUDA's devices do. collectors/cuda/cuda.c attaches to CUPTI,
 * collectors/cuda/cuda_calls.c records what the program calls, collectors/cuda/cuda_buffers.c owns
 * the buffers for CUPTI's records, collectors/cuda/cuda_records.c makes events of them,
 * collectors/cuda/cuda_clock.c brings their times to our clock, collectors/cuda/cuda_flush.c gets
 * the last records. Where CUPTI can't be had collectors/cuda/cuda_events.c sees the program's calls
 * of the driver instead. Calls about memory are collectors/cuda/memory/cuda_memory.c's, whoever
 * sees them.
 *
 * CUPTI calls from the program's threads and from its own, with locks held: nothing here waits for
 * a lock of anybody else's, calls CUDA or allocates from the program's heap. CUDA is called at the
 * end of a call of the program's alone, where CUPTI holds no lock
 * (collectors/cuda/memory/cuda_memory_info.c). A child of a fork never gets as far as CUPTI.
 */
#ifndef TORSH_COLLECTORS_CUDA_CUDA_H
#define TORSH_COLLECTORS_CUDA_CUDA_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "agent/producer/counter.h"
#include "agent/producer/producer.h"
#include "agent/wire/event.h"
#include "shim/cuda/cupti.h"
#include "shim/sys.h"

/* A lock for a few instructions, which no signal handler takes. */
struct cuda_lock {
	_Atomic uint32_t is_taken;
};

static inline void torsh_cuda_lock(struct cuda_lock *lock)
{
	/* Pairs with the release in torsh_cuda_unlock. */
	while (atomic_exchange_explicit(&lock->is_taken, 1, memory_order_acquire))
		TORSH_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static inline void torsh_cuda_unlock(struct cuda_lock *lock)
{
	atomic_store_explicit(&lock->is_taken, 0, memory_order_release);
}

/* What is missing from the recording; written by any thread. */
struct cuda_losses {
	_Atomic uint64_t records; /* that were delivered: not missing */
	_Atomic uint64_t dropped, without_room, invalid;
	_Atomic uint64_t flushes_cut; /* that did not end in time, or that CUPTI refused */
	_Atomic uint64_t buffers_kept; /* that CUPTI still had after the last flush */
	_Atomic uint32_t is_dropping_unknown; /* CUPTI does not say how many it dropped */
};

extern struct cuda_losses torsh_cuda_losses;

/*
 * So many more of one of these, without which the recording isn't complete: dropped, without_room.
 */
static inline void torsh_cuda_lose(_Atomic uint64_t *sum, uint64_t n)
{
	atomic_fetch_add_explicit(sum, n, memory_order_relaxed);
	torsh_count_many(COUNTER_device_records_lost, n);
}

/* CUPTI_API_VERSION of the library; written before any buffer is asked for. */
extern uint32_t torsh_cuda_version;

/* Is CUPTI attached in this process, which is no child of the one that attached it? */
int torsh_cuda_is_live(void);

/* Has the last flush begun? What the driver does from then on is its own. */
int torsh_cuda_is_ending(void);

/*
 * May the agent call the driver, here and now? Devices are watched, it is not the end, no other
 * tool measures, and this thread is in no call of CUDA.
 */
int torsh_cuda_may_call(void);

/* As an event of the calling thread, without a stack. */
static inline void torsh_cuda_send(const struct event *event)
{
	torsh_producer_send(event, NULL);
}

/* Tell what is missing so far; takes no lock. */
void torsh_cuda_say_losses(void);

/* ---- collectors/cuda/cuda_calls.c ---- */

/* Given to CUPTI with the subscription. */
void torsh_cuda_called_back(void *unused, int domain, uint32_t id, const void *data);

/* Have CUPTI call back whatever is wanted: before the program can have called anything. */
void torsh_cuda_watch_calls(void);

/* Is the calling thread within a call of CUDA? */
int torsh_cuda_is_in_call(void);

/* ---- collectors/cuda/cuda_flush.c ---- */

/*
 * Make the thread that flushes. Returns 0 or -errno: flushes are done by whoever asks then, and may
 * take for ever.
 */
int torsh_cuda_flusher_start(void);

/*
 * Get what CUPTI still has, if that doesn't take more than two seconds; with is_last also what
 * still runs.
 */
void torsh_cuda_flush(int is_last);

/* ---- collectors/cuda/cuda_ticks.c ---- */

/* CLOCK_MONOTONIC, as the kernel has it. */
static inline uint64_t torsh_cuda_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The same within fractions of a microsecond, in a few nanoseconds where there is an anchor. */
uint64_t torsh_cuda_now_ns(void);

/* Here and now is a moment to count on from. */
void torsh_cuda_ticks_anchor(void);

/* ---- collectors/cuda/cuda_clock.c ---- */

/*
 * Read both clocks, if that was not done for a while or must be now. Not from where CUPTI holds its
 * locks.
 */
void torsh_cuda_clock_read(int now);

/*
 * The time, after both clocks were read where it is time for that. Not from where CUPTI holds its
 * locks.
 */
uint64_t torsh_cuda_clock_now(void);

/*
 * Where a span of CUPTI's times lies in nanoseconds of CLOCK_MONOTONIC. Returns 0 where no reading
 * is there to tell, or it can't be of this clock.
 */
int torsh_cuda_clock_span(uint64_t start, uint64_t end, uint64_t *begin_ns, uint64_t *duration_ns);

/*
 * What the clock of the records is counts anew from here on: another one is to be registered, or
 * just was.
 */
void torsh_cuda_clock_change(cupti_clock *clock);

/*
 * The widest bracket around a reading, and the largest change of the distance between two of them.
 */
void torsh_cuda_clock_errors(uint64_t *width_ns, uint64_t *step_ns);

/* ---- collectors/cuda/cuda_buffers.c: the functions that CUPTI is given ---- */

void torsh_cuda_request_buffer(uint8_t **buffer, size_t *n_bytes, size_t *n_records);
/* Count what CUPTI dropped since it was asked last. */
void torsh_cuda_count_dropped(void *context, uint32_t stream);

/* How many buffers CUPTI has. */
uint32_t torsh_cuda_buffers_out(void);

void torsh_cuda_complete_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t n_bytes,
				size_t n_valid);

/* ---- collectors/cuda/cuda_tee.c ---- */

/* The kinds of records that we enabled, a bit for each. */
extern _Atomic uint64_t torsh_cuda_own_kinds;

#define CUDA_OWN_KINDS atomic_load_explicit(&torsh_cuda_own_kinds, memory_order_relaxed)

/* The program is about to give a device work. Where CUPTI holds no lock. */
void torsh_cuda_tee_launch(void);

/*
 * Hand the records in the buffer to the other client of CUPTI in this process, if there is one that
 * wants them.
 */
void torsh_cuda_tee_records(uint8_t *buffer, size_t n_valid);

/* ---- collectors/cuda/cuda_shadow.c ---- */

/* CUPTI gave us its subscription; before anything is watched. */
void torsh_cuda_subscribed(void *subscriber);

/* Have CUPTI call us back at these calls; and did we ask for that? Returns 0, or CUPTI's result. */
int torsh_cuda_watch_callback(int domain, uint32_t id);
int torsh_cuda_is_watched(int domain, uint32_t id);

/* CUPTI called us back: the other subscriber hears what it asked for. */
void torsh_cuda_call_shadow(int domain, uint32_t id, const void *data);

/*
 * Another client in this process comes to CUPTI before the driver has started:
 * collectors/cuda/cuda.c attaches first.
 */
void torsh_cuda_before_client(void);

/* ---- collectors/cuda/cuda_events.c: without CUPTI ---- */

/*
 * Watch what the program asks of the driver from here on; has_marks: with times. Returns 0 or
 * -errno. reason is why there are no times, or NULL.
 */
int torsh_cuda_watch_driver(const char *reason, int has_marks);

/*
 * A call of the program's begins, of the function with this frame: not 0 where it is to be told,
 * with torsh_cuda_leave_call when all of it is. A call that a handler jumped out of never gets
 * there: it is over when the next one comes.
 */
int torsh_cuda_enter_call(const void *frame);
void torsh_cuda_leave_call(void);

/*
 * The driver's function has returned to that one, and the agent may call the driver. Returns 0
 * where nothing is to be told any more: in a child that the call made, or where it was taken for
 * one that was jumped out of.
 */
int torsh_cuda_call_returned(const void *frame);

/*
 * May the agent ask the driver something? It is watched, no other tool measures, and this thread is
 * in none of its calls.
 */
int torsh_cuda_may_ask(void);

/*
 * Ask after work that was timed, if it is time to; and at the end, with what is known of the times.
 */
void torsh_cuda_poll_marks(uint64_t now_ns);
void torsh_cuda_end_marks(void);

/*
 * The program gives a device work, and it is not decided yet how that is seen:
 * collectors/cuda/cuda.c.
 */
void torsh_cuda_first_work(void);

/* ---- collectors/cuda/cuda_records.c ---- */

/* Make events of the records in the buffer. */
void torsh_cuda_take_records(uint8_t *buffer, size_t n_valid);

#endif
