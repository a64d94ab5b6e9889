/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Modules are found from addresses, not by watching dlopen: the first return address in a module
 * registers it. A small cache of recent results saves the search; it is flushed when code may have
 * been unmapped.
 */
#include "agent/modules/module_registry.h"
#include "agent/process/callbacks.h"
#include "agent/process/paths.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "agent/modules/module_watch.h"
#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/counter.h"

#define N_CACHED 512u

/* map_start << 16 | index + 1, in one word so that readers never see half an entry */
static _Atomic uint64_t cached[N_CACHED];

static uint32_t cache_slot(uintptr_t map_start)
{
	return (uint32_t)((map_start >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 55) % N_CACHED;
}

void torsh_registry_flush_modules(void)
{
	for (uint32_t i = 0; i < N_CACHED; i++)
		atomic_store_explicit(&cached[i], 0, memory_order_relaxed);
}

static void read_build_id(const struct module *found, struct channel_module *module)
{
	uint32_t n = 0;
	const uint8_t *id = found->is_start_readable
				    ? torsh_object_build_id(found->start, &found->memory, &n)
				    : NULL;

	module->n_build_id = 0;
	if (!id || n > CHANNEL_BUILD_ID_MAX)
		return;
	memcpy(module->build_id, id, n);
	module->n_build_id = n;
}

/*
 * The C library lists the program itself with an empty name, and the vdso with a name that is no
 * file.
 */
static void read_path(const struct link_map *map, struct text *path)
{
	if (!map)
		return;
	if (!strncmp(map->l_name, "linux-vdso", 10)) {
		torsh_text_put(path, "[vdso]");
	} else if (!*map->l_name) {
		torsh_text_put(path, torsh_agent_program());
	} else {
		if (*map->l_name != '/' && !torsh_agent_is_sandboxed() &&
		    TORSH_SYS(SYS_getcwd, path->bytes, path->capacity, 0, 0, 0, 0) > 0) {
			path->length = strlen(path->bytes);
			torsh_text_put(path, "/");
		}
		torsh_text_put(path, map->l_name);
	}
}

static bool is_same_text(const struct channel *channel, uint32_t offset, const struct text *text)
{
	const char *there = torsh_channel_text(channel, offset);

	return there && !memcmp(there, text->bytes, text->length);
}

static bool is_same(const struct channel *channel, const struct channel_module *a,
		    const struct channel_module *b, const struct text *path)
{
	return a->bias == b->bias && a->start == b->start && a->end == b->end &&
	       a->path.length == path->length && a->n_build_id == b->n_build_id &&
	       !memcmp(a->build_id, b->build_id, b->n_build_id) &&
	       is_same_text(channel, a->path.offset, path);
}

/* Not on the stack, which may be a signal handler's small one. */
struct added {
	struct channel_module module;
	char path[PATH_MAX];
};

/* Not inlined: finding the object already takes much of the stack. */
static __attribute__((noinline)) uint32_t add_module(const struct module *found)
{
	struct channel *channel = &torsh_process->channel;
	const struct link_map *map = found->link_map;
	struct added *added = torsh_sys_pages(sizeof(*added));
	struct channel_module *known, *module;
	uint32_t n = atomic_load_explicit(&channel->header->n_modules, memory_order_acquire), index;
	struct text path;

	if (!added)
		return CHANNEL_NO_MODULE;
	path = (struct text)TEXT_IN(added->path);
	module = &added->module;
	*module = (struct channel_module){
		.bias = map ? map->l_addr : 0, .start = found->start, .end = found->end};
	read_path(map, &path);
	if (map)
		read_build_id(found, module);
	for (index = 0; index < n; index++) {
		known = torsh_channel_module(channel, index);
		if (known && is_same(channel, known, module, &path))
			goto unmap;
	}
	module->path = torsh_channel_add_text(channel, path.bytes, path.length);
	index = atomic_fetch_add_explicit(&channel->header->n_modules, 1, memory_order_acq_rel);
	known = torsh_channel_module(channel, index);
	if (index >= channel->modules.n)
		atomic_store_explicit(&channel->header->n_modules, channel->modules.n,
				      memory_order_relaxed);
	if (known) {
		*known = *module;
	} else {
		torsh_count(COUNTER_modules_lost);
		index = CHANNEL_NO_MODULE;
	}
unmap:
	torsh_sys_munmap(added, sizeof(*added));
	return index;
}

static uint32_t index_of(const struct module *module)
{
	uint32_t slot = cache_slot(module->start), index;
	uint64_t entry = atomic_load_explicit(&cached[slot], memory_order_acquire);

	if (entry >> 16 == module->start && entry & 0xffff)
		return (uint32_t)(entry & 0xffff) - 1;
	torsh_callbacks.object_found(module->link_map);
	index = add_module(module);
	if (index != CHANNEL_NO_MODULE)
		atomic_store_explicit(&cached[slot], (uint64_t)module->start << 16 | (index + 1),
				      memory_order_release);
	return index;
}

static __attribute__((noinline)) uint32_t search_module(uintptr_t pc)
{
	struct module module;

	return torsh_modules_find(pc, &module) == MODULE_NONE ? CHANNEL_NO_MODULE
							      : index_of(&module);
}

/*
 * Returns the next place of a table of n places, or one past its end. A full table's count is set
 * back to n: it must not wrap around.
 */
static uint32_t claim_place(_Atomic uint32_t *n_used, uint32_t n)
{
	uint32_t index = atomic_fetch_add_explicit(n_used, 1, memory_order_relaxed);

	if (index >= n)
		atomic_store_explicit(n_used, n, memory_order_relaxed);
	return index;
}

static uint32_t add_entry(uint64_t ip, uint32_t flags, uint32_t module)
{
	struct channel *channel = &torsh_process->channel;
	uint32_t index = claim_place(&channel->header->n_addresses, channel->addresses.n);
	struct channel_address *address = torsh_channel_address(channel, index);

	if (!address) {
		torsh_count(COUNTER_addresses_lost);
		return REGISTRY_FULL;
	}
	address->module = module;
	/*
	 * Pairs with the acquire in the writer, which has read this id in an event: the module and
	 * everything before it are visible.
	 */
	atomic_store_explicit(&address->ip_and_flags, ip << 8 | CHANNEL_ADDRESS_THERE | flags,
			      memory_order_release);
	return index;
}

uint32_t torsh_registry_add_address(uintptr_t ip, uint32_t flags, const struct module *module)
{
	uint32_t index = CHANNEL_NO_MODULE;

	if (module)
		index = index_of(module);
	else if (ip)
		index = search_module(flags & ADDRESS_EXACT ? ip : ip - 1);
	return add_entry(ip, flags, index);
}

uint32_t torsh_registry_add_code(struct channel_text name, struct channel_text file,
				 uint32_t first_line)
{
	struct channel *channel = &torsh_process->channel;
	uint32_t index = claim_place(&channel->header->n_codes, channel->codes.n);
	struct channel_code *code = torsh_channel_code(channel, index);

	if (!code) {
		torsh_count(COUNTER_names_lost);
		return REGISTRY_NO_CODE;
	}
	*code = (struct channel_code){.name = name, .file = file, .first_line = first_line};
	return index;
}

uint32_t torsh_registry_add_line(uint32_t code, uint32_t line)
{
	return add_entry(line, ADDRESS_PYTHON, code);
}
