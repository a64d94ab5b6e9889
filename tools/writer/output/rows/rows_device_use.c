/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who used the memory of a device. */
#include "tools/writer/output/rows/rows_parts.h"
#include "tools/writer/usage/nvml.h"

void torsh_rows_device_use(struct recording_file *file, const struct nvml_use *use,
			   uint64_t begin_ns, uint64_t end_ns)
{
	Torsh__DeviceUse row = TORSH__DEVICE_USE__INIT, *rows[1] = {&row};
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct rows_memory memory = {0};
	uint32_t n = use->n_processes;

	if (*use->uuid)
		row.uuid = (char *)(uintptr_t)use->uuid;
	ROWS_SET(&row, begin_ns, begin_ns);
	ROWS_SET(&row, end_ns, end_ns);
	if (use->has_memory) {
		ROWS_SET(&row, total_bytes, use->total_bytes);
		ROWS_SET(&row, used_bytes, use->used_bytes);
	}
	row.problem = (char *)(uintptr_t)use->problem;
	ROWS_COLUMN(&memory, &row, pid, n);
	ROWS_COLUMN(&memory, &row, bytes, n);
	ROWS_COLUMN(&memory, &row, name, n);
	for (uint32_t i = 0; i < n; i++) {
		row.pid[i] = use->processes[i].pid;
		row.bytes[i] = use->processes[i].bytes;
		row.name[i] = (char *)(uintptr_t)use->processes[i].name;
	}
	chunk.n_device_use = 1;
	chunk.device_use = rows;
	torsh_recording_append(file, &chunk, RECORDING_EVENTS);
	torsh_rows_free(&memory);
}
