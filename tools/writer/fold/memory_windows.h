/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Windows over a process's heap, which the program opens and closes by torsh.h: the sum when each
 * began, and the highest sum since. Window 0 begins with the process and never ends. Owned by the
 * drain thread; used at a moment to which the heap is folded.
 */
#ifndef TORSH_WRITER_FOLD_MEMORY_WINDOWS_H
#define TORSH_WRITER_FOLD_MEMORY_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/wire/channel.h"
#include "tools/writer/fold/peak_tracker.h"

#define MEMORY_WINDOWS_MAX 1024u

struct memory_window {
	uint64_t begin_bytes, begin_blocks, peak_bytes;
	bool is_open;
};

struct memory_windows {
	struct memory_window first; /* window 0 */
	struct memory_window *items; /* window i + 1 */
	uint32_t n;
	size_t capacity;
};

/* Free the windows. */
void torsh_memory_windows_destroy(struct memory_windows *windows);

/*
 * Answer a call about a window of this heap. Returns 0, -EINVAL for another verb, -ENOENT if the
 * window is not open, or -EMFILE if MEMORY_WINDOWS_MAX are open.
 */
int torsh_memory_windows_call(struct memory_windows *windows, struct peak_tracker *heap,
			      uint32_t verb, uint32_t window, struct channel_memory *memory);

#endif
