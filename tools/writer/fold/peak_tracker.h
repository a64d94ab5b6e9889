/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An exact peak at O(1) per change. A peak tracker is a sum of bytes over time (blocks of the heap,
 * mapped memory); a site usage is one stack's part of it. A site usage stores its value at the last
 * peak lazily, when it next changes: until then its current value is its value at the peak.
 *
 * The peak is the state right after the first change that raises the sum to its maximum. Among
 * equal maxima the first one counts; changes that do not raise the sum (a block of size 0, a move
 * between stacks) come after the peak. Changes must be in time order.
 */
#ifndef TORSH_WRITER_FOLD_PEAK_TRACKER_H
#define TORSH_WRITER_FOLD_PEAK_TRACKER_H

#include <stdint.h>

struct peak_tracker {
	uint64_t bytes, n; /* current; n counts blocks or mappings */
	uint64_t peak_bytes, peak_n;
	uint64_t peak_stamp;
	uint64_t last_stamp; /* of the last change */
	uint32_t peak_number; /* number of new maxima so far; 0: never above 0 */
	/*
	 * the highest sum since torsh_peak_tracker_mark or torsh_peak_tracker_split, and when;
	 * never above the peak
	 */
	uint64_t window_bytes, window_stamp;
	/* the highest sum between the last mark and the last split, and when */
	uint64_t marked_bytes, marked_stamp;
	uint64_t split_bytes; /* the highest sum between the last split and the last mark */
	/* likewise since torsh_peak_tracker_next_moment, and when */
	uint64_t moment_bytes, moment_stamp;
};

/*
 * Steps (step_marks.h) of the oldest block, set when there was none before, and of the latest one.
 */
struct site_usage {
	uint64_t bytes, n; /* current */
	uint32_t seen;
	uint32_t first_step, last_step;
	uint32_t base_first_step, base_last_step;
	uint64_t base_bytes, base_n; /* at peak number `seen` */
};

/* Record the current sum as the peak. */
static inline void torsh_peak_tracker_note_peak(struct peak_tracker *tracker)
{
	tracker->peak_number++;
	tracker->peak_bytes = tracker->bytes;
	tracker->peak_n = tracker->n;
	tracker->peak_stamp = tracker->last_stamp;
}

/* Record the current sum as the highest since the last mark, and as the peak if it is higher. */
static inline void torsh_peak_tracker_note_window(struct peak_tracker *tracker)
{
	tracker->window_bytes = tracker->bytes;
	tracker->window_stamp = tracker->last_stamp;
	if (tracker->bytes > tracker->peak_bytes)
		torsh_peak_tracker_note_peak(tracker);
}

/* Change the sum. Call before the site usages are changed. */
static inline void torsh_peak_tracker_change(struct peak_tracker *tracker, uint64_t stamp,
					     int64_t n, int64_t bytes)
{
	if (bytes <= 0 && tracker->bytes > tracker->window_bytes)
		torsh_peak_tracker_note_window(tracker);
	tracker->bytes += (uint64_t)bytes;
	tracker->n += (uint64_t)n;
	tracker->last_stamp = stamp;
}

/* Apply one site's part of the change passed to torsh_peak_tracker_change, in a step. */
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

/* Call before the peak is read: the current sum may be the maximum. Later changes remain valid. */
static inline void torsh_peak_tracker_settle(struct peak_tracker *tracker)
{
	if (tracker->bytes > tracker->peak_bytes)
		torsh_peak_tracker_note_peak(tracker);
}

/* End the window: its highest sum belongs to the interval of marks and to that of splits. */
static inline void torsh_peak_tracker_end_window(struct peak_tracker *tracker, uint64_t stamp)
{
	if (tracker->bytes > tracker->window_bytes)
		torsh_peak_tracker_note_window(tracker);
	if (tracker->window_bytes > tracker->marked_bytes) {
		tracker->marked_bytes = tracker->window_bytes;
		tracker->marked_stamp = tracker->window_stamp;
	}
	if (tracker->window_bytes > tracker->moment_bytes) {
		tracker->moment_bytes = tracker->window_bytes;
		tracker->moment_stamp = tracker->window_stamp;
	}
	if (tracker->window_bytes > tracker->split_bytes)
		tracker->split_bytes = tracker->window_bytes;
	tracker->window_bytes = tracker->bytes;
	tracker->window_stamp = stamp;
}

/*
 * Set *bytes to the highest sum since the last mark and *at to its stamp, and begin the next
 * interval.
 */
static inline void torsh_peak_tracker_mark(struct peak_tracker *tracker, uint64_t stamp,
					   uint64_t *bytes, uint64_t *at)
{
	torsh_peak_tracker_end_window(tracker, stamp);
	*bytes = tracker->marked_bytes;
	*at = tracker->marked_stamp;
	tracker->marked_bytes = tracker->bytes;
	tracker->marked_stamp = stamp;
}

/* Set *bytes to the highest sum since the last call and *at to its stamp, and begin anew. */
static inline void torsh_peak_tracker_next_moment(struct peak_tracker *tracker, uint64_t stamp,
						  uint64_t *bytes, uint64_t *at)
{
	torsh_peak_tracker_end_window(tracker, stamp);
	*bytes = tracker->moment_bytes;
	*at = tracker->moment_stamp;
	tracker->moment_bytes = tracker->bytes;
	tracker->moment_stamp = stamp;
}

/* Returns the highest sum since the last split, and begins the next interval. */
static inline uint64_t torsh_peak_tracker_split(struct peak_tracker *tracker)
{
	uint64_t highest;

	torsh_peak_tracker_end_window(tracker, tracker->last_stamp);
	highest = tracker->split_bytes;
	tracker->split_bytes = tracker->bytes;
	return highest;
}

/* Returns a site's bytes at the peak. Call torsh_peak_tracker_settle first. */
static inline uint64_t torsh_site_usage_peak_bytes(const struct site_usage *usage,
						   const struct peak_tracker *tracker)
{
	return usage->seen == tracker->peak_number ? usage->base_bytes : usage->bytes;
}

/* Returns the step of a site's oldest block at the peak. Call torsh_peak_tracker_settle first. */
static inline uint32_t torsh_site_usage_peak_first_step(const struct site_usage *usage,
							const struct peak_tracker *tracker)
{
	return usage->seen == tracker->peak_number ? usage->base_first_step : usage->first_step;
}

/* Returns the step of a site's latest block at the peak. Call torsh_peak_tracker_settle first. */
static inline uint32_t torsh_site_usage_peak_last_step(const struct site_usage *usage,
						       const struct peak_tracker *tracker)
{
	return usage->seen == tracker->peak_number ? usage->base_last_step : usage->last_step;
}

/* Returns a site's number of blocks at the peak. Call torsh_peak_tracker_settle first. */
static inline uint64_t torsh_site_usage_peak_n(const struct site_usage *usage,
					       const struct peak_tracker *tracker)
{
	return usage->seen == tracker->peak_number ? usage->base_n : usage->n;
}

#endif
