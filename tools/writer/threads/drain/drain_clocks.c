/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What is learned of other hosts' clocks, on the drain thread: tools/writer/clocks. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/writer/output/rows/rows.h"
#include "tools/writer/threads/drain/drain_state.h"

void torsh_drain_begin_clocks(struct drain *drain)
{
	const struct clock_probes_options options = {
		.peers = drain->options.clock_peers,
		.key = drain->options.clock_key,
		.zero_ns = drain->session.monotonic_ns,
		.clock = drain->session.realtime_ns,
	};

	drain->clocks = torsh_clock_probes_start(&options);
}

void torsh_drain_see_clocks(struct drain *drain, const struct target *target)
{
	size_t n = 0;
	char *pairs;

	if (!drain->clocks || !target->start.identity.length)
		return;
	pairs = torsh_view_text(&target->view, target->start.identity, '\0', &n);
	torsh_clock_probes_see(drain->clocks, pairs, n);
	free(pairs);
}

void torsh_drain_write_clocks(struct drain *drain, bool is_last)
{
	struct clock_found found;

	for (uint32_t i = 0; torsh_clock_probes_take(drain->clocks, i, is_last, &found); i++) {
		torsh_rows_clocks(drain->checkpoints.file, i, &found, is_last);
		free(found.samples);
	}
}

void torsh_drain_note_clocks(struct drain *drain, struct target *target)
{
	char sentence[CLOCK_SENTENCE_BYTES];

	if (!torsh_clock_probes_trouble(drain->clocks, sentence))
		return;
	torsh_process_state_note(&target->state, "%s", sentence);
	if (!drain->is_clock_trouble_said)
		fprintf(stderr, "torsh: %s\n", sentence);
	drain->is_clock_trouble_said = true;
}
