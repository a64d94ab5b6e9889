/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/die.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_sentence(const char *format, va_list arguments)
{
	fflush(stdout);
	fputs("torsh: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
}

void torsh_die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_sentence(format, arguments);
	va_end(arguments);
	exit(TORSH_EXIT_UNREADABLE);
}

void torsh_warn(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_sentence(format, arguments);
	va_end(arguments);
}

void *torsh_need(void *pointer)
{
	if (!pointer)
		torsh_die("out of memory");
	return pointer;
}

void *torsh_need_items(void *items, size_t n_old, size_t n_new, size_t item_bytes)
{
	char *all;

	/* Pages of a large new array that are never used take no memory. */
	if (!items)
		return torsh_need(calloc(n_new ? n_new : 1, item_bytes));
	all = torsh_need(reallocarray(items, n_new ? n_new : 1, item_bytes));
	if (n_new > n_old)
		memset(all + n_old * item_bytes, 0, (n_new - n_old) * item_bytes);
	return all;
}

char *torsh_need_text(const char *format, ...)
{
	va_list arguments;
	char *text = NULL;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	return torsh_need(text);
}
