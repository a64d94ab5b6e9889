/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/summary.h"

#include <stdlib.h>
#include <string.h>

#define LINES_MAX 3u

/* 1234567 as "1,234,567"; out holds 32 bytes. */
static const char *grouped(uint64_t n, char *out)
{
	char plain[24];
	size_t length = (size_t)snprintf(plain, sizeof(plain), "%llu", (unsigned long long)n), at = 0;

	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = plain[i];
	}
	out[at] = '\0';
	return out;
}

/* In bytes, or in MB (10^6) with one digit. */
static const char *sized(uint64_t n, char *out)
{
	char whole[32];

	if (n < 1000000)
		snprintf(out, 48, "%s bytes", grouped(n, whole));
	else
		snprintf(out, 48, "%s.%llu MB", grouped(n / 1000000, whole), (unsigned long long)(n / 100000 % 10));
	return out;
}

static void print_process(FILE *out, const struct drain_summary *process)
{
	char events[32], dropped[32], blocks[32], peak[48], live[48];

	fprintf(out, "torsh: %s (pid %u): %s events, %s dropped", process->program[0] ? process->program : "?",
		process->pid, grouped(process->n_events, events), grouped(process->n_dropped, dropped));
	if (process->has_heap)
		fprintf(out, "; peak %s at %.1f s; %s in %s %s not freed", sized(process->peak_bytes, peak),
			(double)process->peak_ns / 1e9, sized(process->live_bytes, live),
			grouped(process->live_blocks, blocks), process->live_blocks == 1 ? "block" : "blocks");
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
		fprintf(out, "torsh: and %u more %s\n", n - LINES_MAX, n - LINES_MAX == 1 ? "process" : "processes");
	fprintf(out, "torsh: recording in %s; next: torsh leaks %s\n", recording, recording);
	free(sorted);
}
