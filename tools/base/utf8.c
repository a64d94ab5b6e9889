/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/utf8.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

/* By the first byte: the number of bytes, and the range of the second. */
static const struct form {
	unsigned char first, last, second_first, second_last;
	size_t n;
} forms[] = {
	{0x00, 0x7f, 0, 0, 1},	     {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
	{0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
	{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static const struct form *form_of(unsigned char first)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (first >= forms[i].first && first <= forms[i].last)
			return &forms[i];
	return NULL;
}

/* Returns how many of the n bytes at text match the form. */
static size_t count_fitting(const struct form *form, const char *text, size_t n)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t i;

	for (i = 1; i < n && i < form->n; i++) {
		unsigned char first = i == 1 ? form->second_first : 0x80,
			      last = i == 1 ? form->second_last : 0xbf;

		if (bytes[i] < first || bytes[i] > last)
			break;
	}
	return i;
}

size_t torsh_utf8_bytes(const char *text, size_t n)
{
	const struct form *form = n ? form_of((unsigned char)*text) : NULL;

	return form && count_fitting(form, text, n) == form->n ? form->n : 0;
}

bool torsh_utf8_is_cut(const char *text, size_t n)
{
	const struct form *form = n ? form_of((unsigned char)*text) : NULL;

	return form && n < form->n && count_fitting(form, text, n) == n;
}

uint32_t torsh_utf8_character(const char *text, size_t n_bytes)
{
	static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t character = (unsigned char)text[0] & masks[n_bytes];

	for (size_t i = 1; i < n_bytes; i++)
		character = character << 6 | ((unsigned char)text[i] & 0x3f);
	return character;
}

bool torsh_utf8_is_obeyed(uint32_t character)
{
	static const struct {
		uint32_t first, last;
	} obeyed[] = {
		{0x00, 0x08},	  {0x0b, 0x1f},	    {0x7f, 0x9f},     {0x61c, 0x61c},
		{0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff},
	};

	for (size_t i = 0; i < sizeof(obeyed) / sizeof(*obeyed); i++)
		if (character >= obeyed[i].first && character <= obeyed[i].last)
			return true;
	return false;
}

char *torsh_utf8_clean(const char *text)
{
	const char *end = text + strlen(text);
	char *clean = torsh_need(malloc((size_t)(end - text) * 3 + 1)), *to = clean;

	while (text < end) {
		size_t n = torsh_utf8_bytes(text, (size_t)(end - text));

		if (n) {
			to = mempcpy(to, text, n);
			text += n;
		} else {
			to = stpcpy(to, "\xef\xbf\xbd");
			text++;
		}
	}
	*to = '\0';
	return clean;
}
