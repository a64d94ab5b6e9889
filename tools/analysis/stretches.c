/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/stretches.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define STRETCH_BYTES_MAX 30u /* three varints */
#define RUNS_TRIED 64u /* the most recent ones: streams have few runs per launching thread */

struct stretch_run {
	struct column_bytes bytes;
	uint64_t last_begin_ns;
	uint32_t stream;
};

/* ---- adding ---------------------------------------------------------------------------------- */

static bool goes_on(const struct stretch_run *run, uint32_t stream, uint64_t begin_ns)
{
	return run->stream == stream && run->last_begin_ns <= begin_ns;
}

static size_t find_run(struct stretches *stretches, uint32_t stream, uint64_t begin_ns)
{
	size_t n = stretches->n_runs, oldest = n > RUNS_TRIED ? n - RUNS_TRIED : 0;

	if (n && goes_on(&stretches->runs[stretches->latest], stream, begin_ns))
		return stretches->latest;
	for (size_t i = n; i-- > oldest;) {
		if (goes_on(&stretches->runs[i], stream, begin_ns))
			return i;
	}
	stretches->runs = torsh_array_reserve(stretches->runs, n, &stretches->n_room,
					      sizeof(*stretches->runs));
	stretches->runs[n] = (struct stretch_run){.stream = stream};
	return stretches->n_runs++;
}

void torsh_stretches_add(struct stretches *stretches, uint32_t stream,
			 const struct device_stretch *stretch)
{
	struct stretch_run *run;

	stretches->latest = find_run(stretches, stream, stretch->begin_ns);
	run = &stretches->runs[stretches->latest];
	if (torsh_bytes_reserve(&run->bytes, STRETCH_BYTES_MAX))
		torsh_die("out of memory");
	torsh_bytes_put_varint(&run->bytes, stretch->begin_ns - run->last_begin_ns);
	torsh_bytes_put_varint(&run->bytes, (stretch->end_ns - stretch->begin_ns) << 1 |
						    stretch->is_communication);
	torsh_bytes_put_varint(&run->bytes,
			       torsh_bytes_zigzag(stretch->begin_ns - stretch->asked_ns));
	run->last_begin_ns = stretch->begin_ns;
}

void torsh_stretches_free(struct stretches *stretches)
{
	for (size_t i = 0; i < stretches->n_runs; i++)
		free(stretches->runs[i].bytes.bytes);
	free(stretches->runs);
	*stretches = (struct stretches){0};
}

/* ---- walking --------------------------------------------------------------------------------- */

/* Returns false at the run's end. */
static bool read_next(struct stretch_cursor *cursor)
{
	struct device_stretch *stretch = &cursor->stretch;
	uint64_t duration;

	if (cursor->bytes.at == cursor->bytes.end)
		return false;
	stretch->begin_ns += torsh_bytes_take_varint(&cursor->bytes);
	duration = torsh_bytes_take_varint(&cursor->bytes);
	stretch->end_ns = stretch->begin_ns + (duration >> 1);
	stretch->is_communication = duration & 1;
	stretch->asked_ns =
		stretch->begin_ns - torsh_bytes_unzigzag(torsh_bytes_take_varint(&cursor->bytes));
	return true;
}

static bool is_earlier(const struct stretch_walk *walk, size_t a, size_t b)
{
	return walk->heap[a].stretch.begin_ns < walk->heap[b].stretch.begin_ns;
}

/* Restores the heap order from i downwards. */
static void sift_down(struct stretch_walk *walk, size_t i)
{
	for (;;) {
		size_t first = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < walk->n; child++)
			first = is_earlier(walk, child, first) ? child : first;
		if (first == i)
			return;
		struct stretch_cursor cursor = walk->heap[i];

		walk->heap[i] = walk->heap[first];
		walk->heap[first] = cursor;
		i = first;
	}
}

void torsh_stretches_walk(struct stretch_walk *walk, const struct stretches *stretches)
{
	*walk = (struct stretch_walk){
		.heap = torsh_need_items(NULL, 0, stretches->n_runs, sizeof(*walk->heap))};
	for (size_t i = 0; i < stretches->n_runs; i++) {
		const struct column_bytes *bytes = &stretches->runs[i].bytes;

		walk->heap[walk->n].bytes =
			(struct column_reader){.at = bytes->bytes, .end = bytes->bytes + bytes->n};
		walk->n += read_next(&walk->heap[walk->n]);
	}
	for (size_t i = walk->n / 2; i-- > 0;)
		sift_down(walk, i);
}

bool torsh_stretches_next(struct stretch_walk *walk, struct device_stretch *stretch)
{
	if (!walk->n) {
		free(walk->heap);
		walk->heap = NULL;
		return false;
	}
	*stretch = walk->heap[0].stretch;
	if (!read_next(&walk->heap[0]))
		walk->heap[0] = walk->heap[--walk->n];
	sift_down(walk, 0);
	return true;
}
