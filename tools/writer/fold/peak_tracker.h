/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An exact peak in O(1) a change. An axis is a sum of bytes over time (blocks of the heap, mapped memory); its shares
 * are what each stack has of it. A share notes what it was at the last peak only when it changes again: until then
 * nothing happened to it, so that what it is now is what it was then.
 *
 * The peak is the state right after the first change that brought the sum to its greatest value: among equal ones the
 * first, and what doesn't raise the sum (a block of size 0, a move from stack to stack) belongs to the time after.
 * Changes must come in the order of time.
 */
#ifndef TORSH_WRITER_AXIS_H
#define TORSH_WRITER_AXIS_H

#include <stdint.h>

struct axis {
	uint64_t bytes, n; /* now; n counts blocks or pieces */
	uint64_t peak_bytes, peak_n;
	uint64_t peak_stamp;
	uint64_t last_stamp; /* of the last change */
	uint32_t peak_number; /* how often the record was broken; 0: never above 0 */
	uint64_t window_bytes,
		window_stamp; /* the highest since torsh_axis_mark, as far as noted; never above the peak */
};

/* Steps (see step_marks.h): of the block that came when there was none, and of the latest one. */
struct share {
	uint64_t bytes, n; /* now */
	uint64_t base_bytes, base_n; /* at peak number `seen` */
	uint32_t seen;
	uint32_t first_step, last_step;
	uint32_t base_first_step, base_last_step;
};

static inline void torsh_axis_note_peak(struct axis *axis)
{
	axis->peak_number++;
	axis->peak_bytes = axis->bytes;
	axis->peak_n = axis->n;
	axis->peak_stamp = axis->last_stamp;
}

static inline void torsh_axis_note_window(struct axis *axis)
{
	axis->window_bytes = axis->bytes;
	axis->window_stamp = axis->last_stamp;
	if (axis->bytes > axis->peak_bytes)
		torsh_axis_note_peak(axis);
}

/* The sum changes as a whole: before the shares do. */
static inline void torsh_axis_change(struct axis *axis, uint64_t stamp, int64_t n, int64_t bytes)
{
	if (bytes <= 0 && axis->bytes > axis->window_bytes)
		torsh_axis_note_window(axis);
	axis->bytes += (uint64_t)bytes;
	axis->n += (uint64_t)n;
	axis->last_stamp = stamp;
}

/* One share of the change that torsh_axis_change was told of, in a step. */
static inline void torsh_share_change(struct share *share, const struct axis *axis, uint32_t step, int64_t n,
				      int64_t bytes)
{
	if (share->seen != axis->peak_number) {
		share->seen = axis->peak_number;
		share->base_bytes = share->bytes;
		share->base_n = share->n;
		share->base_first_step = share->first_step;
		share->base_last_step = share->last_step;
	}
	if (n > 0) {
		if (!share->n)
			share->first_step = step;
		share->last_step = step;
	}
	share->bytes += (uint64_t)bytes;
	share->n += (uint64_t)n;
}

/* Before the peak is looked at: the sum may stand at its record right now. Shares and later changes stay right. */
static inline void torsh_axis_settle(struct axis *axis)
{
	if (axis->bytes > axis->peak_bytes)
		torsh_axis_note_peak(axis);
}

/* The highest since the last mark, and when that was: *bytes and *at. What comes from here on is of the next one. */
static inline void torsh_axis_mark(struct axis *axis, uint64_t stamp, uint64_t *bytes, uint64_t *at)
{
	if (axis->bytes > axis->window_bytes)
		torsh_axis_note_window(axis);
	*bytes = axis->window_bytes;
	*at = axis->window_stamp;
	axis->window_bytes = axis->bytes;
	axis->window_stamp = stamp;
}

/* What a share was at the axis' peak; after torsh_axis_settle. */
static inline uint64_t torsh_share_peak_bytes(const struct share *share, const struct axis *axis)
{
	return share->seen == axis->peak_number ? share->base_bytes : share->bytes;
}

static inline uint32_t torsh_share_peak_first_step(const struct share *share, const struct axis *axis)
{
	return share->seen == axis->peak_number ? share->base_first_step : share->first_step;
}

static inline uint32_t torsh_share_peak_last_step(const struct share *share, const struct axis *axis)
{
	return share->seen == axis->peak_number ? share->base_last_step : share->last_step;
}

static inline uint64_t torsh_share_peak_n(const struct share *share, const struct axis *axis)
{
	return share->seen == axis->peak_number ? share->base_n : share->n;
}

#endif
