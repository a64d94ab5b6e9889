/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where CPython keeps what frames and their lines are read from, by version: the target's side
 * reads its own memory, the writer that of another process.
 */
#ifndef TORSH_AGENT_WIRE_CPYTHON_CPYTHON_LAYOUT_H
#define TORSH_AGENT_WIRE_CPYTHON_CPYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* How to find the Python frames that one native frame of the evaluation function executes. */
enum cpython_activations {
	CPYTHON_BY_CODE, /* one each: native frames within the function's code */
	CPYTHON_BY_CFRAME, /* a record in the native frame, linked from the thread state */
	CPYTHON_BY_FRAME, /* an entry in the chain of frames itself that lies in the native frame */
};

enum cpython_lines { CPYTHON_LNOTAB, CPYTHON_LINE_PAIRS, CPYTHON_LOCATIONS };

/* The form of a frame's current instruction. */
enum cpython_instruction {
	CPYTHON_BYTES, /* int: offset in bytes */
	CPYTHON_UNITS, /* int: offset in code units */
	CPYTHON_POINTER, /* into the code */
};

/* Offsets in bytes; 0 means absent unless a comment gives another meaning. */
struct cpython_layout {
	enum cpython_activations activations;
	enum cpython_lines lines;
	enum cpython_instruction instruction;
	uint16_t runtime_interpreters, interpreter_next; /* the latter may be 0 */
	uint16_t interpreter_threads, tstate_next;
	uint16_t tstate_frame; /* the innermost frame; 0: that of the innermost cframe */
	uint16_t tstate_cframe, tstate_thread_id;
	uint16_t tstate_native_id; /* the kernel's; 0: only pthread_self is there */
	uint16_t cframe_frame; /* may be 0 */
	uint16_t cframe_previous;
	uint16_t frame_previous;
	uint16_t frame_code; /* may be 0 */
	uint16_t frame_instruction;
	uint16_t frame_locals; /* local variables, then cells and free ones, then its stack */
	uint16_t frame_owner; /* char: CPYTHON_OWNER_INTERPRETER and above are no functions */
	uint16_t frame_is_entry; /* bool: the outermost frame of its activation */
	uint16_t frame_tlbc; /* int: the number of the bytecode copy that it executes */
	uint16_t frame_generator; /* a generator whose frame it is; 0: that has it inside */
	uint16_t generator_frame; /* in a generator: its frame; 0: it has a pointer to one */
	uint16_t frame_object_frame; /* a frame object's pointer to its frame; 0: it is the frame */
	uint16_t code_first_line, code_file;
	uint16_t code_name; /* the qualified name if there is one */
	uint16_t code_lines, code_bytes, code_tlbc;
	/* tuples of the variables' names; the last two 0: the first has them all */
	uint16_t code_variables, code_cells, code_free;
	uint16_t object_type, type_dealloc;
	/* str; the last two: the offset of its characters */
	uint16_t text_length, text_state, text_ascii, text_other;
	uint16_t bytes_length, bytes_data;
};

#define CPYTHON_OWNER_INTERPRETER 3
#define CPYTHON_FIRST_VERSION 0x0308u /* major << 8 | minor */
#define CPYTHON_FIRST_PUBLISHED 0x030du /* the first version with _Py_DebugOffsets */
#define CPYTHON_LAST_PUBLISHED 0x030fu

/* PY_VERSION_HEX: major, minor, micro and more, a byte each. */
#define CPYTHON_VERSION_OF_HEX(hex) ((uint32_t)((hex) >> 16))

/* What _PyRuntime begins with from CPYTHON_FIRST_PUBLISHED on. */
struct cpython_published {
	char cookie[8];
	uint64_t version; /* PY_VERSION_HEX */
	uint64_t is_free_threaded;
	uint64_t offsets[];
};

#define CPYTHON_PUBLISHED_BYTES 2048u /* at most: of all of it that is read */

/*
 * Fill the layout of a version before CPYTHON_FIRST_PUBLISHED; returns false if that is not known.
 */
bool torsh_cpython_layout_of(struct cpython_layout *at, uint32_t version);

/*
 * Fill the layout that an interpreter of this version publishes; returns false if this is none.
 */
bool torsh_cpython_layout_read(struct cpython_layout *at, uint32_t version,
			       const struct cpython_published *published);

#endif
