/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How long work takes, and what copies and memsets do to memory. Kernels do nothing, but for
 * collectives'.
 */
#include "test/simcuda/engine/work.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/device.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/memory/memory.h"
#include "test/simcuda/engine/result.h"

enum {
	/* A copy to the host of at most so many bytes is the count that an operator reads back. */
	COUNT_BYTES = 8
};

static bool is_on_device(enum sim_memory_kind kind)
{
	return kind == SIM_MEMORY_DEVICE || kind == SIM_MEMORY_DEVICE_STATIC ||
	       kind == SIM_MEMORY_MANAGED;
}

enum sim_copy_kind sim_copy_kind(const struct sim_copy_work *copy)
{
	bool to_device = is_on_device(copy->to_kind), from_device = is_on_device(copy->from_kind);

	if (to_device && from_device)
		return copy->to_device == copy->from_device ? SIM_COPY_WITHIN_DEVICE
							    : SIM_COPY_BETWEEN_DEVICES;
	if (to_device)
		return SIM_COPY_TO_DEVICE;
	return from_device ? SIM_COPY_TO_HOST : SIM_COPY_WITHIN_HOST;
}

const char *sim_copy_name(enum sim_copy_kind kind)
{
	switch (kind) {
	case SIM_COPY_TO_DEVICE:
		return "HtoD";
	case SIM_COPY_TO_HOST:
		return "DtoH";
	case SIM_COPY_WITHIN_DEVICE:
		return "DtoD";
	case SIM_COPY_WITHIN_HOST:
		return "HtoH";
	case SIM_COPY_BETWEEN_DEVICES:
		return "PtoP";
	default:
		return "unknown";
	}
}

size_t sim_copy_bytes(const struct sim_copy_work *copy)
{
	return copy->width * copy->height;
}

/* "PATTERN=NS,PATTERN=NS": the first that fits. */
static bool find_duration(const char *patterns, const char *name, uint64_t *ns)
{
	char pattern[256];

	while (patterns && *patterns) {
		const char *equals = strchr(patterns, '=');
		size_t length = equals ? (size_t)(equals - patterns) : sizeof(pattern);

		if (length >= sizeof(pattern))
			return false;
		memcpy(pattern, patterns, length);
		pattern[length] = 0;
		*ns = strtoull(equals + 1, (char **)&patterns, 10);
		if (!fnmatch(pattern, name, 0))
			return true;
		patterns += *patterns == ',';
	}
	return false;
}

static _Thread_local uint64_t extra_ns;

void sim_kernel_extra_ns(uint64_t ns)
{
	extra_ns = ns;
}

static _Thread_local struct sim_gather gather_of_kernels;

void sim_kernel_gathers(const struct sim_gather *gather)
{
	gather_of_kernels = gather ? *gather : (struct sim_gather){0};
}

struct sim_gather sim_kernel_gather(void)
{
	return gather_of_kernels;
}

uint64_t sim_kernel_duration(const char *name)
{
	uint64_t ns;

	return find_duration(sim_config()->kernels, name, &ns) ? ns
							       : sim_config()->kernel_ns + extra_ns;
}

static uint64_t copy_duration(const struct sim_copy_work *copy)
{
	uint64_t speed = sim_copy_kind(copy) == SIM_COPY_WITHIN_DEVICE
				 ? sim_config()->local_bytes_per_us
				 : sim_config()->link_bytes_per_us;

	return sim_config()->copy_ns + sim_copy_bytes(copy) * 1000 / speed;
}

/*
 * What the address is; false where a device owns it and nothing was allocated there. With the lock.
 */
static bool classify(uint64_t address, enum sim_memory_kind *kind, int *device)
{
	struct sim_range range;

	if (sim_memory_find(address, &range)) {
		*kind = range.kind;
		*device = range.device;
		return true;
	}
	*kind = SIM_MEMORY_PAGEABLE;
	*device = -1;
	return !sim_device_owns(address);
}

static bool has_rows(uint64_t address, size_t width, size_t height, size_t pitch)
{
	size_t wanted = height ? (height - 1) * pitch + width : 0;

	while (wanted) {
		size_t n;

		if (!sim_memory_reach(address, &n))
			return false;
		n = n < wanted ? n : wanted;
		address += n;
		wanted -= n;
	}
	return true;
}

/* The source as it is now: the program may write there as soon as the call has returned. */
static char *stage(const struct sim_copy_work *copy)
{
	char *staged = malloc(sim_copy_bytes(copy) + 1);

	for (size_t row = 0; staged && row < copy->height; row++)
		memcpy(staged + row * copy->width,
		       (char *)(uintptr_t)(copy->from + row * copy->from_pitch), copy->width);
	return staged;
}

int sim_copy_make_rows(struct sim_work *work, const struct sim_copy_work *rows)
{
	struct sim_copy_work *copy = &work->copy;

	memset(work, 0, sizeof(*work));
	work->kind = SIM_COPY;
	*copy = *rows;
	sim_lock();
	bool is_known = classify(copy->to, &copy->to_kind, &copy->to_device) &&
			classify(copy->from, &copy->from_kind, &copy->from_device) &&
			has_rows(copy->to, copy->width, copy->height, copy->to_pitch) &&
			has_rows(copy->from, copy->width, copy->height, copy->from_pitch);
	sim_unlock();
	if (!is_known)
		return SIM_INVALID_VALUE;
	work->duration_ns = copy_duration(copy);
	if (copy->is_async && copy->from_kind == SIM_MEMORY_PAGEABLE)
		copy->staged = stage(copy);
	return SIM_SUCCESS;
}

int sim_copy_make(struct sim_work *work, uint64_t to, uint64_t from, size_t bytes, bool is_async)
{
	struct sim_copy_work copy = {
		.to = to,
		.from = from,
		.width = bytes,
		.height = 1,
		.to_pitch = bytes,
		.from_pitch = bytes,
		.is_async = is_async,
	};

	return sim_copy_make_rows(work, &copy);
}

int sim_memset_make(struct sim_work *work, const struct sim_memset_work *given)
{
	int device;

	memset(work, 0, sizeof(*work));
	work->kind = SIM_MEMSET;
	work->memset = *given;
	sim_lock();
	bool is_known = classify(given->to, &work->memset.kind, &device) && device >= 0 &&
			has_rows(given->to, given->width, given->height, given->pitch);
	sim_unlock();
	work->duration_ns = sim_config()->copy_ns +
			    given->width * given->height * 1000 / sim_config()->local_bytes_per_us;
	return is_known ? SIM_SUCCESS : SIM_INVALID_VALUE;
}

/* Memory may be mapped in parts that lie elsewhere each. */
static bool move_bytes(uint64_t to, uint64_t from, const char *staged, size_t bytes)
{
	while (bytes) {
		size_t n_to, n_from = bytes;
		char *target = sim_memory_reach(to, &n_to);
		const char *source = staged ? staged : sim_memory_reach(from, &n_from);

		if (!target || !source)
			return false;
		size_t n = n_to < n_from ? n_to : n_from;
		n = n < bytes ? n : bytes;
		memmove(target, source, n);
		to += n;
		from += n;
		staged = staged ? staged + n : NULL;
		bytes -= n;
	}
	return true;
}

static bool is_count(const struct sim_copy_work *copy)
{
	return sim_config()->zeroes_counts && sim_copy_kind(copy) == SIM_COPY_TO_HOST &&
	       sim_copy_bytes(copy) <= COUNT_BYTES;
}

int sim_copy_perform(const struct sim_copy_work *copy)
{
	static const char zeroes[COUNT_BYTES];

	for (size_t row = 0; row < copy->height; row++) {
		const char *staged = copy->staged     ? copy->staged + row * copy->width
				     : is_count(copy) ? zeroes
						      : NULL;

		if (!move_bytes(copy->to + row * copy->to_pitch,
				copy->from + row * copy->from_pitch, staged, copy->width))
			return SIM_ILLEGAL_ADDRESS;
	}
	return SIM_SUCCESS;
}

int sim_gather_perform(const struct sim_gather *gather)
{
	for (unsigned i = 0; i < gather->times; i++)
		if (!move_bytes(gather->to + i * gather->bytes, gather->from, NULL, gather->bytes))
			return SIM_ILLEGAL_ADDRESS;
	return SIM_SUCCESS;
}

static void fill(char *to, uint32_t value, unsigned element_bytes, size_t bytes)
{
	if (element_bytes == 1) {
		memset(to, (int)value, bytes);
		return;
	}
	for (size_t i = 0; i + element_bytes <= bytes; i += element_bytes)
		memcpy(to + i, &value, element_bytes);
}

int sim_memset_perform(const struct sim_memset_work *memset)
{
	for (size_t row = 0; row < memset->height; row++) {
		uint64_t to = memset->to + row * memset->pitch;
		size_t left = memset->width;

		while (left) {
			size_t n;
			char *at = sim_memory_reach(to, &n);

			if (!at)
				return SIM_ILLEGAL_ADDRESS;
			n = n < left ? n : left;
			fill(at, memset->value, memset->element_bytes, n);
			to += n;
			left -= n;
		}
	}
	return SIM_SUCCESS;
}
