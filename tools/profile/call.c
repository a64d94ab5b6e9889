/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What can be asked of a call. See tools/profile/calls.h. */
#include "tools/profile/calls.h"

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
