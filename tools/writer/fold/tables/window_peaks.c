/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/window_peaks.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/fold/heap_state.h"

/* An open window. */
struct window_usages {
	uint32_t window;
	struct peak_tracker tracker;
	struct site_usage *items; /* by site */
	size_t n;
};

void torsh_window_peaks_begin(struct heap *heap, uint32_t window, uint64_t stamp)
{
	struct window_peaks *peaks = &heap->window_peaks;
	struct window_usages *usages;
	uint64_t bytes = heap->tracker.bytes;

	if (peaks->n_open == WINDOW_PEAKS_OPEN)
		return;
	usages = torsh_memory_new(1, sizeof(*usages));
	usages->window = window;
	usages->tracker = (struct peak_tracker){
		.bytes = bytes,
		.n = heap->tracker.n,
		.peak_bytes = bytes,
		.peak_n = heap->tracker.n,
		.peak_stamp = stamp,
		.peak_number = 1,
		.window_bytes = bytes,
	};
	usages->n = heap->n_sites;
	usages->items = torsh_memory_new(usages->n, sizeof(*usages->items));
	for (uint32_t i = 0; i < heap->n_sites; i++) {
		struct site_totals totals = torsh_heap_totals(heap, i);

		usages->items[i].bytes = totals.live.bytes;
		usages->items[i].n = totals.live.n;
	}
	peaks->open[peaks->n_open++] = usages;
}

void torsh_window_peaks_note(struct heap *heap, uint32_t site, int64_t n, int64_t bytes)
{
	const struct peak_tracker *sum = &heap->tracker;

	for (uint32_t i = 0; i < heap->window_peaks.n_open; i++) {
		struct window_usages *usages = heap->window_peaks.open[i];
		struct peak_tracker *tracker = &usages->tracker;

		/* A realloc changes the sum once, and two sites. */
		if (tracker->bytes != sum->bytes || tracker->n != sum->n)
			torsh_peak_tracker_change(tracker, sum->last_stamp,
						  (int64_t)(sum->n - tracker->n),
						  (int64_t)(sum->bytes - tracker->bytes));
		usages->items = torsh_array_extend(usages->items, (size_t)site + 1, &usages->n,
						   sizeof(*usages->items));
		torsh_site_usage_change(&usages->items[site], tracker, 0, n, bytes);
	}
}

static void keep(struct window_peaks *peaks, const struct window_usages *usages)
{
	uint32_t number = ++peaks->n_ended;
	struct window_peak *peak = &peaks->kept[number % WINDOW_PEAKS_KEPT];

	free(peak->sites);
	*peak = (struct window_peak){
		.number = number,
		.stamp = usages->tracker.peak_stamp,
		.bytes = usages->tracker.peak_bytes,
		.n = usages->tracker.peak_n,
		.is_changed = true,
		.sites = torsh_memory_new(usages->n, sizeof(*peak->sites)),
	};
	for (uint32_t i = 0; i < usages->n; i++) {
		struct window_peak_site site = {
			.site = i,
			.bytes = torsh_site_usage_peak_bytes(&usages->items[i], &usages->tracker),
			.n = torsh_site_usage_peak_n(&usages->items[i], &usages->tracker),
		};

		if (site.n)
			peak->sites[peak->n_sites++] = site;
	}
}

static void free_usages(struct window_usages *usages)
{
	free(usages->items);
	free(usages);
}

void torsh_window_peaks_end(struct heap *heap, uint32_t window)
{
	struct window_peaks *peaks = &heap->window_peaks;
	uint32_t i = 0;

	while (i < peaks->n_open && peaks->open[i]->window != window)
		i++;
	if (i == peaks->n_open)
		return;
	torsh_peak_tracker_settle(&peaks->open[i]->tracker);
	keep(peaks, peaks->open[i]);
	free_usages(peaks->open[i]);
	peaks->open[i] = peaks->open[--peaks->n_open];
}

void torsh_window_peaks_destroy(struct window_peaks *peaks)
{
	while (peaks->n_open)
		free_usages(peaks->open[--peaks->n_open]);
	for (uint32_t i = 0; i < WINDOW_PEAKS_KEPT; i++)
		free(peaks->kept[i].sites);
}
