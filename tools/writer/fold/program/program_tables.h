/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The tables that processes of one program share: its code, and the stacks. What a process did is
 * its own. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_FOLD_PROGRAM_PROGRAM_TABLES_H
#define TORSH_WRITER_FOLD_PROGRAM_PROGRAM_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/writer/fold/program/attributed_frame.h"
#include "tools/writer/fold/program/code_table.h"
#include "tools/writer/fold/program/stack_table.h"

/* How many rows of the tables are in the recording. */
struct tables_written {
	uint32_t n_modules, n_functions, n_addresses, n_stacks;
};

struct program_tables {
	struct program_tables_set *set; /* that it is in; NULL: none */
	char *program; /* NULL: in no set */
	uint32_t owner; /* number of the process that had them first: their rows are under it */
	uint32_t n_users; /* processes */
	struct code_table code;
	struct stack_table stacks;
	struct attributed_frames attributed; /* once a client has requested them */
	struct tables_written written;
	bool *is_named; /* by address: its name was looked up; n_is_named of them */
	size_t n_is_named;
};

/* The tables of a session's processes that have not ended. */
struct program_tables_set {
	struct program_tables **items;
	uint32_t n;
	size_t capacity;
};

/* Returns new tables without users, in no set. */
struct program_tables *torsh_program_tables_create(uint32_t owner);

/*
 * Returns the tables for a process with that number that runs the program: those that are there
 * unless they are very large, so that what ended processes left in them is bounded, else new ones.
 */
struct program_tables *torsh_program_tables_find(struct program_tables_set *set,
						 const char *program, uint32_t process);

/* The process uses the tables. */
void torsh_program_tables_join(struct program_tables *tables);

/* It does no more: free them after the last one. */
void torsh_program_tables_leave(struct program_tables *tables);

/* Free the set, which must be empty. */
void torsh_program_tables_set_destroy(struct program_tables_set *set);

#endif
