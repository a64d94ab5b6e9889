/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/window_peaks.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/fold/heap_state.h"

/* An open window. */
struct window_usages {
	uint32_t window;
	uint64_t device_bytes; /* in the tracker's sum, too: WINDOW_OF_DEVICES */
	struct peak_tracker tracker;
	struct site_usage *items; /* by site */
	size_t n;
};

void torsh_window_peaks_begin(struct heap *heap, uint32_t window, uint64_t stamp)
{
	struct window_peaks *peaks = &heap->window_peaks;
	struct window_usages *usages;
	uint64_t bytes = heap->tracker.bytes;

	if (window != WINDOW_OF_DEVICES && peaks->n_open == WINDOW_PEAKS_OPEN + peaks->has_devices)
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

		uint64_t wanted = sum->bytes + usages->device_bytes;

		/* A realloc changes the sum once, and two sites. */
		if (tracker->bytes != wanted || tracker->n != sum->n)
			torsh_peak_tracker_change(tracker, sum->last_stamp,
						  (int64_t)(sum->n - tracker->n),
						  (int64_t)(wanted - tracker->bytes));
		usages->items = torsh_array_extend(usages->items, (size_t)site + 1, &usages->n,
						   sizeof(*usages->items));
		torsh_site_usage_change(&usages->items[site], tracker, 0, n, bytes);
	}
}

/* Put the peak into its slot; the tracker is settled. */
static void keep(struct window_peak *peak, uint32_t number, const struct window_usages *usages)
{
	free(peak->sites);
	*peak = (struct window_peak){
		.number = number,
		.stamp = usages->tracker.peak_stamp,
		.bytes = usages->tracker.peak_bytes,
		.n = usages->tracker.peak_n,
		.peak_number = usages->tracker.peak_number,
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
	peaks->n_ended++;
	keep(&peaks->kept[peaks->n_ended % WINDOW_PEAKS_KEPT], peaks->n_ended, peaks->open[i]);
	free_usages(peaks->open[i]);
	peaks->open[i] = peaks->open[--peaks->n_open];
}

static struct window_usages *find_devices(const struct window_peaks *peaks)
{
	uint32_t i = 0;

	while (peaks->open[i]->window != WINDOW_OF_DEVICES)
		i++;
	return peaks->open[i];
}

void torsh_window_peaks_devices(struct heap *heap, uint64_t stamp, int64_t bytes)
{
	struct window_peaks *peaks = &heap->window_peaks;
	struct window_usages *usages;

	if (!bytes)
		return;
	if (!peaks->has_devices)
		torsh_window_peaks_begin(heap, WINDOW_OF_DEVICES, stamp);
	peaks->has_devices = true;
	usages = find_devices(peaks);
	usages->device_bytes += (uint64_t)bytes;
	torsh_peak_tracker_change(&usages->tracker, stamp, 0, bytes);
}

void torsh_window_peaks_keep_devices(struct heap *heap)
{
	struct window_peak *peak = &heap->window_peaks.kept[WINDOW_PEAKS_KEPT];
	struct window_usages *usages;
	uint64_t bytes = 0;

	if (!heap->window_peaks.has_devices)
		return;
	usages = find_devices(&heap->window_peaks);
	torsh_peak_tracker_settle(&usages->tracker);
	if (peak->peak_number == usages->tracker.peak_number)
		return;
	keep(peak, WINDOW_OF_DEVICES, usages);
	for (uint32_t i = 0; i < peak->n_sites; i++)
		bytes += peak->sites[i].bytes;
	peak->joint_bytes = peak->bytes;
	peak->bytes = bytes;
}

void torsh_window_peaks_destroy(struct window_peaks *peaks)
{
	while (peaks->n_open)
		free_usages(peaks->open[--peaks->n_open]);
	for (uint32_t i = 0; i < WINDOW_PEAKS_SLOTS; i++)
		free(peaks->kept[i].sites);
}
