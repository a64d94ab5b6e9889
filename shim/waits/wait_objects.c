/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Redirects the loaded objects' references to the functions in which a thread waits to the agent's
 * wrappers: in all objects at start, later in those that were opened since.
 */
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/find_text.h"
#include "shim/loader/bindings.h"
#include "shim/loader/objects.h"
#include "shim/loader/relocations.h"
#include "shim/loader/unloading.h"
#include "shim/waits/wait_calls.h"

bool torsh_waits_objects_on;

static _Atomic uint32_t n_loads, n_seen_loads; /* dlopen was called; at the last pass */

/* What the last complete pass saw: dlpi_adds, dlpi_subs, and how many objects there were. */
static struct {
	_Atomic uint64_t adds, subs, n;
} seen;

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
	if (i == WAITS_pthread_cond_wait || i == WAITS_pthread_cond_timedwait)
		return !version || strcmp(version, TORSH_WAITS_CONDITION_VERSION) != 0;
#endif
	(void)i;
	(void)version;
	return false;
}

static const struct bindings bindings = {.find = torsh_waits_number,
					 .bound = torsh_waits_next,
					 .instead = wrapper_of,
					 .skips = is_apart,
					 .is_other = is_other_version};

/* ---- all objects ----------------------------------------------------------------------------- */

struct pass {
	bool is_start, is_done;
	uint64_t adds, subs, n, n_skipped;
};

static int count_changes(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	struct pass *pass = context;

	(void)n_bytes;
	pass->adds = object->dlpi_adds;
	pass->subs = object->dlpi_subs;
	return 1;
}

static int look_at(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	struct pass *pass = context;

	(void)n_bytes;
	if (pass->n++ < pass->n_skipped)
		return 0;
	torsh_waits_consider_python(object);
	if (!torsh_bindings_change(object, pass->is_start, &bindings))
		pass->is_done = false;
	return 0;
}

/* New objects are at the end of the list as long as none was closed. */
static void look(bool is_start)
{
	struct pass pass = {.is_start = is_start, .is_done = true};
	uint32_t loads = atomic_load_explicit(&n_loads, memory_order_acquire);

	dl_iterate_phdr(count_changes, &pass);
	if (pass.adds != atomic_load_explicit(&seen.adds, memory_order_relaxed)) {
		if (pass.subs == atomic_load_explicit(&seen.subs, memory_order_relaxed))
			pass.n_skipped = atomic_load_explicit(&seen.n, memory_order_relaxed);
		dl_iterate_phdr(look_at, &pass);
		atomic_store_explicit(&seen.n, pass.is_done ? pass.n : 0, memory_order_relaxed);
		if (!pass.is_done)
			return;
		atomic_store_explicit(&seen.adds, pass.adds, memory_order_relaxed);
		atomic_store_explicit(&seen.subs, pass.subs, memory_order_relaxed);
	}
	atomic_store_explicit(&n_seen_loads, loads, memory_order_relaxed);
}

void torsh_waits_objects_start(void)
{
	torsh_waits_find();
	torsh_waits_objects_on = true;
	look(true);
}

void torsh_waits_loading(void)
{
	if (torsh_waits_objects_on)
		atomic_fetch_add_explicit(&n_loads, 1, memory_order_release);
}

void torsh_waits_objects_recheck(void)
{
	if (atomic_load_explicit(&n_loads, memory_order_relaxed) ==
		    atomic_load_explicit(&n_seen_loads, memory_order_relaxed) ||
	    torsh_objects_is_forked_child() || !torsh_unloading_forbid())
		return;
	look(false);
	torsh_unloading_allow();
}
