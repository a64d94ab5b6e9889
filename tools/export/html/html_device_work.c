/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How busy a device was: sums of the analysed time, and shares of equal intervals for a curve. */
#include <string.h>

#include "tools/analysis/metrics.h"
#include "tools/export/html/html_page.h"

enum { INTERVALS = 240 };

struct busy_curve {
	uint64_t from_ns, interval_ns;
	uint64_t busy_ns[INTERVALS];
};

/* Find the time between the begin of a device's first work and the end of its last. */
static void find_range(const struct stretches *stretches, uint64_t *from_ns, uint64_t *to_ns)
{
	struct device_stretch stretch;
	struct stretch_walk walk;

	*from_ns = UINT64_MAX;
	*to_ns = 0;
	torsh_stretches_walk(&walk, stretches);
	while (torsh_stretches_next(&walk, &stretch)) {
		*from_ns = stretch.begin_ns < *from_ns ? stretch.begin_ns : *from_ns;
		*to_ns = stretch.end_ns > *to_ns ? stretch.end_ns : *to_ns;
	}
}

/* Spread busy time over the intervals that it lies in. */
static void add_busy(struct busy_curve *curve, uint64_t begin_ns, uint64_t end_ns)
{
	while (begin_ns < end_ns) {
		uint64_t i = (begin_ns - curve->from_ns) / curve->interval_ns;
		uint64_t next_ns = curve->from_ns + (i + 1) * curve->interval_ns;
		uint64_t until_ns = end_ns < next_ns ? end_ns : next_ns;

		curve->busy_ns[i] += until_ns - begin_ns;
		begin_ns = until_ns;
	}
}

/* Fill the curve with the union of a device's stretches. Returns false if there are none. */
static bool make_curve(struct busy_curve *curve, const struct stretches *stretches)
{
	uint64_t to_ns, busy_until_ns = 0;
	struct device_stretch stretch;
	struct stretch_walk walk;

	memset(curve, 0, sizeof(*curve));
	find_range(stretches, &curve->from_ns, &to_ns);
	if (curve->from_ns >= to_ns)
		return false;
	curve->interval_ns = (to_ns - curve->from_ns) / INTERVALS + 1;
	torsh_stretches_walk(&walk, stretches);
	while (torsh_stretches_next(&walk, &stretch)) {
		add_busy(curve, stretch.begin_ns > busy_until_ns ? stretch.begin_ns : busy_until_ns,
			 stretch.end_ns);
		busy_until_ns = stretch.end_ns > busy_until_ns ? stretch.end_ns : busy_until_ns;
	}
	return true;
}

void torsh_html_device_work_put(struct html_page *page, size_t process, uint32_t device)
{
	const struct metrics_process *of = torsh_html_metrics(page, process);
	struct json_writer *json = &page->json;
	struct busy_curve curve;

	for (size_t i = 0; of && i < of->n_devices; i++) {
		const struct metrics_device *work = &of->devices[i];

		if (work->number != device || !make_curve(&curve, &work->stretches))
			continue;
		torsh_json_begin_object(json, "work");
		torsh_json_put_bool(json, "is_of_steps", of->scope.is_of_steps);
		torsh_json_put_u64(json, "scope_ns", work->scope_ns);
		torsh_json_put_u64(json, "busy_ns", work->busy_ns);
		torsh_json_put_u64(json, "communication_ns", work->communication_ns);
		torsh_json_put_u64(json, "longest_gap_ns", work->longest_gap_ns);
		torsh_json_put_u64(json, "gap_at_ns", work->gap_at_ns);
		torsh_json_put_u64(json, "from_ns", curve.from_ns);
		torsh_json_put_u64(json, "interval_ns", curve.interval_ns);
		torsh_json_begin_array(json, "intervals");
		for (size_t k = 0; k < INTERVALS; k++)
			torsh_json_put_u64(json, NULL, curve.busy_ns[k]);
		torsh_json_end_array(json);
		torsh_json_end_object(json);
		return;
	}
	torsh_json_put_null(json, "work");
}
