/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/tasks/traceparent.h"

#include <stdbool.h>

#define VALUE_BYTES 55u
#define VERSION_INVALID 0xffu

/* Lower case only, as the standard has it. Returns false without n digits. */
static bool read_hex(const char *text, uint32_t n, uint64_t *value)
{
	*value = 0;
	for (uint32_t i = 0; i < n; i++) {
		char digit = text[i];

		if (digit >= '0' && digit <= '9')
			*value = *value << 4 | (uint64_t)(digit - '0');
		else if (digit >= 'a' && digit <= 'f')
			*value = *value << 4 | (uint64_t)(digit - 'a' + 10);
		else
			return false;
	}
	return true;
}

void torsh_traceparent_read(const char *text, size_t n, struct event_task *task)
{
	uint64_t version, high, low, span;

	/* Later versions may append fields. */
	if (!text || n < VALUE_BYTES || (n > VALUE_BYTES && text[VALUE_BYTES] != '-') ||
	    text[2] != '-' || text[35] != '-' || text[52] != '-')
		return;
	if (!read_hex(text, 2, &version) || version == VERSION_INVALID ||
	    (n > VALUE_BYTES && !version) || !read_hex(text + 3, 16, &high) ||
	    !read_hex(text + 19, 16, &low) || !read_hex(text + 36, 16, &span))
		return;
	if (!(high | low) || !span)
		return;
	task->trace_high = high;
	task->trace_low = low;
	task->span = span;
}
