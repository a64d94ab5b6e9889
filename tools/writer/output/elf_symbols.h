/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Function names out of a file's ELF symbol tables, for few addresses of perhaps very many symbols:
 * the tables are read once from front to back, nothing is sorted but the addresses.
 */
#ifndef TORSH_WRITER_OUTPUT_ELF_SYMBOLS_H
#define TORSH_WRITER_OUTPUT_ELF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/base/elf_file.h"

/* An address to look up; the rest is zeros before the call. */
struct elf_lookup {
	uint64_t address; /* as in the file's program headers */
	struct elf_symbol symbol; /* of the function that covers it; its name goes with the file */
	char *name; /* NULL: no function does. The caller frees it */
};

/*
 * Find the functions at the addresses, which are sorted, in the file at path. build_id (n_build_id
 * 0: not known) must be the file's own. Returns 0, -ESTALE when the file is another one by now,
 * -ENOEXEC when it can't be read as ELF, or another -errno; then no address has a name.
 */
int torsh_elf_find_functions(const char *path, const uint8_t *build_id, size_t n_build_id,
			     struct elf_lookup *lookups, size_t n_lookups);

#endif
