/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/torch/operator_events.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agent/process/agent.h"
#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/producer/key_map.h"
#include "agent/producer/label.h"
#include "agent/producer/schedule.h"
#include "collectors/perf/thread_counters.h"
#include "collectors/ranges/forward.h"
#include "collectors/torch/operator_marks.h"
#include "collectors/torch/torch_collectives.h"
#include "collectors/torch/torch_steps.h"
#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/loader/objects.h"
#include "shim/torch/torch.h"
#include "shim/torch/torch_calibration.h"
#include "shim/torch/torch_demangle.h"

#define NAME_SLOTS 512u
#define NAME_START 52u
#define OP_READS 4u /* addresses in an event */

/*
 * A name or overload of an earlier operator: one line of the cache, as most names are short. Scopes
 * make their names' texts anew each time.
 */
struct cached_text {
	uint32_t label; /* 0: none */
	uint32_t length;
	uint32_t text; /* in the channel's text area */
	char start[NAME_START]; /* its first bytes */
};

_Static_assert(sizeof(struct cached_text) == 64, "it is a line of the cache");

/* The state of a thread; producer->operators. */
struct operators {
	struct cached_text cached[NAME_SLOTS]; /* by length and both ends of the text */
	uint64_t thread; /* torch's number of the thread, as last sent */
	uint32_t n_opened; /* the producer's then: another thread may have it now */
	struct torch_inputs inputs;
	struct torch_steps steps;
	struct operator_marks marks;
	struct torch_collective collective;
	struct forwarded forwarded;
};

static struct operators *operators_of(struct producer *producer)
{
	if (__builtin_expect(!producer->operators, 0))
		producer->operators = torsh_producer_pages(producer, sizeof(struct operators));
	return producer->operators;
}

const struct torch_collective *torsh_operators_collective(const struct producer *producer)
{
	return producer->operators ? &producer->operators->collective : NULL;
}

static uint32_t slot_of(const char *text, size_t n)
{
	uint64_t first = 0, last = 0;

	if (n < sizeof(first)) {
		memcpy(&first, text, n);
	} else {
		memcpy(&first, text, sizeof(first));
		memcpy(&last, text + n - sizeof(last), sizeof(last));
	}
	return (uint32_t)(torsh_key_map_mix(first ^ n, last) >> 32) % NAME_SLOTS;
}

static inline bool is_cached(const struct cached_text *cached, const char *text, size_t n)
{
	if (cached->length != n || !cached->label)
		return false;
	if (__builtin_expect(n <= NAME_START, 1))
		return !memcmp(text, cached->start, n);
	return !memcmp(text, cached->start, NAME_START) &&
	       !memcmp(text + NAME_START,
		       torsh_channel_text(&torsh_process->channel, cached->text) + NAME_START,
		       n - NAME_START);
}

/* Off the hot path: the text's label, which replaces what is in the slot. */
static __attribute__((noinline)) uint32_t look_up(struct cached_text *cached, const char *text,
						  size_t n)
{
	uint32_t label = torsh_label(text, n);
	struct channel_text there;

	if (!label)
		return 0;
	there = torsh_channel_code(&torsh_process->channel, label - 1)->name;
	/* A text that was cut does not equal its full form. */
	if (there.length != n)
		return label;
	*cached =
		(struct cached_text){.label = label, .text = there.offset, .length = there.length};
	memcpy(cached->start, text, n < NAME_START ? n : NAME_START);
	return label;
}

static uint32_t label_of(struct operators *operators, const char *text)
{
	size_t n = strlen(text);
	uint32_t slot = slot_of(text, n);
	struct cached_text *cached = &operators->cached[slot],
			   *other = &operators->cached[slot ^ 1];

	if (__builtin_expect(is_cached(cached, text, n), 1))
		return cached->label;
	return is_cached(other, text, n)
		       ? other->label
		       : look_up(cached->label && !other->label ? other : cached, text, n);
}

static void name(struct operators *operators, const void *record, struct event_op_begin *op)
{
	const char *name = torsh_torch_name(record), *overload = torsh_torch_overload(record);

	op->name = label_of(operators, name);
	if (overload && *overload)
		op->overload = label_of(operators, overload);
}

/* Two open records have different addresses, and don't differ by 2^35 bytes. */
static uint32_t number_of(const void *record)
{
	return (uint32_t)((uintptr_t)record >> 3);
}

static bool is_calibrated(void)
{
	/* Pairs with the release in torsh_torch_calibration_finish. */
	return atomic_load_explicit(&torsh_torch_is_calibrated, memory_order_acquire);
}

static uint64_t sequence_of(const void *record)
{
	if (!is_calibrated() || torsh_torch_layout.sequence == TORCH_UNKNOWN)
		return OP_NO_SEQUENCE;
	return *(const uint64_t *)((uintptr_t)record + torsh_torch_layout.sequence);
}

static bool has_forward_threads(void)
{
	return is_calibrated() && torsh_torch_layout.forward_thread != TORCH_UNKNOWN;
}

/* The largest number of a thread with operators: torch assigns them in sequence. */
static _Atomic uint64_t last_thread;

/* A value that is no thread's number is ignored. */
static uint32_t forward_thread_of(const void *record)
{
	uint64_t number =
		*(const uint64_t *)((uintptr_t)record + torsh_torch_layout.forward_thread);

	return number <= atomic_load_explicit(&last_thread, memory_order_relaxed) ? (uint32_t)number
										  : 0;
}

/*
 * Send the thread's number in operators, the first time. Only threads without a producer of their
 * own share one.
 */
static void send_thread(struct producer *producer, struct operators *operators)
{
	struct event event = {.id = EVENT_OP_THREAD};
	uint64_t number, last;
	bool is_new = operators->n_opened != producer->n_opened;

	if (__builtin_expect(operators->thread && !is_new && !producer->user, 1))
		return;
	operators->n_opened = producer->n_opened;
	number = torsh_torch_thread();
	last = atomic_load_explicit(&last_thread, memory_order_relaxed);
	if (!number || (number == operators->thread && !is_new))
		return;
	while (last < number &&
	       !atomic_compare_exchange_weak_explicit(&last_thread, &last, number,
						      memory_order_relaxed, memory_order_relaxed))
		;
	operators->thread = number;
	event.op_thread.number = (uint32_t)number;
	torsh_producer_event(producer, &event, NULL);
}

static void describe(struct operators *operators, const void *record, enum torch_scopes scopes,
		     struct event_op_begin *op)
{
	static const uint32_t scope_numbers[] = {
		[TORCH_BACKWARD] = OP_BACKWARD,
		[TORCH_USER] = OP_USER,
		[TORCH_OTHER] = OP_FUNCTION,
	};

	name(operators, record, op);
	op->inputs =
		torsh_torch_inputs(&operators->inputs, record, scopes == TORCH_OTHER, &op->flags);
	op->scope = scope_numbers[scopes];
	op->record = number_of(record);
	op->sequence = sequence_of(record);
	if (scopes == TORCH_BACKWARD && op->sequence != OP_NO_SEQUENCE && has_forward_threads())
		op->forward_thread = forward_thread_of(record);
}

/* The schedule's key of a call. */
static open_key key_of(const void *record)
{
	return (uintptr_t)record;
}

/* What the operator reads: the writer keeps the last one of each block. */
static void send_reads(struct producer *producer, const struct torch_tokens *tokens, uint32_t name)
{
	for (uint32_t i = 0; i < tokens->n_reads; i += OP_READS) {
		uint64_t reads[OP_READS] = {0};
		struct event_op_read op = {.name = name};
		uint8_t *payload = torsh_producer_start(producer);

		if (!payload)
			return;
		for (uint32_t k = 0; k < OP_READS && i + k < tokens->n_reads; k++)
			reads[k] = tokens->reads[i + k];
		op.first = reads[0];
		op.second = reads[1];
		op.third = reads[2];
		op.fourth = reads[3];
		torsh_producer_finish(producer, EVENT_OP_READ,
				      torsh_codec_fields_op_read(&op, payload));
	}
}

static void send_begin(struct producer *producer, const void *record, enum torch_scopes scopes,
		       const void *frame)
{
	struct event event = {.id = EVENT_OP_BEGIN};
	struct event_op_begin *op = &event.op_begin;
	uint8_t *payload;
	uint64_t stamp;

	if (has_forward_threads())
		send_thread(producer, producer->operators);
	describe(producer->operators, record, scopes, op);
	send_reads(producer, &producer->operators->inputs.tokens, op->name);
	torsh_operator_marks_begin(&producer->operators->marks, key_of(record));
	if (torsh_config.operator_stacks) {
		op->flags |= OP_HAS_STACK;
		if (torsh_producer_hold(producer, frame, &stamp))
			torsh_producer_event_at(producer, &event, stamp);
		return;
	}
	payload = torsh_producer_start(producer);
	if (payload)
		torsh_producer_finish(producer, EVENT_OP_BEGIN,
				      torsh_codec_fields_op_begin(op, payload));
}

static void send_end(struct producer *producer, const void *record)
{
	struct event_op_end op = {.record = number_of(record)};
	uint8_t *payload;

	if (producer->operators)
		torsh_operator_marks_end(&producer->operators->marks, producer, key_of(record));
	payload = torsh_producer_start(producer);
	if (payload)
		torsh_producer_finish(producer, EVENT_OP_END,
				      torsh_codec_fields_op_end(&op, payload));
}

/*
 * The producer is left before another tool is called; its operators stay this thread's, but for
 * threads that share a producer, whose ranges would not nest.
 */
static __attribute__((noinline)) void forward(struct operators *operators, const void *record,
					      bool is_shared)
{
	const char *name = torsh_torch_name(record);

	if (torsh_forward_wants(FORWARD_STEPS) && torsh_torch_steps_is_profilers(name))
		torsh_forward_step(STEP_BY_PROFILER, name, 0);
	if (torsh_forward_wants(FORWARD_OPERATORS) && !is_shared)
		torsh_forward_operator(&operators->forwarded, key_of(record), name);
}

static __attribute__((noinline)) void forward_end(struct operators *operators, const void *record)
{
	if (torsh_forward_wants(FORWARD_OPERATORS))
		torsh_forward_operator_end(&operators->forwarded, key_of(record));
	if (torsh_forward_wants(FORWARD_STEPS) &&
	    torsh_torch_steps_is_optimizers(torsh_torch_name(record)))
		torsh_forward_step(STEP_BY_OPTIMIZER, NULL, UINT64_MAX);
}

/* Stamped last: the time of this function is not the operator's. */
static void begin(const void *record, enum torch_scopes scopes, const void *frame)
{
	int saved = errno;
	struct producer *producer;
	struct operators *operators;
	bool is_sent = false, is_shared;

	if (__builtin_expect(torsh_torch_is_calibrating, 0)) {
		torsh_torch_calibration_look(record, torsh_torch_name(record));
		return;
	}
	producer = torsh_producer_enter();
	if (!producer)
		return;
	operators = operators_of(producer);
	if (operators && torsh_schedule_is_kept() && scopes == TORCH_USER)
		torsh_torch_steps_begin(&operators->steps, producer, torsh_torch_name(record),
					key_of(record));
	if (operators && scopes == TORCH_OTHER &&
	    __builtin_expect(atomic_load_explicit(&torsh_torch_has_groups, memory_order_acquire),
			     0))
		torsh_torch_collective_begin(&operators->collective, record,
					     torsh_torch_name(record));
	if (operators && torsh_schedule_begin(producer, OPEN_OPERATORS, key_of(record))) {
		torsh_thread_counters_take(producer);
		send_begin(producer, record, scopes, frame);
		is_sent = true;
		if (operators->collective.record == (uintptr_t)record)
			torsh_torch_collective_send(&operators->collective, producer);
	} else {
		torsh_thread_counters_skip(producer);
	}
	torsh_thread_counters_go_on(producer);
	is_shared = producer->user;
	torsh_producer_leave(producer);
	if (__builtin_expect(torsh_config.forward && is_sent, 0))
		forward(operators, record, is_shared);
	errno = saved;
}

static void end(const void *record)
{
	int saved = errno;
	struct producer *producer;
	struct operators *operators;

	if (__builtin_expect(torsh_torch_is_calibrating, 0))
		return;
	producer = torsh_producer_enter();
	if (!producer)
		return;
	if (torsh_schedule_end(producer, OPEN_OPERATORS, key_of(record))) {
		torsh_thread_counters_take(producer);
		send_end(producer, record);
	} else {
		torsh_thread_counters_skip(producer);
	}
	if (producer->operators)
		torsh_torch_collective_end(&producer->operators->collective, record);
	if (torsh_schedule_is_kept() && producer->operators)
		torsh_torch_steps_end(&producer->operators->steps, producer, key_of(record));
	torsh_thread_counters_go_on(producer);
	operators = producer->operators;
	torsh_producer_leave(producer);
	if (__builtin_expect(torsh_config.forward && operators, 0))
		forward_end(operators, record);
	errno = saved;
}

static bool is_wanted(void)
{
	return torsh_config.activities & ACTIVITY_TORCH &&
	       atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON;
}

/* As the program's own malloc: a block of the caller's. */
static void *name_block(size_t n_bytes, const void *frame)
{
	void *block = torsh_next.malloc(n_bytes);

	torsh_heap_allocated(block, n_bytes, ALLOC_MALLOC, frame);
	return block;
}

bool torsh_torch_start(void)
{
	int result =
		is_wanted() ? torsh_torch_observe(begin, end, torsh_config.record_shapes) : -ENOENT;

	if (!result)
		torsh_torch_demangle_bind(name_block);
	return result == 0 || result == -EALREADY;
}

/* Also called without Python: libtorch is first seen here then. */
void torsh_torch_found(void)
{
	torsh_torch_start();
}

/* A program that is linked with libtorch. */
__attribute__((constructor)) static void look_for_torch(void)
{
	torsh_agent_start();
	if (is_wanted() && torsh_objects_has("libtorch_cpu") && torsh_torch_start())
		torsh_channel_note(
			&torsh_process->channel,
			"torch: operators have names and times only: no Python is there to find out where "
			"this program's libtorch keeps their inputs");
}
