/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/output/summary.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/size.h"

#define LINES_MAX 3u

static void print_process(FILE *out, const struct drain_summary *process)
{
	char events[SIZE_TEXT_BYTES], dropped[SIZE_TEXT_BYTES], blocks[SIZE_TEXT_BYTES],
		peak[SIZE_TEXT_BYTES];
	char live[SIZE_TEXT_BYTES];

	fprintf(out, "torsh: %s (pid %u): %s events, %s dropped",
		process->program[0] ? process->program : "?", process->pid,
		torsh_size_grouped(process->n_events, events),
		torsh_size_grouped(process->n_dropped, dropped));
	if (process->is_lossy)
		fputs("; incomplete: torsh report says what was lost", out);
	if (process->has_heap)
		fprintf(out, "; heap peak %s at %.1f s; %s in %s %s alive at the end",
			torsh_size_human(process->peak_bytes, peak), (double)process->peak_ns / 1e9,
			torsh_size_human(process->live_bytes, live),
			torsh_size_grouped(process->live_blocks, blocks),
			process->live_blocks == 1 ? "block" : "blocks");
	fputc('\n', out);
}

static int by_events(const void *a, const void *b)
{
	const struct drain_summary *x = a, *y = b;

	return (x->n_events < y->n_events) - (x->n_events > y->n_events);
}

void torsh_summary_print(FILE *out, const struct drain *drain, const char *recording)
{
	uint32_t n;
	const struct drain_summary *summaries = torsh_drain_summaries(drain, &n);
	struct drain_summary *sorted = n ? malloc(n * sizeof(*sorted)) : NULL;

	if (!sorted)
		return;
	memcpy(sorted, summaries, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_events);
	for (uint32_t i = 0; i < n && i < LINES_MAX; i++)
		print_process(out, &sorted[i]);
	if (n > LINES_MAX)
		fprintf(out, "torsh: and %u more %s\n", n - LINES_MAX,
			n - LINES_MAX == 1 ? "process" : "processes");
	fprintf(out, "torsh: recording in %s; next, to see what leaked: torsh leaks %s\n",
		recording, recording);
	free(sorted);
}
