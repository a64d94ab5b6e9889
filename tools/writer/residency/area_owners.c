/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/area_owners.h"

#include <stdio.h>
#include <string.h>

#define CHANNEL_FILE "/memfd:torsh-channel"
#define GUARD_BYTES_MAX (UINT64_C(1) << 20) /* below a thread's stack */

void torsh_area_owners_begin(struct area_owners *owners)
{
	for (uint32_t i = 0; i < owners->areas->n; i++) {
		const struct memory_area *area = &owners->areas->items[i];

		if (area->is_file && area->is_executable)
			torsh_hash_map_put_text(&owners->modules, area->path, 0);
	}
}

void torsh_area_owners_end(struct area_owners *owners)
{
	torsh_hash_map_free(&owners->modules);
}

static bool begins_with(const char *text, const char *begin)
{
	return !strncmp(text, begin, strlen(begin));
}

/* Memory of several processes that is of no file on a disk. */
static bool is_of_no_disk(const char *path)
{
	return begins_with(path, "/memfd:") || begins_with(path, "/dev/shm/") ||
	       begins_with(path, "/SYSV") || begins_with(path, "/dev/zero");
}

static bool is_module(const struct area_owners *owners, const char *path)
{
	return torsh_hash_map_find(&owners->modules, path, strlen(path) + 1) != NULL;
}

static struct owner owner_of_file(const struct area_owners *owners, const struct memory_area *area)
{
	uint32_t name = torsh_account_name(owners->account, area->path);
	uint32_t kind = OWNER_FILE;

	if (is_of_no_disk(area->path))
		kind = OWNER_SHARED;
	else if (is_module(owners, area->path))
		kind = area->is_executable ? OWNER_CODE : OWNER_DATA;
	return (struct owner){.kind = kind, .name = name};
}

/* glibc's stacks have a guard below, which nothing can touch. */
static bool is_above_guard(const struct area_owners *owners, uint32_t i)
{
	const struct memory_area *area = &owners->areas->items[i], *below = area - 1;

	return i && below->end == area->begin && !below->is_readable && !below->is_writable &&
	       !below->is_file && below->end - below->begin <= GUARD_BYTES_MAX;
}

static struct owner named(const struct area_owners *owners, uint32_t kind, const char *name)
{
	return (struct owner){.kind = kind, .name = torsh_account_name(owners->account, name)};
}

static struct owner owner_of_arena(struct area_owners *owners)
{
	char name[64];

	snprintf(name, sizeof(name), "glibc, arena %u", ++owners->n_arenas);
	return named(owners, OWNER_RETAINED, name);
}

static struct owner owner_of_anonymous(struct area_owners *owners, uint32_t i)
{
	const struct memory_area *area = &owners->areas->items[i];
	const char *thread;

	if (area->is_stack)
		return named(owners, OWNER_STACK, "first thread");
	if (area->is_brk_heap)
		return owners->is_glibc ? named(owners, OWNER_RETAINED, "glibc, main arena")
					: named(owners, OWNER_UNKNOWN, "memory from brk");
	if (area->path && is_module(owners, area->path))
		return named(owners, OWNER_DATA, area->path);
	if (owners->is_glibc && area->is_arena)
		return owner_of_arena(owners);
	thread = torsh_thread_names_find(owners->threads, area->begin, area->end);
	if (thread)
		return named(owners, OWNER_STACK, thread);
	if (area->is_writable && is_above_guard(owners, i))
		return named(owners, OWNER_STACK, "a running thread, or one that ended");
	return named(owners, OWNER_UNKNOWN, NULL);
}

struct region torsh_area_owners_of(struct area_owners *owners, uint32_t i)
{
	const struct memory_area *area = &owners->areas->items[i];
	struct region region = {.begin = area->begin, .end = area->end};

	if (area->is_file && begins_with(area->path, CHANNEL_FILE))
		region.rest = named(owners, OWNER_AGENT, "channel to the writer");
	else if (area->is_agents)
		region.rest = named(owners, OWNER_AGENT, area->is_file ? area->path : "memory");
	else if (area->is_kernels)
		region.rest = named(owners, OWNER_KERNEL, "vdso, vvar");
	else if (area->is_device)
		region.rest = named(owners, OWNER_DEVICE, area->path);
	else if (area->is_file)
		region.rest = owner_of_file(owners, area);
	else if (area->is_shared)
		region.rest = named(owners, OWNER_SHARED, "anonymous");
	else
		region.rest = owner_of_anonymous(owners, i);
	region.is_unknown = region.rest.kind == OWNER_UNKNOWN;
	return region;
}
