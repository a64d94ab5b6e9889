/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The usages of sites as of a moment (heap_moments.h), in the order of their numbers: most take 3
 * or 4 bytes. Written once, read from the start.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_MOMENT_SITES_H
#define TORSH_WRITER_FOLD_TABLES_MOMENT_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/store/columns_bytes.h"

/* The usage of a site from a moment on. */
struct moment_site {
	uint32_t site;
	uint32_t n;
	uint64_t bytes;
};

/* A zeroed list is empty. */
struct moment_sites {
	struct column_bytes bytes;
	uint32_t n;
	uint32_t last; /* the site that was added last */
};

/* Where a list is read. */
struct moment_sites_reader {
	struct column_reader bytes;
	uint32_t site; /* the one before */
};

/* Add a site, whose number is above those of the others. */
void torsh_moment_sites_add(struct moment_sites *sites, const struct moment_site *site);

/* No site is added any more: return unused memory. */
void torsh_moment_sites_end(struct moment_sites *sites);

/* Free the list. */
void torsh_moment_sites_destroy(struct moment_sites *sites);

/* Begin to read the list, which must not change meanwhile. */
struct moment_sites_reader torsh_moment_sites_read(const struct moment_sites *sites);

/* Set *site to the next one; returns false after the last. */
bool torsh_moment_sites_next(struct moment_sites_reader *reader, struct moment_site *site);

#endif
