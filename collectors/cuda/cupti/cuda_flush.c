/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Flushes before the process ends or executes another program. CUPTI's flush may block for ever
 * there, for a lock of the interrupted thread or for a device. So a thread that was started when
 * CUPTI was attached flushes, and the ending thread waits for it, for a limited time.
 */
#include "collectors/cuda/cupti/cuda_flush.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "agent/process/process.h"
#include "agent/producer/producer.h"
#include "collectors/cuda/cuda.h"
#include "collectors/cuda/cuda_ticks.h"
#include "collectors/cuda/cupti/cuda_buffers.h"
#include "collectors/cuda/cupti/cuda_clock.h"
#include "shim/cuda/cupti.h"
#include "shim/libc/thread.h"
#include "shim/sys.h"

#define TIMEOUT_NS UINT64_C(2000000000)
#define READ_EVERY_NS UINT64_C(100000000) /* period of clock readings while nothing is launched */

/* In pages that are zeroed in a forked child, which has no such thread. */
struct flusher {
	_Atomic uint32_t is_there;
	_Atomic uint32_t n_requested, n_done; /* numbers of flushes; futex words */
	_Atomic uint32_t is_last; /* the process ends: unfinished activities are fetched too */
	_Atomic uint32_t is_given_up;
};

static struct flusher *flusher;

static void flush(bool is_last)
{
	int result;

	torsh_cuda_clock_read(1);
	/* First complete records, then unfinished ones: these have no end, and count as invalid. */
	result = torsh_cupti.ActivityFlushAll(0);
	if (is_last) {
		result |= torsh_cupti.ActivityFlushAll(CUPTI_FLUSH_FORCED);
		atomic_store_explicit(&torsh_cuda_losses.buffers_kept, torsh_cuda_buffers_out(),
				      memory_order_relaxed);
	}
	if (result)
		atomic_fetch_add_explicit(&torsh_cuda_losses.flushes_cut, 1, memory_order_relaxed);
	torsh_cuda_count_dropped(NULL, 0);
	torsh_cuda_send_losses();
}

/*
 * Sleep until a flush is requested. Kernels may run for long while the program waits for them, and
 * the wall clock may be set meanwhile: launching threads read the clocks, and otherwise this thread
 * does. Not after the last flush, when CUPTI may be gone.
 */
static void rest(uint32_t n_requested)
{
	int is_last = (int)atomic_load_explicit(&flusher->is_last, memory_order_relaxed);

	if (torsh_sys_futex_wait(&flusher->n_requested, n_requested,
				 is_last ? UINT64_MAX >> 1 : READ_EVERY_NS) == -ETIMEDOUT)
		torsh_cuda_clock_now();
}

static void *serve(void *unused)
{
	torsh_thread_name("torsh-cuda");
	for (;;) {
		uint32_t n_done = atomic_load_explicit(&flusher->n_done, memory_order_relaxed);
		/* Pairs with the increment in request. */
		uint32_t n_requested =
			atomic_load_explicit(&flusher->n_requested, memory_order_acquire);

		if (n_requested == n_done) {
			rest(n_requested);
			continue;
		}
		flush((int)atomic_load_explicit(&flusher->is_last, memory_order_relaxed));
		/* Pairs with the acquire in is_done. */
		atomic_store_explicit(&flusher->n_done, n_requested, memory_order_release);
		torsh_sys_futex_wake(&flusher->n_done, INT32_MAX);
	}
	return unused;
}

int torsh_cuda_flusher_start(void)
{
	struct producer *producer;
	int result;

	flusher = torsh_sys_own_pages(sizeof(*flusher));
	if (!flusher)
		return -ENOMEM;
	/* The C library's allocations for the thread are not the program's. */
	producer = torsh_producer_enter();
	result = torsh_thread_start(serve, NULL);
	if (producer)
		torsh_producer_leave(producer);
	atomic_store_explicit(&flusher->is_there, !result, memory_order_release);
	return result;
}

static bool is_done(uint32_t number)
{
	return (int32_t)(atomic_load_explicit(&flusher->n_done, memory_order_acquire) - number) >=
	       0;
}

/* Returns 0 on timeout. */
static int wait_for(uint32_t number)
{
	uint64_t until_ns = torsh_cuda_monotonic_ns() + TIMEOUT_NS;

	while (!is_done(number)) {
		uint32_t n_done = atomic_load_explicit(&flusher->n_done, memory_order_relaxed);
		uint64_t now_ns = torsh_cuda_monotonic_ns();

		if (now_ns >= until_ns)
			return 0;
		if (!is_done(number))
			torsh_sys_futex_wait(&flusher->n_done, n_done, until_ns - now_ns);
	}
	return 1;
}

static uint32_t request(void)
{
	uint32_t number =
		atomic_fetch_add_explicit(&flusher->n_requested, 1, memory_order_acq_rel) + 1;

	torsh_sys_futex_wake(&flusher->n_requested, 1);
	return number;
}

void torsh_cuda_flush(bool is_last)
{
	if (!flusher || !atomic_load_explicit(&flusher->is_there, memory_order_acquire)) {
		flush(is_last);
		return;
	}
	/* A flush that timed out still holds what the next one would wait for. */
	if (atomic_load_explicit(&flusher->is_given_up, memory_order_relaxed))
		return;
	if (is_last)
		atomic_store_explicit(&flusher->is_last, 1, memory_order_relaxed);
	if (wait_for(request()) ||
	    atomic_exchange_explicit(&flusher->is_given_up, 1, memory_order_relaxed))
		return;
	atomic_fetch_add_explicit(&torsh_cuda_losses.flushes_cut, 1, memory_order_relaxed);
	torsh_cuda_send_losses();
	torsh_channel_note(
		&torsh_process->channel,
		"cuda: CUPTI's last flush did not end within 2 s: what devices did at the end is missing");
}
