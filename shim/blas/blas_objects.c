/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Redirects the loaded objects' references to routines of BLAS and LAPACK to the agent's slots: in
 * all objects at the start, later in those that were opened since. The agent exports none of these
 * names. A library calls itself directly, as torch's calls the MKL that is linked into it: such
 * calls are no references.
 */
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "shim/blas/blas.h"
#include "shim/find_text.h"
#include "shim/loader/bindings.h"
#include "shim/loader/objects.h"
#include "shim/loader/unloading.h"
#include "shim/sys.h"

bool torsh_blas_objects_on;

static _Atomic uint32_t n_loads, n_seen_loads; /* dlopen was called; at the last pass */

/* What the last complete pass saw: dlpi_adds, dlpi_subs, and how many objects there were. */
static struct {
	_Atomic uint64_t adds, subs, n;
} seen;

/* The reference that is being redirected: passes hold the loader's lock. */
static struct {
	const char *text;
	struct blas_name name;
	uint32_t n; /* so far in this object */
} current;

/* ---- one name -------------------------------------------------------------------------------- */

static int find_routine(const char *name)
{
	if (!torsh_blas_name(name, &current.name))
		return -1;
	current.text = name;
	current.n++;
	return 0;
}

/* A routine's own name in C may be any function's: only MKL's are taken. */
static bool is_meant(const struct blas_name *name, const void *definition)
{
	const struct link_map *map;

	if (!name->is_plain)
		return true;
	map = torsh_objects_of(definition);
	return map && map->l_name && torsh_find_text(map->l_name, "mkl");
}

static void *slot_of(const char *text, const struct blas_name *name, void *found)
{
	void *entry;

	if (!found || torsh_blas_slot_has(found) || !is_meant(name, found))
		return found;
	entry = torsh_blas_slot_add(text, name, found);
	return entry ? entry : found;
}

static void *wrapper_of(int i, void *found)
{
	(void)i;
	return slot_of(current.text, &current.name, found);
}

/* Whose the routine is isn't known yet. */
static void *wrapper_of_unbound(int i, void **place, void *binder)
{
	void *entry;

	(void)i;
	if (current.name.is_plain)
		return binder;
	entry = torsh_blas_slot_add_lazy(current.text, &current.name, place, binder);
	return entry ? entry : binder;
}

bool torsh_blas_has(const char *name)
{
	struct blas_name meant;

	return torsh_blas_name(name, &meant);
}

void *torsh_blas_instead(const char *name, void *found)
{
	struct blas_name meant;

	return torsh_blas_name(name, &meant) ? slot_of(name, &meant, found) : found;
}

/* ---- objects --------------------------------------------------------------------------------- */

/* Libraries that call others of their family for what the program called, on threads of theirs. */
static bool is_of_family(const struct torsh_elf_image *image, const void *dynamic, const char *path)
{
	static const char *const names[] = {"/libblas", "/libcblas", "/liblapack", "/libmkl_"};

	(void)image;
	(void)dynamic;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (torsh_find_text(path, names[i]))
			return true;
	return false;
}

static const struct bindings bindings = {
	.find = find_routine,
	.unbound = wrapper_of_unbound,
	.instead = wrapper_of,
	.skips = is_of_family,
};

struct pass {
	bool is_start, is_done;
	uint64_t adds, subs, n, n_skipped;
};

static int count_objects(struct dl_phdr_info *object, size_t n_bytes, void *context)
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
	current.n = 0;
	if (!torsh_bindings_change(object, pass->is_start, &bindings))
		pass->is_done = false;
	if (!current.n && torsh_find_text(object->dlpi_name, "/libtorch_cpu.so"))
		torsh_blas_unseen("libtorch_cpu.so");
	return 0;
}

/* New objects are at the end of the list as long as none was closed. */
static void look(bool is_start)
{
	struct pass pass = {.is_start = is_start, .is_done = true};
	uint32_t loads = atomic_load_explicit(&n_loads, memory_order_acquire);

	dl_iterate_phdr(count_objects, &pass);
	if (pass.adds != atomic_load_explicit(&seen.adds, memory_order_relaxed)) {
		if (pass.subs == atomic_load_explicit(&seen.subs, memory_order_relaxed))
			pass.n_skipped = atomic_load_explicit(&seen.n, memory_order_relaxed);
		dl_iterate_phdr(look_at, &pass);
		atomic_store_explicit(&seen.n, pass.is_done ? pass.n : 0, memory_order_relaxed);
	}
	if (!pass.is_done)
		return;
	atomic_store_explicit(&seen.adds, pass.adds, memory_order_relaxed);
	atomic_store_explicit(&seen.subs, pass.subs, memory_order_relaxed);
	atomic_store_explicit(&n_seen_loads, loads, memory_order_relaxed);
}

void torsh_blas_objects_start(void)
{
	torsh_blas_slots = torsh_sys_pages(BLAS_SLOTS * sizeof(*torsh_blas_slots));
	if (!torsh_blas_slots)
		return;
	torsh_blas_objects_on = true;
	look(true);
}

void torsh_blas_loading(void)
{
	if (torsh_blas_objects_on)
		atomic_fetch_add_explicit(&n_loads, 1, memory_order_release);
}

void torsh_blas_objects_recheck(void)
{
	if (atomic_load_explicit(&n_loads, memory_order_relaxed) ==
		    atomic_load_explicit(&n_seen_loads, memory_order_relaxed) ||
	    torsh_objects_is_forked_child() || !torsh_unloading_forbid())
		return;
	look(false);
	torsh_unloading_allow();
}
