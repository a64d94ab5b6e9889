/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/schedule.h"

#include "agent/process.h"

#define OPEN_MAX 255u /* those further in are sent, whatever step it is */
#define TELLER_SHIFT 56

/* Keys of open calls, the outermost first; their lowest bit: it was sent. */
struct nest {
	uint64_t keys[OPEN_MAX];
	uint32_t n, n_deeper;
};

struct open_calls {
	struct nest nests[N_OPEN_KINDS];
};

static struct nest *nest_of(struct flow *flow, enum open_kind kind)
{
	if (!flow->open)
		flow->open = torsh_flow_pages(flow, sizeof(*flow->open));
	return flow->open ? &flow->open->nests[kind] : NULL;
}

static void tell(struct flow *flow)
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

	if (!atomic_load_explicit(&torsh_process->schedule.is_told, memory_order_relaxed) &&
	    !atomic_exchange_explicit(&torsh_process->schedule.is_told, 1, memory_order_relaxed))
		torsh_flow_event(flow, &event, NULL);
}

static int is_sent_now(struct flow *flow)
{
	tell(flow);
	return !atomic_load_explicit(&torsh_process->schedule.rests, memory_order_relaxed);
}

int torsh_schedule_is_on(struct flow *flow)
{
	return !torsh_schedule_is_kept() || is_sent_now(flow);
}

int torsh_schedule_opens(struct flow *flow, enum open_kind kind, open_key key)
{
	struct nest *nest = nest_of(flow, kind);
	int is_sent = is_sent_now(flow);

	if (!nest)
		return 1;
	if (nest->n == OPEN_MAX) {
		nest->n_deeper++;
		return 1;
	}
	nest->keys[nest->n++] = key | (uint64_t)is_sent;
	return is_sent;
}

int torsh_schedule_closes(struct flow *flow, enum open_kind kind, open_key key)
{
	struct nest *nest = nest_of(flow, kind);
	uint32_t i = nest ? nest->n : 0;
	int is_sent;

	if (nest && nest->n_deeper) {
		nest->n_deeper--;
		return 1;
	}
	while (i && (nest->keys[i - 1] & ~UINT64_C(1)) != key)
		i--;
	/* It began on another thread, or before a fork. */
	if (!i)
		return 1;
	is_sent = (int)(nest->keys[i - 1] & 1);
	for (nest->n--; i <= nest->n; i++)
		nest->keys[i - 1] = nest->keys[i];
	return is_sent;
}

void torsh_schedule_forget(struct open_calls *open)
{
	for (int i = 0; open && i < N_OPEN_KINDS; i++)
		open->nests[i].n = open->nests[i].n_deeper = 0;
}

/* Count one on, or begin with a better way to tell. Returns 0 where there was a better one: then it is no step. */
static int count_step(enum step_teller by, uint64_t first, uint64_t *step)
{
	_Atomic uint64_t *state = &torsh_process->schedule.step;
	uint64_t old = atomic_load_explicit(state, memory_order_relaxed), next;

	do {
		enum step_teller known = (enum step_teller)(old >> TELLER_SHIFT);

		if (by < known)
			return 0;
		next = by > known ? (uint64_t)by << TELLER_SHIFT | first : old + 1;
	} while (!atomic_compare_exchange_weak_explicit(state, &old, next, memory_order_relaxed, memory_order_relaxed));
	*step = next & ((UINT64_C(1) << TELLER_SHIFT) - 1);
	return 1;
}

static void begin_step(struct flow *flow, enum step_teller by, uint64_t first, uint64_t number)
{
	struct event event = {.id = EVENT_SCHEDULE_STEP, .schedule_step = {.told_by = by}};
	uint64_t step;

	if (!torsh_schedule_is_kept())
		return;
	tell(flow);
	if (!count_step(by, first, &step))
		return;
	event.schedule_step.step = step;
	event.schedule_step.number = number == UINT64_MAX ? step : number;
	torsh_flow_event(flow, &event, NULL);
	/* Readers go by the event's time: what other threads begin around it is right either way. */
	atomic_store_explicit(&torsh_process->schedule.rests,
			      torsh_schedule_action(&torsh_config.schedule, step) == SCHEDULE_REST,
			      memory_order_relaxed);
}

void torsh_schedule_step(struct flow *flow, enum step_teller by, uint64_t number)
{
	begin_step(flow, by, 0, number);
}

void torsh_schedule_optimizer(struct flow *flow, uint32_t label)
{
	uint32_t known = 0;

	if (!atomic_compare_exchange_strong_explicit(&torsh_process->schedule.optimizer, &known, label,
						     memory_order_relaxed, memory_order_relaxed) &&
	    known != label)
		return;
	/* Step 0 was what came before. */
	begin_step(flow, STEP_BY_OPTIMIZER, 1, UINT64_MAX);
}

uint32_t torsh_schedule_optimizer_label(void)
{
	return atomic_load_explicit(&torsh_process->schedule.optimizer, memory_order_relaxed);
}
