/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/clocks/clock_estimate.h"

#include <math.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/ranks/clocks/clock_polygon.h"

#define NS_PER_S 1e9
/* A segment is no longer: over more time the drift of a crystal with its temperature shows. */
#define SEGMENT_NS INT64_C(10000000000)
/* Of this time the exchange with the shortest round trip is taken. */
#define FILTER_NS INT64_C(500000000)
/* Exchanges with up to so many times the shortest round trip are in the regression. */
#define NEAR_SHORTEST 1.5
/* How much the drift changes in a second, at most: of crystals, 1 ppb. */
#define WANDER_PER_S 1e-9

struct segment {
	int64_t from_ns, to_ns; /* of the exchanges in it */
	int64_t origin_ns, base_ns; /* times and offsets in the polygon are less these */
	struct clock_polygon polygon;
	double offset, drift; /* the regression's line, like those of the polygon */
	double floor_ns; /* half of the shortest round trip: no bound is below */
};

struct clock_estimate {
	struct segment *segments;
	size_t n, n_rejected;
};

static int64_t round_trip(const struct clock_exchange *one)
{
	return (one->returned_ns - one->sent_ns) - (one->replied_ns - one->received_ns);
}

/* Of the offset in the middle of the exchange, if its two delays are equal. */
static double middle_offset(const struct segment *segment, const struct clock_exchange *one)
{
	return ((double)(one->received_ns - one->sent_ns - segment->base_ns) +
		(double)(one->replied_ns - one->returned_ns - segment->base_ns)) /
	       2;
}

static double seconds(const struct segment *segment, int64_t at_ns)
{
	return (double)(at_ns - segment->origin_ns) / NS_PER_S;
}

static void begin_segment(struct segment *segment, const struct clock_exchange *one)
{
	*segment = (struct segment){
		.from_ns = one->sent_ns,
		.to_ns = one->returned_ns,
		.origin_ns = one->sent_ns,
		.base_ns = one->received_ns - one->sent_ns,
		.floor_ns = (double)round_trip(one) / 2,
	};
	/* So much that no exchange of the segment can be limited by it. */
	torsh_clock_polygon_create(&segment->polygon,
				   (double)round_trip(one) +
					   4 * CLOCK_DRIFT_MAX * (double)SEGMENT_NS,
				   CLOCK_DRIFT_MAX * NS_PER_S);
}

static bool is_full(const struct segment *segment, const struct clock_exchange *one)
{
	return one->returned_ns - segment->from_ns > SEGMENT_NS;
}

/* Returns false, and leaves the segment, if no line satisfies the exchange, too. */
static bool add_to_segment(struct segment *segment, const struct clock_exchange *one)
{
	struct clock_polygon polygon = segment->polygon;
	double span_s = seconds(segment, one->returned_ns);
	double slack = WANDER_PER_S * span_s * span_s / 8 * NS_PER_S;
	double half = (double)round_trip(one) / 2;

	if (is_full(segment, one) ||
	    !torsh_clock_polygon_limit(
		    &polygon, seconds(segment, one->sent_ns),
		    (double)(one->received_ns - one->sent_ns - segment->base_ns) + slack, true) ||
	    !torsh_clock_polygon_limit(
		    &polygon, seconds(segment, one->returned_ns),
		    (double)(one->replied_ns - one->returned_ns - segment->base_ns) - slack, false))
		return false;
	segment->polygon = polygon;
	segment->to_ns = one->returned_ns;
	segment->floor_ns = half < segment->floor_ns ? half : segment->floor_ns;
	return true;
}

/* The least-squares line through the middles of the exchanges with short round trips. */
static void fit(struct segment *segment, const struct clock_exchange *exchanges, size_t n)
{
	double sum_w = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, scale;

	for (size_t i = 0; i < n; i++) {
		double x = seconds(segment,
				   exchanges[i].sent_ns +
					   (exchanges[i].returned_ns - exchanges[i].sent_ns) / 2);
		double y = middle_offset(segment, &exchanges[i]);

		if ((double)round_trip(&exchanges[i]) > 2 * NEAR_SHORTEST * segment->floor_ns)
			continue;
		sum_w++;
		sum_x += x;
		sum_y += y;
		sum_xx += x * x;
		sum_xy += x * y;
	}
	scale = sum_w * sum_xx - sum_x * sum_x;
	if (sum_w >= 3 && scale > 1e-9)
		segment->drift = (sum_w * sum_xy - sum_x * sum_y) / scale;
	segment->offset = (sum_y - segment->drift * sum_x) / sum_w;
}

/* Keep of each FILTER_NS the exchange with the shortest round trip. Returns how many there are. */
static size_t filter(struct clock_exchange *kept, const struct clock_exchange *exchanges, size_t n,
		     size_t *n_rejected)
{
	size_t n_kept = 0;
	int64_t from_ns = 0;

	for (size_t i = 0; i < n; i++) {
		if (round_trip(&exchanges[i]) < 0 ||
		    exchanges[i].returned_ns < exchanges[i].sent_ns) {
			(*n_rejected)++;
		} else if (!n_kept || exchanges[i].sent_ns - from_ns >= FILTER_NS) {
			from_ns = exchanges[i].sent_ns;
			kept[n_kept++] = exchanges[i];
		} else if (round_trip(&exchanges[i]) < round_trip(&kept[n_kept - 1])) {
			kept[n_kept - 1] = exchanges[i];
		}
	}
	return n_kept;
}

/* End the last segment, of the exchanges kept[first] to kept[end - 1]; begin one at `one`. */
static void next_segment(struct clock_estimate *estimate, const struct clock_exchange *kept,
			 size_t first, size_t end, const struct clock_exchange *one)
{
	if (estimate->n)
		fit(&estimate->segments[estimate->n - 1], &kept[first], end - first);
	begin_segment(&estimate->segments[estimate->n++], one);
	add_to_segment(&estimate->segments[estimate->n - 1], one);
}

struct clock_estimate *torsh_clock_estimate_create(const struct clock_exchange *exchanges, size_t n)
{
	struct clock_estimate *estimate = torsh_need_items(NULL, 0, 1, sizeof(*estimate));
	struct clock_exchange *kept = torsh_need_items(NULL, 0, n, sizeof(*kept));
	size_t first = 0, n_kept;

	*estimate = (struct clock_estimate){0};
	n_kept = filter(kept, exchanges, n, &estimate->n_rejected);
	estimate->segments = torsh_need_items(NULL, 0, 2 * n_kept, sizeof(*estimate->segments));
	for (size_t i = 0; i < n_kept; i++) {
		/* A full one shares its last exchange with the next: nothing is between them. */
		if (estimate->n && first + 1 < i &&
		    is_full(&estimate->segments[estimate->n - 1], &kept[i])) {
			next_segment(estimate, kept, first, i, &kept[i - 1]);
			first = i - 1;
		}
		if (estimate->n && add_to_segment(&estimate->segments[estimate->n - 1], &kept[i]))
			continue;
		next_segment(estimate, kept, first, i, &kept[i]);
		first = i;
	}
	if (estimate->n)
		fit(&estimate->segments[estimate->n - 1], &kept[first], n_kept - first);
	free(kept);
	return estimate;
}

void torsh_clock_estimate_destroy(struct clock_estimate *estimate)
{
	if (!estimate)
		return;
	free(estimate->segments);
	free(estimate);
}

/* The range of offsets that a segment allows at a time, which may be outside of it. */
static void range_of(const struct segment *segment, int64_t at_ns, double *low, double *high,
		     double *best)
{
	int64_t nearest_ns = at_ns < segment->from_ns ? segment->from_ns
			     : at_ns > segment->to_ns ? segment->to_ns
						      : at_ns;
	double beyond = fabs((double)(at_ns - nearest_ns)) * CLOCK_DRIFT_MAX;
	double x = seconds(segment, nearest_ns);

	torsh_clock_polygon_extent(&segment->polygon, x, low, high);
	*best = segment->offset + segment->drift * x;
	*best = *best < *low ? *low : *best > *high ? *high : *best;
	/* A single exchange is sure; that its neighbours are on one line with it is a model. */
	*low = fmin(*low, *best - segment->floor_ns);
	*high = fmax(*high, *best + segment->floor_ns);
	*low += (double)segment->base_ns - beyond;
	*high += (double)segment->base_ns + beyond;
	*best += (double)segment->base_ns;
	if (nearest_ns != at_ns)
		*best += segment->drift / NS_PER_S * (double)(at_ns - nearest_ns);
}

/* The last segment that begins before that time; the first one if none does. */
static size_t find_segment(const struct clock_estimate *estimate, int64_t at_ns)
{
	size_t low = 0, high = estimate->n;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (estimate->segments[middle].from_ns <= at_ns)
			low = middle;
		else
			high = middle;
	}
	return low;
}

bool torsh_clock_estimate_at(const struct clock_estimate *estimate, int64_t at_ns,
			     struct clock_offset *offset)
{
	const struct segment *segment;
	double low, high, best, next_low, next_high, next_best;
	size_t i;

	if (!estimate->n)
		return false;
	i = find_segment(estimate, at_ns);
	segment = &estimate->segments[i];
	range_of(segment, at_ns, &low, &high, &best);
	/* Between two segments the clock's step may have been before or after. */
	if (at_ns > segment->to_ns && i + 1 < estimate->n) {
		range_of(segment + 1, at_ns, &next_low, &next_high, &next_best);
		low = fmin(low, next_low);
		high = fmax(high, next_high);
		best = (low + high) / 2;
	}
	offset->offset_ns = (int64_t)llround(best);
	offset->error_ns = (uint64_t)ceil(fmax(high - best, best - low)) + 1;
	offset->drift = segment->drift / NS_PER_S;
	return true;
}

size_t torsh_clock_estimate_rejected(const struct clock_estimate *estimate)
{
	return estimate->n_rejected;
}
