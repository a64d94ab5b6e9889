/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The running frames of CPython (3.8 to 3.14, with the GIL) in the memory of a stopped process, and
 * the blocks that their variables lead to: local ones, cells of closures, and free ones.
 */
#ifndef TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_FRAMES_H
#define TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/reachability/block_index.h"
#include "tools/writer/reachability/python/python_layout.h"
#include "tools/writer/reachability/python/python_text.h"

struct python_frame {
	uint64_t address, code;
	uint64_t generator; /* that has a pointer to the frame; 0: none */
	uint64_t thread; /* pthread_self() of the thread that runs it, or its number */
};

struct python_variable {
	uint32_t frame;
	uint32_t number; /* among the frame's variables */
	uint32_t block;
};

/* Outermost frames first, of the thread that began first. */
struct python_frames {
	struct python_frame *frames;
	uint32_t n_frames;
	size_t frame_capacity;
	struct python_variable *variables; /* those with a block of the index */
	uint32_t n_variables;
	size_t variable_capacity;
};

/* Find them; free with torsh_python_frames_free. Without a layout there are none. */
void torsh_python_frames_find(struct python_frames *frames, const struct python_layout *layout,
			      struct python_types *types, const struct block_index *index);

/* Free them. */
void torsh_python_frames_free(struct python_frames *frames);

/* Read the name of the variable of that number in a frame, by the frame's address. */
bool torsh_python_variable(struct python_types *types, const struct python_layout *layout,
			   uint64_t frame, uint64_t number, char text[PYTHON_TEXT_BYTES]);

/* What a frame executes. */
struct python_place {
	/* its qualified name since 3.11; NULL: it can't be read. The caller frees both */
	char *function;
	char *file;
	uint32_t line; /* 0: not known */
};

/* Read it. */
void torsh_python_frame_place(struct python_place *place, struct python_types *types,
			      const struct python_layout *layout, uint64_t frame);

#endif
