/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The address space of the devices, an ordered array of ranges. */
#include "test/simcuda/engine/memory/memory.h"
#include "test/simcuda/engine/memory/others.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/device.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/log/log.h"
#include "test/simcuda/engine/memory/graph_memory.h"
#include "test/simcuda/engine/memory/pool.h"
#include "test/simcuda/engine/result.h"

enum { PAGE = 4096, DISCARD_FROM = 16 * PAGE };

static struct sim_range *ranges;
static size_t n_ranges, capacity;
static unsigned last_id;

/* The first range that begins behind the address. */
static size_t find_behind(uint64_t address)
{
	size_t low = 0, high = n_ranges;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (ranges[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void sim_memory_insert(const struct sim_range *range)
{
	size_t i = find_behind(range->base);

	if (n_ranges == capacity) {
		capacity = capacity ? 2 * capacity : 256;
		ranges = realloc(ranges, capacity * sizeof(*ranges));
	}
	memmove(&ranges[i + 1], &ranges[i], (n_ranges - i) * sizeof(*ranges));
	ranges[i] = *range;
	ranges[i].id = ++last_id;
	n_ranges++;
}

bool sim_memory_find(uint64_t address, struct sim_range *range)
{
	size_t i = find_behind(address);

	if (!i || address - ranges[i - 1].base >= ranges[i - 1].bytes)
		return false;
	*range = ranges[i - 1];
	return true;
}

bool sim_memory_lookup(uint64_t address, struct sim_range *range)
{
	sim_lock();
	bool is_found = sim_memory_find(address, range);
	sim_unlock();
	return is_found;
}

bool sim_memory_remove(uint64_t base, struct sim_range *range)
{
	size_t i = find_behind(base);

	if (!i || ranges[i - 1].base != base)
		return false;
	*range = ranges[i - 1];
	memmove(&ranges[i - 1], &ranges[i], (n_ranges - i) * sizeof(*ranges));
	n_ranges--;
	return true;
}

void sim_memory_update(const struct sim_range *range)
{
	size_t i = find_behind(range->base);

	if (i && ranges[i - 1].base == range->base)
		ranges[i - 1] = *range;
}

void sim_memory_each(void (*call)(const struct sim_range *range, void *data), void *data)
{
	for (size_t i = n_ranges; i-- > 0;) {
		struct sim_range range = ranges[i];

		call(&range, data);
	}
}

int sim_memory_open(struct sim_device *device)
{
	size_t bytes = sim_config()->device_bytes;
	int access = sim_config()->is_protected ? PROT_NONE : PROT_READ | PROT_WRITE;

	device->memory_fd = memfd_create("simcuda", MFD_CLOEXEC);
	if (device->memory_fd < 0 || ftruncate(device->memory_fd, (off_t)bytes))
		return SIM_OUT_OF_MEMORY;
	char *seen = mmap(NULL, bytes, access, MAP_SHARED | MAP_NORESERVE, device->memory_fd, 0);
	char *reached = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			     device->memory_fd, 0);
	if (seen == MAP_FAILED || reached == MAP_FAILED)
		return SIM_OUT_OF_MEMORY;
	/* A forked child has no device. */
	madvise(seen, bytes, MADV_DONTFORK);
	madvise(reached, bytes, MADV_DONTFORK);
	device->memory_base = (uint64_t)(uintptr_t)seen;
	device->memory_at = reached;
	if (sim_config()->other_bytes < bytes)
		sim_extents_give(&device->free_memory, 0, bytes - sim_config()->other_bytes);
	return SIM_SUCCESS;
}

void sim_memory_discard(struct sim_device *device, uint64_t offset, uint64_t bytes)
{
	uint64_t begin = (offset + PAGE - 1) & -(uint64_t)PAGE,
		 end = (offset + bytes) & -(uint64_t)PAGE;

	if (end > begin && end - begin >= DISCARD_FROM)
		fallocate(device->memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)begin, (off_t)(end - begin));
}

void sim_memory_report(const struct sim_range *range, bool is_release, struct sim_memory_from from)
{
	const struct sim_tracer *tracer = sim_tracer();
	uint64_t left = sim_memory_left(sim_device(range->device));
	struct sim_memory_event event = {
		.is_release = is_release,
		.kind = range->kind,
		.address = range->base,
		.bytes = range->bytes,
		.t_ns = sim_now(),
		.correlation = sim_call_correlation(),
		.device = range->device,
		.context = range->context,
		.stream = from.stream,
		.is_async = from.is_async,
	};

	if (range->pool)
		sim_pool_describe(range->pool, &event);
	if (tracer && tracer->memory)
		tracer->memory(&event);
	if (sim_log_is_on())
		sim_log("{\"kind\":\"%s\",\"memory\":%d,\"address\":%lu,\"bytes\":%lu,\"time\":%lu,\"device\":%d,"
			"\"context\":%u,\"stream\":%u,\"async\":%d,\"pool\":%lu,\"correlation\":%lu,\"thread\":%u,"
			"\"mapped\":%d,\"registered\":%d,\"left\":%lu}",
			is_release ? "free" : "alloc", event.kind, event.address, event.bytes,
			event.t_ns, event.device, event.context, event.stream, event.is_async,
			event.pool, event.correlation, sim_thread_id(), range->is_mapping,
			range->is_registered, left);
}

int sim_memory_refuse(const struct sim_device *device, uint64_t bytes)
{
	if (sim_log_is_on())
		sim_log("{\"kind\":\"refused\",\"bytes\":%lu,\"time\":%lu,\"device\":%d,\"left\":%lu,\"thread\":%u}",
			bytes, sim_now(), device->ordinal, sim_memory_left(device),
			sim_thread_id());
	return SIM_OUT_OF_MEMORY;
}

static int alloc(struct sim_device *device, uint32_t context, size_t bytes,
		 enum sim_memory_kind kind, uint64_t *address)
{
	uint64_t offset, taken = (bytes + SIM_ALIGNMENT - 1) & -(uint64_t)SIM_ALIGNMENT;

	if (!bytes)
		return SIM_INVALID_VALUE;
	sim_lock();
	if (taken < bytes ||
	    !sim_extents_take(&device->free_memory, taken, SIM_ALIGNMENT, &offset)) {
		int result = sim_memory_refuse(device, bytes);

		sim_unlock();
		return result;
	}
	struct sim_range range = {
		.base = device->memory_base + offset,
		.bytes = bytes,
		.bytes_at = device->memory_at + offset,
		.kind = kind,
		.device = device->ordinal,
		.context = context,
		.offset = offset,
	};
	sim_memory_insert(&range);
	sim_memory_report(&range, false, (struct sim_memory_from){0});
	sim_unlock();
	*address = range.base;
	return SIM_SUCCESS;
}

int sim_memory_alloc(struct sim_device *device, uint32_t context, size_t bytes, uint64_t *address)
{
	return alloc(device, context, bytes, SIM_MEMORY_DEVICE, address);
}

int sim_memory_alloc_array(struct sim_device *device, uint32_t context, size_t bytes,
			   uint64_t *address)
{
	return alloc(device, context, bytes, SIM_MEMORY_ARRAY, address);
}

int sim_memory_alloc_host(struct sim_device *device, uint32_t context, size_t bytes,
			  enum sim_memory_kind kind, uint64_t *address)
{
	if (!bytes)
		return SIM_INVALID_VALUE;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return SIM_OUT_OF_MEMORY;
	struct sim_range range = {
		.base = (uint64_t)(uintptr_t)p,
		.bytes = bytes,
		.bytes_at = p,
		.kind = kind,
		.device = device->ordinal,
		.context = context,
	};
	sim_lock();
	sim_memory_insert(&range);
	sim_memory_report(&range, false, (struct sim_memory_from){0});
	sim_unlock();
	*address = range.base;
	return SIM_SUCCESS;
}

static void release_device_memory(const struct sim_range *range)
{
	struct sim_device *device = sim_device(range->device);
	uint64_t taken = (range->bytes + SIM_ALIGNMENT - 1) & -(uint64_t)SIM_ALIGNMENT;

	sim_memory_discard(device, range->offset, taken);
	sim_extents_give(&device->free_memory, range->offset, taken);
}

int sim_memory_free(uint64_t address, enum sim_memory_kind kind)
{
	struct sim_range range;

	sim_lock();
	if (sim_memory_find(address, &range) && range.is_of_graph) {
		bool is_given_back = sim_graph_memory_end(address, (struct sim_memory_from){0});

		sim_unlock();
		return is_given_back ? SIM_SUCCESS : SIM_INVALID_VALUE;
	}
	bool is_right = sim_memory_find(address, &range) && range.base == address &&
			!range.is_registered && !range.is_mapping && !range.is_import &&
			(range.kind == kind ||
			 (kind == SIM_MEMORY_DEVICE && range.kind == SIM_MEMORY_MANAGED));
	if (!is_right || range.is_freed_later) {
		sim_unlock();
		return SIM_INVALID_VALUE;
	}
	sim_memory_remove(address, &range);
	bool is_of_device = range.kind == SIM_MEMORY_DEVICE || range.kind == SIM_MEMORY_ARRAY;
	if (range.pool)
		sim_pool_take_back(&range);
	else if (is_of_device)
		release_device_memory(&range);
	sim_memory_report(&range, true, (struct sim_memory_from){0});
	sim_unlock();
	if (!is_of_device)
		munmap(range.bytes_at, range.bytes);
	return SIM_SUCCESS;
}

static void report_import(const char *what, const struct sim_range *range)
{
	if (sim_log_is_on())
		sim_log("{\"kind\":\"%s\",\"address\":%lu,\"bytes\":%lu,\"time\":%lu,\"device\":%d}",
			what, range->base, range->bytes, sim_now(), range->device);
}

int sim_memory_open_import(struct sim_device *device, uint32_t context, size_t bytes,
			   uint64_t *address)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct sim_range range = {
		.base = (uint64_t)(uintptr_t)p,
		.bytes = bytes,
		.bytes_at = p,
		.kind = SIM_MEMORY_DEVICE,
		.device = device->ordinal,
		.context = context,
		.is_import = true,
	};

	if (p == MAP_FAILED)
		return SIM_OUT_OF_MEMORY;
	sim_lock();
	sim_memory_insert(&range);
	report_import("import", &range);
	sim_unlock();
	*address = range.base;
	return SIM_SUCCESS;
}

int sim_memory_close_import(uint64_t address)
{
	struct sim_range range;
	int result = SIM_INVALID_VALUE;

	sim_lock();
	if (sim_memory_find(address, &range) && range.is_import && range.base == address) {
		sim_memory_remove(address, &range);
		report_import("import_end", &range);
		result = SIM_SUCCESS;
	}
	sim_unlock();
	if (!result)
		munmap(range.bytes_at, range.bytes);
	return result;
}

void sim_memory_free_all(uint32_t context)
{
	struct sim_range range;

	sim_lock();
	for (size_t i = n_ranges; i-- > 0;) {
		range = ranges[i];
		if (range.context != context || range.pool || range.is_mapping || range.is_import)
			continue;
		sim_memory_remove(range.base, &range);
		if (range.kind == SIM_MEMORY_DEVICE || range.kind == SIM_MEMORY_ARRAY)
			release_device_memory(&range);
		else if (!range.is_registered)
			munmap(range.bytes_at, range.bytes);
		sim_memory_report(&range, true, (struct sim_memory_from){0});
	}
	sim_unlock();
}

int sim_memory_register(struct sim_device *device, uint32_t context, void *p, size_t bytes)
{
	struct sim_range found, range = {
					.base = (uint64_t)(uintptr_t)p,
					.bytes = bytes,
					.bytes_at = p,
					.kind = SIM_MEMORY_PINNED,
					.device = device->ordinal,
					.context = context,
					.is_registered = true,
				};
	int result = SIM_SUCCESS;

	if (!p || !bytes)
		return SIM_INVALID_VALUE;
	sim_lock();
	if (sim_memory_find(range.base, &found) || sim_memory_find(range.base + bytes - 1, &found))
		result = SIM_HOST_MEMORY_ALREADY_REGISTERED;
	else {
		sim_memory_insert(&range);
		sim_memory_report(&range, false, (struct sim_memory_from){0});
	}
	sim_unlock();
	return result;
}

int sim_memory_unregister(void *p)
{
	struct sim_range range;
	int result = SIM_HOST_MEMORY_NOT_REGISTERED;

	sim_lock();
	if (sim_memory_find((uint64_t)(uintptr_t)p, &range) && range.is_registered &&
	    range.bytes_at == p) {
		sim_memory_remove(range.base, &range);
		sim_memory_report(&range, true, (struct sim_memory_from){0});
		result = SIM_SUCCESS;
	}
	sim_unlock();
	return result;
}

char *sim_memory_reach(uint64_t address, size_t *n_bytes)
{
	struct sim_range range;

	if (sim_memory_find(address, &range)) {
		*n_bytes = range.base + range.bytes - address;
		return range.bytes_at + (address - range.base);
	}
	if (sim_device_owns(address))
		return NULL;
	*n_bytes = SIZE_MAX;
	return (char *)(uintptr_t)address;
}
