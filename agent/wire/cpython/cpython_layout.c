/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/wire/cpython/cpython_layout.h"

#include <string.h>

#define COOKIE "xdebugpy"
/* Common to all rows of the table: objects have a head of two words, and a length as the third. */
#define OBJECTS .object_type = 8, .type_dealloc = 48, .bytes_length = 16, .bytes_data = 32
/* A str with a second form of its characters, up to 3.11. */
#define TEXT_WITH_WSTR .text_length = 16, .text_state = 32, .text_ascii = 48, .text_other = 72

static const struct layout_of_version {
	uint32_t version;
	struct cpython_layout layout;
} layouts[] = {
#define CPYTHON(number, ...) {.version = (number), .layout = {__VA_ARGS__}},
#include "agent/wire/cpython/cpython.def"
#undef CPYTHON
};

enum offset {
#define OFFSET(since, name) OFFSET_##name,
#include "agent/wire/cpython/cpython_offsets.def"
#undef OFFSET
	N_OFFSETS
};

static const uint16_t offset_since[N_OFFSETS] = {
#define OFFSET(since, name) [OFFSET_##name] = (since),
#include "agent/wire/cpython/cpython_offsets.def"
#undef OFFSET
};

_Static_assert(sizeof(struct cpython_published) + N_OFFSETS * sizeof(uint64_t) <=
		       CPYTHON_PUBLISHED_BYTES,
	       "all offsets are read");

/* A non-ASCII str has the length and pointer of its UTF-8 form before its characters. */
#define UTF8_CACHE_BYTES 16
/* A type has a name, two sizes, then the destructor. */
#define TYPE_NAME_TO_DEALLOC 24
/* PyGenObject and PyFrameObject, 3.13 to 3.15: not among the first words that are published. */
#define GENERATOR_FRAME 72
#define FRAME_OBJECT_FRAME 24

bool torsh_cpython_layout_of(struct cpython_layout *at, uint32_t version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		if (layouts[i].version == version) {
			*at = layouts[i].layout;
			return true;
		}
	}
	return false;
}

/* What only the writer reads: the way to all frames, and what is in them. */
static void add_variables(struct cpython_layout *at, const uint16_t *is)
{
	at->runtime_interpreters = is[OFFSET_runtime_interpreters_head];
	at->interpreter_next = is[OFFSET_interpreter_next];
	at->interpreter_threads = is[OFFSET_interpreter_threads_head];
	at->tstate_next = is[OFFSET_tstate_next];
	at->tstate_native_id = is[OFFSET_tstate_native_thread_id];
	at->frame_locals = is[OFFSET_frame_localsplus];
	at->generator_frame = GENERATOR_FRAME;
	at->frame_object_frame = FRAME_OBJECT_FRAME;
	at->code_variables = is[OFFSET_code_localsplusnames];
}

/*
 * Not inlined: the layout is assembled on the stack, which is released before symbols are looked
 * up.
 */
__attribute__((noinline)) bool torsh_cpython_layout_read(struct cpython_layout *at,
							 uint32_t version,
							 const struct cpython_published *published)
{
	uint16_t is[N_OFFSETS] = {0};
	uint32_t n = 0;

	if (memcmp(published->cookie, COOKIE, sizeof(published->cookie)) ||
	    CPYTHON_VERSION_OF_HEX(published->version) != version)
		return false;
	for (uint32_t i = 0; i < N_OFFSETS; i++) {
		if (offset_since[i] <= version)
			is[i] = (uint16_t)published->offsets[n++];
	}
	*at = (struct cpython_layout){
		.activations = CPYTHON_BY_FRAME,
		.lines = CPYTHON_LOCATIONS,
		.instruction = CPYTHON_POINTER,
		.tstate_frame = is[OFFSET_tstate_current_frame],
		.frame_previous = is[OFFSET_frame_previous],
		.frame_code = is[OFFSET_frame_executable],
		.frame_instruction = is[OFFSET_frame_instr_ptr],
		.frame_owner = is[OFFSET_frame_owner],
		.frame_tlbc = published->is_free_threaded ? is[OFFSET_frame_tlbc_index] : 0,
		.code_first_line = is[OFFSET_code_firstlineno],
		.code_file = is[OFFSET_code_filename],
		.code_name = is[OFFSET_code_qualname],
		.code_lines = is[OFFSET_code_linetable],
		.code_bytes = is[OFFSET_code_adaptive],
		.code_tlbc = published->is_free_threaded ? is[OFFSET_code_tlbc] : 0,
		.object_type = is[OFFSET_object_type],
		.type_dealloc = (uint16_t)(is[OFFSET_type_name] + TYPE_NAME_TO_DEALLOC),
		.text_length = is[OFFSET_unicode_length],
		.text_state = is[OFFSET_unicode_state],
		.text_ascii = is[OFFSET_unicode_ascii_size],
		.text_other = (uint16_t)(is[OFFSET_unicode_ascii_size] + UTF8_CACHE_BYTES),
		.bytes_length = is[OFFSET_bytes_length],
		.bytes_data = is[OFFSET_bytes_data],
	};
	add_variables(at, is);
	return true;
}
