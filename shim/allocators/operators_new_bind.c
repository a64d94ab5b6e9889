/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/allocators/operators_new_bind.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/loader/relocations.h"
#include "shim/sys.h"

/* So that the C++ run-time is not closed before it. */
static bool needs_run_time(const struct link_map *map, const struct torsh_elf_image *image)
{
	uintptr_t names = 0, at;
	const ElfW(Dyn) * entry;
	const char *name;

	for (at = (uintptr_t)map->l_ld;
	     (entry = torsh_elf_at(image, at, sizeof(*entry))) && entry->d_tag != DT_NULL;
	     at += sizeof(*entry))
		if (entry->d_tag == DT_STRTAB)
			names = torsh_elf_locate(image, entry);
	for (at = (uintptr_t)map->l_ld;
	     names && (entry = torsh_elf_at(image, at, sizeof(*entry))) && entry->d_tag != DT_NULL;
	     at += sizeof(*entry)) {
		name = entry->d_tag == DT_NEEDED ? torsh_elf_text(image, names + entry->d_un.d_val)
						 : NULL;
		if (name && !strncmp(name, "libstdc++.so", sizeof("libstdc++.so") - 1))
			return true;
	}
	return false;
}

/* The place by which the stub at this address goes on; NULL for other code. */
static void **place_of(const struct torsh_elf_image *image, uintptr_t stub)
{
	const uint8_t *code = torsh_elf_at(image, stub, TORSH_CPU_STUB_BYTES);

	return code ? torsh_elf_address(image, torsh_cpu_stub_place(code)) : NULL;
}

void **torsh_operators_called_place(const struct torsh_elf_image *image, const void *caller)
{
	const uint8_t *call =
		torsh_elf_at(image, (uintptr_t)caller - TORSH_CPU_CALL_BYTES, TORSH_CPU_CALL_BYTES);

	return call ? place_of(image, torsh_cpu_called(call)) : NULL;
}

void **torsh_operators_jumped_place(const struct torsh_elf_image *image, const void *function)
{
	const uint8_t *code = torsh_elf_at(image, (uintptr_t)function, TORSH_CPU_JUMP_BYTES);

	return code ? place_of(image, torsh_cpu_jumped(code)) : NULL;
}

bool torsh_operators_bind(const struct link_map *map, const struct torsh_elf_image *image,
			  void **place, const void *exported, void *definition, bool is_own)
{
	if (__atomic_load_n(place, __ATOMIC_RELAXED) != exported ||
	    torsh_relocations_is_relro(image, place) || !(is_own || needs_run_time(map, image)) ||
	    !torsh_sys_is_writable(place))
		return false;
	__atomic_store_n(place, definition, __ATOMIC_RELEASE);
	return true;
}
