/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A second client of CUPTI's activities in this process. It gets the kinds that it enabled, in its
 * own buffers, copied from the agent's; a kind that it disables stays enabled while the agent needs
 * it. Its clock becomes the clock of all records.
 */
#include "collectors/cuda/cupti/cuda_tee.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "agent/process/callbacks.h"
#include "collectors/cuda/cuda.h"
#include "collectors/cuda/cuda_lock.h"
#include "collectors/cuda/cupti/cuda_clock.h"
#include "shim/cuda/cupti.h"

static struct client {
	cupti_request *_Atomic request;
	cupti_complete *_Atomic complete;
	cupti_clock *_Atomic clock;
	_Atomic uint64_t enabled; /* a bit for each kind */
	/*
	 * The kinds that it had enabled are delivered until its next flush is done, even if
	 * disabled meanwhile.
	 */
	_Atomic uint64_t wanted;
} client;

/* A client's buffer that is being filled. */
struct filling {
	uint8_t *buffer;
	size_t n_bytes, used, n_most, n_records;
};

/*
 * Some clients flush only if a buffer was requested from them (Kineto): like CUPTI, request one at
 * the first launch. It waits here for records.
 */
static struct cuda_lock lock; /* guards it */
static struct filling waiting;
static _Atomic uint32_t is_due;

#define KIND_BIT(kind) ((uint32_t)(kind) < 64 ? 1ull << (kind) : 0)

int torsh_cuda_tee_ActivityRegisterCallbacks(cupti_request *request, cupti_complete *complete)
{
	torsh_callbacks.device_client_subscribes();
	if (!torsh_cuda_is_live() || !request || !complete)
		return -1;
	atomic_store_explicit(&client.request, request, memory_order_relaxed);
	/* Pairs with the acquire in torsh_cuda_tee_records. */
	atomic_store_explicit(&client.complete, complete, memory_order_release);
	return CUPTI_DONE;
}

/* Registering a clock again corrupts records (pytorch/pytorch#192021): each is registered once. */
int torsh_cuda_tee_ActivityRegisterTimestampCallback(cupti_clock *clock)
{
	if (!torsh_cuda_is_live() || !clock)
		return -1;
	if (atomic_exchange_explicit(&client.clock, clock, memory_order_relaxed) == clock)
		return CUPTI_DONE;
	/* Complete records still have the previous clock. */
	torsh_cupti.ActivityFlushAll(0);
	torsh_cuda_clock_change(clock);
	return CUPTI_DONE;
}

int torsh_cuda_tee_ActivityEnable(int kind)
{
	uint64_t bit = KIND_BIT(kind);

	if (!torsh_cuda_is_live() || !(bit & CUDA_OWN_KINDS))
		return -1;
	/* Earlier activities are not the client's. */
	if (!(atomic_load_explicit(&client.enabled, memory_order_relaxed) & CUDA_OWN_KINDS))
		torsh_cupti.ActivityFlushAll(0);
	atomic_fetch_or_explicit(&client.enabled, bit, memory_order_relaxed);
	atomic_fetch_or_explicit(&client.wanted, bit, memory_order_relaxed);
	atomic_store_explicit(&is_due, 1, memory_order_relaxed);
	return CUPTI_DONE;
}

int torsh_cuda_tee_ActivityDisable(int kind)
{
	uint64_t bit = KIND_BIT(kind);

	if (!torsh_cuda_is_live() || !(bit & CUDA_OWN_KINDS))
		return -1;
	atomic_fetch_and_explicit(&client.enabled, ~bit, memory_order_relaxed);
	return CUPTI_DONE;
}

int torsh_cuda_tee_ActivityFlushAll(uint32_t flags)
{
	int result;

	if (!torsh_cuda_is_live())
		return -1;
	torsh_cuda_clock_read(1);
	result = torsh_cupti.ActivityFlushAll(flags);
	atomic_store_explicit(&client.wanted,
			      atomic_load_explicit(&client.enabled, memory_order_relaxed),
			      memory_order_relaxed);
	return result;
}

/* It would end the agent's records too. */
int torsh_cuda_tee_Finalize(void)
{
	return torsh_cuda_is_live() ? torsh_cuda_tee_ActivityFlushAll(0) : -1;
}

/* ---- delivery -------------------------------------------------------------------------------- */

static void hand_over(struct filling *filling)
{
	cupti_complete *complete = atomic_load_explicit(&client.complete, memory_order_relaxed);

	if (filling->buffer)
		complete(NULL, 0, filling->buffer, filling->n_bytes, filling->used);
	*filling = (struct filling){0};
}

static void request(struct filling *filling)
{
	*filling = (struct filling){0};
	atomic_load_explicit(&client.request, memory_order_relaxed)(
		&filling->buffer, &filling->n_bytes, &filling->n_most);
}

/* Take the waiting buffer, or none. */
static struct filling take_waiting(void)
{
	struct filling filling;

	torsh_cuda_lock(&lock);
	filling = waiting;
	waiting = (struct filling){0};
	torsh_cuda_unlock(&lock);
	return filling;
}

/* Keep an empty buffer waiting, or complete it. */
static void keep_waiting(struct filling *filling)
{
	torsh_cuda_lock(&lock);
	if (!waiting.buffer) {
		waiting = *filling;
		*filling = (struct filling){0};
	}
	torsh_cuda_unlock(&lock);
	hand_over(filling);
}

void torsh_cuda_tee_launch(void)
{
	struct filling filling;

	if (!atomic_load_explicit(&is_due, memory_order_relaxed) ||
	    !atomic_load_explicit(&client.complete, memory_order_acquire) ||
	    !atomic_exchange_explicit(&is_due, 0, memory_order_relaxed))
		return;
	filling = take_waiting();
	if (!filling.buffer)
		request(&filling);
	keep_waiting(&filling);
}

static bool has_room(const struct filling *filling, size_t n)
{
	return filling->buffer && filling->n_bytes - filling->used >= n &&
	       (!filling->n_most || filling->n_records < filling->n_most);
}

static void put(struct filling *filling, const void *record, size_t n)
{
	if (!has_room(filling, n)) {
		hand_over(filling);
		request(filling);
	}
	/* A client that provides no buffer gets no records. */
	if (!has_room(filling, n))
		return;
	memcpy(filling->buffer + filling->used, record, n);
	filling->used += n;
	filling->n_records++;
}

/*
 * Of the agent's kinds, only those that the client enabled; others are there only for the client.
 */
static bool is_wanted(const struct cupti_record *record)
{
	uint64_t bit = KIND_BIT(record->kind);

	return !(bit & CUDA_OWN_KINDS) ||
	       bit & atomic_load_explicit(&client.wanted, memory_order_relaxed);
}

void torsh_cuda_tee_records(uint8_t *buffer, size_t n_valid)
{
	struct filling filling;
	struct cupti_record *record = NULL, *before = NULL;
	int saved = errno;
	bool is_end = false;

	if (!atomic_load_explicit(&client.complete, memory_order_acquire))
		return;
	filling = take_waiting();
	while (!is_end) {
		is_end = torsh_cupti.ActivityGetNextRecord(buffer, n_valid, &record) != CUPTI_DONE;
		if (before && is_wanted(before))
			put(&filling, before,
			    (size_t)((is_end ? buffer + n_valid : (uint8_t *)record) -
				     (uint8_t *)before));
		before = record;
	}
	/* Kineto uses a completed buffer only while it has another one given out. */
	if (filling.n_records) {
		hand_over(&filling);
		request(&filling);
	}
	keep_waiting(&filling);
	errno = saved;
}
