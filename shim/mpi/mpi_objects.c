/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Redirects the loaded objects' references to MPI's functions to the agent's wrappers: in all
 * objects when an MPI library is there, later in those that were opened since. The agent exports
 * none of these names, so that a program which asks whether MPI is there gets the answer that it
 * gets without the agent.
 */
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>

#include "shim/find_text.h"
#include "shim/loader/bindings.h"
#include "shim/loader/objects.h"
#include "shim/loader/unloading.h"
#include "shim/mpi/mpi.h"

bool torsh_mpi_objects_on;

static _Atomic uint32_t n_loads, n_seen_loads; /* dlopen was called; at the last pass */

/* What the last complete pass saw: dlpi_adds, dlpi_subs, and how many objects there were. */
static struct {
	_Atomic uint64_t adds, subs, n;
} seen;

/* ---- one name -------------------------------------------------------------------------------- */

/*
 * The number of a name and form. Its next definition is found once: references bind to the first
 * one in the order of loading.
 */
static int find_call(const char *name)
{
	enum mpi_form form;
	int number = torsh_mpi_number(name, &form);
	void *_Atomic *place;

	if (number < 0)
		return -1;
	torsh_mpi_wrapper(number, form, &place);
	if (!atomic_load_explicit(place, memory_order_relaxed))
		atomic_store_explicit(place, torsh_objects_find(name), memory_order_relaxed);
	return number * N_MPI_FORMS + (int)form;
}

static void *bound_to(int i)
{
	void *_Atomic *place;

	torsh_mpi_wrapper(i / N_MPI_FORMS, (enum mpi_form)(i % N_MPI_FORMS), &place);
	return atomic_load_explicit(place, memory_order_relaxed);
}

static void *wrapper_of(int i, void *found)
{
	void *_Atomic *place;
	void *wrapper =
		torsh_mpi_wrapper(i / N_MPI_FORMS, (enum mpi_form)(i % N_MPI_FORMS), &place);

	return found && found == atomic_load_explicit(place, memory_order_relaxed) ? wrapper
										   : found;
}

bool torsh_mpi_has(const char *name)
{
	enum mpi_form form;

	return torsh_mpi.abi && torsh_mpi_number(name, &form) >= 0;
}

void *torsh_mpi_instead(const char *name, void *found)
{
	int i = found && torsh_mpi.abi ? find_call(name) : -1;

	return i < 0 ? found : wrapper_of(i, found);
}

/* ---- objects --------------------------------------------------------------------------------- */

/* MPI's own libraries and plugins call each other's functions for what the program called. */
static bool is_of_mpi(const struct torsh_elf_image *image, const void *dynamic, const char *path)
{
	return torsh_elf_symbol_in(image, dynamic, "PMPI_Init", NULL) ||
	       torsh_find_text(path, "/mca_") || torsh_find_text(path, "/libmpi_mpifh") ||
	       torsh_find_text(path, "/libmpi_usempi") || torsh_find_text(path, "/libmpifort");
}

static const struct bindings bindings = {
	.find = find_call, .bound = bound_to, .instead = wrapper_of, .skips = is_of_mpi};

struct pass {
	bool is_start, is_done, has_library;
	uint64_t adds, subs, n, n_skipped;
};

static int count_objects(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	struct pass *pass = context;

	(void)n_bytes;
	pass->adds = object->dlpi_adds;
	pass->subs = object->dlpi_subs;
	pass->has_library |= torsh_find_text(object->dlpi_name, "libmpi") != NULL;
	return pass->has_library;
}

static int look_at(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	struct pass *pass = context;

	(void)n_bytes;
	if (pass->n++ >= pass->n_skipped &&
	    !torsh_bindings_change(object, pass->is_start, &bindings))
		pass->is_done = false;
	return 0;
}

/* New objects are at the end of the list as long as none was closed. */
static void look(bool is_start)
{
	struct pass pass = {.is_start = is_start, .is_done = true};
	uint32_t loads = atomic_load_explicit(&n_loads, memory_order_acquire);
	bool is_first = !torsh_mpi.abi;

	dl_iterate_phdr(count_objects, &pass);
	if (pass.adds == atomic_load_explicit(&seen.adds, memory_order_relaxed)) {
		atomic_store_explicit(&n_seen_loads, loads, memory_order_relaxed);
		return;
	}
	if (pass.has_library && torsh_mpi_find()) {
		if (!is_first &&
		    pass.subs == atomic_load_explicit(&seen.subs, memory_order_relaxed))
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

void torsh_mpi_objects_start(void)
{
	torsh_mpi_objects_on = true;
	look(true);
}

void torsh_mpi_loading(void)
{
	if (torsh_mpi_objects_on)
		atomic_fetch_add_explicit(&n_loads, 1, memory_order_release);
}

void torsh_mpi_objects_recheck(void)
{
	if (atomic_load_explicit(&n_loads, memory_order_relaxed) ==
		    atomic_load_explicit(&n_seen_loads, memory_order_relaxed) ||
	    torsh_objects_is_forked_child() || !torsh_unloading_forbid())
		return;
	look(false);
	torsh_unloading_allow();
}
