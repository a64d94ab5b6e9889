/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * ELF files of recorded modules, and the rules by which all of the tools read their symbols: which
 * symbols are functions, and which one of several names an address.
 */
#ifndef TORSH_BASE_ELF_FILE_H
#define TORSH_BASE_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file {
	Elf *elf;
	int fd;
};

/*
 * Open the ELF file at path. build_id (n_build_id 0: not known) must be the file's own.
 * Returns 0, -ESTALE when the file has another build-id, -ENOEXEC when it can't be read as ELF, or
 * another -errno; torsh_elf_close is called only after 0.
 */
int torsh_elf_open(struct elf_file *file, const char *path, const uint8_t *build_id,
		   size_t n_build_id);
void torsh_elf_close(struct elf_file *file);

/*
 * Visit the symbols of .symtab and .dynsym in the file's order. strings is the section of their
 * names for elf_strptr: names are read only where they are needed, as the tables of a large library
 * have hundreds of MiB. The visitor returns true to stop.
 */
typedef bool elf_symbol_visitor(void *context, const GElf_Sym *symbol, size_t strings);
void torsh_elf_visit_symbols(Elf *elf, elf_symbol_visitor *visit, void *context);

/*
 * Is it a defined function? Hand-written assembly has no type (STT_NOTYPE). Indirect functions
 * (STT_GNU_IFUNC) count.
 */
bool torsh_elf_is_function(const GElf_Sym *symbol);

/* A function's symbol: an address as in the file's program headers, and a size in bytes. */
struct elf_symbol {
	uint64_t start, n_bytes;
	const char *name;
};

/*
 * Order for qsort, so that of the symbols that cover an address the last one names it: the one that
 * starts last, of these the largest (as in LLVM's symbolizer), of aliases the shortest ("malloc",
 * not "__libc_malloc"), of these the last by byte order.
 */
int torsh_elf_compare_symbols(const void *a, const void *b);

#endif
