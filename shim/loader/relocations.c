/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/loader/relocations.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/sys.h"

#define VERSION_OF_SYMBOL 0x7fff /* without the bit that hides it */

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
			const struct torsh_relocation place = {
				.name = name_of(image, relocation, &all),
				.at = image->bias + relocation->r_offset,
				.is_function = ELF64_R_TYPE(relocation->r_info) ==
					       TORSH_CPU_RELOCATION_SLOT,
				.symbol = ELF64_R_SYM(relocation->r_info),
			};

			if (place.name)
				visit(context, &place);
		}
	}
}

/* ---- versions -------------------------------------------------------------------------------- */

/* Where the object's symbols have their versions, and what these are. */
struct versions {
	uintptr_t of_symbols, needed, names;
};

static void find_versions(const struct torsh_elf_image *image, const void *dynamic,
			  struct versions *found)
{
	const ElfW(Dyn) * entry;

	*found = (struct versions){0};
	for (uintptr_t at = (uintptr_t)dynamic;
	     (entry = torsh_elf_at(image, at, sizeof(*entry))) && entry->d_tag != DT_NULL;
	     at += sizeof(*entry)) {
		if (entry->d_tag == DT_VERSYM)
			found->of_symbols = torsh_elf_locate(image, entry);
		else if (entry->d_tag == DT_VERNEED)
			found->needed = torsh_elf_locate(image, entry);
		else if (entry->d_tag == DT_STRTAB)
			found->names = torsh_elf_locate(image, entry);
	}
}

/* The name of the version with that index among those of one library. */
static const char *version_in(const struct torsh_elf_image *image, uintptr_t at, uint16_t index,
			      const struct versions *all)
{
	const ElfW(Vernaux) * version;

	while ((version = torsh_elf_at(image, at, sizeof(*version)))) {
		if ((version->vna_other & VERSION_OF_SYMBOL) == index)
			return torsh_elf_text(image, all->names + version->vna_name);
		if (!version->vna_next)
			break;
		at += version->vna_next;
	}
	return NULL;
}

const char *torsh_relocations_version(const struct torsh_elf_image *image, const void *dynamic,
				      size_t symbol)
{
	const ElfW(Verneed) * library;
	const uint16_t *index;
	const char *version;
	struct versions all;

	find_versions(image, dynamic, &all);
	if (!all.of_symbols || !all.needed || !all.names)
		return NULL;
	index = torsh_elf_at(image, all.of_symbols + symbol * sizeof(*index), sizeof(*index));
	for (uintptr_t at = all.needed;
	     index && (library = torsh_elf_at(image, at, sizeof(*library)));
	     at += library->vn_next) {
		version = version_in(image, at + library->vn_aux, *index & VERSION_OF_SYMBOL, &all);
		if (version || !library->vn_next)
			return version;
	}
	return NULL;
}
