/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/python/python_code.h"

#include <stdbool.h>
#include <string.h>

#include "agent/modules/memory_probe.h"
#include "agent/modules/module_registry.h"
#include "agent/process/callbacks.h"
#include "agent/process/process.h"
#include "agent/producer/key_map.h"
#include "agent/producer/label.h"
#include "shim/cpython/cpython.h"

/* The kind, from the state of a str. */
#define TEXT_KIND(state) ((state) >> 2 & 7u)
#define TEXT_IS_COMPACT(state) ((state) >> 5 & 1u)
#define TEXT_IS_ASCII(state) ((state) >> 6 & 1u)

static struct key_map codes; /* hash of names and line -> index + 1 */
static struct key_map lines; /* code << 32 | line + 1 -> id + 1 */

static uintptr_t read_word(uintptr_t object, uint16_t offset)
{
	return *(const uintptr_t *)(object + offset);
}

static uint32_t read_u32(uintptr_t object, uint16_t offset)
{
	return *(const uint32_t *)(object + offset);
}

/* ---- readable pages ---- */

static bool is_page_readable(struct python_codes *codes, uintptr_t page)
{
	for (uint32_t i = 0; i < PYTHON_N_PAGES; i++) {
		if (codes->pages[i] == page)
			return true;
	}
	if (!torsh_probe(page))
		return false;
	codes->pages[codes->oldest_page++ % PYTHON_N_PAGES] = page;
	return true;
}

/*
 * Whether n bytes from address on can be read; they span few pages. A code object and its names
 * were made one after the other, and usually share pages.
 */
static bool is_readable(struct python_codes *codes, uintptr_t address, size_t n)
{
	uintptr_t page = torsh_probe_page(address), last = torsh_probe_page(address + n - 1);

	/* The first page is never mapped, and stands for no page. */
	if (!page || last < page)
		return false;
	while (is_page_readable(codes, page)) {
		if (page == last)
			return true;
		page += PROBE_PAGE_BYTES;
	}
	return false;
}

/* ---- texts ---- */

static size_t put_character(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | (c >> 18 & 7));
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

#define MOST_UTF8_BYTES 4

static uint32_t read_character(uintptr_t data, uint32_t kind, size_t i)
{
	switch (kind) {
	case 1:
		return ((const uint8_t *)data)[i];
	case 2:
		return ((const uint16_t *)data)[i];
	default:
		return ((const uint32_t *)data)[i];
	}
}

/* Copy a str as UTF-8, cut at the end of out; returns its bytes, 0 also if it can't be read. */
static size_t read_text(struct python_codes *codes, uintptr_t text, char *out, size_t n_out)
{
	const struct cpython_layout *at = &torsh_cpython.at;
	size_t n = 0, length;
	uint32_t state, kind;
	uintptr_t data;

	if (!is_readable(codes, text, at->text_other))
		return 0;
	length = read_word(text, at->text_length);
	state = read_u32(text, at->text_state);
	/*
	 * In free-threaded builds the two bits before the kind have a byte of their own. A kind is
	 * never 0.
	 */
	if (!TEXT_KIND(state))
		state = state >> 8 << 2;
	kind = TEXT_KIND(state);
	if (!TEXT_IS_COMPACT(state) || (kind != 1 && kind != 2 && kind != 4))
		return 0;
	if (length > n_out)
		length = n_out;
	data = text + (TEXT_IS_ASCII(state) ? at->text_ascii : at->text_other);
	if (!length || !is_readable(codes, data, length * kind))
		return 0;
	for (size_t i = 0; i < length && n + MOST_UTF8_BYTES <= n_out; i++)
		n += put_character(out + n, read_character(data, kind, i));
	return n;
}

/* ---- codes and lines ---- */

static bool is_same_code(const struct channel_code *code, struct channel_text name,
			 struct channel_text file, uint32_t first_line)
{
	return code->name.offset == name.offset && code->name.length == name.length &&
	       code->file.offset == file.offset && code->file.length == file.length &&
	       code->first_line == first_line;
}

/* Code objects with the same names and line are one function. */
static uint32_t find_code(uintptr_t code, struct python_codes *texts)
{
	const struct cpython_layout *at = &torsh_cpython.at;
	struct channel *channel = &torsh_process->channel;
	size_t n_name =
		read_text(texts, read_word(code, at->code_name), texts->name, sizeof(texts->name));
	size_t n_file =
		read_text(texts, read_word(code, at->code_file), texts->file, sizeof(texts->file));
	struct channel_text name = torsh_label_text(texts->name, n_name);
	struct channel_text file = torsh_label_text(texts->file, n_file);
	uint32_t first_line = read_u32(code, at->code_first_line), index;
	uint64_t key = torsh_key_map_mix((uint64_t)name.offset << 32 | file.offset, first_line);
	uint64_t value = torsh_key_map_find(&codes, key);
	const struct channel_code *known =
		value ? torsh_channel_code(channel, (uint32_t)value - 1) : NULL;

	if (known && is_same_code(known, name, file, first_line))
		return (uint32_t)value - 1;
	index = torsh_registry_add_code(name, file, first_line);
	if (!value && index != REGISTRY_NO_CODE)
		torsh_key_map_add(&codes, key, (uint64_t)index + 1);
	return index;
}

/* The offset of a pointer into a code's bytes, from their start. */
static int32_t offset_of_pointer(uintptr_t frame, uintptr_t code, uintptr_t pointer)
{
	const struct cpython_layout *at = &torsh_cpython.at;
	uintptr_t start = code + at->code_bytes;

	/*
	 * A free-threaded 3.14 gives each thread a copy of the bytecode: an array of pointers
	 * follows its length.
	 */
	if (at->frame_tlbc) {
		uintptr_t copies = read_word(code, at->code_tlbc);
		size_t which = read_u32(frame, at->frame_tlbc);

		if (copies && which < *(const size_t *)copies)
			start = ((const uintptr_t *)copies)[1 + which];
	}
	return pointer < start ? -1 : (int32_t)(pointer - start);
}

static int32_t offset_of(uintptr_t frame, uintptr_t code, uint64_t instruction)
{
	switch (torsh_cpython.at.instruction) {
	case CPYTHON_BYTES:
		return (int32_t)instruction;
	case CPYTHON_UNITS:
		return (int32_t)instruction * 2;
	default:
		return offset_of_pointer(frame, code, instruction);
	}
}

/*
 * The interpreter's own code, e.g. the cleanup after __init__, has no line and the same text for
 * all names.
 */
static bool is_internal(uintptr_t code)
{
	const struct cpython_layout *at = &torsh_cpython.at;

	return !read_u32(code, at->code_first_line) &&
	       read_word(code, at->code_name) == read_word(code, at->code_file);
}

/* Fill *known; returns false if it isn't a code object, or has no names of its own. */
static bool read_code(uintptr_t code, struct python_codes *texts, struct python_code *known)
{
	const struct cpython_layout *at = &torsh_cpython.at;
	uintptr_t table;

	known->address = 0;
	/* Pages may have been unmapped since the last code was read. */
	memset(texts->pages, 0, sizeof(texts->pages));
	if (!code || !is_readable(texts, code, at->code_lines + sizeof(uintptr_t)) ||
	    read_word(code, at->object_type) != torsh_cpython.code_type || is_internal(code))
		return false;
	known->index = find_code(code, texts);
	known->lines = (struct python_lines){.first_line = read_u32(code, at->code_first_line)};
	table = read_word(code, at->code_lines);
	if (is_readable(texts, table, at->bytes_data)) {
		known->lines.table = (const uint8_t *)table + at->bytes_data;
		known->lines.n_bytes = (uint32_t)read_word(table, at->bytes_length);
	}
	if (known->index != REGISTRY_NO_CODE)
		known->address = code;
	return true;
}

static uint32_t id_of_line(uint32_t index, uint32_t line)
{
	uint64_t key = (uint64_t)index << 32 | (line + 1), value = torsh_key_map_find(&lines, key);
	uint32_t id;

	if (value)
		return (uint32_t)value - 1;
	id = torsh_registry_add_line(index, line);
	return id == REGISTRY_FULL ? id
				   : (uint32_t)torsh_key_map_add(&lines, key, (uint64_t)id + 1) - 1;
}

uint32_t torsh_python_code_id(uintptr_t frame, uintptr_t code, uint32_t version,
			      uint64_t instruction, struct python_codes *cache)
{
	struct python_code *known = &cache->cached[(code >> 4 ^ code >> 14) % PYTHON_N_CODES];
	uint32_t line;

	if (!code || known->address != code || known->version != version) {
		if (!read_code(code, cache, known))
			return PYTHON_NO_ID;
		known->version = version;
	}
	torsh_callbacks.python_runs();
	if (known->index == REGISTRY_NO_CODE)
		return REGISTRY_FULL;
	line = known->lines.table ? torsh_python_line(torsh_cpython.at.lines, &known->lines,
						      offset_of(frame, code, instruction))
				  : known->lines.first_line;
	return id_of_line(known->index, line);
}
