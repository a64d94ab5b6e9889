/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *or_die(void *p)
{
	if (p)
		return p;
	fputs("torsh: the writer is out of memory: the recording ends here\n", stderr);
	_exit(1);
}

void *torsh_memory_new(size_t n, size_t n_bytes)
{
	return or_die(calloc(n ? n : 1, n_bytes));
}

void *torsh_memory_grow(void *items, uint32_t *capacity, uint32_t n, size_t n_bytes)
{
	size_t wanted = (size_t)*capacity + *capacity / 2 + 16;

	if (n < *capacity)
		return items;
	if (wanted <= n)
		wanted = (size_t)n + 1;
	items = or_die(reallocarray(items, wanted, n_bytes));
	memset((char *)items + *capacity * n_bytes, 0, (wanted - *capacity) * n_bytes);
	*capacity = (uint32_t)wanted;
	return items;
}

char *torsh_memory_text(const char *text)
{
	return or_die(strdup(text));
}
