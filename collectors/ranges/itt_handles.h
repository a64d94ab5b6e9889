/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The handles that ITT's clients are given where no other tool gives them: structs that live as
 * long as the process, one for each name. Any thread; no locks.
 */
#ifndef TORSH_COLLECTORS_RANGES_ITT_HANDLES_H
#define TORSH_COLLECTORS_RANGES_ITT_HANDLES_H

#include "shim/ranges/itt.h"

/* A counter, whoever made its handle: what it is called, and what it counts. */
struct counter {
	uint32_t name, domain; /* labels */
	uint32_t type; /* enum itt_type */
	_Atomic uint64_t count; /* by increments */
};

/* NULL: there is no memory. */
struct itt_domain *torsh_itt_domain(const char *name);
struct itt_string *torsh_itt_string(const char *text);
struct itt_histogram *torsh_itt_histogram(const struct itt_domain *domain, const char *name,
					  uint32_t x_type, uint32_t y_type);

/*
 * Remember a counter by its handle; NULL: make one. Returns the handle, NULL without memory. The
 * same name, domain and type have one counter.
 */
void *torsh_itt_add_counter(void *handle, const char *name, const char *domain, uint32_t type);

/*
 * The counter of a handle, or NULL. One that a client's static part made by itself is looked into.
 */
struct counter *torsh_itt_find_counter(void *handle);

/* The counter that a name of a domain is, made where it is not there. */
struct counter *torsh_itt_named_counter(const struct itt_domain *domain,
					const struct itt_string *name);

#endif
