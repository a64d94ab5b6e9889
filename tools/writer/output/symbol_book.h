/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A cache of the names found so far in a session, by file and address: a process tree of many short
 * programs, or many forked workers, needs the same names again and again.
 */
#ifndef TORSH_WRITER_OUTPUT_SYMBOL_BOOK_H
#define TORSH_WRITER_OUTPUT_SYMBOL_BOOK_H

#include "tools/writer/fold/program/code_table.h"

struct symbol_book;

struct symbol_name {
	const char *name; /* NULL: not found. Owned by the book */
	uint64_t start;
};

/* Create an empty book. */
struct symbol_book *torsh_book_create(void);

/* Free the book and its names. */
void torsh_book_destroy(struct symbol_book *book);

/*
 * Find the functions that cover n addresses (as in the program headers of the module's file, in any
 * order); reads the file for those that are not cached.
 */
void torsh_book_look_up(struct symbol_book *book, const struct code_module *module,
			const uint64_t *addresses, uint32_t n, struct symbol_name *names);

#endif
