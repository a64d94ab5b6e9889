/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The simulated NVML: what PyTorch and monitors query. Its header comes with no wheel: types and
 * numbers are those of its documentation.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/device.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/memory/others.h"

#define EXPORT __attribute__((visibility("default")))

enum result {
	NVML_SUCCESS = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
};

enum { FIRST_BUS = 0x1a, IDLE_CELSIUS = 40, MILLIWATTS = 300000, MEGAHERTZ = 1980 };

struct memory {
	unsigned long long total, free, used;
};

struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};

/* nvmlProcessInfo_v1_t */
struct process_v1 {
	unsigned pid;
	unsigned long long used_bytes;
};

/* nvmlProcessInfo_v2_t, and the third form's */
struct process {
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};

struct pci {
	char bus_id_legacy[16];
	unsigned domain, bus, device, id, subsystem_id;
	char bus_id[32];
};

static bool is_initialised;

/* A handle is the device's number and 1. */
static enum result device_of(void *handle, int *ordinal)
{
	*ordinal = (int)(uintptr_t)handle - 1;
	if (!is_initialised)
		return NVML_UNINITIALIZED;
	return *ordinal >= 0 && *ordinal < sim_config()->n_devices ? NVML_SUCCESS
								   : NVML_INVALID_ARGUMENT;
}

/* Whether SIMCUDA_FAULTS wants the function to fail; result is set then. */
#define ENTER(function)                                                                     \
	static struct sim_api api = {.name = #function, .unsupported = NVML_NOT_SUPPORTED}; \
	int result = NVML_SUCCESS;                                                          \
	bool fails = sim_fault_is_due(&api, &result)

EXPORT enum result nvmlInit_v2(void)
{
	ENTER(nvmlInit_v2);
	if (fails)
		return (enum result)result;
	if (sim_config()->driver != SIM_DRIVER_PRESENT)
		return NVML_DRIVER_NOT_LOADED;
	is_initialised = true;
	return NVML_SUCCESS;
}

EXPORT enum result nvmlInitWithFlags(unsigned flags)
{
	return nvmlInit_v2();
}

EXPORT enum result nvmlShutdown(void)
{
	return is_initialised ? NVML_SUCCESS : NVML_UNINITIALIZED;
}

EXPORT const char *nvmlErrorString(enum result result)
{
	return result == NVML_SUCCESS ? "Success" : "Simulated error";
}

EXPORT enum result nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	snprintf(version, length, "595.00.00");
	return NVML_SUCCESS;
}

EXPORT enum result nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	*version = sim_config()->driver_version;
	return NVML_SUCCESS;
}

EXPORT enum result nvmlDeviceGetCount_v2(unsigned *count)
{
	ENTER(nvmlDeviceGetCount_v2);
	*count = (unsigned)sim_config()->n_devices;
	return fails ? (enum result)result : is_initialised ? NVML_SUCCESS : NVML_UNINITIALIZED;
}

EXPORT enum result nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	int ordinal;

	*device = (void *)(uintptr_t)(index + 1);
	return device_of(*device, &ordinal);
}

EXPORT enum result nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device)
{
	unsigned domain, bus;

	if (sscanf(bus_id, "%x:%x", &domain, &bus) != 2 || bus < FIRST_BUS)
		return NVML_INVALID_ARGUMENT;
	return nvmlDeviceGetHandleByIndex_v2(bus - FIRST_BUS, device) ? NVML_NOT_FOUND
								      : NVML_SUCCESS;
}

EXPORT enum result nvmlDeviceGetName(void *device, char *name, unsigned length)
{
	int ordinal;
	enum result result = device_of(device, &ordinal);

	if (!result)
		snprintf(name, length, "%s", sim_config()->device_name);
	return result;
}

EXPORT enum result nvmlDeviceGetUUID(void *device, char *uuid, unsigned length)
{
	int ordinal;
	enum result result = device_of(device, &ordinal);

	if (!result)
		snprintf(uuid, length, "GPU-73696d75-6c61-7465-6420-6465766963%02x",
			 (unsigned)ordinal);
	return result;
}

EXPORT enum result nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
	int ordinal;
	enum result result = device_of(device, &ordinal);

	if (result)
		return result;
	memset(pci, 0, sizeof(*pci));
	pci->bus = FIRST_BUS + (unsigned)ordinal;
	snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", pci->bus);
	snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "0000:%02X:00.0", pci->bus);
	return NVML_SUCCESS;
}

/* By all processes. */
static unsigned long long used_bytes(int ordinal)
{
	struct sim_user users[SIM_USERS_MAX];
	unsigned long long n = sim_config()->other_bytes;
	int n_users;

	sim_lock();
	n_users = sim_users_list(ordinal, users);
	for (int i = 0; i < n_users; i++)
		n += users[i].bytes;
	if (n_users < 0 && sim_device(ordinal)->is_open)
		n = sim_config()->device_bytes - sim_memory_left(sim_device(ordinal));
	sim_unlock();
	return n;
}

EXPORT enum result nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
	ENTER(nvmlDeviceGetMemoryInfo);
	int ordinal;

	if (fails || (result = device_of(device, &ordinal)))
		return (enum result)result;
	memory->total = sim_config()->device_bytes;
	memory->used = used_bytes(ordinal);
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

EXPORT enum result nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory)
{
	struct memory plain;
	enum result result = nvmlDeviceGetMemoryInfo(device, &plain);

	if (result)
		return result;
	memory->reserved = 0;
	memory->total = plain.total;
	memory->free = plain.free;
	memory->used = plain.used;
	return NVML_SUCCESS;
}

/* This process alone without SIMCUDA_SHARED: others have simulations of their own. */
static enum result list(void *device, unsigned *n, struct sim_user users[SIM_USERS_MAX])
{
	unsigned room = *n;
	int ordinal, n_users;
	enum result result = device_of(device, &ordinal);

	if (result)
		return result;
	sim_lock();
	n_users = sim_users_list(ordinal, users);
	if (n_users < 0 && sim_device(ordinal)->is_open) {
		users[0] =
			(struct sim_user){getpid(), sim_config()->device_bytes -
							    sim_memory_left(sim_device(ordinal))};
		n_users = 1;
	}
	sim_unlock();
	*n = n_users < 0 ? 0 : (unsigned)n_users;
	for (unsigned i = 0; i < *n; i++) {
		if (sim_config()->hides_processes)
			users[i].bytes = UINT64_MAX;
	}
	return *n > room ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#ifndef SIM_NVML_OLD
EXPORT enum result nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n,
							   struct process *processes)
{
	ENTER(nvmlDeviceGetComputeRunningProcesses_v3);
	struct sim_user users[SIM_USERS_MAX];

	if (fails || (result = list(device, n, users)))
		return (enum result)result;
	for (unsigned i = 0; i < *n; i++)
		processes[i] = (struct process){(unsigned)users[i].pid, users[i].bytes, UINT32_MAX,
						UINT32_MAX};
	return NVML_SUCCESS;
}

/* Nobody draws. */
EXPORT enum result nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *n,
							    struct process *processes)
{
	int ordinal;

	*n = 0;
	return device_of(device, &ordinal);
}
#endif

EXPORT enum result nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *n,
							struct process_v1 *processes)
{
	struct sim_user users[SIM_USERS_MAX];
	enum result result = list(device, n, users);

	for (unsigned i = 0; !result && i < *n; i++)
		processes[i] = (struct process_v1){(unsigned)users[i].pid, users[i].bytes};
	return result;
}

EXPORT enum result nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
	int ordinal;

	*milliwatts = MILLIWATTS;
	return device_of(device, &ordinal);
}

EXPORT enum result nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
	int ordinal;

	*celsius = IDLE_CELSIUS;
	return device_of(device, &ordinal);
}

EXPORT enum result nvmlDeviceGetClockInfo(void *device, int type, unsigned *megahertz)
{
	int ordinal;

	*megahertz = MEGAHERTZ;
	return device_of(device, &ordinal);
}

struct utilization {
	unsigned gpu, memory;
};

EXPORT enum result nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization)
{
	int ordinal;

	*utilization = (struct utilization){0};
	return device_of(device, &ordinal);
}

/* Nothing of these is simulated. */
#define STUB(function)                                                                            \
	EXPORT enum result function(void)                                                         \
	{                                                                                         \
		static struct sim_api api = {.name = #function,                                   \
					     .unsupported = NVML_NOT_SUPPORTED};                  \
		int code;                                                                         \
                                                                                                  \
		return (enum result)(sim_fault_is_due(&api, &code) ? code                         \
								   : sim_call_unsupported(&api)); \
	}
STUB(nvmlDeviceGetGpuFabricInfoV)
STUB(nvmlDeviceGetNvLinkRemoteDeviceType)
STUB(nvmlDeviceGetNvLinkRemotePciInfo_v2)
STUB(nvmlDeviceGetNvLinkState)
STUB(nvmlDeviceGetP2PStatus)
#undef STUB
