/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory that the loader made read-only after relocating it is made read-only again. */
#include "shim/loader/bindings.h"

#include <stdint.h>

#include "shim/loader/relocations.h"
#include "shim/sys.h"

#define PAGE_BYTES 4096u

/* The place of an object, and its read-only part after relocation. */
struct extent {
	uintptr_t start, end, relro_start, relro_end;
	bool is_relocated; /* certainly */
};

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

struct change {
	const struct torsh_elf_image *image;
	const void *dynamic;
	const struct bindings *bindings;
	struct extent extent;
	bool is_done;
};

static bool is_other(const struct change *change, int i, size_t symbol)
{
	return change->bindings->is_other &&
	       change->bindings->is_other(
		       i, torsh_relocations_version(change->image, change->dynamic, symbol));
}

/*
 * The place of a function that isn't bound yet leads into the object itself; it will be bound to
 * the first definition of the version that it requires.
 */
static bool change_place(void **place, int i, const struct torsh_relocation *relocation,
			 const struct change *change)
{
	void *found = __atomic_load_n(place, __ATOMIC_RELAXED), *wrapper;
	bool is_unbound = relocation->is_function && (uintptr_t)found >= change->extent.start &&
			  (uintptr_t)found < change->extent.end;

	if (is_unbound && is_other(change, i, relocation->symbol))
		return true;
	if (is_unbound && change->bindings->unbound) {
		wrapper = change->bindings->unbound(i, place, found);
	} else {
		found = is_unbound ? change->bindings->bound(i) : found;
		if (!found)
			return true;
		wrapper = change->bindings->instead(i, found);
	}
	return !found || wrapper == found || put(place, wrapper, &change->extent);
}

static void change_relocated(void *context, const struct torsh_relocation *relocation)
{
	struct change *change = context;
	int i = change->bindings->find(relocation->name);
	void **place = i < 0 ? NULL : torsh_elf_address(change->image, relocation->at);

	if (place && !change_place(place, i, relocation, change))
		change->is_done = false;
}

bool torsh_bindings_change(const struct dl_phdr_info *object, bool is_relocated,
			   const struct bindings *bindings)
{
	const struct torsh_elf_image image = {
		.bias = object->dlpi_addr, .segments = object->dlpi_phdr, .n = object->dlpi_phnum};
	const void *dynamic = torsh_relocations_dynamic(&image);
	struct change change = {
		.image = &image, .dynamic = dynamic, .bindings = bindings, .is_done = true};

	if (bindings->skips(&image, dynamic, object->dlpi_name))
		return true;
	find_extent(&image, &change.extent);
	change.extent.is_relocated = is_relocated;
	torsh_relocations_visit(&image, dynamic, change_relocated, &change);
	return change.is_done;
}
