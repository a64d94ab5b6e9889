/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The Python frames of another process's threads (CPython 3.8 to 3.15 with the GIL), read from its
 * memory while it runs: what changes meanwhile is read as it was, or left out.
 */
#ifndef TORSH_LIVE_STACKS_PYTHON_STACKS_H
#define TORSH_LIVE_STACKS_PYTHON_STACKS_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire/cpython/cpython_layout.h"

#define PYTHON_FRAMES_MAX 512u /* of a thread */
#define PYTHON_NAME_BYTES 256u

struct python_process {
	uint32_t pid;
	bool is_known; /* false: no interpreter, or another version */
	uint64_t runtime, code_type; /* addresses of _PyRuntime and PyCode_Type */
	struct cpython_layout at;
};

struct python_stack_frame {
	char function[PYTHON_NAME_BYTES], file[PYTHON_NAME_BYTES]; /* "" where they can't be read */
	uint32_t line; /* 0: not known */
	/* the outermost that one native frame of the evaluation function executes */
	bool ends_activation;
};

/* Find the interpreter among the modules. */
void torsh_python_process_find(struct python_process *process, uint32_t pid, Dwfl *dwfl);

/*
 * Read the frames of the thread, innermost first, if it runs Python. thread_pointer: of the thread,
 * 0 if it is not known, for versions that do not have the kernel's number. Returns their number.
 */
size_t torsh_python_frames_take(const struct python_process *process, uint32_t tid,
				uint64_t thread_pointer,
				struct python_stack_frame frames[PYTHON_FRAMES_MAX]);

#endif
