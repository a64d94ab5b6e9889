/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/phase_traffic.h"

void torsh_phase_traffic_end(struct phase_traffic *traffic)
{
	struct memory_traffic more =
		torsh_memory_traffic_in(traffic->recorded, traffic->from_ns, traffic->to_ns);

	torsh_memory_traffic_add(&traffic->sums[traffic->phase], &more);
	traffic->from_ns = traffic->to_ns = 0;
}

/* A phase is spent in pieces, each until something in it begins or ends. */
static void spend(void *context, size_t phase, uint64_t from_ns, uint64_t to_ns)
{
	struct phase_traffic *traffic = context;

	if (phase != traffic->phase || from_ns != traffic->to_ns) {
		torsh_phase_traffic_end(traffic);
		traffic->phase = phase;
		traffic->from_ns = from_ns;
	}
	traffic->to_ns = to_ns;
}

struct phase_watch torsh_phase_traffic_watch(struct phase_traffic *traffic,
					     const struct recording *recording)
{
	*traffic = (struct phase_traffic){.recorded = &recording->memory_traffic};
	return (struct phase_watch){.spend = spend, .context = traffic};
}
