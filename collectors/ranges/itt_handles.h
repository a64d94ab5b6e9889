/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The handles that ITT's clients get without another tool: structs that live as long as the
 * process, one per name. Any thread, lock-free.
 */
#ifndef TORSH_COLLECTORS_RANGES_ITT_HANDLES_H
#define TORSH_COLLECTORS_RANGES_ITT_HANDLES_H

#include "shim/ranges/itt.h"

/* A counter, whichever tool made its handle: its name, and its count. */
struct counter {
	uint32_t name, domain; /* labels */
	uint32_t type; /* enum itt_type */
	_Atomic uint64_t count; /* by increments */
};

/* The handle of a domain's name; NULL without memory. */
struct itt_domain *torsh_itt_domain(const char *name);

/* The handle of a string; NULL without memory. */
struct itt_string *torsh_itt_string(const char *text);

/* The handle of a histogram in a domain; NULL without memory. */
struct itt_histogram *torsh_itt_histogram(const struct itt_domain *domain, const char *name,
					  uint32_t x_type, uint32_t y_type);

/*
 * Register a counter by its handle; NULL: make one. Returns the handle, NULL without memory. The
 * same name, domain and type share one counter.
 */
void *torsh_itt_add_counter(void *handle, const char *name, const char *domain, uint32_t type);

/*
 * The counter of a handle, or NULL. A handle made by a client's static part is read for its name.
 */
struct counter *torsh_itt_find_counter(void *handle);

/* The counter of a name in a domain, created if needed. */
struct counter *torsh_itt_named_counter(const struct itt_domain *domain,
					const struct itt_string *name);

#endif
