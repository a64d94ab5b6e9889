/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The columns of a Timeline message, without the checksums that keep a fuzzer out. */
#include "tools/store/timeline_columns.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct timeline_reader *reader;
	struct timeline_event event;
	uint32_t n = 0, n_said;

	if (n_bytes < 2)
		return 0;
	n_said = bytes[0] | bytes[1] << 8u;
	if (torsh_timeline_open(&reader, n_said, bytes + 2, n_bytes - 2))
		return 0;
	for (; torsh_timeline_next(reader, &event) == 1; n++) {
		if (!EVENT_IS_TIMELINE(event.event.id))
			abort();
	}
	if (n > n_said)
		abort();
	torsh_timeline_close(reader);
	return 0;
}
