/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The decoder of ring bytes: whatever a target writes there. */
#include "agent/wire/codec.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static struct codec codec;
	struct codec_stack stack;
	struct event event;
	size_t at = 0;
	long n;

	torsh_codec_start(&codec, 0);
	while ((n = torsh_codec_decode(&codec, bytes + at, n_bytes - at, &event, &stack)) > 0) {
		if ((size_t)n > n_bytes - at || stack.n > CODEC_STACK_IDS ||
		    event.id >= EVENT_ID_END)
			abort();
		at += (size_t)n;
	}
	return 0;
}
