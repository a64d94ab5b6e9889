/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Relocations of loaded objects that lead to allocators' own functions (shim/allocator_calls.h). What the
 * loader has made read-only after relocating it is made so again.
 */
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "shim/allocator_calls.h"
#include "shim/elf_symbol.h"
#include "shim/sys.h"

#define PAGE_BYTES 4096u

/* Of an object: where it lies, and what of it is read-only since it was relocated. */
struct extent {
	uintptr_t start, end, relro_start, relro_end;
	bool is_relocated; /* for sure */
};

struct relocations {
	const ElfW(Rela) * tables[2]; /* data; functions, which may be bound when they are first called */
	size_t n[2];
	const ElfW(Sym) * symbols;
	const char *names;
};

static ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *object)
{
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
	return NULL;
}

static bool find_relocations(const struct link_map *map, struct relocations *found)
{
	*found = (struct relocations){0};
	for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
		case DT_RELA:
			found->tables[0] = torsh_elf_locate(map, entry);
			break;
		case DT_RELASZ:
			found->n[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_JMPREL:
			found->tables[1] = torsh_elf_locate(map, entry);
			break;
		case DT_PLTRELSZ:
			found->n[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_SYMTAB:
			found->symbols = torsh_elf_locate(map, entry);
			break;
		case DT_STRTAB:
			found->names = torsh_elf_locate(map, entry);
			break;
		}
	}
	return found->symbols && found->names;
}

static void find_extent(const struct dl_phdr_info *object, struct extent *extent)
{
	*extent = (struct extent){.start = UINTPTR_MAX};
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t start = object->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;

		if (segment->p_type == PT_LOAD && start < extent->start)
			extent->start = start;
		if (segment->p_type == PT_LOAD && end > extent->end)
			extent->end = end;
		if (segment->p_type == PT_GNU_RELRO) {
			/* As the loader rounds it. */
			extent->relro_start = start & ~(uintptr_t)(PAGE_BYTES - 1);
			extent->relro_end = end & ~(uintptr_t)(PAGE_BYTES - 1);
		}
	}
}

/*
 * The address is put in at once: other threads may be calling through this place. False: another thread may
 * still be relocating the object, which ends with what is to be read-only.
 */
static bool put(void **place, void *address, const struct extent *extent)
{
	uintptr_t page = (uintptr_t)place & ~(uintptr_t)(PAGE_BYTES - 1);
	bool is_relro = page >= extent->relro_start && page < extent->relro_end;
	bool is_writable = torsh_sys_is_writable(place);

	if (is_relro && is_writable && !extent->is_relocated)
		return false;
	/* Where it can't be made writable it stays as it was. */
	if (!is_writable && TORSH_SYS(SYS_mprotect, page, PAGE_BYTES, PROT_READ | PROT_WRITE, 0, 0, 0) != 0)
		return true;
	__atomic_store_n(place, address, __ATOMIC_RELEASE);
	if (!is_writable)
		TORSH_SYS(SYS_mprotect, page, PAGE_BYTES, PROT_READ, 0, 0, 0);
	return true;
}

/*
 * Where a function is not bound yet its place leads into the object itself; then it will be bound to the first
 * definition.
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

/* The number of the function that the relocation is about, or -1. */
static int function_of(const ElfW(Rela) * relocation, const struct relocations *all)
{
	const ElfW(Sym) *symbol = &all->symbols[ELF64_R_SYM(relocation->r_info)];

	if (!is_of_kind((uint32_t)ELF64_R_TYPE(relocation->r_info)) || symbol->st_shndx != SHN_UNDEF ||
	    relocation->r_addend)
		return -1;
	return torsh_allocator_calls_find(all->names + symbol->st_name);
}

static bool is_allocator(const struct link_map *map)
{
	for (int i = 0; i < N_ALLOCATORS; i++)
		if (torsh_elf_symbol(map, torsh_allocator_calls_leaders[i], NULL))
			return true;
	return false;
}

bool torsh_bindings_change(const struct dl_phdr_info *object, bool is_relocated)
{
	/* As much of a link_map as is read. */
	const struct link_map map = {.l_addr = object->dlpi_addr, .l_ld = dynamic_of(object)};
	struct relocations all;
	struct extent extent;
	bool is_done = true;

	if (!find_relocations(&map, &all) || is_allocator(&map))
		return true;
	find_extent(object, &extent);
	extent.is_relocated = is_relocated;
	for (int k = 0; k < 2; k++) {
		for (size_t j = 0; all.tables[k] && j < all.n[k]; j++) {
			const ElfW(Rela) *relocation = &all.tables[k][j];
			int i = function_of(relocation, &all);

			if (i >= 0 &&
			    !change_place((void **)(map.l_addr + relocation->r_offset), i,
					  ELF64_R_TYPE(relocation->r_info) == TORSH_CPU_RELOCATION_SLOT, &extent))
				is_done = false;
		}
	}
	return is_done;
}
