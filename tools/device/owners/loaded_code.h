/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The code that a process has loaded on a device: what each module took of its memory. */
#ifndef TORSH_DEVICE_OWNERS_LOADED_CODE_H
#define TORSH_DEVICE_OWNERS_LOADED_CODE_H

#include "tools/symbols/symbols.h"
#include "tools/timeline/spans.h"

struct loaded_module {
	uint64_t handle, bytes, at_ns;
	uint32_t stack; /* of the call that loaded it */
	bool is_measured; /* else bytes is 0 */
};

struct loaded_code {
	struct loaded_module *items; /* that are not unloaded */
	size_t n, n_room;
};

/* Take any event of the process; others than loads on that device, and unloads, are ignored. */
void torsh_loaded_code_take(struct loaded_code *code, const struct timeline_event *event,
			    uint32_t device);

/* Free the list. */
void torsh_loaded_code_free(struct loaded_code *code);

/* Returns what the modules take that were loaded by then. */
uint64_t torsh_loaded_code_bytes(const struct loaded_code *code, uint64_t at_ns);

/*
 * Returns the library that loaded a module: the file of the innermost frame that is not CUDA's own,
 * or the program's line. Owned by the recording or the symbols; NULL: unknown.
 */
const char *torsh_loaded_module_name(const struct recorded_process *process, uint32_t stack,
				     struct symbols *symbols);

#endif
