/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/torch/torch_collectives.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/producer/key_map.h"
#include "agent/producer/producer.h"
#include "agent/wire/event.h"
#include "collectors/torch/operator_events.h"
#include "shim/sys.h"
#include "shim/torch/torch.h"

#define COUNT_SLOTS 4096u /* groups, and their pairs of ranks with a tag */
#define INPUTS_MAX 4u /* the group is the second or third, its peer follows */

/* How many calls there were by group, or by group, peer, tag and direction. */
struct count {
	_Atomic uint64_t key; /* 0: free */
	_Atomic uint64_t n;
};

/* In pages that are zeroed in a forked child: it has no groups of its parent's. */
struct state {
	struct count counts[COUNT_SLOTS];
	_Atomic uint32_t n_sent;
};

static void *_Atomic state; /* struct state */

/* What a call is, from its inputs. */
struct call {
	uint32_t group, peer; /* peer: rank + 1 in the group, 0: none */
	uint64_t tag;
	bool is_message, is_receive;
};

static struct state *get_state(void)
{
	return torsh_sys_own_once(&state, sizeof(struct state));
}

/* The number of earlier calls with this key; COLLECTIVE_NO_SEQUENCE without room. */
static uint64_t count_call(uint64_t key)
{
	struct state *all = get_state();

	for (uint32_t i = 0; all && i < COUNT_SLOTS; i++) {
		struct count *count = &all->counts[(key + i) % COUNT_SLOTS];
		uint64_t there = 0;

		if (atomic_compare_exchange_strong(&count->key, &there, key) || there == key)
			return atomic_fetch_add_explicit(&count->n, 1, memory_order_relaxed);
	}
	return COLLECTIVE_NO_SEQUENCE;
}

static uint32_t group_of(const struct torch_ivalue *value)
{
	const struct torch_ivalue *const *slots;

	if (value->tag != torsh_torch_group_layout.tag)
		return 0;
	slots = (const void *)(value->payload + torsh_torch_group_layout.slots);
	return slots[1] - slots[0] == 1 ? torsh_torch_group_number(slots[0]->payload) : 0;
}

static bool read_call(struct call *call, const void *record, const char *name)
{
	const struct {
		const struct torch_ivalue *values;
		uint64_t n;
	} *inputs = (const void *)((uintptr_t)record + torsh_torch_layout.inputs);
	uint64_t i, numbers[2] = {0}, n_numbers = 0;

	call->is_receive = !strncmp(name, "recv_", 5);
	call->is_message = call->is_receive || !strcmp(name, "send");
	for (i = 0; i < inputs->n && i < INPUTS_MAX && !call->group; i++)
		call->group = group_of(&inputs->values[i]);
	for (; i < inputs->n && n_numbers < 2; i++)
		if (inputs->values[i].tag == torsh_torch_layout.tag_int)
			numbers[n_numbers++] = inputs->values[i].payload;
	if (call->is_message && n_numbers == 2) {
		call->peer = (uint32_t)numbers[0] + 1;
		call->tag = numbers[1];
	}
	return call->group != 0;
}

void torsh_torch_collective_begin(struct torch_collective *collective, const void *record,
				  const char *name)
{
	static const char prefix[] = "c10d::";
	struct call call = {0};
	uint64_t key;

	if (collective->record || strncmp(name, prefix, sizeof(prefix) - 1) ||
	    !read_call(&call, record, name + sizeof(prefix) - 1))
		return;
	key = call.is_message ? torsh_key_map_mix(call.group,
						  torsh_key_map_mix(call.peer * 2 + call.is_receive,
								    call.tag))
			      : torsh_key_map_mix(call.group, UINT64_MAX);
	collective->record = (uintptr_t)record;
	collective->number = 0;
	collective->event = (struct event_collective){
		.source = COLLECTIVE_BY_C10D,
		.group = call.group,
		.kind = !call.is_message  ? COLLECTIVE_OF_ALL
			: call.is_receive ? COLLECTIVE_RECEIVE
					  : COLLECTIVE_SEND,
		.peer = call.peer,
		.tag = call.tag,
		/* Which message comes from anyone is not determined before it has come. */
		.sequence =
			call.is_message && !call.peer ? COLLECTIVE_NO_SEQUENCE : count_call(key),
	};
}

void torsh_torch_collective_send(struct torch_collective *collective, struct producer *producer)
{
	struct event event = {.id = EVENT_COLLECTIVE};
	struct state *all = get_state();

	if (!all)
		return;
	collective->number = atomic_fetch_add_explicit(&all->n_sent, 1, memory_order_relaxed) + 1;
	collective->event.number = collective->number;
	event.collective = collective->event;
	torsh_producer_event(producer, &event, NULL);
}
