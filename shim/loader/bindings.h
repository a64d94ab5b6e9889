/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Functions of a library that are interposed without exporting their names: the addresses of them
 * that the loader has stored in the loaded objects are replaced by those of wrappers. An object
 * without such references is not modified.
 */
#ifndef TORSH_SHIM_LOADER_BINDINGS_H
#define TORSH_SHIM_LOADER_BINDINGS_H

#include <link.h>
#include <stdbool.h>

#include "shim/loader/elf_symbol.h"

/* The functions, by numbers. */
struct bindings {
	/* The number of the function with this name, -1 if it isn't interposed. */
	int (*find)(const char *name);
	/* The definition to which references to the name bind; NULL: not the library's. */
	void *(*bound)(int i);
	/*
	 * Instead of bound, or NULL: the wrapper in place of the loader's code, to which the place
	 * leads until it is called.
	 */
	void *(*unbound)(int i, void **place, void *binder);
	/* The wrapper in place of an address that was found for the name, or found itself. */
	void *(*instead)(int i, void *found);
	/* Whether the object belongs to the library, so that it stays as it is. */
	bool (*skips)(const struct torsh_elf_image *image, const void *dynamic, const char *path);
	/*
	 * Whether a reference that isn't bound yet requires another version of the function than
	 * the interposed one; version: NULL if it requires none. NULL: no function has another.
	 */
	bool (*is_other)(int i, const char *version);
};

/*
 * Store the wrapper wherever the object's relocations have bound one of the functions, or will bind
 * it lazily. Returns false if something remains because the loader may not have relocated the
 * object yet; with is_relocated it has.
 */
bool torsh_bindings_change(const struct dl_phdr_info *object, bool is_relocated,
			   const struct bindings *bindings);

#endif
