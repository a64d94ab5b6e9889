/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Queries of a span. */
#include "tools/timeline/spans.h"

#include <string.h>

struct span *torsh_span_outer_operator(const struct span *span)
{
	struct span *outer = span->outer;

	while (outer && outer->kind != SPAN_OPERATOR)
		outer = outer->outer;
	return outer;
}

struct span *torsh_span_outer_module(const struct span *span)
{
	struct span *outer = span->outer;

	while (outer && !outer->is_module)
		outer = outer->outer;
	return outer;
}

const char *torsh_span_name(const struct span *span)
{
	const char *name = torsh_timeline_label(span->process, span->name);

	return name && *name ? name : "?";
}

size_t torsh_span_slot(const struct span *span, size_t n_slots)
{
	/* Sequence numbers start at 0 on each thread: threads use different parts of the table. */
	return (size_t)(span->sequence + span->forward_thread * UINT64_C(0x9e3779b1)) &
	       (n_slots - 1);
}

/* Operators that only allocate: their caller is more informative. */
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

const struct span *torsh_span_attributed(const struct span *innermost)
{
	const struct span *span = innermost;

	while (span && only_allocates(torsh_span_name(span))) {
		const struct span *outer = torsh_span_outer_operator(span);

		if (!outer)
			break;
		span = outer;
	}
	return span;
}
