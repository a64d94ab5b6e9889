/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The collector of annotations: ranges, marks, values and steps, by torsh.h, NVTX and ITT. They
 * have no stacks: an annotation replaces one.
 */
#include "shim/ranges/ranges.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/producer/label.h"
#include "agent/producer/schedule.h"
#include "collectors/perf/thread_counters.h"
#include "collectors/ranges/bridge.h"
#include "collectors/ranges/forward.h"
#include "shim/libc/thread.h"

/*
 * Domains in which one thread has open ranges at once; further ones share a depth, which only
 * affects return values.
 */
#define N_DEPTHS 16u

static _Thread_local struct depth {
	uint64_t domain; /* source << 32 | label, and 1 << 63: taken */
	int n_open;
} depths[N_DEPTHS];

static _Atomic uint64_t last_number;

static int *depth_of(uint32_t domain, uint32_t source)
{
	uint64_t wanted = UINT64_C(1) << 63 | (uint64_t)source << 32 | domain;
	struct depth *idle = NULL, *shared = &depths[N_DEPTHS - 1];

	for (struct depth *depth = depths; depth < shared; depth++) {
		if (depth->domain == wanted)
			return &depth->n_open;
		if (!depth->n_open && !idle)
			idle = depth;
	}
	/* With a shared depth it may be one of those. */
	if (!idle || shared->n_open)
		return &shared->n_open;
	idle->domain = wanted;
	return &idle->n_open;
}

/* The schedule's key of a range in this domain. */
static open_key key_of(uint32_t domain, uint32_t source)
{
	return (open_key)source << 33 | (open_key)domain << 1;
}

static uint32_t label_of(struct range_text text)
{
	return text.bytes ? torsh_label(text.bytes, strnlen(text.bytes, LABEL_BUFFER_BYTES))
			  : text.label;
}

uint32_t torsh_ranges_text_label(struct range_text text)
{
	return label_of(text);
}

/* What a hook does before and after its labels and its event. */
static inline __attribute__((always_inline)) struct producer *enter(int *saved)
{
	*saved = errno;
	return torsh_producer_enter();
}

static void leave(struct producer *producer, int saved)
{
	if (producer)
		torsh_producer_leave(producer);
	errno = saved;
}

static void send(struct producer *producer, const struct event *event)
{
	uint64_t stamp;

	if (torsh_producer_hold(producer, NULL, &stamp))
		torsh_producer_event_at(producer, event, stamp);
}

bool torsh_ranges_wanted(enum range_source source)
{
	uint32_t activity = source == RANGE_BY_NVTX  ? ACTIVITY_NVTX
			    : source == RANGE_BY_ITT ? ACTIVITY_ITT
						     : 0;
	int saved;
	struct producer *producer = enter(&saved);
	bool is_recorded = producer != NULL || torsh_agent_is_dormant();

	leave(producer, saved);
	return is_recorded && (!activity || torsh_config.activities & activity);
}

struct labels {
	uint32_t name, domain, category;
};

/* Not inlined: it isn't on the stack while they are sent. */
static __attribute__((noinline)) struct labels labels_of(const struct range_attributes *range,
							 uint32_t domain)
{
	return (struct labels){label_of(range->name), domain, label_of(range->category)};
}

/* The common fields of range_push, range_start and mark. */
#define ATTRIBUTES(range, labels)                                                                  \
	.name = (labels).name, .domain = (labels).domain, .category = (labels).category,           \
	.source = (range)->source, .color = (range)->color, .payload_type = (range)->payload_type, \
	.payload = (range)->payload

/* Not inlined: the event isn't on the stack while its labels are made. */
#define SEND static __attribute__((noinline)) void

SEND send_push(struct producer *producer, const struct range_attributes *range,
	       struct labels labels)
{
	send(producer,
	     &(struct event){.id = EVENT_RANGE_PUSH, .range_push = {ATTRIBUTES(range, labels)}});
}

SEND send_start(struct producer *producer, const struct range_attributes *range,
		struct labels labels, uint64_t number)
{
	send(producer,
	     &(struct event){.id = EVENT_RANGE_START,
			     .range_start = {ATTRIBUTES(range, labels), .range = number}});
}

SEND send_mark(struct producer *producer, const struct range_attributes *range,
	       struct labels labels)
{
	send(producer, &(struct event){.id = EVENT_MARK, .mark = {ATTRIBUTES(range, labels)}});
}

SEND send_deferred(struct producer *producer, const struct range_attributes *range,
		   struct labels labels, const struct event_deferred *when)
{
	send(producer,
	     &(struct event){.id = EVENT_DEFERRED,
			     .deferred = {ATTRIBUTES(range, labels), .is_mark = when->is_mark,
					  .begin = when->begin, .duration_ns = when->duration_ns}});
}

SEND send_value(struct producer *producer, const struct range_attributes *range,
		enum value_kind kind, struct labels labels)
{
	send(producer, &(struct event){
			       .id = EVENT_VALUE,
			       .value =
				       {
					       .name = labels.name,
					       .domain = labels.domain,
					       .source = range->source,
					       .kind = kind,
					       .payload_type = range->payload_type,
					       .payload = range->payload,
				       },
		       });
}

#undef SEND
#undef ATTRIBUTES

int torsh_ranges_push(const struct range_attributes *range)
{
	int saved, depth = 0;
	struct producer *producer = enter(&saved);

	if (producer) {
		uint32_t domain = label_of(range->domain);

		if (torsh_schedule_begin(producer, OPEN_RANGES, key_of(domain, range->source))) {
			torsh_thread_counters_take(producer);
			send_push(producer, range, labels_of(range, domain));
		} else {
			torsh_thread_counters_skip(producer);
		}
		torsh_thread_counters_go_on(producer);
		depth = (*depth_of(domain, range->source))++;
	}
	leave(producer, saved);
	if (torsh_bridge_is_needed() && producer)
		torsh_bridge_push(range);
	return depth;
}

int torsh_ranges_pop(struct range_text domain, enum range_source source)
{
	int saved, depth = 0;
	struct producer *producer = enter(&saved);

	if (producer) {
		struct event event = {
			.id = EVENT_RANGE_POP,
			.range_pop = {.domain = label_of(domain), .source = source},
		};
		int *n_open = depth_of(event.range_pop.domain, source);

		if (torsh_schedule_end(producer, OPEN_RANGES,
				       key_of(event.range_pop.domain, source))) {
			torsh_thread_counters_take(producer);
			send(producer, &event);
		} else {
			torsh_thread_counters_skip(producer);
		}
		torsh_thread_counters_go_on(producer);
		depth = *n_open > 0 ? --*n_open : -1;
	}
	leave(producer, saved);
	if (torsh_bridge_is_needed() && producer && depth >= 0)
		torsh_bridge_pop(domain, source);
	return depth;
}

uint64_t torsh_ranges_number(void)
{
	return atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
}

void torsh_ranges_start(const struct range_attributes *range, uint64_t number)
{
	int saved;
	struct producer *producer = enter(&saved);

	if (producer)
		send_start(producer, range, labels_of(range, label_of(range->domain)), number);
	leave(producer, saved);
	if (torsh_bridge_is_needed() && producer)
		torsh_bridge_start(range, number);
}

void torsh_ranges_end(uint64_t number)
{
	struct event event = {.id = EVENT_RANGE_END, .range_end = {.range = number}};
	int saved;
	struct producer *producer = enter(&saved);

	if (producer)
		send(producer, &event);
	leave(producer, saved);
	if (torsh_bridge_is_needed() && producer)
		torsh_bridge_end(number);
}

void torsh_ranges_mark(const struct range_attributes *range)
{
	int saved;
	struct producer *producer = enter(&saved);

	if (producer && torsh_schedule_is_on(producer))
		send_mark(producer, range, labels_of(range, label_of(range->domain)));
	leave(producer, saved);
	if (torsh_bridge_is_needed() && producer)
		torsh_bridge_mark(range);
}

void torsh_ranges_deferred(const struct range_attributes *range, uint64_t begin_ns,
			   uint64_t duration_ns, bool is_mark)
{
	struct event_deferred when = {
		.is_mark = is_mark, .begin = begin_ns, .duration_ns = duration_ns};
	int saved;
	struct producer *producer = enter(&saved);

	if (producer && torsh_schedule_is_on(producer))
		send_deferred(producer, range, labels_of(range, label_of(range->domain)), &when);
	leave(producer, saved);
}

void torsh_ranges_value(const struct range_attributes *range, enum value_kind kind)
{
	int saved;
	struct producer *producer = enter(&saved);

	if (producer && !torsh_recording_is_paused())
		send_value(producer, range, kind, labels_of(range, label_of(range->domain)));
	leave(producer, saved);
}

void torsh_ranges_step(struct range_text name, uint64_t number)
{
	int saved;
	struct producer *producer = enter(&saved);

	if (producer) {
		struct event event = {.id = EVENT_STEP,
				      .step = {.name = label_of(name), .number = number}};

		torsh_thread_counters_take(producer);
		torsh_schedule_step(producer, STEP_BY_MARK, number);
		send(producer, &event);
		torsh_thread_counters_go_on(producer);
	}
	leave(producer, saved);
	if (producer && torsh_forward_wants(FORWARD_STEPS))
		torsh_forward_step(STEP_BY_MARK, name.bytes, number);
}

void torsh_ranges_name_thread(uint32_t tid, struct range_text name, enum range_source source)
{
	int saved;
	struct producer *producer = enter(&saved);

	if (producer) {
		struct event event = {
			.id = EVENT_THREAD_NAME,
			.thread_name =
				{
					.tid = tid ? tid : (uint32_t)torsh_thread_tid(),
					.name = label_of(name),
					.source = source,
				},
		};

		send(producer, &event);
	}
	leave(producer, saved);
}

void torsh_ranges_note(const char *sentence)
{
	int saved;
	struct producer *producer = enter(&saved);

	if (producer)
		torsh_channel_note(&torsh_process->channel, sentence);
	leave(producer, saved);
}
