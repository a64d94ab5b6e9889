/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The totals of a target at one moment, in as many chunks as they need. The last rows of all tables
 * share one chunk with the rest: for most targets that is the only one.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/store/recording_format.h"
#include "tools/writer/output/rows/rows_parts.h"

/* Upper bound of a row's size in bytes: its columns as varints of 5 and 10 bytes. */
#define SITE_BYTES (8 * 5 + 8 * 10)
#define LIVE_BYTES (4 * 5 + 5 * 10)
#define GROUP_BYTES (4 * 10)
#define MAPPING_BYTES (2 * 5 + 5 * 10)
#define GROWTH_BYTES (5 + 5 * 10 + 1)
#define MOMENT_BYTES (5 + 2 * 10) /* of a site; a moment itself is part of the rest */
#define THREAD_BYTES (2 * 5 + 6 * 10 + 1 + 18)
#define REST_BYTES (4u << 20) /* the process, its heap, its series */

#define REST_OF_TABLES_BYTES                                                                     \
	(ROWS_TOTALS * (SITE_BYTES + LIVE_BYTES + MAPPING_BYTES + GROWTH_BYTES + MOMENT_BYTES) + \
	 ROWS_GROUPS * GROUP_BYTES + ROWS_THREADS * THREAD_BYTES)

_Static_assert(REST_OF_TABLES_BYTES + REST_BYTES <= CHUNK_RAW_MAX,
	       "what is left of all tables fits into one chunk");

/* A chunk under construction. */
struct totals {
	struct recording_file *file;
	struct target *target;
	enum recording_priority priority;
	bool has_growth;
	Torsh__StackTotals sites;
	Torsh__Threads threads;
	Torsh__Live live;
	Torsh__Mappings mappings;
	Torsh__Growth growth;
	Torsh__Moments moments;
	struct rows_memory sites_memory, threads_memory, live_memory, mappings_memory,
		growth_memory, moments_memory;
};

/* Replaceable if the target already has totals in the file, so that these are read after them. */
static void put_chunk(const struct totals *totals, Torsh__Chunk *chunk)
{
	struct rows_state *state = totals->target->rows;
	struct extent extent;

	if (totals->priority != RECORDING_CHECKPOINT && !state->n_extents) {
		if (torsh_recording_append(totals->file, chunk, totals->priority))
			state->has_missed = true;
		return;
	}
	if (torsh_recording_put(totals->file, chunk, totals->priority, &extent)) {
		state->has_missed = true;
		return;
	}
	state->extents = torsh_array_reserve(state->extents, state->n_extents,
					     &state->extent_capacity, sizeof(extent));
	state->extents[state->n_extents++] = extent;
}

/* Put the rows of one table into a chunk of their own, and begin with none again. */
#define PUT_TABLE(totals, table, row, memory)             \
	do {                                              \
		Torsh__Chunk chunk_ = TORSH__CHUNK__INIT; \
                                                          \
		chunk_.n_##table = 1;                     \
		chunk_.table = &(row);                    \
		put_chunk(totals, &chunk_);               \
		torsh_rows_free(memory);                  \
		torsh__##table##__init(row);              \
	} while (0)

static void put_sites(struct totals *totals)
{
	Torsh__StackTotals *row = &totals->sites;
	uint32_t site = 0;

	while (torsh_rows_put_stack_totals(row, &totals->sites_memory, totals->target, &site) &&
	       site < totals->target->state.heap.n_sites)
		PUT_TABLE(totals, stack_totals, row, &totals->sites_memory);
}

static void put_threads(struct totals *totals)
{
	Torsh__Threads *row = &totals->threads;
	uint32_t next = 0;

	torsh_rows_refresh_threads(totals->target);
	for (;;) {
		torsh_rows_put_threads(row, &totals->threads_memory, totals->target, &next);
		if (next >= totals->target->state.n_threads)
			return;
		PUT_TABLE(totals, threads, row, &totals->threads_memory);
	}
}

/* Pieces of one table have the same time. */
static void put_live(struct totals *totals)
{
	struct live_sums *sums = torsh_rows_sum_live(totals->target);
	Torsh__Live *row = &totals->live;
	uint32_t site = 0;

	for (;;) {
		torsh_rows_put_live(row, &totals->live_memory, totals->target, sums, &site);
		if (site >= totals->target->state.heap.n_sites)
			break;
		PUT_TABLE(totals, live, row, &totals->live_memory);
	}
	torsh_rows_free_live(sums);
}

static void put_mappings(struct totals *totals)
{
	Torsh__Mappings *row = &totals->mappings;
	uint32_t site = 0;

	for (;;) {
		torsh_rows_put_mappings(row, &totals->mappings_memory, totals->target, &site);
		if (site >= totals->target->state.mappings.n_sites)
			return;
		PUT_TABLE(totals, mappings, row, &totals->mappings_memory);
	}
}

static void put_growth(struct totals *totals)
{
	struct growth_sum *sum = torsh_rows_sum_growth(totals->target);
	Torsh__Growth *row = &totals->growth;
	uint32_t site = 0;

	totals->has_growth = sum != NULL;
	while (sum) {
		torsh_rows_put_growth(row, &totals->growth_memory, totals->target, sum, &site);
		if (site >= totals->target->state.heap.n_sites)
			break;
		PUT_TABLE(totals, growth, row, &totals->growth_memory);
	}
	free(sum);
}

static void put_moments(struct totals *totals)
{
	Torsh__Moments *row = &totals->moments;
	const struct moments *moments = &totals->target->state.heap.moments;
	uint64_t next = 0;

	while (torsh_rows_put_moments(row, &totals->moments_memory, totals->target, &next) &&
	       next >> 32 < moments->n)
		PUT_TABLE(totals, moments, row, &totals->moments_memory);
}

static void put_window_peak(struct totals *totals, const struct window_peak *peak)
{
	Torsh__WindowPeak row = TORSH__WINDOW_PEAK__INIT, *rows = &row;
	struct rows_memory memory = {0};
	uint32_t next = 0;

	do {
		next = torsh_rows_put_window_peak(rows, &memory, totals->target, peak, next);
		PUT_TABLE(totals, window_peak, rows, &memory);
	} while (next < peak->n_sites);
}

static void put_window_peaks(struct totals *totals)
{
	const struct window_peaks *peaks = &totals->target->state.heap.window_peaks;

	for (uint32_t i = 0; i < WINDOW_PEAKS_SLOTS; i++) {
		if (peaks->kept[i].is_changed)
			put_window_peak(totals, &peaks->kept[i]);
	}
}

#undef PUT_TABLE

/* The last rows of the tables, and everything that is not a table. */
static void put_rest(struct totals *totals)
{
	Torsh__Process process = TORSH__PROCESS__INIT, *processes = &process;
	Torsh__Heap heap = TORSH__HEAP__INIT, *heaps = &heap;
	Torsh__Series series = TORSH__SERIES__INIT, *series_row = &series;
	Torsh__CpuTime cpu_time = TORSH__CPU_TIME__INIT, *cpu_times = &cpu_time;
	Torsh__CpuSupply supply = TORSH__CPU_SUPPLY__INIT, *supplies = &supply;
	Torsh__StackTotals *sites = &totals->sites;
	Torsh__Threads *threads = &totals->threads;
	Torsh__Live *live = &totals->live;
	Torsh__Mappings *mappings = &totals->mappings;
	Torsh__Growth *growth = &totals->growth;
	Torsh__Moments *moments = &totals->moments;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct rows_memory memory = {0};

	torsh_rows_put_process(&process, &memory, totals->target);
	torsh_rows_put_heap(&heap, &memory, totals->target);
	torsh_rows_put_series(&series, &memory, totals->target);
	torsh_rows_put_cpu_time(&cpu_time, &memory, totals->target);
	torsh_rows_put_cpu_supply(&supply, &memory, totals->target);
	chunk.n_process = chunk.n_heap = chunk.n_series = 1;
	chunk.n_stack_totals = chunk.n_threads = chunk.n_live = chunk.n_mappings = 1;
	chunk.n_growth = totals->has_growth;
	chunk.n_cpu_time = cpu_time.n_at_ns != 0;
	chunk.cpu_time = &cpu_times;
	chunk.n_cpu_supply = supply.n_throttled_ns || supply.n_stolen_ns;
	chunk.cpu_supply = &supplies;
	chunk.n_moments = moments->n_number != 0;
	chunk.process = &processes;
	chunk.heap = &heaps;
	chunk.series = &series_row;
	chunk.stack_totals = &sites;
	chunk.threads = &threads;
	chunk.live = &live;
	chunk.mappings = &mappings;
	chunk.growth = &growth;
	chunk.moments = &moments;
	put_chunk(totals, &chunk);
	torsh_rows_free(&memory);
}

void torsh_rows_append_totals(struct recording_file *file, struct target *target,
			      enum recording_priority priority)
{
	struct totals totals = {
		.file = file,
		.target = target,
		.priority = priority,
		.sites = TORSH__STACK_TOTALS__INIT,
		.threads = TORSH__THREADS__INIT,
		.live = TORSH__LIVE__INIT,
		.mappings = TORSH__MAPPINGS__INIT,
		.growth = TORSH__GROWTH__INIT,
		.moments = TORSH__MOMENTS__INIT,
	};

	torsh_peak_tracker_settle(&target->state.heap.tracker);
	torsh_peak_tracker_settle(&target->state.mappings.tracker);
	put_sites(&totals);
	put_threads(&totals);
	put_live(&totals);
	put_mappings(&totals);
	put_growth(&totals);
	put_moments(&totals);
	put_window_peaks(&totals);
	put_rest(&totals);
	torsh_rows_free(&totals.sites_memory);
	torsh_rows_free(&totals.threads_memory);
	torsh_rows_free(&totals.live_memory);
	torsh_rows_free(&totals.mappings_memory);
	torsh_rows_free(&totals.growth_memory);
	torsh_rows_free(&totals.moments_memory);
}
