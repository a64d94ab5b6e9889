/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Exchanges of times with writers of other hosts: tools/writer/clocks. */
#include "tools/writer/clocks/clock_probes.h"
#include "tools/writer/output/rows/rows_parts.h"

static void append_peer(struct recording_file *file, uint32_t peer, const struct clock_found *found)
{
	Torsh__ClockPeer row = TORSH__CLOCK_PEER__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;

	ROWS_SET(&row, peer, peer);
	row.name = (char *)(uintptr_t)found->name;
	ROWS_SET(&row, is_here, found->is_here);
	ROWS_SET(&row, sent, found->counts.sent);
	ROWS_SET(&row, answered, found->counts.answered);
	ROWS_SET(&row, replies, found->counts.replies);
	ROWS_SET(&row, refused, found->counts.refused);
	chunk.n_clock_peer = 1;
	chunk.clock_peer = &rows;
	torsh_recording_append(file, &chunk, RECORDING_LAST);
}

/* The samples from the first one on that have its clock. Returns how many they are. */
static size_t append_samples(struct recording_file *file, uint32_t peer,
			     const struct clock_sample *samples, size_t n_samples)
{
	Torsh__ClockExchanges row = TORSH__CLOCK_EXCHANGES__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct rows_memory memory = {0};
	uint64_t last_ns = 0;
	size_t n = 0;

	while (n < n_samples && samples[n].clock == samples->clock)
		n++;
	ROWS_SET(&row, peer, peer);
	ROWS_SET(&row, clock, samples->clock);
	ROWS_COLUMN(&memory, &row, sent_step, n);
	ROWS_COLUMN(&memory, &row, received_after, n);
	ROWS_COLUMN(&memory, &row, replied_after, n);
	ROWS_COLUMN(&memory, &row, returned_after, n);
	for (size_t i = 0; i < n; i++) {
		row.sent_step[i] = samples[i].sent_ns - last_ns;
		row.received_after[i] = (int64_t)(samples[i].received_ns - samples[i].sent_ns);
		row.replied_after[i] = samples[i].replied_ns - samples[i].received_ns;
		row.returned_after[i] = samples[i].returned_ns - samples[i].sent_ns;
		last_ns = samples[i].sent_ns;
	}
	chunk.n_clock_exchanges = 1;
	chunk.clock_exchanges = &rows;
	torsh_recording_append(file, &chunk, RECORDING_LAST);
	torsh_rows_free(&memory);
	return n;
}

void torsh_rows_clocks(struct recording_file *file, uint32_t peer, const struct clock_found *found,
		       bool is_last)
{
	size_t n = 0;

	/* Its counts change all the time, and only the last ones count. */
	if (found->is_new || is_last)
		append_peer(file, peer, found);
	while (n < found->n_samples)
		n += append_samples(file, peer, found->samples + n, found->n_samples - n);
}
