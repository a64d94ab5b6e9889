/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Function names out of a file's ELF symbol tables, for few addresses of perhaps very many symbols:
 * the tables are read once from front to back, nothing is sorted but the addresses.
 */
#ifndef TORSH_WRITER_OUTPUT_ELF_SYMBOLS_H
#define TORSH_WRITER_OUTPUT_ELF_SYMBOLS_H

#include <stdbool.h>
#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

/* An address to look up. */
struct elf_lookup {
	uint64_t address; /* as in the file's program headers */
	uint64_t start, n_bytes; /* of the function that covers it */
	char *name; /* NULL: no function does. The caller frees it */
};

/*
 * Find the functions at the addresses, which are sorted, in the file at path. build_id (n_build_id
 * 0: not known) must be the file's own. Returns 0, -ESTALE when the file is another one by now,
 * -ENOEXEC when it can't be read as ELF, or another -errno; then no address has a name.
 */
int torsh_elf_find_functions(const char *path, const uint8_t *build_id, size_t n_build_id,
			     struct elf_lookup *lookups, size_t n_lookups);

/* Is that the file's build-id? n_build_id 0: it is not known, and any will do. */
bool torsh_elf_has_build_id(Elf *elf, const uint8_t *build_id, size_t n_build_id);

#endif
