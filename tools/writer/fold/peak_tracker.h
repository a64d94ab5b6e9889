/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An exact peak in O(1) a change. A peak tracker is a sum of bytes over time (blocks of the heap,
 * mapped memory); a site usage is what one stack has of it. It notes what it was at the last peak
 * only when it changes again: until then what it is now is what it was then.
 *
 * The peak is the state right after the first change that brought the sum to its greatest value:
 * among equal ones the first, and what doesn't raise the sum (a block of size 0, a move from stack
 * to stack) belongs to the time after. Changes must come in the order of time.
 */
#ifndef TORSH_WRITER_FOLD_PEAK_TRACKER_H
#define TORSH_WRITER_FOLD_PEAK_TRACKER_H

#include <stdint.h>

struct peak_tracker {
	uint64_t bytes, n; /* now; n counts blocks or pieces */
	uint64_t peak_bytes, peak_n;
	uint64_t peak_stamp;
	uint64_t last_stamp; /* of the last change */
	uint32_t peak_number; /* how often the record was broken; 0: never above 0 */
	uint64_t window_bytes,
		/*
		 * the highest since torsh_peak_tracker_mark, as far as noted; never above the peak
		 */
		window_stamp;
};

/* Steps (see step_marks.h): of the block that came when there was none, and of the latest one. */
struct site_usage {
	uint64_t bytes, n; /* now */
	uint64_t base_bytes, base_n; /* at peak number `seen` */
	uint32_t seen;
	uint32_t first_step, last_step;
	uint32_t base_first_step, base_last_step;
};

/* Take the current sum as the peak. */
static inline void torsh_peak_tracker_note_peak(struct peak_tracker *tracker)
{
	tracker->peak_number++;
	tracker->peak_bytes = tracker->bytes;
	tracker->peak_n = tracker->n;
	tracker->peak_stamp = tracker->last_stamp;
}

/* Take the current sum as the highest since the last mark, and as the peak where it is higher. */
static inline void torsh_peak_tracker_note_window(struct peak_tracker *tracker)
{
	tracker->window_bytes = tracker->bytes;
	tracker->window_stamp = tracker->last_stamp;
	if (tracker->bytes > tracker->peak_bytes)
		torsh_peak_tracker_note_peak(tracker);
}

/* Change the sum as a whole, before the site usages are changed. */
static inline void torsh_peak_tracker_change(struct peak_tracker *tracker, uint64_t stamp,
					     int64_t n, int64_t bytes)
{
	if (bytes <= 0 && tracker->bytes > tracker->window_bytes)
		torsh_peak_tracker_note_window(tracker);
	tracker->bytes += (uint64_t)bytes;
	tracker->n += (uint64_t)n;
	tracker->last_stamp = stamp;
}

/* Change one site usage by its part of what torsh_peak_tracker_change got, in a step. */
static inline void torsh_site_usage_change(struct site_usage *usage,
					   const struct peak_tracker *tracker, uint32_t step,
					   int64_t n, int64_t bytes)
{
	if (usage->seen != tracker->peak_number) {
		usage->seen = tracker->peak_number;
		usage->base_bytes = usage->bytes;
		usage->base_n = usage->n;
		usage->base_first_step = usage->first_step;
		usage->base_last_step = usage->last_step;
	}
	if (n > 0) {
		if (!usage->n)
			usage->first_step = step;
		usage->last_step = step;
	}
	usage->bytes += (uint64_t)bytes;
	usage->n += (uint64_t)n;
}

/*
 * Call before the peak is read: the sum may stand at its record right now. Site usages and later
 * changes stay right.
 */
static inline void torsh_peak_tracker_settle(struct peak_tracker *tracker)
{
	if (tracker->bytes > tracker->peak_bytes)
		torsh_peak_tracker_note_peak(tracker);
}

/*
 * Set *bytes to the highest sum since the last mark and *at to its stamp; the next interval begins
 * here.
 */
static inline void torsh_peak_tracker_mark(struct peak_tracker *tracker, uint64_t stamp,
					   uint64_t *bytes, uint64_t *at)
{
	if (tracker->bytes > tracker->window_bytes)
		torsh_peak_tracker_note_window(tracker);
	*bytes = tracker->window_bytes;
	*at = tracker->window_stamp;
	tracker->window_bytes = tracker->bytes;
	tracker->window_stamp = stamp;
}

/* Bytes of a site at the peak, after torsh_peak_tracker_settle. */
static inline uint64_t torsh_site_usage_peak_bytes(const struct site_usage *usage,
						   const struct peak_tracker *tracker)
{
	return usage->seen == tracker->peak_number ? usage->base_bytes : usage->bytes;
}

/* The step of the oldest block of a site at the peak, after torsh_peak_tracker_settle. */
static inline uint32_t torsh_site_usage_peak_first_step(const struct site_usage *usage,
							const struct peak_tracker *tracker)
{
	return usage->seen == tracker->peak_number ? usage->base_first_step : usage->first_step;
}

/* The step of its latest block then. */
static inline uint32_t torsh_site_usage_peak_last_step(const struct site_usage *usage,
						       const struct peak_tracker *tracker)
{
	return usage->seen == tracker->peak_number ? usage->base_last_step : usage->last_step;
}

/* Its number of blocks then. */
static inline uint64_t torsh_site_usage_peak_n(const struct site_usage *usage,
					       const struct peak_tracker *tracker)
{
	return usage->seen == tracker->peak_number ? usage->base_n : usage->n;
}

#endif
