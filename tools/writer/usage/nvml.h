/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What of NVIDIA's management library (libnvidia-ml.so.1) tells who uses a device's memory. Its
 * types and numbers are those of nvml.h. The library is opened at run time; it may be missing, and
 * it may be older than the functions looked for.
 */
#ifndef TORSH_WRITER_USAGE_NVML_H
#define TORSH_WRITER_USAGE_NVML_H

#include <stdbool.h>
#include <stdint.h>

#define NVML_UUID_BYTES 96
#define NVML_PROCESSES_MAX 256
#define NVML_DEVICES_MAX 64
#define NVML_NAME_BYTES 32
#define NVML_UNKNOWN_BYTES UINT64_MAX /* NVML_VALUE_NOT_AVAILABLE */

struct nvml_process {
	uint32_t pid; /* in the namespace of the driver's answer, which may be the host's */
	uint64_t bytes; /* NVML_UNKNOWN_BYTES: the driver does not tell */
	char name[NVML_NAME_BYTES]; /* of its program, by /proc; "": unknown */
};

struct nvml_use {
	char uuid[NVML_UUID_BYTES];
	uint64_t begin_ns, end_ns; /* of the look; monotonic */
	bool has_memory;
	uint64_t total_bytes, used_bytes; /* of the device, used by all */
	const char *problem; /* why processes are missing; static; NULL: they are not */
	uint32_t n_processes;
	struct nvml_process processes[NVML_PROCESSES_MAX];
};

struct nvml;

/*
 * Open the library, and find its devices. May take a second. Returns NULL, with the reason in
 * *problem, which is static.
 */
struct nvml *torsh_nvml_open(const char **problem);

/* Close it. */
void torsh_nvml_close(struct nvml *nvml);

/* Returns the number of devices. */
uint32_t torsh_nvml_devices(const struct nvml *nvml);

/* Look at a device. Processes come sorted by pid, each once. */
void torsh_nvml_look(const struct nvml *nvml, uint32_t device, struct nvml_use *use);

#endif
