/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/snapshot/pickle.h"

#include <stdlib.h>

#include "tools/base/utf8.h"

/* Opcodes as named by Python's pickletools. Numbers are little endian. */
enum opcode {
	PROTO = 0x80,
	EMPTY_DICT = '}',
	EMPTY_LIST = ']',
	MARK = '(',
	SETITEMS = 'u',
	APPENDS = 'e',
	BININT1 = 'K',
	BININT2 = 'M',
	LONG1 = 0x8a,
	SHORT_BINUNICODE = 0x8c,
	BINUNICODE = 'X',
	MEMOIZE = 0x94,
	BINGET = 'h',
	LONG_BINGET = 'j',
	STOP = '.',
};

#define PROTOCOL 4
#define OPCODE_BYTES_MAX 16

/* Put an opcode and the n_argument lowest bytes of its argument. */
static void put(struct pickle *pickle, enum opcode opcode, uint64_t argument, size_t n_argument)
{
	uint8_t *at = (uint8_t *)torsh_stream_reserve(pickle->output, OPCODE_BYTES_MAX);

	*at = (uint8_t)opcode;
	for (size_t i = 0; i < n_argument; i++)
		at[1 + i] = (uint8_t)(argument >> 8 * i);
	pickle->output->n += 1 + n_argument;
}

void torsh_pickle_begin(struct pickle *pickle, struct output_stream *output)
{
	*pickle = (struct pickle){.output = output};
	put(pickle, PROTO, PROTOCOL, 1);
}

void torsh_pickle_end(struct pickle *pickle)
{
	put(pickle, STOP, 0, 0);
}

/* The number is signed: with the highest bit set it needs another byte. */
static void put_long(struct pickle *pickle, uint64_t number)
{
	uint8_t bytes[2 + sizeof(number) + 1] = {(uint8_t)LONG1};
	uint8_t n = 0;

	for (uint64_t rest = number; rest; rest >>= 8)
		bytes[2 + n++] = (uint8_t)rest;
	n += bytes[2 + n - 1] >> 7;
	bytes[1] = n;
	torsh_stream_put(pickle->output, bytes, 2 + (size_t)n);
}

void torsh_pickle_number(struct pickle *pickle, uint64_t number)
{
	if (number <= UINT8_MAX)
		put(pickle, BININT1, number, 1);
	else if (number <= UINT16_MAX)
		put(pickle, BININT2, number, 2);
	else
		put_long(pickle, number);
}

void torsh_pickle_text(struct pickle *pickle, const char *text)
{
	char *clean = torsh_utf8_clean(text);
	size_t n = strlen(clean);

	if (n <= UINT8_MAX)
		put(pickle, SHORT_BINUNICODE, n, 1);
	else
		put(pickle, BINUNICODE, n, 4);
	torsh_stream_put(pickle->output, clean, n);
	free(clean);
}

void torsh_pickle_dict_begin(struct pickle *pickle)
{
	put(pickle, EMPTY_DICT, 0, 0);
	put(pickle, MARK, 0, 0);
}

void torsh_pickle_dict_end(struct pickle *pickle)
{
	put(pickle, SETITEMS, 0, 0);
}

void torsh_pickle_list_begin(struct pickle *pickle, struct pickle_list *list)
{
	list->n = 0;
	put(pickle, EMPTY_LIST, 0, 0);
}

void torsh_pickle_item(struct pickle *pickle, struct pickle_list *list)
{
	if (list->n == PICKLE_BATCH) {
		put(pickle, APPENDS, 0, 0);
		list->n = 0;
	}
	if (!list->n++)
		put(pickle, MARK, 0, 0);
}

void torsh_pickle_list_end(struct pickle *pickle, struct pickle_list *list)
{
	if (list->n)
		put(pickle, APPENDS, 0, 0);
}

uint32_t torsh_pickle_remember(struct pickle *pickle)
{
	put(pickle, MEMOIZE, 0, 0);
	return pickle->n_memo++;
}

void torsh_pickle_again(struct pickle *pickle, uint32_t memo)
{
	if (memo <= UINT8_MAX)
		put(pickle, BINGET, memo, 1);
	else
		put(pickle, LONG_BINGET, memo, 4);
}
