/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What memory controllers move, on the drain thread: when counting begins, and what is written. */
#include <stdlib.h>

#include "tools/writer/output/rows/rows.h"
#include "tools/writer/threads/drain/drain_state.h"
#include "tools/writer/traffic/traffic_meter.h"

void torsh_drain_check_traffic(struct drain *drain, struct target *target)
{
	static const struct traffic_options options = {
		.root = "", .calls = &torsh_uncore_calls, .period_ns = TRAFFIC_PERIOD_NS};

	if (drain->has_traffic || !target->state.has_cpu_counters)
		return;
	drain->traffic = torsh_traffic_start(&options);
	drain->has_traffic = true;
}

void torsh_drain_write_traffic(struct drain *drain, bool is_end)
{
	struct traffic_point *points;
	struct traffic_state state;
	size_t n;

	if (!drain->traffic)
		return;
	if (is_end)
		torsh_traffic_stop(drain->traffic);
	state = torsh_traffic_take(drain->traffic, &points, &n);
	for (size_t i = 0; i < n; i++)
		points[i].at_ns = torsh_session_ns(&drain->session, points[i].at_ns);
	/* At the end again: a counter may have become unreadable after its last point. */
	if (state.is_begun && (n || is_end || !drain->is_traffic_said))
		torsh_rows_memory_traffic(drain->checkpoints.file, &state, points, n);
	drain->is_traffic_said = drain->is_traffic_said || state.is_begun;
	free(points);
	if (is_end) {
		torsh_traffic_destroy(drain->traffic);
		drain->traffic = NULL;
	}
}
