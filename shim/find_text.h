/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Searches a short text in another one. glibc 2.41's strstr takes more of a small stack than a
 * wrapper may.
 */
#ifndef TORSH_SHIM_FIND_TEXT_H
#define TORSH_SHIM_FIND_TEXT_H

#include <stddef.h>
#include <string.h>

/* The first occurrence of part, which isn't empty, in text; NULL if there is none. */
static inline const char *torsh_find_text(const char *text, const char *part)
{
	size_t n = strlen(part);

	for (; *text; text++)
		if (*text == *part && !strncmp(text, part, n))
			return text;
	return NULL;
}

#endif
