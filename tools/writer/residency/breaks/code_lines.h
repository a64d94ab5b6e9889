/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which line of Python a thread executed, from words of its registers and its stack at one moment:
 * the interpreter (3.11 to 3.14) has the address of the next instruction among them, and that lies
 * inside of a code object. Nothing of the moment is read from memory, only what code objects have
 * for as long as they live.
 */
#ifndef TORSH_WRITER_RESIDENCY_BREAKS_CODE_LINES_H
#define TORSH_WRITER_RESIDENCY_BREAKS_CODE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/writer/reachability/python/python_layout.h"
#include "tools/writer/reachability/python/python_types.h"

#define MISSES 4096u

struct code_object {
	uint64_t begin, end; /* of its instructions */
	char *function, *file; /* NULL: can't be read */
	uint32_t first_line;
	uint8_t *lines;
	uint32_t n_lines; /* bytes */
};

struct code_lines {
	struct python_layout layout;
	pid_t pid;
	struct code_object *codes; /* by address */
	uint32_t n;
	size_t capacity;
	uint64_t misses[MISSES]; /* words that are in no code object, by hash */
	uint32_t n_looks; /* at memory, for such words */
	bool is_open; /* types and reader, during one search */
	struct memory_reader reader;
	struct python_types types;
};

/* Begin for a process whose interpreter is there; the layout of another one leaves all unknown. */
void torsh_code_lines_create(struct code_lines *lines, pid_t pid,
			     const struct python_layout *layout);

/* Free all of it. */
void torsh_code_lines_destroy(struct code_lines *lines);

/*
 * Returns the code object of the first of these words that is the address of an instruction, and
 * sets its line (0: not known). NULL if there is none. Valid until the next call.
 */
const struct code_object *torsh_code_lines_find(struct code_lines *lines, const uint64_t *words,
						uint32_t n, uint32_t *line);

/* The memory that was read may change: read it anew when it is needed next. */
void torsh_code_lines_settle(struct code_lines *lines);

#endif
