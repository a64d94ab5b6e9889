/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Records of devices, contexts and streams, which are written when these come into being, and of
 * CUPTI's own time.
 */
#include "test/simcuda/cupti/cupti.h"

#include <string.h>
#include <unistd.h>

#include "test/simcuda/cupti/layouts.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/device.h"

enum attribute {
#define ATTRIBUTE(name, value) name = value,
#include "test/simcuda/driver/attributes.def"
#undef ATTRIBUTE
};

enum { NON_BLOCKING = 1 };

static void append(CUpti_ActivityKind kind, const void *record)
{
	if (cupti_kinds[kind].is_on)
		cupti_append(record, cupti_record_bytes(record));
}

/* The bytes that the driver reports, which nvidia-smi would show. */
static void record_device(int ordinal)
{
	newest_device record = {
		.kind = CUPTI_ACTIVITY_KIND_DEVICE,
		.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS,
		/* Two transfers a clock over the bus, in thousands of bytes. */
		.globalMemoryBandwidth =
			(uint64_t)MEMORY_CLOCK_RATE * 2 * (GLOBAL_MEMORY_BUS_WIDTH / 8),
		.globalMemorySize = sim_config()->device_bytes,
		.constantMemorySize = TOTAL_CONSTANT_MEMORY,
		.l2CacheSize = L2_CACHE_SIZE,
		.numThreadsPerWarp = WARP_SIZE,
		.coreClockRate = CLOCK_RATE,
		.numMemcpyEngines = ASYNC_ENGINE_COUNT,
		.numMultiprocessors = (uint32_t)sim_config()->n_processors,
		.maxWarpsPerMultiprocessor = MAX_THREADS_PER_MULTIPROCESSOR / WARP_SIZE,
		.maxBlocksPerMultiprocessor = MAX_BLOCKS_PER_MULTIPROCESSOR,
		.maxSharedMemoryPerMultiprocessor = MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
		.maxRegistersPerMultiprocessor = MAX_REGISTERS_PER_MULTIPROCESSOR,
		.maxRegistersPerBlock = MAX_REGISTERS_PER_BLOCK,
		.maxSharedMemoryPerBlock = MAX_SHARED_MEMORY_PER_BLOCK,
		.maxThreadsPerBlock = MAX_THREADS_PER_BLOCK,
		.computeCapabilityMajor = (uint32_t)sim_config()->arch / 10,
		.computeCapabilityMinor = (uint32_t)sim_config()->arch % 10,
		.id = (uint32_t)ordinal,
		.name = sim_config()->device_name,
	};

	memcpy(record.uuid.bytes, "simulated device", sizeof(record.uuid.bytes));
	record.uuid.bytes[sizeof(record.uuid.bytes) - 1] =
		(char)(sim_config()->first_device + ordinal);
	append(CUPTI_ACTIVITY_KIND_DEVICE, &record);
}

void cupti_record_context(const struct sim_context *context)
{
	static _Atomic bool are_told;
	newest_context record = {
		.kind = CUPTI_ACTIVITY_KIND_CONTEXT,
		.contextId = context->id,
		.deviceId = (uint32_t)context->device->ordinal,
		.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA,
		.nullStreamId = (uint16_t)context->legacy->id,
	};

	if (!atomic_exchange(&are_told, true)) {
		for (int i = 0; i < sim_config()->n_devices; i++)
			record_device(i);
	}
	append(CUPTI_ACTIVITY_KIND_CONTEXT, &record);
}

void cupti_record_stream(const struct sim_stream *stream)
{
	CUpti_ActivityStream record = {
		.kind = CUPTI_ACTIVITY_KIND_STREAM,
		.contextId = stream->context->id,
		.streamId = stream->id,
		.priority = (uint32_t)stream->priority,
		.flag = stream->flags & NON_BLOCKING
				? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING
				: CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT,
	};

	append(CUPTI_ACTIVITY_KIND_STREAM, &record);
}

void cupti_record_overhead(CUpti_ActivityOverheadKind kind, uint64_t begin, uint64_t end)
{
	newest_overhead record = {
		.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
		.overheadKind = kind,
		.objectKind = CUPTI_ACTIVITY_OBJECT_PROCESS,
		.start = begin,
		.end = end,
	};

	record.objectId.pt.processId = (uint32_t)getpid();
	append(CUPTI_ACTIVITY_KIND_OVERHEAD, &record);
}
