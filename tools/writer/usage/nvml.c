/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/usage/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/wire/clock.h"
#include "tools/base/memory.h"
#include "tools/writer/input/clock_conversion.h"

#define LIBRARY "libnvidia-ml.so.1"

/* Numbers of nvmlReturn_t. */
enum {
	SUCCESS = 0,
	NOT_SUPPORTED = 3,
	NO_PERMISSION = 4,
	INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9,
};

/* nvmlMemory_t */
struct memory {
	unsigned long long total, free, used;
};

/* nvmlProcessInfo_v1_t */
struct process_v1 {
	unsigned pid;
	unsigned long long used_bytes;
};

/* nvmlProcessInfo_v2_t, which the third form of the functions has, too */
struct process_v2 {
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};

union processes {
	struct process_v1 v1[NVML_PROCESSES_MAX];
	struct process_v2 v2[NVML_PROCESSES_MAX];
};

/* Lists the processes of a kind, by the newest form that the library has. */
struct lister {
	int (*list)(void *device, unsigned *n, void *processes); /* NULL: it has none */
	bool has_instances; /* struct process_v2 */
};

struct nvml {
	void *library;
	int (*shutdown)(void);
	int (*get_uuid)(void *device, char *uuid, unsigned bytes);
	int (*get_memory)(void *device, struct memory *memory);
	struct lister compute, graphics, mps;
	void *devices[NVML_DEVICES_MAX];
	uint32_t n_devices;
};

static struct lister find_lister(void *library, const char *name)
{
	static const char *const forms[] = {"_v3", "_v2", ""};
	struct lister lister = {0};
	char full[96];

	for (size_t i = 0; !lister.list && i < sizeof(forms) / sizeof(*forms); i++) {
		snprintf(full, sizeof(full), "%s%s", name, forms[i]);
		*(void **)&lister.list = dlsym(library, full);
		lister.has_instances = *forms[i] != 0;
	}
	return lister;
}

static void find_devices(struct nvml *nvml)
{
	int (*count)(unsigned *);
	int (*by_index)(unsigned, void **);
	unsigned n = 0;

	*(void **)&count = dlsym(nvml->library, "nvmlDeviceGetCount_v2");
	*(void **)&by_index = dlsym(nvml->library, "nvmlDeviceGetHandleByIndex_v2");
	if (!count || !by_index || count(&n))
		return;
	for (unsigned i = 0; i < n && nvml->n_devices < NVML_DEVICES_MAX; i++) {
		void *device;

		if (!by_index(i, &device))
			nvml->devices[nvml->n_devices++] = device;
	}
}

static const char *begin(struct nvml *nvml)
{
	int (*init)(void);
	int result;

	*(void **)&init = dlsym(nvml->library, "nvmlInit_v2");
	*(void **)&nvml->shutdown = dlsym(nvml->library, "nvmlShutdown");
	*(void **)&nvml->get_uuid = dlsym(nvml->library, "nvmlDeviceGetUUID");
	*(void **)&nvml->get_memory = dlsym(nvml->library, "nvmlDeviceGetMemoryInfo");
	if (!init || !nvml->shutdown || !nvml->get_uuid)
		return LIBRARY " lacks functions of 2012";
	nvml->compute = find_lister(nvml->library, "nvmlDeviceGetComputeRunningProcesses");
	nvml->graphics = find_lister(nvml->library, "nvmlDeviceGetGraphicsRunningProcesses");
	nvml->mps = find_lister(nvml->library, "nvmlDeviceGetMPSComputeRunningProcesses");
	result = init();
	if (result == NO_PERMISSION)
		return "the driver allows no access to " LIBRARY;
	if (result == DRIVER_NOT_LOADED)
		return LIBRARY " found no driver";
	return result ? "nvmlInit failed" : NULL;
}

struct nvml *torsh_nvml_open(const char **problem)
{
	struct nvml *nvml = torsh_memory_new(1, sizeof(*nvml));

	nvml->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	*problem = nvml->library ? begin(nvml) : LIBRARY " was not found";
	if (!*problem) {
		find_devices(nvml);
		if (nvml->n_devices)
			return nvml;
		*problem = LIBRARY " lists no device";
		nvml->shutdown();
	}
	/* Never unloaded: it may have threads. */
	free(nvml);
	return NULL;
}

void torsh_nvml_close(struct nvml *nvml)
{
	nvml->shutdown();
	free(nvml);
}

uint32_t torsh_nvml_devices(const struct nvml *nvml)
{
	return nvml->n_devices;
}

static void read_name(struct nvml_process *process)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/comm", process->pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(process->name, sizeof(process->name), file))
		process->name[strcspn(process->name, "\n")] = 0;
	fclose(file);
}

/* A process may be listed for several kinds of work, each time with all it has. */
static void add(struct nvml_use *use, unsigned pid, unsigned long long bytes)
{
	uint32_t i = 0;

	while (i < use->n_processes && use->processes[i].pid != pid)
		i++;
	if (i == NVML_PROCESSES_MAX)
		return;
	if (i == use->n_processes) {
		use->processes[use->n_processes++] =
			(struct nvml_process){.pid = pid, .bytes = bytes};
		read_name(&use->processes[i]);
	} else if (use->processes[i].bytes == NVML_UNKNOWN_BYTES ||
		   (bytes != NVML_UNKNOWN_BYTES && bytes > use->processes[i].bytes)) {
		use->processes[i].bytes = bytes;
	}
}

static const char *problem_of(int result)
{
	switch (result) {
	case SUCCESS:
		return NULL;
	case NO_PERMISSION:
		return "the driver allows no list of the processes that use the device";
	case NOT_SUPPORTED:
		return "the driver lists no processes of this device";
	case INSUFFICIENT_SIZE:
		return "more processes use the device than are listed";
	default:
		return "the driver failed to list the processes that use the device";
	}
}

/* Returns the problem, or NULL. */
static const char *list(const struct lister *lister, void *device, struct nvml_use *use)
{
	union processes *found;
	unsigned n = NVML_PROCESSES_MAX;
	int result;

	if (!lister->list)
		return NULL;
	found = torsh_memory_new(1, sizeof(*found));
	result = lister->list(device, &n, found);
	for (unsigned i = 0; !result && i < n && i < NVML_PROCESSES_MAX; i++) {
		if (lister->has_instances)
			add(use, found->v2[i].pid, found->v2[i].used_bytes);
		else
			add(use, found->v1[i].pid, found->v1[i].used_bytes);
	}
	free(found);
	return problem_of(result);
}

static int compare_processes(const void *a, const void *b)
{
	const struct nvml_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

void torsh_nvml_look(const struct nvml *nvml, uint32_t device, struct nvml_use *use)
{
	void *handle = nvml->devices[device];
	struct memory memory;

	memset(use, 0, sizeof(*use));
	use->begin_ns = torsh_clock_monotonic_ns();
	if (nvml->get_uuid(handle, use->uuid, sizeof(use->uuid)))
		*use->uuid = 0;
	use->uuid[sizeof(use->uuid) - 1] = 0;
	if (nvml->get_memory && !nvml->get_memory(handle, &memory)) {
		use->has_memory = true;
		use->total_bytes = memory.total;
		use->used_bytes = memory.used;
	}
	use->problem = nvml->compute.list ? list(&nvml->compute, handle, use)
					  : LIBRARY " is too old to list processes";
	/* Devices without graphics, or without MPS, need not support these. */
	list(&nvml->graphics, handle, use);
	list(&nvml->mps, handle, use);
	use->end_ns = torsh_clock_monotonic_ns();
	if (use->n_processes)
		qsort(use->processes, use->n_processes, sizeof(*use->processes), compare_processes);
}
