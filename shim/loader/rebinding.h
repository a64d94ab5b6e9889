/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Interposing a library's functions in all loaded objects, and later in those that were opened
 * since. The agent exports none of the names, so that a program which looks whether the library is
 * there finds what it finds without the agent.
 */
#ifndef TORSH_SHIM_LOADER_REBINDING_H
#define TORSH_SHIM_LOADER_REBINDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/loader/bindings.h"

struct dl_phdr_info;

struct rebinding {
	struct bindings bindings;
	const char *library; /* a text in the library's path; NULL: it is always there */
	bool (*find)(void); /* prepare its functions; false: it isn't known yet; NULL: they are */
	/* An object is about to be changed, and was; NULL: nothing is to be done. */
	void (*before)(const struct dl_phdr_info *object);
	void (*after)(const struct dl_phdr_info *object);
	_Atomic uint32_t n_seen_loads; /* of dlopen, at the last complete pass */
	/* What that pass saw: dlpi_adds, dlpi_subs, and how many objects there were. */
	_Atomic uint64_t adds, subs, n;
};

/* Begin, while the process has no other threads. Takes the loader's lock. */
void torsh_rebinding_start(struct rebinding *rebinding);

/* A library is about to be opened. */
void torsh_rebinding_loading(void);

/* Look at the objects that were opened since the last pass, if any. Takes the loader's lock. */
void torsh_rebinding_recheck(struct rebinding *rebinding);

#endif
