/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/assumptions.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

void torsh_assumptions_add(struct assumptions *assumptions, const char *format, ...)
{
	va_list arguments;
	char *text;
	int n;

	va_start(arguments, format);
	n = vasprintf(&text, format, arguments);
	va_end(arguments);
	torsh_need(n < 0 ? NULL : text);
	assumptions->items = torsh_array_reserve(assumptions->items, assumptions->n,
						 &assumptions->n_room, sizeof(*assumptions->items));
	assumptions->items[assumptions->n++] = text;
}

void torsh_assumptions_free(struct assumptions *assumptions)
{
	for (size_t i = 0; i < assumptions->n; i++)
		free(assumptions->items[i]);
	free(assumptions->items);
}
