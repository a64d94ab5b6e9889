/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls of libraries, added up by routine, library, sizes, letters and texts. However many sizes a
 * program uses, there are at most LIBRARY_CALLS_MAX rows: later ones count in a row without sizes
 * for each name. A zeroed table is empty.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_LIBRARY_CALLS_H
#define TORSH_WRITER_FOLD_TABLES_LIBRARY_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire/event.h"
#include "tools/base/containers/hash_map.h"

#define LIBRARY_CALLS_MAX 65536u

/* As in the event, with the recording's numbers of labels. No padding: it is hashed. */
struct library_call_key {
	uint64_t m, n, k, batch;
	uint32_t name, routine, library, type, letters, shape, details;
	uint32_t is_rest; /* the sizes are left out */
};

struct library_call_sum {
	struct library_call_key key;
	uint64_t calls, total_ns, min_ns, max_ns;
};

struct library_calls {
	struct library_call_sum *rows;
	uint32_t n_rows;
	size_t capacity;
	struct hash_map by_key;
	bool is_changed; /* since the rows were written */
};

/* Add a call, its labels being the recording's numbers. */
void torsh_library_calls_take(struct library_calls *calls, const struct event_library_call *call);

/* Free the table. */
void torsh_library_calls_free(struct library_calls *calls);

#endif
