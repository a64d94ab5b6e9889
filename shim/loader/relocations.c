/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/loader/relocations.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/sys.h"

/* From the dynamic section: any may be damaged if the loader hasn't needed it yet. */
struct relocations {
	uintptr_t tables[2]; /* of data; of functions, which may be bound lazily */
	size_t n_bytes[2];
	uintptr_t symbols, names;
};

const void *torsh_relocations_dynamic(const struct torsh_elf_image *image)
{
	for (size_t i = 0; i < image->n; i++)
		if (image->segments[i].p_type == PT_DYNAMIC)
			return (const void *)(image->bias + image->segments[i].p_vaddr);
	return NULL;
}

bool torsh_relocations_is_relro(const struct torsh_elf_image *image, const void *place)
{
	for (size_t i = 0; i < image->n; i++)
		if (image->segments[i].p_type == PT_GNU_RELRO &&
		    (uintptr_t)place - (image->bias + image->segments[i].p_vaddr) <
			    image->segments[i].p_memsz)
			return true;
	return false;
}

static bool find_relocations(const struct torsh_elf_image *image, const void *dynamic,
			     struct relocations *found)
{
	const ElfW(Dyn) * entry;

	*found = (struct relocations){0};
	for (uintptr_t at = (uintptr_t)dynamic;
	     (entry = torsh_elf_at(image, at, sizeof(*entry))) && entry->d_tag != DT_NULL;
	     at += sizeof(*entry)) {
		switch (entry->d_tag) {
		case DT_RELA:
			found->tables[0] = torsh_elf_locate(image, entry);
			break;
		case DT_RELASZ:
			found->n_bytes[0] = entry->d_un.d_val;
			break;
		case DT_JMPREL:
			found->tables[1] = torsh_elf_locate(image, entry);
			break;
		case DT_PLTRELSZ:
			found->n_bytes[1] = entry->d_un.d_val;
			break;
		case DT_SYMTAB:
			found->symbols = torsh_elf_locate(image, entry);
			break;
		case DT_STRTAB:
			found->names = torsh_elf_locate(image, entry);
			break;
		}
	}
	return found->symbols && found->names;
}

static bool is_of_kind(uint32_t type)
{
	return type == TORSH_CPU_RELOCATION_SLOT || type == TORSH_CPU_RELOCATION_DATA ||
	       type == TORSH_CPU_RELOCATION_WORD;
}

/* The name that the relocation refers to, if another object defines it; else NULL. */
static const char *name_of(const struct torsh_elf_image *image, const ElfW(Rela) * relocation,
			   const struct relocations *all)
{
	uintptr_t at = all->symbols + ELF64_R_SYM(relocation->r_info) * sizeof(ElfW(Sym));
	const ElfW(Sym) * symbol;

	if (!is_of_kind((uint32_t)ELF64_R_TYPE(relocation->r_info)) || relocation->r_addend)
		return NULL;
	symbol = torsh_elf_at(image, at, sizeof(*symbol));
	return symbol && symbol->st_shndx == SHN_UNDEF
		       ? torsh_elf_text(image, all->names + symbol->st_name)
		       : NULL;
}

void torsh_relocations_visit(const struct torsh_elf_image *image, const void *dynamic,
			     torsh_relocation_visit *visit, void *context)
{
	const ElfW(Rela) * relocation;
	struct relocations all;

	if (!find_relocations(image, dynamic, &all))
		return;
	for (int k = 0; k < 2; k++) {
		uintptr_t at = all.tables[k];

		for (size_t n = all.n_bytes[k] / sizeof(*relocation);
		     n && (relocation = torsh_elf_at(image, at, sizeof(*relocation)));
		     n--, at += sizeof(*relocation)) {
			const char *name = name_of(image, relocation, &all);

			if (name)
				visit(context, name, image->bias + relocation->r_offset,
				      ELF64_R_TYPE(relocation->r_info) ==
					      TORSH_CPU_RELOCATION_SLOT);
		}
	}
}
