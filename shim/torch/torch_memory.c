/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The functions by which PyTorch's allocators report memory to its own profiler:
 * c10::reportMemoryUsageToProfiler, c10::reportOutOfMemoryToProfiler and
 * c10::memoryProfilingEnabled, by their mangled names since 1.6. A c10::Device is two signed bytes,
 * type and index, in one register.
 *
 * libc10 queries memoryProfilingEnabled before it reports a CPU block: the agent returns true to
 * get all of them, and forwards to the profiler what it would get without the agent
 * (torch_kineto_blocks.h).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/hooks.h"
#include "shim/loader/objects.h"
#include "shim/torch/torch_kineto_blocks.h"

#define NAMED(name) __asm__(name)
#define USAGE_LLL "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE" /* 1.11 to 1.13 */
#define USAGE_LMM "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE" /* 2.0 and later */
#define USAGE_OLD "_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE" /* 1.6 to 1.10 */
#define OUT_LLL "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"
#define OUT_LMM "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
#define OUT_MMM "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE"
#define ENABLED "_ZN3c1022memoryProfilingEnabledEv"

typedef void report_usage(void *block, int64_t n_bytes, uint64_t allocated, uint64_t reserved,
			  uint32_t device);
typedef void report_usage_old(void *block, int64_t n_bytes, uint32_t device);
typedef void report_out(int64_t n_bytes, uint64_t allocated, uint64_t reserved, uint32_t device);
typedef _Bool is_enabled(void);

/* libc10's own definitions, NULL if this version lacks one. Complete when is_found. */
static struct {
	report_usage *usage;
	report_usage_old *usage_old;
	report_out *out;
	is_enabled *enabled;
} next;
static _Atomic bool is_found;

static void *find_either(const char *name, const char *other)
{
	void *found = torsh_objects_find(name);

	return found ? found : torsh_objects_find(other);
}

/* Runs at the first block that an allocator reports; two threads in a race find the same. */
static void find_next(void)
{
	if (atomic_load_explicit(&is_found, memory_order_acquire))
		return;
	*(void **)&next.usage = find_either(USAGE_LMM, USAGE_LLL);
	*(void **)&next.usage_old = torsh_objects_find(USAGE_OLD);
	*(void **)&next.out = find_either(OUT_LMM, OUT_MMM);
	if (!next.out)
		*(void **)&next.out = torsh_objects_find(OUT_LLL);
	*(void **)&next.enabled = torsh_objects_find(ENABLED);
	atomic_store_explicit(&is_found, true, memory_order_release);
	torsh_torch_found();
}

static bool is_cpu(uint32_t device)
{
	return (device & 0xff) == 0;
}

/* A c10::Device in the events' form: type << 8 | index, the CPU 0. */
static uint32_t device_number(uint32_t device)
{
	return is_cpu(device) ? 0 : (device & 0xff) << 8 | (device >> 8 & 0xff);
}

EXPORT _Bool torsh_torch_memory_enabled(void) NAMED(ENABLED);
_Bool torsh_torch_memory_enabled(void)
{
	find_next();
	return torsh_torch_wants_cpu_memory() || (next.enabled && next.enabled());
}

/*
 * Whether libc10 would have reported it to its profiler. allocated becomes the sum in that report.
 */
static bool is_for_profiler(void *block, int64_t n_bytes, uint64_t *allocated, uint32_t device)
{
	if (!is_cpu(device) || !torsh_torch_wants_cpu_memory())
		return true;
	if (!next.enabled || !next.enabled())
		return false;
	return n_bytes > 0
		       ? torsh_torch_kineto_alloc((uintptr_t)block, (uint64_t)n_bytes, allocated)
		       : torsh_torch_kineto_free((uintptr_t)block, allocated);
}

static void report(void *block, int64_t n_bytes, uint64_t allocated, uint64_t reserved,
		   uint32_t device, const void *frame)
{
	find_next();
	torsh_torch_memory(block, n_bytes, allocated, reserved, device_number(device), frame);
	if (next.usage && is_for_profiler(block, n_bytes, &allocated, device))
		next.usage(block, n_bytes, allocated, reserved, device);
}

EXPORT void torsh_torch_usage_lmm(void *block, int64_t n_bytes, uint64_t allocated,
				  uint64_t reserved, uint32_t device) NAMED(USAGE_LMM);
void torsh_torch_usage_lmm(void *block, int64_t n_bytes, uint64_t allocated, uint64_t reserved,
			   uint32_t device)
{
	report(block, n_bytes, allocated, reserved, device, HOOK_FRAME);
}

EXPORT void torsh_torch_usage_lll(void *block, int64_t n_bytes, uint64_t allocated,
				  uint64_t reserved, uint32_t device) NAMED(USAGE_LLL);
void torsh_torch_usage_lll(void *block, int64_t n_bytes, uint64_t allocated, uint64_t reserved,
			   uint32_t device)
{
	report(block, n_bytes, allocated, reserved, device, HOOK_FRAME);
}

EXPORT void torsh_torch_usage_old(void *block, int64_t n_bytes, uint32_t device) NAMED(USAGE_OLD);
void torsh_torch_usage_old(void *block, int64_t n_bytes, uint32_t device)
{
	uint64_t allocated = 0;

	find_next();
	torsh_torch_memory(block, n_bytes, 0, 0, device_number(device), HOOK_FRAME);
	if (next.usage_old && is_for_profiler(block, n_bytes, &allocated, device))
		next.usage_old(block, n_bytes, device);
}

static void report_out_of_memory(int64_t n_bytes, uint64_t allocated, uint64_t reserved,
				 uint32_t device, const void *frame)
{
	find_next();
	torsh_torch_out_of_memory(n_bytes, allocated, reserved, device_number(device), frame);
	if (next.out)
		next.out(n_bytes, allocated, reserved, device);
}

EXPORT void torsh_torch_out_lmm(int64_t n_bytes, uint64_t allocated, uint64_t reserved,
				uint32_t device) NAMED(OUT_LMM);
void torsh_torch_out_lmm(int64_t n_bytes, uint64_t allocated, uint64_t reserved, uint32_t device)
{
	report_out_of_memory(n_bytes, allocated, reserved, device, HOOK_FRAME);
}

EXPORT void torsh_torch_out_mmm(int64_t n_bytes, uint64_t allocated, uint64_t reserved,
				uint32_t device) NAMED(OUT_MMM);
void torsh_torch_out_mmm(int64_t n_bytes, uint64_t allocated, uint64_t reserved, uint32_t device)
{
	report_out_of_memory(n_bytes, allocated, reserved, device, HOOK_FRAME);
}

EXPORT void torsh_torch_out_lll(int64_t n_bytes, uint64_t allocated, uint64_t reserved,
				uint32_t device) NAMED(OUT_LLL);
void torsh_torch_out_lll(int64_t n_bytes, uint64_t allocated, uint64_t reserved, uint32_t device)
{
	report_out_of_memory(n_bytes, allocated, reserved, device, HOOK_FRAME);
}
