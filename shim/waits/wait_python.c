/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdatomic.h>

#include "shim/loader/elf_symbol.h"
#include "shim/loader/relocations.h"
#include "shim/waits/wait_calls.h"

static _Atomic uintptr_t start, n_bytes; /* _PyRuntime */

bool torsh_waits_is_of_python(uintptr_t address)
{
	return address - atomic_load_explicit(&start, memory_order_relaxed) <
	       atomic_load_explicit(&n_bytes, memory_order_relaxed);
}

void torsh_waits_consider_python(const struct dl_phdr_info *object)
{
	const struct torsh_elf_image image = {
		.bias = object->dlpi_addr, .segments = object->dlpi_phdr, .n = object->dlpi_phnum};
	const void *dynamic = torsh_relocations_dynamic(&image);
	void *found = NULL;
	size_t size = 0;

	if (dynamic && !atomic_load_explicit(&n_bytes, memory_order_relaxed))
		found = torsh_elf_symbol_in(&image, dynamic, "_PyRuntime", &size);
	if (!found)
		return;
	atomic_store_explicit(&start, (uintptr_t)found, memory_order_relaxed);
	atomic_store_explicit(&n_bytes, size, memory_order_relaxed);
}
