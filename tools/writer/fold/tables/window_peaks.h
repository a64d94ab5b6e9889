/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What was live at the highest moment of a window that the program opened, by site. While such a
 * window is open each change of a site is noted for it; peak_tracker.h has the method. Used by the
 * drain thread, at a moment to which the heap is folded.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_WINDOW_PEAKS_H
#define TORSH_WRITER_FOLD_TABLES_WINDOW_PEAKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOW_PEAKS_OPEN 16u /* windows at one time; of more only the sums are known */
#define WINDOW_PEAKS_KEPT 16u /* peaks of ended windows: the latest ones */
/*
 * A window of the writer's own, over the sum of the heap and the memory of devices. It lasts; its
 * peak so far has a slot behind those of ended windows.
 */
#define WINDOW_OF_DEVICES UINT32_MAX
#define WINDOW_PEAKS_SLOTS (WINDOW_PEAKS_KEPT + 1)

/* The usage of a site at the peak. */
struct window_peak_site {
	uint32_t site;
	uint64_t bytes, n;
};

/* The peak of a window that has ended. */
struct window_peak {
	uint32_t number; /* 1, 2, ...; WINDOW_OF_DEVICES */
	uint64_t stamp, bytes, n; /* of the heap */
	uint64_t joint_bytes; /* with devices, of WINDOW_OF_DEVICES; else 0 */
	uint32_t peak_number; /* of its tracker */
	bool is_changed; /* since the last checkpoint */
	struct window_peak_site *sites;
	uint32_t n_sites;
};

struct window_usages;

struct window_peaks {
	/* n_open of them; that of devices is not counted by WINDOW_PEAKS_OPEN */
	struct window_usages *open[WINDOW_PEAKS_OPEN + 1];
	uint32_t n_open;
	bool has_devices; /* WINDOW_OF_DEVICES is open */
	struct window_peak kept[WINDOW_PEAKS_SLOTS]; /* number i is at i % WINDOW_PEAKS_KEPT */
	uint32_t n_ended; /* windows so far */
};

struct heap;

/* A window begins at the stamp. Does nothing if WINDOW_PEAKS_OPEN are open. */
void torsh_window_peaks_begin(struct heap *heap, uint32_t window, uint64_t stamp);

/* The window ends, and its peak is kept. Does nothing if torsh_window_peaks_begin did nothing. */
void torsh_window_peaks_end(struct heap *heap, uint32_t window);

/* A site is about to change; the heap's sum has changed already. */
void torsh_window_peaks_note(struct heap *heap, uint32_t site, int64_t n, int64_t bytes);

/* The memory of devices changed; the window of it begins with the first. */
void torsh_window_peaks_devices(struct heap *heap, uint64_t stamp, int64_t bytes);

/* Put the peak so far of the window of devices into its slot, if it is another one. */
void torsh_window_peaks_keep_devices(struct heap *heap);

/* Free all windows. */
void torsh_window_peaks_destroy(struct window_peaks *peaks);

#endif
