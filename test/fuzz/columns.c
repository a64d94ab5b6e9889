/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The columns of an Events message, without the checksums that keep a fuzzer out. */
#include "tools/store/events_columns.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct columns_reader *reader;
	struct columns_event event;
	uint64_t last_ns = 0;
	uint32_t n = 0;

	if (n_bytes < 2 ||
	    torsh_columns_open(&reader, 0, bytes[0] | bytes[1] << 8u, bytes + 2, n_bytes - 2))
		return 0;
	for (; torsh_columns_next(reader, &event) == 1; n++) {
		if (event.at_ns < last_ns || event.event.id >= EVENT_ID_END)
			abort();
		last_ns = event.at_ns;
	}
	if (n > (uint32_t)(bytes[0] | bytes[1] << 8u))
		abort();
	torsh_columns_close(reader);
	return 0;
}
