/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The function symbols of a file, by address. The table of a large library has a million entries
 * and 100 MB of names: entries take 16 bytes each, and only names that are looked up are read.
 */
#ifndef TORSH_SYMBOLS_SYMBOL_TABLE_H
#define TORSH_SYMBOLS_SYMBOL_TABLE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/base/containers/intern.h"
#include "tools/base/elf_file.h"

struct symbol_entry {
	uint64_t start;
	uint32_t n_bytes; /* UINT32_MAX: as many or more */
	uint32_t
		name; /* offset in the file's names, or the symbol's number in the module's table */
};

struct symbol_table {
	bool is_read;
	struct symbol_entry *items; /* by start and size */
	size_t n, room;
	Dwfl_Module *module; /* whose table they are; NULL: they were read from the file itself */
	int fd; /* of that file */
	uint64_t names_at, n_name_bytes; /* its names */
	struct intern names; /* those that were looked up */
	struct elf_symbol found; /* by the last look-up */
};

/*
 * Read the symbols of a module whose file is at path: from its .symtab, or where it has none from
 * the tables that libdwfl finds. bias is the module's in libdwfl's address space.
 */
void torsh_symbol_table_read(struct symbol_table *table, Dwfl_Module *module, const char *path,
			     uint64_t bias);

/*
 * Returns the symbol that covers the address, or NULL; its name stays, the rest until the next
 * look-up. Of several it is the one that torsh_elf_compare_symbols puts last.
 */
const struct elf_symbol *torsh_symbol_table_find(struct symbol_table *table, uint64_t address);

/* Free the table. */
void torsh_symbol_table_free(struct symbol_table *table);

#endif
