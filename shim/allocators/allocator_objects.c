/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Redirects the loaded objects' references to allocators' own functions to the agent's wrappers: in
 * all objects at start, later in those that were opened since.
 */
#include "shim/allocators/allocator_calls.h"

#include <stdatomic.h>
#include <stdint.h>

#include "shim/loader/bindings.h"
#include "shim/loader/objects.h"
#include "shim/loader/unloading.h"

static bool is_allocator(const struct torsh_elf_image *image, const void *dynamic, const char *path)
{
	(void)path;
	for (int i = 0; i < N_ALLOCATORS; i++)
		if (torsh_elf_symbol_in(image, dynamic, torsh_allocator_calls_leaders[i], NULL))
			return true;
	return false;
}

static const struct bindings bindings = {.find = torsh_allocator_calls_find,
					 .bound = torsh_allocator_calls_bound,
					 .instead = torsh_allocator_calls_instead,
					 .skips = is_allocator};

struct visit {
	bool is_start, is_done;
};

static int look_at(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	struct visit *visit = context;

	(void)n_bytes;
	if (!torsh_bindings_change(object, visit->is_start, &bindings))
		visit->is_done = false;
	return 0;
}

static int count_added(struct dl_phdr_info *object, size_t n_bytes, void *count)
{
	(void)n_bytes;
	*(uint64_t *)count = object->dlpi_adds;
	return 1;
}

static _Atomic uint64_t n_added; /* dlpi_adds at the last complete pass over the objects */

void torsh_allocator_objects_start(void)
{
	struct visit visit = {.is_start = true, .is_done = true};
	uint64_t n = 0;

	torsh_allocator_calls_start();
	if (!torsh_allocator_calls_on)
		return;
	dl_iterate_phdr(count_added, &n);
	dl_iterate_phdr(look_at, &visit);
	atomic_store_explicit(&n_added, n, memory_order_relaxed);
}

void torsh_allocator_objects_recheck(void)
{
	struct visit visit = {.is_done = true};
	uint64_t n = 0;

	if (torsh_objects_is_forked_child())
		return;
	dl_iterate_phdr(count_added, &n);
	if (n == atomic_load_explicit(&n_added, memory_order_relaxed) || !torsh_unloading_forbid())
		return;
	dl_iterate_phdr(look_at, &visit);
	torsh_unloading_allow();
	if (visit.is_done)
		atomic_store_explicit(&n_added, n, memory_order_relaxed);
}
