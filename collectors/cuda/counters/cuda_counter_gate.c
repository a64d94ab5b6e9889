/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Decides when a kernel may be measured. CUPTI runs it alone: the device is idle before, and the
 * launching thread waits for its end. If the kernel waits for a later action of this thread,
 * another thread or another process, that deadlocks. So nothing is measured
 *  - that is a collective, or might wait behind one: from its launch until its record arrived or
 *    the context was synchronised; the end of one in a CUDA graph can't be detected, and every
 *    graph launched afterwards counts as one;
 *  - while a stream is captured, which no thread may disturb;
 *  - once the program makes streams wait for itself: host functions, values in memory, events of
 *    other processes;
 *  - while another thread is launching; other threads' launches wait until the measurement is done.
 */
#include "collectors/cuda/counters/cuda_counter_gate.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "agent/producer/label.h"
#include "collectors/cuda/counters/cuda_counter_state.h"
#include "collectors/cuda/counters/cuda_counters.h"
#include "shim/find_text.h"
#include "shim/sys.h"

#define N_CONTEXTS 64u /* CUPTI numbers them from 1; contexts with the same place count as one */
#define N_LABELS (1u << 16) /* names of labels below this number are checked once */
#define CLOSED UINT32_C(0x80000000)

static _Atomic uint32_t gate; /* CLOSED, or the number of launches in progress */
static _Atomic uint32_t n_captures, has_waits, graphs_may_wait;

/* Collectives of a context since the process began. recorded: with a record, in any order. */
static struct queue {
	_Atomic uint32_t launched, recorded, synchronised;
} queues[N_CONTEXTS];

static bool has_part(const char *name)
{
	static const char *const parts[] = {
#define COLLECTIVE(part) part,
#include "collectors/cuda/cuda_collectives.def"
#undef COLLECTIVE
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (torsh_find_text(name, parts[i]))
			return true;
	return false;
}

bool torsh_counter_is_collective(const char *name)
{
	enum { UNKNOWN, NO, YES };
	static void *_Atomic known; /* _Atomic uint8_t of each label */
	uint32_t label = torsh_label(name, strlen(name));
	_Atomic uint8_t *answers = torsh_sys_own_once(&known, N_LABELS);
	uint8_t answer;

	if (!answers || !label || label >= N_LABELS)
		return has_part(name);
	answer = atomic_load_explicit(&answers[label], memory_order_relaxed);
	if (answer == UNKNOWN) {
		answer = has_part(name) ? YES : NO;
		atomic_store_explicit(&answers[label], answer, memory_order_relaxed);
	}
	return answer == YES;
}

static struct queue *queue_of(uint32_t context)
{
	return &queues[context % N_CONTEXTS];
}

/*
 * All of these are sequentially consistent: the thread that closes the gate sees the earlier
 * reports, and the reporting thread waits there.
 */

void torsh_counter_collective_begins(uint32_t context)
{
	atomic_fetch_add(&queue_of(context)->launched, 1);
	if (atomic_load(&n_captures))
		atomic_store(&graphs_may_wait, 1);
}

void torsh_counter_collective_failed(uint32_t context)
{
	atomic_fetch_add(&queue_of(context)->recorded, 1);
}

void torsh_counter_collective_ended(uint32_t context)
{
	atomic_fetch_add(&queue_of(context)->recorded, 1);
}

uint32_t torsh_counter_collectives_of(uint32_t context)
{
	return atomic_load(&queue_of(context)->launched);
}

void torsh_counter_collectives_ended(uint32_t context, uint32_t n)
{
	struct queue *queue = queue_of(context);
	uint32_t before = atomic_load(&queue->synchronised);

	while (before < n && !atomic_compare_exchange_weak(&queue->synchronised, &before, n))
		;
}

void torsh_counter_graph_begins(uint32_t context)
{
	if (atomic_load(&graphs_may_wait))
		torsh_counter_collective_begins(context);
}

static bool has_collectives(void)
{
	for (uint32_t i = 0; i < N_CONTEXTS; i++) {
		uint32_t recorded = atomic_load(&queues[i].recorded),
			 synchronised = atomic_load(&queues[i].synchronised);

		if (atomic_load(&queues[i].launched) >
		    (recorded > synchronised ? recorded : synchronised))
			return true;
	}
	return false;
}

/* Wait until the measured kernel has ended. */
static void wait_while_closed(void)
{
	while (atomic_load(&gate) == CLOSED)
		TORSH_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

void torsh_counter_capture_begins(void)
{
	atomic_fetch_add(&n_captures, 1);
	wait_while_closed();
}

void torsh_counter_capture_ended(void)
{
	uint32_t n = atomic_load(&n_captures);

	while (n && !atomic_compare_exchange_weak(&n_captures, &n, n - 1))
		;
}

void torsh_counter_streams_wait(void)
{
	atomic_store(&has_waits, 1);
	wait_while_closed();
}

void torsh_counter_gate_enter(void)
{
	uint32_t n = atomic_load(&gate);

	for (;;) {
		if (n == CLOSED) {
			wait_while_closed();
			n = atomic_load(&gate);
		} else if (atomic_compare_exchange_weak(&gate, &n, n + 1)) {
			return;
		}
	}
}

void torsh_counter_gate_leave(void)
{
	atomic_fetch_sub(&gate, 1);
}

void torsh_counter_gate_open(void)
{
	atomic_store(&gate, 0);
}

bool torsh_counter_gate_close(void)
{
	uint32_t nobody = 0;

	return atomic_compare_exchange_strong(&gate, &nobody, CLOSED);
}

bool torsh_counter_gate_close_to_measure(void)
{
	if (!torsh_counter_gate_close()) {
		COUNTER_COUNT(busy);
		return false;
	}
	if (atomic_load(&has_waits))
		COUNTER_COUNT(waiting);
	else if (atomic_load(&n_captures))
		COUNTER_COUNT(capturing);
	else if (has_collectives())
		COUNTER_COUNT(collective);
	else
		return true;
	torsh_counter_gate_open();
	return false;
}
