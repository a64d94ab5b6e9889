/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* CPython's small objects near the peak: a part of recording.h. */
#ifndef TORSH_RECORDING_MEMORY_RECORDED_CENSUS_H
#define TORSH_RECORDING_MEMORY_RECORDED_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Objects of a type and a size. */
struct recorded_census_row {
	const char *type; /* of the census's names; NULL: blocks that begin with no object */
	uint32_t block_bytes;
	uint64_t objects;
};

/* As in Census. */
struct recorded_census {
	bool is_there;
	uint64_t begin_ns, end_ns, heap_begin_bytes, heap_end_bytes, mapped_bytes;
	uint64_t pool_bytes, blocks, objects, bytes, pools_changed, cpu_ns;
	char **names;
	size_t n_names;
	struct recorded_census_row *rows; /* those with most bytes first */
	size_t n_rows;
	char *problem; /* why there is none; NULL: not known, or there is */
};

#endif
