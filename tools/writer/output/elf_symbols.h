/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Function names from a file's ELF symbol tables, for few addresses and possibly many symbols: the
 * tables are read once from start to end, and only the addresses are sorted.
 */
#ifndef TORSH_WRITER_OUTPUT_ELF_SYMBOLS_H
#define TORSH_WRITER_OUTPUT_ELF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/base/elf_file.h"

/* An address to look up; the other fields are zero before the call. */
struct elf_lookup {
	uint64_t address; /* as in the file's program headers */
	struct elf_symbol symbol; /* covers it; its name is valid while the file is mapped */
	char *name; /* NULL: not found. The caller frees it */
};

/*
 * Find the functions at the addresses, which are sorted, in the file at path. build_id (n_build_id
 * 0: unknown) must match the file's. Returns 0, -ESTALE if the file has changed, -ENOEXEC if it is
 * not a readable ELF file, or another -errno; on error no address has a name.
 */
int torsh_elf_find_functions(const char *path, const uint8_t *build_id, size_t n_build_id,
			     struct elf_lookup *lookups, size_t n_lookups);

#endif
