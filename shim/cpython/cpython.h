/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The CPython interpreter in this process, if there is one: which version, where it keeps what a
 * stack is read from, and the few functions that may be called from anywhere. Found when the first
 * stack goes through it; nothing is loaded for it, and no header of it is used.
 */
#ifndef TORSH_SHIM_CPYTHON_CPYTHON_H
#define TORSH_SHIM_CPYTHON_CPYTHON_H

#include <link.h>
#include <stdatomic.h>
#include <stdint.h>

/* What tells which frames of Python one native frame of the evaluation function executes. */
enum cpython_activations {
	CPYTHON_BY_CODE, /* one each: native frames within the function's code */
	CPYTHON_BY_CFRAME, /* a record in the native frame, linked from the thread state */
	CPYTHON_BY_FRAME, /* an entry in the chain of frames itself that lies in the native frame */
};

enum cpython_lines { CPYTHON_LNOTAB, CPYTHON_LINE_PAIRS, CPYTHON_LOCATIONS };

/* How a frame says where it is. */
enum cpython_instruction {
	CPYTHON_BYTES, /* int: offset in bytes */
	CPYTHON_UNITS, /* int: offset in code units */
	CPYTHON_POINTER, /* into the code */
};

/* Offsets in bytes; 0 is "there is none" where nothing else is said. */
struct cpython_layout {
	enum cpython_activations activations;
	enum cpython_lines lines;
	enum cpython_instruction instruction;
	uint16_t tstate_frame; /* the innermost frame; 0: that of the innermost cframe */
	uint16_t tstate_cframe, tstate_thread_id;
	uint16_t cframe_frame; /* may be 0 */
	uint16_t cframe_previous;
	uint16_t frame_previous;
	uint16_t frame_code; /* may be 0 */
	uint16_t frame_instruction;
	uint16_t frame_owner; /* char: CPYTHON_OWNER_INTERPRETER and above are no functions */
	uint16_t frame_is_entry; /* bool: the outermost of its activation */
	uint16_t frame_tlbc; /* int: which of the code's copies of the bytecode it executes */
	uint16_t code_first_line, code_file;
	uint16_t code_name; /* qualified where there is that */
	uint16_t code_lines, code_bytes, code_tlbc;
	uint16_t object_type, type_dealloc;
	/* str; the latter two: where its characters are */
	uint16_t text_length, text_state, text_ascii, text_other;
	uint16_t bytes_length, bytes_data;
};

#define CPYTHON_OWNER_INTERPRETER 3

struct cpython {
	uint32_t version; /* major << 8 | minor */
	int is_free_threaded;
	struct cpython_layout at;
	void *(*this_thread)(void); /* PyGILState_GetThisThreadState */
	int (*is_finalizing)(void);
	/*
	 * Before 3.12 a thread that runs a second interpreter finds only its first thread state by
	 * this_thread: then the one that holds the lock may be its own. NULL from 3.12 on.
	 */
	void *(*holder)(void), *(*first_interpreter)(void), *(*main_interpreter)(void);
	uintptr_t code_type;
	uintptr_t eval_start, eval_bytes; /* the evaluation function's code */
};

extern struct cpython torsh_cpython; /* complete when torsh_cpython_is_there */
extern _Atomic int torsh_cpython_is_there;

enum cpython_answer {
	CPYTHON_NONE, /* this is no interpreter, or another one is there already */
	CPYTHON_FOUND,
	CPYTHON_UNKNOWN, /* of a version that isn't known: torsh_cpython.version */
};

/* Is this object, which has been relocated, the interpreter? Any thread, also within a hook. */
enum cpython_answer torsh_cpython_consider(const struct link_map *map);

/*
 * Code objects die, and others are made at their addresses. Every death moves torsh_cpython_deaths,
 * and the version of its address, so that what was remembered by address can be known to be void.
 */
#define CPYTHON_CODE_VERSIONS 8192u

extern _Atomic uint64_t torsh_cpython_deaths;
extern _Atomic uint32_t torsh_cpython_code_versions[CPYTHON_CODE_VERSIONS];

static inline _Atomic uint32_t *torsh_cpython_version_of(uintptr_t code)
{
	return &torsh_cpython_code_versions[(code >> 4 ^ code >> 17) % CPYTHON_CODE_VERSIONS];
}

static inline uint32_t torsh_cpython_code_version(uintptr_t code)
{
	return atomic_load_explicit(torsh_cpython_version_of(code), memory_order_relaxed);
}

#endif
