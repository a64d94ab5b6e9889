/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/breaks/code_lines.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/cpython/python_lines.h"
#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/reachability/python/python_text.h"

#define BACK_BYTES 8192u /* from an instruction to the head of its code object, at most */
#define LOOKS_MAX 50000u /* each takes some microseconds */
#define LINE_TABLE_BYTES (1u << 20)
#define CODES_MAX 4096u
#define UNIT_BYTES 2u /* of an instruction */
/* Offsets in PyVarObject, of all versions. */
#define TYPE_OF 8u
#define LENGTH 16u

void torsh_code_lines_create(struct code_lines *lines, pid_t pid,
			     const struct python_layout *layout)
{
	*lines = (struct code_lines){.layout = *layout, .pid = pid};
	/* Before 3.11 instructions are in an object of their own. */
	if (layout->at.instruction != CPYTHON_POINTER || !layout->code_type)
		lines->layout.is_known = false;
}

void torsh_code_lines_settle(struct code_lines *lines)
{
	if (!lines->is_open)
		return;
	torsh_python_types_destroy(&lines->types);
	torsh_memory_reader_close(&lines->reader);
	lines->is_open = false;
}

void torsh_code_lines_destroy(struct code_lines *lines)
{
	torsh_code_lines_settle(lines);
	for (uint32_t i = 0; i < lines->n; i++) {
		free(lines->codes[i].function);
		free(lines->codes[i].file);
		free(lines->codes[i].lines);
	}
	free(lines->codes);
	*lines = (struct code_lines){0};
}

static bool open_memory(struct code_lines *lines)
{
	if (lines->is_open)
		return true;
	if (torsh_memory_reader_open(&lines->reader, lines->pid))
		return false;
	torsh_python_types_create(&lines->types, &lines->reader);
	lines->is_open = true;
	return true;
}

/* ---- code objects ---------------------------------------------------------------------------- */

/* Returns the number of the first one that ends behind the address. */
static uint32_t position(const struct code_lines *lines, uint64_t address)
{
	uint32_t from = 0, to = lines->n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (lines->codes[middle].end <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static void read_lines(struct code_object *code, struct code_lines *lines, uint64_t object)
{
	const struct cpython_layout *at = &lines->layout.at;
	uint64_t table = torsh_memory_word(&lines->reader, object + at->code_lines);
	uint64_t n = torsh_memory_word(&lines->reader, table + at->bytes_length);

	if (!table || !n || n > LINE_TABLE_BYTES)
		return;
	code->lines = torsh_memory_new(n, 1);
	if (torsh_memory_copy(&lines->reader, table + at->bytes_data, code->lines, n) == n)
		code->n_lines = (uint32_t)n;
}

static const struct code_object *add(struct code_lines *lines, uint64_t object, uint64_t begin,
				     uint64_t end)
{
	const struct cpython_layout *at = &lines->layout.at;
	uint32_t i = position(lines, begin);
	struct code_object code = {
		.begin = begin,
		.end = end,
		.function = torsh_python_long_str(
			&lines->types, torsh_memory_word(&lines->reader, object + at->code_name)),
		.file = torsh_python_long_str(
			&lines->types, torsh_memory_word(&lines->reader, object + at->code_file)),
		.first_line =
			(uint32_t)torsh_memory_word(&lines->reader, object + at->code_first_line),
	};

	read_lines(&code, lines, object);
	lines->codes = torsh_array_reserve(lines->codes, lines->n, &lines->capacity,
					   sizeof(*lines->codes));
	memmove(&lines->codes[i + 1], &lines->codes[i], (lines->n - i) * sizeof(*lines->codes));
	lines->codes[i] = code;
	lines->n++;
	return &lines->codes[i];
}

/* Look for the head of a code object before the word, whose instructions contain it. */
static const struct code_object *look(struct code_lines *lines, uint64_t word)
{
	uint64_t words[BACK_BYTES / sizeof(uint64_t)], code_bytes = lines->layout.at.code_bytes;
	uint64_t last = (word - code_bytes) & ~UINT64_C(15), first = last - BACK_BYTES + 32;

	if (lines->n_looks >= LOOKS_MAX || lines->n >= CODES_MAX || word < BACK_BYTES * 2 ||
	    !open_memory(lines))
		return NULL;
	lines->n_looks++;
	/* The page before may be none. */
	if (torsh_memory_copy(&lines->reader, first, words, sizeof(words)) != sizeof(words)) {
		uint64_t page = last & ~UINT64_C(4095);

		memset(words, 0, sizeof(words));
		if (page < first ||
		    torsh_memory_copy(&lines->reader, page, (char *)words + (page - first),
				      sizeof(words) - (page - first)) < last + 32 - page)
			return NULL;
	}
	for (uint64_t at = last; at >= first; at -= 16) {
		const uint64_t *head = &words[(at - first) / sizeof(uint64_t)];
		uint64_t begin = at + code_bytes;

		if (head[TYPE_OF / 8] != lines->layout.code_type || head[LENGTH / 8] > UINT32_MAX)
			continue;
		if (word > begin && word <= begin + head[LENGTH / 8] * UNIT_BYTES)
			return add(lines, at, begin, begin + head[LENGTH / 8] * UNIT_BYTES);
		return NULL;
	}
	return NULL;
}

/* The address behind an instruction; the first one of a function is no such address. */
static const struct code_object *code_of(struct code_lines *lines, uint64_t word)
{
	uint32_t i = position(lines, word - UNIT_BYTES);
	uint64_t *miss = &lines->misses[(word >> 1) * UINT64_C(0x9e3779b97f4a7c15) >> 52];
	const struct code_object *code;

	if (i < lines->n && lines->codes[i].begin < word)
		return &lines->codes[i];
	/* No addresses of memory: small numbers, negative ones, and odd ones. */
	if (word < 4096 || word >> 47 || word & 1 || *miss == word)
		return NULL;
	code = look(lines, word);
	if (!code)
		*miss = word;
	return code;
}

_Static_assert(MISSES == 1u << (64 - 52), "the hash has as many bits");

const struct code_object *torsh_code_lines_find(struct code_lines *lines, const uint64_t *words,
						uint32_t n, uint32_t *line)
{
	for (uint32_t i = 0; lines->layout.is_known && i < n; i++) {
		const struct code_object *code = code_of(lines, words[i]);
		struct python_lines table;

		if (!code)
			continue;
		table = (struct python_lines){.table = code->lines,
					      .n_bytes = code->n_lines,
					      .first_line = code->first_line};
		*line = code->n_lines
				? torsh_python_line(lines->layout.at.lines, &table,
						    (int32_t)(words[i] - code->begin - UNIT_BYTES))
				: 0;
		return code;
	}
	return NULL;
}
