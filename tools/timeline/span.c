/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What can be asked of a call. See tools/timeline/spans.h. */
#include "tools/timeline/spans.h"

#include <string.h>

struct call *torsh_call_outer_operator(const struct call *call)
{
	struct call *outer = call->outer;

	while (outer && outer->kind != CALL_OPERATOR)
		outer = outer->outer;
	return outer;
}

struct call *torsh_call_outer_module(const struct call *call)
{
	struct call *outer = call->outer;

	while (outer && !outer->is_module)
		outer = outer->outer;
	return outer;
}

const char *torsh_call_name(const struct call *call)
{
	const char *name = torsh_timeline_label(call->process, call->name);

	return name && *name ? name : "?";
}

size_t torsh_call_slot(const struct call *call, size_t n_slots)
{
	/* Threads count from 0 alike: each has another part of the table. */
	return (size_t)(call->sequence + call->forward_thread * UINT64_C(0x9e3779b1)) &
	       (n_slots - 1);
}

/* Those that only make memory: what they were called for tells more. */
static bool only_allocates(const char *name)
{
	static const char *const starts[] = {"aten::empty", "aten::new_empty", "aten::resize",
					     "aten::_resize"};

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return true;
	}
	return false;
}

const struct call *torsh_call_telling(const struct call *innermost)
{
	const struct call *call = innermost;

	while (call && only_allocates(torsh_call_name(call))) {
		const struct call *outer = torsh_call_outer_operator(call);

		if (!outer)
			break;
		call = outer;
	}
	return call;
}
