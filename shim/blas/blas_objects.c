/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Redirects the loaded objects' references to routines of BLAS and LAPACK to the agent's slots: in
 * all objects at the start, later in those that were opened since. The agent exports none of these
 * names. A library calls itself directly, as torch's calls the MKL that is linked into it: such
 * calls are no references.
 */
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "shim/blas/blas.h"
#include "shim/find_text.h"
#include "shim/loader/objects.h"
#include "shim/loader/rebinding.h"
#include "shim/sys.h"

bool torsh_blas_objects_on;

/* The reference that is being redirected: passes hold the loader's lock. */
static struct {
	const char *text;
	struct blas_name name;
	uint32_t n; /* so far in this object */
	bool is_torch_cpu; /* the object */
} current;

#define VERBOSE 1 /* and above: of shim/blas/dnnl_verbose.c */

/* ---- one name -------------------------------------------------------------------------------- */

static int find_routine(const char *name)
{
	if (!torsh_blas_name(name, &current.name)) {
		int i = torsh_dnnl_verbose_find(name, current.is_torch_cpu);

		return i < 0 ? -1 : VERBOSE + i;
	}
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
	if (i >= VERBOSE)
		return torsh_dnnl_verbose_wrapper(i - VERBOSE);
	return slot_of(current.text, &current.name, found);
}

/* Whose the routine is isn't known yet. */
static void *wrapper_of_unbound(int i, void **place, void *binder)
{
	void *entry;

	if (i >= VERBOSE)
		return torsh_dnnl_verbose_wrapper(i - VERBOSE);
	if (current.name.is_plain)
		return binder;
	entry = torsh_blas_slot_add_lazy(current.text, &current.name, place, binder);
	return entry ? entry : binder;
}

bool torsh_blas_has(const char *name)
{
	struct blas_name meant;

	/* An extension module was loaded, and all that it needs. */
	if (torsh_text_after(name, "PyInit_"))
		torsh_dnnl_verbose_start();
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

static void begin_object(const struct dl_phdr_info *object)
{
	current.n = 0;
	current.is_torch_cpu = torsh_find_text(object->dlpi_name, "/libtorch_cpu.so");
}

static void end_object(const struct dl_phdr_info *object)
{
	(void)object;
	if (!current.is_torch_cpu)
		return;
	torsh_dnnl_verbose_found();
	if (!current.n)
		torsh_blas_unseen("libtorch_cpu.so");
}

static struct rebinding rebinding = {
	.bindings = {.find = find_routine,
		     .unbound = wrapper_of_unbound,
		     .instead = wrapper_of,
		     .skips = is_of_family},
	.before = begin_object,
	.after = end_object,
};

void torsh_blas_objects_start(void)
{
	torsh_blas_slots = torsh_sys_pages(BLAS_SLOTS * sizeof(*torsh_blas_slots));
	if (!torsh_blas_slots)
		return;
	torsh_blas_objects_on = true;
	torsh_rebinding_start(&rebinding);
}

void torsh_blas_objects_recheck(void)
{
	torsh_rebinding_recheck(&rebinding);
}
