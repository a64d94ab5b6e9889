/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The outermost operators and modules of each thread of a process, in the order of their begins:
 * what steps by repeats (repeats.h) are found in. What only makes or fills a tensor is left out:
 * each layer of a model begins with that, once.
 */
#ifndef TORSH_TIMELINE_STEPS_OP_SEQUENCE_H
#define TORSH_TIMELINE_STEPS_OP_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/base/containers/sparse_array.h"
#include "tools/timeline/spans.h"

#define SEQUENCE_MAX (1u << 20) /* the last ones of a thread that are stored */
#define SEQUENCE_THREADS 64u

struct op_place {
	uint64_t start_ns, end_ns;
	uint64_t pause_ns; /* since the last operator of the thread; 0 for its first one */
	uint32_t symbol; /* label << 1 | whether it is a module */
	uint32_t inputs; /* label; 0: unknown */
};

static inline bool torsh_op_place_is_module(const struct op_place *place)
{
	return place->symbol & 1;
}

/* A span whose end is not known yet. */
struct open_place {
	uint64_t ordinal, at; /* of the span; number of the place */
	bool is_open;
};

/* Of a thread, as a ring. */
struct op_sequence {
	uint32_t thread;
	struct sparse_array places; /* of struct op_place */
	uint64_t n; /* number so far */
	uint64_t n_modules;
	uint64_t last_end_ns; /* of any operator; 0: none has ended */
	struct open_place op, module;
};

/* Of a process; zeros are none. */
struct op_sequences {
	struct op_sequence items[SEQUENCE_THREADS];
	size_t n;
};

/* Add the span if it is an outermost one. Pass each span's begin, in time order. */
void torsh_op_sequences_begin(struct op_sequences *sequences, const struct span *span);

/* Pass each span's end. */
void torsh_op_sequences_end(struct op_sequences *sequences, const struct span *span);

/* Returns the places of one thread, in the order of time, and sets *n. The caller frees them. */
struct op_place *torsh_op_sequence_take(const struct op_sequence *sequence, size_t *n);

/*
 * Returns the places of the thread that called most modules, else of that with most operators, in
 * the order of time; NULL without any. Sets *n. The caller frees them.
 */
struct op_place *torsh_op_sequences_take(const struct op_sequences *sequences, size_t *n);

/* Free the sequences. */
void torsh_op_sequences_free(struct op_sequences *sequences);

#endif
