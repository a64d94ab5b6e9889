/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/python/python_frames.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "agent/wire/cpython/python_lines.h"
#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

/* Of what may be garbage: a process that ends unlinks its threads' states, for example. */
#define INTERPRETERS_MAX 64u
#define THREADS_MAX 16384u
#define FRAMES_MAX 65536u
#define VARIABLES_MAX 4096u /* of a frame */
#define LINE_TABLE_BYTES (1u << 20)
#define OBJECT_BITS (~UINT64_C(7)) /* references carry low tag bits from 3.14 on */
#define NO_OBJECT 3u /* of these bits, both set: a number instead */
#define LENGTH 16u /* offset in PyVarObject; the items of a tuple follow */
#define ITEMS 24u

static uint64_t word_at(const struct python_types *types, uint64_t address)
{
	return torsh_memory_word(types->reader, address);
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint64_t code_of(const struct python_types *types, const struct python_layout *layout,
			uint64_t frame)
{
	return word_at(types, frame + layout->at.frame_code) & OBJECT_BITS;
}

static bool is_code(struct python_types *types, uint64_t object)
{
	uint32_t type =
		object ? torsh_python_types_at(types, word_at(types, object + 8)) : NO_PYTHON_TYPE;

	return type != NO_PYTHON_TYPE && !strcmp(types->items[type]->name, "code");
}

/* The tuples of a code object's names, in the order of a frame's variables. */
static uint32_t tuples_of(uint64_t *tuples, uint64_t *lengths, const struct python_types *types,
			  const struct python_layout *layout, uint64_t code)
{
	const uint16_t offsets[] = {layout->at.code_variables, layout->at.code_cells,
				    layout->at.code_free};
	uint32_t n = 0;

	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets) && offsets[i]; i++) {
		tuples[n] = word_at(types, code + offsets[i]);
		lengths[n] = tuples[n] ? word_at(types, tuples[n] + LENGTH) : 0;
		if (lengths[n] > VARIABLES_MAX)
			return 0;
		n++;
	}
	return n;
}

bool torsh_python_variable(struct python_types *types, const struct python_layout *layout,
			   uint64_t frame, uint64_t number, char text[PYTHON_TEXT_BYTES])
{
	uint64_t tuples[3], lengths[3], code = code_of(types, layout, frame);
	uint32_t n = is_code(types, code) ? tuples_of(tuples, lengths, types, layout, code) : 0;

	*text = '\0';
	for (uint32_t i = 0; i < n; number -= lengths[i++]) {
		if (number < lengths[i])
			return torsh_python_str(
				types, word_at(types, tuples[i] + ITEMS + number * 8), text);
	}
	return false;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void add_variables(struct python_frames *frames, uint32_t frame,
			  const struct python_layout *layout, struct python_types *types,
			  const struct block_index *index)
{
	uint64_t tuples[3], lengths[3], words[VARIABLES_MAX], n_words = 0;
	uint32_t n = tuples_of(tuples, lengths, types, layout, frames->frames[frame].code);

	for (uint32_t i = 0; i < n; i++)
		n_words += lengths[i];
	if (!n_words || n_words > VARIABLES_MAX ||
	    torsh_memory_copy(types->reader,
			      frames->frames[frame].address + layout->at.frame_locals, words,
			      n_words * sizeof(*words)) != n_words * sizeof(*words))
		return;
	for (uint64_t i = 0; i < n_words; i++) {
		uint32_t block = (words[i] & NO_OBJECT) == NO_OBJECT
					 ? NO_BLOCK
					 : torsh_block_index_find(index, words[i] & OBJECT_BITS);

		if (block == NO_BLOCK)
			continue;
		frames->variables =
			torsh_array_reserve(frames->variables, frames->n_variables,
					    &frames->variable_capacity, sizeof(*frames->variables));
		frames->variables[frames->n_variables++] = (struct python_variable){
			.frame = frame, .number = (uint32_t)i, .block = block};
	}
}

static uint64_t innermost_of(const struct python_types *types, const struct python_layout *layout,
			     uint64_t state)
{
	uint64_t record;

	if (layout->at.tstate_frame)
		return word_at(types, state + layout->at.tstate_frame);
	record = word_at(types, state + layout->at.tstate_cframe);
	return record ? word_at(types, record + layout->at.cframe_frame) : 0;
}

/* Add the frames of a thread, outermost first. */
static void add_thread(struct python_frames *frames, const struct python_layout *layout,
		       struct python_types *types, uint64_t state)
{
	bool has_native = layout->at.tstate_native_id != 0;
	uint64_t thread = word_at(types, state + (has_native ? layout->at.tstate_native_id
							     : layout->at.tstate_thread_id));
	uint16_t generator = layout->at.frame_generator;
	uint32_t first = frames->n_frames;

	for (uint64_t frame = innermost_of(types, layout, state);
	     frame && frames->n_frames < FRAMES_MAX;
	     frame = word_at(types, frame + layout->at.frame_previous)) {
		uint64_t code = code_of(types, layout, frame);

		/* The interpreter's own frames separate activations. */
		if (!is_code(types, code))
			continue;
		frames->frames =
			torsh_array_reserve(frames->frames, frames->n_frames,
					    &frames->frame_capacity, sizeof(*frames->frames));
		frames->frames[frames->n_frames++] = (struct python_frame){
			.address = frame,
			.code = code,
			.generator = generator ? word_at(types, frame + generator) : 0,
			.thread = thread,
		};
	}
	for (uint32_t i = first, k = frames->n_frames; i + 1 < k; i++) {
		struct python_frame other = frames->frames[--k];

		frames->frames[k] = frames->frames[i];
		frames->frames[i] = other;
	}
}

void torsh_python_frames_find(struct python_frames *frames, const struct python_layout *layout,
			      struct python_types *types, const struct block_index *index)
{
	uint64_t *states = NULL, interpreter;
	size_t n = 0, capacity = 0;

	*frames = (struct python_frames){0};
	if (!layout->is_known)
		return;
	interpreter = word_at(types, layout->runtime + layout->at.runtime_interpreters);
	for (uint32_t i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		for (uint64_t state = word_at(types, interpreter + layout->at.interpreter_threads);
		     state && n < THREADS_MAX;
		     state = word_at(types, state + layout->at.tstate_next)) {
			states = torsh_array_reserve(states, n, &capacity, sizeof(*states));
			states[n++] = state;
		}
		interpreter = word_at(types, interpreter + layout->at.interpreter_next);
	}
	/* The lists begin with the newest. */
	while (n)
		add_thread(frames, layout, types, states[--n]);
	free(states);
	for (uint32_t i = 0; i < frames->n_frames; i++)
		add_variables(frames, i, layout, types, index);
}

void torsh_python_frames_free(struct python_frames *frames)
{
	free(frames->frames);
	free(frames->variables);
	*frames = (struct python_frames){0};
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int32_t offset_of(const struct python_types *types, const struct python_layout *layout,
			 uint64_t frame, uint64_t code)
{
	uint64_t word = word_at(types, frame + layout->at.frame_instruction);
	uint64_t start = code + layout->at.code_bytes;

	switch (layout->at.instruction) {
	case CPYTHON_BYTES:
		return (int32_t)word;
	case CPYTHON_UNITS:
		return (int32_t)word * 2;
	default:
		return word < start || word - start > INT32_MAX ? -1 : (int32_t)(word - start);
	}
}

static uint32_t line_of(const struct python_types *types, const struct python_layout *layout,
			uint64_t frame, uint64_t code)
{
	uint64_t table = word_at(types, code + layout->at.code_lines);
	uint64_t n = word_at(types, table + layout->at.bytes_length);
	struct python_lines lines = {
		.first_line = (uint32_t)word_at(types, code + layout->at.code_first_line)};
	uint8_t *bytes;
	uint32_t line = 0;

	if (!table || !n || n > LINE_TABLE_BYTES)
		return 0;
	bytes = torsh_memory_new(n, 1);
	lines.table = bytes;
	lines.n_bytes = (uint32_t)n;
	if (torsh_memory_copy(types->reader, table + layout->at.bytes_data, bytes, n) == n)
		line = torsh_python_line(layout->at.lines, &lines,
					 offset_of(types, layout, frame, code));
	free(bytes);
	return line;
}

void torsh_python_frame_place(struct python_place *place, struct python_types *types,
			      const struct python_layout *layout, uint64_t frame)
{
	uint64_t code = code_of(types, layout, frame);

	*place = (struct python_place){
		.function =
			torsh_python_long_str(types, word_at(types, code + layout->at.code_name)),
		.file = torsh_python_long_str(types, word_at(types, code + layout->at.code_file)),
		.line = line_of(types, layout, frame, code),
	};
}
