/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/ranges/forward.h"

#include <errno.h>
#include <stdatomic.h>

#include "agent/process/callbacks.h"
#include "agent/process/text_buffer.h"
#include "collectors/ranges/bridge.h"

#define STEP_BYTES 64u

static const struct range_text operators = {.bytes = "torsh operators"},
			       modules = {.bytes = "torsh modules"};

bool torsh_forward_is_heard(void)
{
	static _Atomic bool is_attached;
	int saved = errno;

	if (__builtin_expect(!atomic_load_explicit(&is_attached, memory_order_acquire), 0)) {
		torsh_callbacks.nvtx_tool_wanted();
		torsh_callbacks.itt_tool_wanted();
		atomic_store_explicit(&is_attached, true, memory_order_release);
		errno = saved;
	}
	return torsh_bridge_is_needed();
}

static void push(struct range_text name, struct range_text domain)
{
	int saved = errno;

	torsh_bridge_push(&(struct range_attributes){.name = name, .domain = domain});
	errno = saved;
}

static void pop(struct range_text domain)
{
	int saved = errno;

	torsh_bridge_pop(domain, RANGE_BY_TORSH);
	errno = saved;
}

void torsh_forward_operator(struct forwarded *forwarded, uint64_t record, const char *name)
{
	if (forwarded->n == FORWARD_DEPTH || !torsh_forward_is_heard())
		return;
	forwarded->records[forwarded->n++] = record;
	push((struct range_text){.bytes = name}, operators);
}

void torsh_forward_operator_end(struct forwarded *forwarded, uint64_t record)
{
	uint32_t i = forwarded->n;

	while (i && forwarded->records[i - 1] != record)
		i--;
	/* Whatever is inside of it ended elsewhere. */
	for (; i && forwarded->n >= i; forwarded->n--)
		pop(operators);
}

void torsh_forward_module(uint32_t label)
{
	if (torsh_forward_is_heard())
		push((struct range_text){.label = label}, modules);
}

void torsh_forward_module_end(void)
{
	if (torsh_forward_is_heard())
		pop(modules);
}

void torsh_forward_step(uint32_t by, const char *name, uint64_t number)
{
	static _Atomic uint32_t best;
	static _Atomic uint64_t n_counted;
	uint32_t known = atomic_load_explicit(&best, memory_order_relaxed);
	char bytes[STEP_BYTES];
	struct text text = TEXT_IN(bytes);
	int saved = errno;

	if (by < known || !torsh_forward_is_heard())
		return;
	while (known < by && !atomic_compare_exchange_weak_explicit(
				     &best, &known, by, memory_order_relaxed, memory_order_relaxed))
		;
	if (number == UINT64_MAX)
		number = atomic_fetch_add_explicit(&n_counted, 1, memory_order_relaxed);
	if (name) {
		torsh_text_put(&text, name);
	} else {
		torsh_text_put(&text, "step ");
		torsh_text_put_number(&text, number);
	}
	torsh_bridge_step(bytes);
	errno = saved;
}
