/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Redirects the loaded objects' references to MPI's functions to the agent's wrappers: in all
 * objects when an MPI library is there, later in those that were opened since.
 */
#include <stdatomic.h>
#include <stdint.h>

#include "shim/find_text.h"
#include "shim/loader/objects.h"
#include "shim/loader/rebinding.h"
#include "shim/mpi/mpi.h"

bool torsh_mpi_objects_on;

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

static struct rebinding rebinding = {
	.bindings = {.find = find_call,
		     .bound = bound_to,
		     .instead = wrapper_of,
		     .skips = is_of_mpi},
	.library = "libmpi",
	.find = torsh_mpi_find,
};

void torsh_mpi_objects_start(void)
{
	torsh_mpi_objects_on = true;
	torsh_rebinding_start(&rebinding);
}

void torsh_mpi_objects_recheck(void)
{
	torsh_rebinding_recheck(&rebinding);
}
