/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Redirects the loaded objects' references to the functions in which a thread waits, or that end a
 * wait, to the agent's wrappers: in all objects at start, later in those that were opened since.
 */
#include <string.h>

#include "shim/find_text.h"
#include "shim/loader/rebinding.h"
#include "shim/waits/wait_calls.h"

bool torsh_waits_objects_on;

/* ---- one object ------------------------------------------------------------------------------ */

static void *wrapper_of(int i, void *found)
{
	return found && found == torsh_waits_next(i) ? torsh_waits_wrapper(i) : found;
}

/* The C library, tools that interpose its functions, the agent, and the unwinder that it opens. */
static bool is_apart(const struct torsh_elf_image *image, const void *dynamic, const char *path)
{
	return torsh_elf_symbol_in(image, dynamic, "__libc_start_main", NULL) ||
	       torsh_elf_symbol_in(image, dynamic, "pthread_mutex_lock", NULL) ||
	       torsh_elf_at(image, (uintptr_t)&torsh_waits_objects_start, 1) ||
	       torsh_find_text(path, "/libunwind");
}

static bool is_other_version(int i, const char *version)
{
#ifdef TORSH_WAITS_CONDITION_VERSION
	if (i == WAITS_pthread_cond_wait || i == WAITS_pthread_cond_timedwait ||
	    i == WAITS_pthread_cond_signal || i == WAITS_pthread_cond_broadcast)
		return !version || strcmp(version, TORSH_WAITS_CONDITION_VERSION) != 0;
#endif
	(void)i;
	(void)version;
	return false;
}

static struct rebinding rebinding = {
	.bindings = {.find = torsh_waits_number,
		     .bound = torsh_waits_next,
		     .instead = wrapper_of,
		     .skips = is_apart,
		     .is_other = is_other_version},
	.before = torsh_waits_consider_python,
};

void torsh_waits_objects_start(void)
{
	torsh_waits_find();
	torsh_waits_objects_on = true;
	torsh_rebinding_start(&rebinding);
}

void torsh_waits_objects_recheck(void)
{
	torsh_rebinding_recheck(&rebinding);
}
