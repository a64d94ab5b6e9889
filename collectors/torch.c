/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/torch.h"

#include <errno.h>
#include <string.h>

#include "agent/config.h"
#include "agent/label.h"
#include "agent/process.h"
#include "agent/schedule.h"
#include "collectors/torch_steps.h"
#include "shim/hooks.h"
#include "shim/objects.h"
#include "shim/torch.h"
#include "shim/torch_calibration.h"

#define NAME_SLOTS 256u

/* A name that an operator had: its address, and what was there, as names of scopes come and go. */
struct known_name {
	const char *at;
	uint32_t label;
	uint32_t text, length; /* in the channel's text area */
};

/* What a thread remembers; flow->operators. */
struct operators {
	struct known_name names[NAME_SLOTS];
	struct torch_inputs inputs;
	struct torch_steps steps;
};

static struct operators *operators_of(struct flow *flow)
{
	if (__builtin_expect(!flow->operators, 0))
		flow->operators = torsh_sys_pages(sizeof(struct operators));
	return flow->operators;
}

/* Reads no further in name than it is like the known text, which has no NUL. */
static int is_name(const struct known_name *known, const char *name)
{
	const char *text = torsh_process->channel.text + known->text;

	return known->at == name && !strncmp(name, text, known->length) && !name[known->length];
}

static uint32_t label_of(struct operators *operators, const char *name)
{
	uint32_t slot = (uint32_t)((uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15) >> 56) % NAME_SLOTS, label;
	struct known_name *known = &operators->names[slot];
	struct channel_text text;

	if (__builtin_expect(known->at && is_name(known, name), 1))
		return known->label;
	label = torsh_label(name, strlen(name));
	if (!label)
		return 0;
	text = torsh_process->channel.codes[label - 1].name;
	/* A name that was cut is not the one that comes back. */
	if (text.length < LABEL_MAX)
		*known = (struct known_name){.at = name, .label = label, .text = text.offset, .length = text.length};
	return label;
}

/* Two records that are open at once have different addresses; a third of 2^35 bytes they don't share. */
static uint32_t number_of(const void *record)
{
	return (uint32_t)((uintptr_t)record >> 3);
}

static uint64_t sequence_of(const void *record)
{
	/* Pairs with the release in torsh_torch_calibration_finish. */
	if (!atomic_load_explicit(&torsh_torch_is_calibrated, memory_order_acquire) ||
	    torsh_torch_layout.sequence == TORCH_UNKNOWN)
		return OP_NO_SEQUENCE;
	return *(const uint64_t *)((uintptr_t)record + torsh_torch_layout.sequence);
}

static void describe(struct operators *operators, const void *record, enum torch_scopes scopes, struct event_op_begin *op)
{
	static const uint32_t scope_numbers[] = {
		[TORCH_BACKWARD] = OP_BACKWARD,
		[TORCH_USER] = OP_USER,
		[TORCH_OTHER] = OP_FUNCTION,
	};

	op->name = label_of(operators, torsh_torch_name(record));
	op->inputs = torsh_torch_inputs(&operators->inputs, record, scopes == TORCH_OTHER, &op->flags);
	op->scope = scope_numbers[scopes];
	op->record = number_of(record);
	op->sequence = sequence_of(record);
}

/* What a call is to the schedule. */
static open_key key_of(const void *record)
{
	return (uintptr_t)record;
}

static void send_begin(struct flow *flow, const void *record, enum torch_scopes scopes, const void *frame)
{
	struct event event = {.id = EVENT_OP_BEGIN};
	const void *stack_of = torsh_config.operator_stacks ? frame : NULL;
	uint64_t stamp;

	describe(flow->operators, record, scopes, &event.op_begin);
	if (stack_of)
		event.op_begin.flags |= OP_HAS_STACK;
	if (torsh_flow_hold(flow, stack_of, &stamp))
		torsh_flow_event_at(flow, &event, stamp);
}

/* Stamped last: what is done here is not the operator's time. */
static void begin(const void *record, enum torch_scopes scopes, const void *frame)
{
	int saved = errno;
	struct flow *flow;
	struct operators *operators;

	if (__builtin_expect(torsh_torch_is_calibrating, 0)) {
		torsh_torch_calibration_look(record, torsh_torch_name(record));
		return;
	}
	flow = torsh_flow_enter();
	if (!flow)
		return;
	operators = operators_of(flow);
	if (operators && torsh_schedule_is_kept() && scopes == TORCH_USER)
		torsh_torch_steps_begin(&operators->steps, flow, torsh_torch_name(record), key_of(record));
	if (operators && torsh_schedule_begin(flow, OPEN_OPERATORS, key_of(record)))
		send_begin(flow, record, scopes, frame);
	torsh_flow_leave(flow);
	errno = saved;
}

static void end(const void *record)
{
	struct event event = {.id = EVENT_OP_END, .op_end = {.record = number_of(record)}};
	int saved = errno;
	struct flow *flow;
	uint64_t stamp;

	if (__builtin_expect(torsh_torch_is_calibrating, 0))
		return;
	flow = torsh_flow_enter();
	if (!flow)
		return;
	if (torsh_schedule_end(flow, OPEN_OPERATORS, key_of(record)) && torsh_flow_hold(flow, NULL, &stamp))
		torsh_flow_event_at(flow, &event, stamp);
	if (torsh_schedule_is_kept() && flow->operators)
		torsh_torch_steps_end(&flow->operators->steps, flow, key_of(record));
	torsh_flow_leave(flow);
	errno = saved;
}

static int is_wanted(void)
{
	return torsh_config.activities & ACTIVITY_TORCH &&
	       atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON;
}

int torsh_torch_start(void)
{
	int result = is_wanted() ? torsh_torch_observe(begin, end, torsh_config.record_shapes) : -ENOENT;

	return result == 0 || result == -EALREADY;
}

/* Also where no Python is: then this is the first that is heard of libtorch. */
void torsh_torch_found(void)
{
	torsh_torch_start();
}

/* A program that is linked with libtorch. */
__attribute__((constructor)) static void look_for_torch(void)
{
	torsh_agent_start();
	if (is_wanted() && torsh_objects_has("libtorch_cpu") && torsh_torch_start())
		torsh_channel_note(&torsh_process->channel,
				   "torch: operators have names and times only: no Python is there to find out where "
				   "this program's libtorch keeps their inputs");
}
