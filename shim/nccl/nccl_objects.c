/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Redirects the loaded objects' references to NCCL's functions to the agent's wrappers: in all
 * objects when an NCCL library is there, later in those that were opened since.
 */
#include <stdatomic.h>
#include <string.h>

#include "shim/loader/objects.h"
#include "shim/loader/rebinding.h"
#include "shim/nccl/nccl_api.h"

bool torsh_nccl_objects_on;

static int find_call(const char *name)
{
	if (strncmp(name, "nccl", 4) != 0)
		return -1;
	for (int i = 0; i < N_NCCL_API; i++) {
		struct nccl_api_function *function = &torsh_nccl_api[i];

		if (strcmp(function->name, name) != 0)
			continue;
		/* References bind to the first one in the order of loading. */
		if (!atomic_load_explicit(&function->next, memory_order_relaxed))
			atomic_store_explicit(&function->next, torsh_objects_find(name),
					      memory_order_relaxed);
		return i;
	}
	return -1;
}

static void *bound_to(int i)
{
	return atomic_load_explicit(&torsh_nccl_api[i].next, memory_order_relaxed);
}

static void *wrapper_of(int i, void *found)
{
	return found && found == bound_to(i) ? torsh_nccl_api[i].wrapper : found;
}

/* NCCL itself and other tools' wrappers call each other's functions for what the program called. */
static bool is_of_nccl(const struct torsh_elf_image *image, const void *dynamic, const char *path)
{
	(void)path;
	return torsh_elf_symbol_in(image, dynamic, "ncclGroupEnd", NULL) ||
	       torsh_elf_symbol_in(image, dynamic, "ncclAllReduce", NULL);
}

static struct rebinding rebinding = {
	.bindings = {.find = find_call,
		     .bound = bound_to,
		     .instead = wrapper_of,
		     .skips = is_of_nccl},
	.library = "libnccl",
	.find = torsh_nccl_library_find,
};

bool torsh_nccl_api_has(const char *name)
{
	return torsh_nccl_library_is_found() && name && find_call(name) >= 0;
}

void *torsh_nccl_api_instead(const char *name, void *found)
{
	int i = find_call(name);

	return i < 0 ? found : wrapper_of(i, found);
}

void torsh_nccl_objects_start(void)
{
	torsh_nccl_objects_on = true;
	torsh_rebinding_start(&rebinding);
}

void torsh_nccl_objects_recheck(void)
{
	torsh_rebinding_recheck(&rebinding);
}
