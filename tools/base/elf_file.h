/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * ELF files of recorded modules, and the one place where the tools decide which symbols are
 * functions and which of several symbols names an address.
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
 * Open the ELF file at path. build_id (n_build_id 0: unknown) must match the file's. Returns 0,
 * -ESTALE if the build-id differs, -ENOEXEC if it is not a readable ELF file, or another -errno;
 * call torsh_elf_close only after 0.
 */
int torsh_elf_open(struct elf_file *file, const char *path, const uint8_t *build_id,
		   size_t n_build_id);

/* Close a file that torsh_elf_open opened. */
void torsh_elf_close(struct elf_file *file);

/*
 * Called for each symbol. strings is the section of the names for elf_strptr: names are read only
 * if needed, because the tables of a large library have hundreds of MiB. Returns true to stop.
 */
typedef bool elf_symbol_visitor(void *context, const GElf_Sym *symbol, size_t strings);

/* Visit the symbols of .symtab and .dynsym in file order. */
void torsh_elf_visit_symbols(Elf *elf, elf_symbol_visitor *visit, void *context);

/*
 * Let the kernel take back the pages of the file that were read: they are read again when needed.
 * The symbols of a large library, read one after the other, would fill more memory than all else.
 */
void torsh_elf_release_pages(Elf *elf);

/*
 * Returns whether the symbol is a defined function. Hand-written assembly has no type
 * (STT_NOTYPE). Indirect functions (STT_GNU_IFUNC) count.
 */
bool torsh_elf_is_function(const GElf_Sym *symbol);

/* A function's symbol: an address as in the file's program headers, and a size in bytes. */
struct elf_symbol {
	uint64_t start, n_bytes;
	const char *name;
};

/*
 * Order for qsort: of the symbols that cover an address, the last one names it. That is the one
 * that starts last, then the largest (as in LLVM's symbolizer), then the alias with the shortest
 * name ("malloc", not "__libc_malloc"), then the last in byte order.
 */
int torsh_elf_compare_symbols(const void *a, const void *b);

#endif
