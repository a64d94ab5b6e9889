/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A recording that was cut, damaged or made up; its events are read too, and its tables loaded as
 * reports load them.
 */
#include "tools/store/recording_read.h"

#include <stdlib.h>

#include "tools/recording/recording.h"
#include "tools/store/events_columns.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void read_events(const Torsh__Events *events)
{
	struct columns_reader *reader;
	struct columns_event event;
	uint32_t n = 0;

	if (torsh_columns_open(&reader, events->first_ns, events->n_events, events->columns.data,
			       events->columns.len))
		return;
	while (torsh_columns_next(reader, &event) == 1)
		n++;
	if (n > events->n_events)
		abort();
	torsh_columns_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct recording_reader *reader;
	struct recording *recording;
	Torsh__Chunk *chunk;
	char error[256];

	if (torsh_recording_open_bytes(&reader, bytes, n_bytes, error, sizeof(error)))
		return 0;
	torsh_recording_keep_packed(reader);
	recording = torsh_recording_new("fuzz");
	recording->size_bytes = n_bytes;
	while (torsh_recording_next(reader, &chunk) == 1) {
		for (size_t i = 0; i < chunk->n_events; i++)
			read_events(chunk->events[i]);
		torsh_recording_load_packed(recording, chunk, torsh_recording_packed(reader));
		torsh__chunk__free_unpacked(chunk, NULL);
	}
	torsh_recording_problem(reader);
	torsh_recording_close(reader);
	torsh_recording_destroy(recording);
	return 0;
}
