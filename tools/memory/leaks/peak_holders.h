/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Who held memory at the peak: what imports of packages held, by package, and the other allocation
 * sites.
 */
#ifndef TORSH_MEMORY_LEAKS_PEAK_HOLDERS_H
#define TORSH_MEMORY_LEAKS_PEAK_HOLDERS_H

#include "tools/memory/leaks/kept_imports.h"
#include "tools/memory/peak.h"

struct peak_holders {
	struct kept_imports imports; /* sorted */
	struct allocation_sites sites; /* the others; neither merged nor sorted nor named */
};

/* Find the holders. holders->sites.view and .depth are set before. */
void torsh_peak_holders_find(struct peak_holders *holders, const struct peak *peak,
			     const struct recording *recording, struct symbols *symbols);

/* Free the holders. */
void torsh_peak_holders_free(struct peak_holders *holders);

#endif
