/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/owners/loaded_code.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/containers/array.h"
#include "tools/device/owners/stack_evidence.h"

static void forget(struct loaded_code *code, uint64_t handle)
{
	for (size_t i = 0; i < code->n; i++) {
		if (code->items[i].handle != handle)
			continue;
		code->n--;
		memmove(code->items + i, code->items + i + 1, (code->n - i) * sizeof(*code->items));
		return;
	}
}

void torsh_loaded_code_take(struct loaded_code *code, const struct timeline_event *event,
			    uint32_t device)
{
	const struct event_device_code *said = &event->event.device_code;

	if (event->event.id != EVENT_DEVICE_CODE)
		return;
	if (said->is_unload) {
		forget(code, said->handle);
		return;
	}
	if (said->device != device)
		return;
	code->items =
		torsh_array_reserve(code->items, code->n, &code->n_room, sizeof(*code->items));
	code->items[code->n++] = (struct loaded_module){.handle = said->handle,
							.bytes = said->bytes,
							.at_ns = event->at_ns,
							.stack = event->stack,
							.is_measured = said->is_measured};
}

void torsh_loaded_code_free(struct loaded_code *code)
{
	free(code->items);
}

uint64_t torsh_loaded_code_bytes(const struct loaded_code *code, uint64_t at_ns)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < code->n; i++)
		bytes += code->items[i].at_ns <= at_ns ? code->items[i].bytes : 0;
	return bytes;
}

/* Files that pass a call on: CUDA's own, the agent, and Python's ways into C. */
static bool is_between(const char *file)
{
	static const char *const files[] = {"libcuda.",	      "libcudart.",  "libcupti.",
					    "libtorshagent.", "libsimcuda.", "libffi.",
					    "_ctypes."};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		if (strncmp(file, files[i], strlen(files[i])) == 0)
			return true;
	}
	return false;
}

const char *torsh_loaded_module_name(const struct recorded_process *process, uint32_t stack,
				     struct symbols *symbols)
{
	const struct recorded_tables *tables = process->tables;
	const char *library = torsh_stack_evidence(process, stack, symbols, false).library;

	if (library)
		return library;
	for (; stack && stack < tables->n_stacks; stack = tables->stacks[stack].parent) {
		uint32_t address = tables->stacks[stack].address;
		const struct recorded_module *module;
		const struct recorded_function *function;
		const char *file = NULL;

		if (address >= tables->n_addresses)
			continue;
		if (tables->addresses[address].flags == ADDRESS_PYTHON) {
			function = torsh_recording_function(process, address);
			file = function ? function->file : NULL;
		} else {
			module = torsh_recording_module(process, address);
			file = module ? module->path : NULL;
		}
		if (file && strrchr(file, '/'))
			file = strrchr(file, '/') + 1;
		if (file && !is_between(file))
			return file;
	}
	return NULL;
}
