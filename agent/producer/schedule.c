/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/producer/schedule.h"

#include <stdbool.h>

#include "agent/process/process.h"

#define OPEN_FIRST 256u /* initial capacity, doubled as needed */
/* calls that never end must not fill the memory: deeper ones are sent in every step */
#define OPEN_MAX 65536u
#define SOURCE_SHIFT 56
#define KIND_SHIFT 63 /* keys are lower */

/* Keys and kinds of open calls, outermost first; the lowest bit: the beginning was sent. */
struct open_calls {
	uint32_t n, capacity;
	uint32_t n_deeper[N_OPEN_KINDS];
	uint64_t keys[];
};

static size_t bytes_of(uint32_t capacity)
{
	return sizeof(struct open_calls) + capacity * sizeof(uint64_t);
}

/*
 * The open calls of the producer's thread, with room for one more. Returns NULL without memory or
 * with too many calls.
 */
static struct open_calls *make_room(struct producer *producer)
{
	struct open_calls *open = producer->open;
	void *at = open;

	if (!open) {
		producer->open = open = torsh_producer_pages(producer, bytes_of(OPEN_FIRST));
		if (open)
			open->capacity = OPEN_FIRST;
		return open;
	}
	if (open->n < open->capacity)
		return open;
	if (open->n >= OPEN_MAX ||
	    torsh_producer_grow_pages(producer, &at, bytes_of(2 * open->capacity)))
		return NULL;
	producer->open = open = at;
	open->capacity *= 2;
	return open;
}

static uint64_t key_of(enum open_kind kind, open_key key)
{
	return (uint64_t)kind << KIND_SHIFT | key;
}

static void announce(struct producer *producer)
{
	const struct schedule *schedule = &torsh_config.schedule;
	struct event event = {
		.id = EVENT_SCHEDULE,
		.schedule =
			{
				.skip = schedule->skip,
				.wait = schedule->wait,
				.warmup = schedule->warmup,
				.active = schedule->active,
				.repeat = schedule->repeat,
			},
	};

	if (!atomic_load_explicit(&torsh_process->schedule.is_announced, memory_order_relaxed) &&
	    !atomic_exchange_explicit(&torsh_process->schedule.is_announced, 1,
				      memory_order_relaxed))
		torsh_producer_event(producer, &event, NULL);
}

static bool is_sent_now(struct producer *producer)
{
	if (torsh_schedule_is_kept())
		announce(producer);
	return !torsh_recording_is_paused() &&
	       !atomic_load_explicit(&torsh_process->schedule.rests, memory_order_relaxed);
}

bool torsh_schedule_is_on(struct producer *producer)
{
	return !torsh_schedule_is_applied(producer) || is_sent_now(producer);
}

bool torsh_schedule_opens(struct producer *producer, enum open_kind kind, open_key key)
{
	struct open_calls *open = make_room(producer);
	bool is_sent = is_sent_now(producer);

	if (open) {
		open->keys[open->n++] = key_of(kind, key) | (uint64_t)is_sent;
		producer->n_unsent += !is_sent;
		return is_sent;
	}
	if (producer->open)
		producer->open->n_deeper[kind]++;
	return true;
}

bool torsh_schedule_closes(struct producer *producer, enum open_kind kind, open_key key)
{
	struct open_calls *open = producer->open;
	uint32_t i = open ? open->n : 0;
	bool is_sent;

	if (open && open->n_deeper[kind]) {
		open->n_deeper[kind]--;
		return true;
	}
	while (i && (open->keys[i - 1] & ~UINT64_C(1)) != key_of(kind, key))
		i--;
	/* The call began on another thread, before a fork, or before the pause. */
	if (!i)
		return true;
	is_sent = open->keys[i - 1] & 1;
	producer->n_unsent -= !is_sent;
	for (open->n--; i <= open->n; i++)
		open->keys[i - 1] = open->keys[i];
	/* Without a schedule the ends of the rest are sent: calls that are not in the list. */
	if (!producer->n_unsent && !torsh_schedule_is_kept())
		torsh_schedule_reset(producer);
	return is_sent;
}

void torsh_schedule_reset(struct producer *producer)
{
	struct open_calls *open = producer->open;

	producer->n_unsent = 0;
	for (int i = 0; open && i < N_OPEN_KINDS; i++)
		open->n_deeper[i] = 0;
	if (open)
		open->n = 0;
}

/*
 * Count one step, or restart the count with a better source of steps. Returns 0 if a better source
 * exists: this is no step then.
 */
static bool count_step(enum step_source by, uint64_t first, uint64_t *step)
{
	_Atomic uint64_t *state = &torsh_process->schedule.step;
	uint64_t old = atomic_load_explicit(state, memory_order_relaxed), next;

	do {
		enum step_source known = (enum step_source)(old >> SOURCE_SHIFT);

		if (by < known)
			return false;
		next = by > known ? (uint64_t)by << SOURCE_SHIFT | first : old + 1;
	} while (!atomic_compare_exchange_weak_explicit(state, &old, next, memory_order_relaxed,
							memory_order_relaxed));
	*step = next & ((UINT64_C(1) << SOURCE_SHIFT) - 1);
	return true;
}

static void begin_step(struct producer *producer, enum step_source by, uint64_t first,
		       uint64_t number)
{
	struct event event = {.id = EVENT_SCHEDULE_STEP, .schedule_step = {.told_by = by}};
	uint64_t step;

	if (!torsh_schedule_is_kept())
		return;
	announce(producer);
	if (!count_step(by, first, &step))
		return;
	event.schedule_step.step = step;
	event.schedule_step.number = number == UINT64_MAX ? step : number;
	torsh_producer_event(producer, &event, NULL);
	/*
	 * Readers compare event times: what other threads begin around this moment is correct
	 * either way.
	 */
	atomic_store_explicit(&torsh_process->schedule.rests,
			      torsh_schedule_action(&torsh_config.schedule, step) == SCHEDULE_REST,
			      memory_order_relaxed);
}

void torsh_schedule_step(struct producer *producer, enum step_source by, uint64_t number)
{
	begin_step(producer, by, 0, number);
}

void torsh_schedule_optimizer(struct producer *producer, uint32_t label)
{
	uint32_t known = 0;

	if (!atomic_compare_exchange_strong_explicit(&torsh_process->schedule.optimizer, &known,
						     label, memory_order_relaxed,
						     memory_order_relaxed) &&
	    known != label)
		return;
	/* Step 0 is everything before. */
	begin_step(producer, STEP_BY_OPTIMIZER, 1, UINT64_MAX);
}

uint32_t torsh_schedule_optimizer_label(void)
{
	return atomic_load_explicit(&torsh_process->schedule.optimizer, memory_order_relaxed);
}
