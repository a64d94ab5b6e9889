/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Relocations of loaded objects to allocators' own functions (shim/allocators/allocator_calls.h).
 * Memory that the loader made read-only after relocating it is made read-only again.
 */
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "shim/allocators/allocator_calls.h"
#include "shim/loader/elf_symbol.h"
#include "shim/sys.h"

#define PAGE_BYTES 4096u

/* The place of an object, and its read-only part after relocation. */
struct extent {
	uintptr_t start, end, relro_start, relro_end;
	bool is_relocated; /* certainly */
};

/* From the dynamic section: any may be damaged if the loader hasn't needed it yet. */
struct relocations {
	uintptr_t tables[2]; /* of data; of functions, which may be bound lazily */
	size_t n_bytes[2];
	uintptr_t symbols, names;
};

static const void *dynamic_of(const struct torsh_elf_image *image)
{
	for (size_t i = 0; i < image->n; i++)
		if (image->segments[i].p_type == PT_DYNAMIC)
			return (const void *)(image->bias + image->segments[i].p_vaddr);
	return NULL;
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

static void find_extent(const struct torsh_elf_image *image, struct extent *extent)
{
	*extent = (struct extent){.start = UINTPTR_MAX};
	for (size_t i = 0; i < image->n; i++) {
		const ElfW(Phdr) *segment = &image->segments[i];
		uintptr_t start = image->bias + segment->p_vaddr, end = start + segment->p_memsz;

		if (segment->p_type == PT_LOAD && start < extent->start)
			extent->start = start;
		if (segment->p_type == PT_LOAD && end > extent->end)
			extent->end = end;
		if (segment->p_type == PT_GNU_RELRO) {
			/* Rounded as in the loader. */
			extent->relro_start = start & ~(uintptr_t)(PAGE_BYTES - 1);
			extent->relro_end = end & ~(uintptr_t)(PAGE_BYTES - 1);
		}
	}
}

/*
 * Store the address atomically: other threads may be calling through this place. False: another
 * thread may still be relocating the object, and then makes the memory read-only.
 */
static bool put(void **place, void *address, const struct extent *extent)
{
	uintptr_t page = (uintptr_t)place & ~(uintptr_t)(PAGE_BYTES - 1);
	bool is_relro = page >= extent->relro_start && page < extent->relro_end;
	bool is_writable = torsh_sys_is_writable(place);

	if (is_relro && is_writable && !extent->is_relocated)
		return false;
	/* If it can't be made writable it stays unchanged. */
	if (!is_writable &&
	    TORSH_SYS(SYS_mprotect, page, PAGE_BYTES, PROT_READ | PROT_WRITE, 0, 0, 0) != 0)
		return true;
	__atomic_store_n(place, address, __ATOMIC_RELEASE);
	if (!is_writable)
		TORSH_SYS(SYS_mprotect, page, PAGE_BYTES, PROT_READ, 0, 0, 0);
	return true;
}

/*
 * The place of a function that isn't bound yet leads into the object itself; it will be bound to
 * the first definition.
 */
static bool change_place(void **place, int i, bool is_function, const struct extent *extent)
{
	void *found = __atomic_load_n(place, __ATOMIC_RELAXED), *wrapper;

	if (is_function && (uintptr_t)found >= extent->start && (uintptr_t)found < extent->end)
		found = torsh_allocator_calls_bound(i);
	wrapper = torsh_allocator_calls_instead(i, found);
	return !found || wrapper == found || put(place, wrapper, extent);
}

static bool is_of_kind(uint32_t type)
{
	return type == TORSH_CPU_RELOCATION_SLOT || type == TORSH_CPU_RELOCATION_DATA ||
	       type == TORSH_CPU_RELOCATION_WORD;
}

/* The number of the function that the relocation refers to, or -1. */
static int function_of(const struct torsh_elf_image *image, const ElfW(Rela) * relocation,
		       const struct relocations *all)
{
	uintptr_t at = all->symbols + ELF64_R_SYM(relocation->r_info) * sizeof(ElfW(Sym));
	const ElfW(Sym) * symbol;
	const char *name;

	if (!is_of_kind((uint32_t)ELF64_R_TYPE(relocation->r_info)) || relocation->r_addend)
		return -1;
	symbol = torsh_elf_at(image, at, sizeof(*symbol));
	if (!symbol || symbol->st_shndx != SHN_UNDEF)
		return -1;
	name = torsh_elf_text(image, all->names + symbol->st_name);
	return name ? torsh_allocator_calls_find(name) : -1;
}

static bool is_allocator(const struct torsh_elf_image *image, const void *dynamic)
{
	for (int i = 0; i < N_ALLOCATORS; i++)
		if (torsh_elf_symbol_in(image, dynamic, torsh_allocator_calls_leaders[i], NULL))
			return true;
	return false;
}

static bool change_relocated(const struct torsh_elf_image *image, const ElfW(Rela) * relocation,
			     const struct relocations *all, const struct extent *extent)
{
	bool is_function = ELF64_R_TYPE(relocation->r_info) == TORSH_CPU_RELOCATION_SLOT;
	int i = function_of(image, relocation, all);
	void **place = i < 0 ? NULL : torsh_elf_address(image, image->bias + relocation->r_offset);

	return !place || change_place(place, i, is_function, extent);
}

bool torsh_bindings_change(const struct dl_phdr_info *object, bool is_relocated)
{
	const struct torsh_elf_image image = {
		.bias = object->dlpi_addr, .segments = object->dlpi_phdr, .n = object->dlpi_phnum};
	const void *dynamic = dynamic_of(&image);
	const ElfW(Rela) * relocation;
	struct relocations all;
	struct extent extent;
	bool is_done = true;

	if (!find_relocations(&image, dynamic, &all) || is_allocator(&image, dynamic))
		return true;
	find_extent(&image, &extent);
	extent.is_relocated = is_relocated;
	for (int k = 0; k < 2; k++) {
		uintptr_t at = all.tables[k];

		for (size_t n = all.n_bytes[k] / sizeof(*relocation);
		     n && (relocation = torsh_elf_at(&image, at, sizeof(*relocation)));
		     n--, at += sizeof(*relocation))
			if (!change_relocated(&image, relocation, &all, &extent))
				is_done = false;
	}
	return is_done;
}
