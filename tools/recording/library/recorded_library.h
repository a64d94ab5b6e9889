/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of BLAS, LAPACK and other libraries of mathematics: a part of recording.h. */
#ifndef TORSH_RECORDING_LIBRARY_RECORDED_LIBRARY_H
#define TORSH_RECORDING_LIBRARY_RECORDED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls of one routine with the same sizes. Sizes have 1 added; 0: none, or not known. */
struct recorded_library_call {
	const char *name, *routine, *library; /* NULL: not known */
	const char *shape, *details; /* of other libraries than BLAS; NULL: none */
	uint64_t m, n, k, batch;
	uint32_t type; /* a letter of agent/wire/library_types.def */
	uint32_t letters; /* from the lowest byte on */
	bool is_rest; /* of more sizes than the recording has */
	uint64_t calls, total_ns, min_ns, max_ns;
};

struct recorded_library {
	char **names;
	size_t n_names;
	struct recorded_library_call *calls;
	size_t n_calls;
};

#endif
