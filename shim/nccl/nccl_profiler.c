/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The tables by which NCCL finds the agent, one for each interface, and the look-up of their names.
 * NCCL opens the plugin that NCCL_PROFILER_PLUGIN names and looks for the newest table that it
 * knows, then for older ones. The agent is inserted where the table is looked up: so another plugin
 * is opened by NCCL itself, and asked for its tables in NCCL's own order.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/loader/objects.h"
#include "shim/loader/symbol.h"
#include "shim/nccl/nccl.h"
#include "shim/nccl/nccl_api.h"

#define SYMBOL "ncclProfiler_v"
#define SYMBOL_BYTES (sizeof(SYMBOL) - 1)
#define OWN_NAME "torsh"

static int begin(const struct nccl_start *start, void **context, int *mask, void *log)
{
	int own = torsh_nccl_mask();
	uint64_t made = torsh_nccl_made(start);

	*context = (void *)made;
	torsh_nccl_chain_init(start, made, mask, own, log);
	return 0;
}

static int start_event(uint32_t version, void *context, void **handle,
		       struct nccl_descriptor *descriptor)
{
	int saved = errno, result;
	uint64_t number = torsh_nccl_begins(version, (uint64_t)context, descriptor);

	errno = saved;
	result = torsh_nccl_chain_start(version, (uint64_t)context, &number, descriptor);
	*handle = (void *)number;
	return result;
}

static int stop_event(uint32_t version, void *handle)
{
	int saved = errno;

	torsh_nccl_ends((uint64_t)handle);
	errno = saved;
	return torsh_nccl_chain_stop(version, (uint64_t)handle);
}

static int enter_state(uint32_t version, void *handle, int state,
		       union nccl_state_arguments *arguments)
{
	int saved = errno;

	torsh_nccl_enters(version, (uint64_t)handle, state, arguments);
	errno = saved;
	return torsh_nccl_chain_state(version, (uint64_t)handle, state, arguments);
}

static int finalize(uint32_t version, void *context)
{
	int saved = errno, result = torsh_nccl_chain_finalize(version, (uint64_t)context);

	saved = result ? errno : saved;
	torsh_nccl_finalized((uint64_t)context);
	errno = saved;
	return result;
}

/* ---- The tables ------------------------------------------------------------------------------ */

#define INIT_1(version)                                                      \
	static int init_##version(void **context, int *mask)                 \
	{                                                                    \
		const struct nccl_start start = {version, NULL, 0, 0, 0, 0}; \
                                                                             \
		return begin(&start, context, mask, NULL);                   \
	}
INIT_1(1)
INIT_1(2)
INIT_1(3)
#undef INIT_1

static int init_4(void **context, int *mask, const char *name, uint64_t hash, int n_nodes,
		  int n_ranks, int rank, void *log)
{
	const struct nccl_start start = {4, name, hash, n_nodes, n_ranks, rank};

	return begin(&start, context, mask, log);
}

#define INIT_5(version)                                                                        \
	static int init_##version(void **context, uint64_t hash, int *mask, const char *name,  \
				  int n_nodes, int n_ranks, int rank, void *log)               \
	{                                                                                      \
		const struct nccl_start start = {version, name, hash, n_nodes, n_ranks, rank}; \
                                                                                               \
		return begin(&start, context, mask, log);                                      \
	}
INIT_5(5)
INIT_5(6)
#undef INIT_5

/* Exported: NCCL reads its own version's. */
#define TABLE(version, form)                                                                    \
	static int start_##version(void *context, void **handle, struct nccl_descriptor *event) \
	{                                                                                       \
		return start_event(version, context, handle, event);                            \
	}                                                                                       \
	static int stop_##version(void *handle)                                                 \
	{                                                                                       \
		return stop_event(version, handle);                                             \
	}                                                                                       \
	static int state_##version(void *handle, int state, union nccl_state_arguments *what)   \
	{                                                                                       \
		return enter_state(version, handle, state, what);                               \
	}                                                                                       \
	static int finalize_##version(void *context)                                            \
	{                                                                                       \
		return finalize(version, context);                                              \
	}                                                                                       \
	EXPORT struct nccl_plugin ncclProfiler_v##version = {                                   \
		OWN_NAME,	 {.of_##form = init_##version},                                 \
		start_##version, stop_##version,                                                \
		state_##version, finalize_##version};
TABLE(1, 1)
TABLE(2, 1)
TABLE(3, 1)
TABLE(4, 4)
TABLE(5, 5)
TABLE(6, 5)
#undef TABLE

static struct nccl_plugin *const tables[NCCL_VERSIONS + 1] = {
	NULL,
	&ncclProfiler_v1,
	&ncclProfiler_v2,
	&ncclProfiler_v3,
	&ncclProfiler_v4,
	&ncclProfiler_v5,
	&ncclProfiler_v6,
};

/* ---- Look-ups -------------------------------------------------------------------------------- */

bool torsh_nccl_has(const char *name)
{
	return !strncmp(name, SYMBOL, SYMBOL_BYTES) && name[SYMBOL_BYTES] >= '1' &&
	       name[SYMBOL_BYTES] <= '0' + (char)NCCL_VERSIONS && !name[SYMBOL_BYTES + 1];
}

static bool is_own_handle(void *handle)
{
	const struct link_map *own = torsh_objects_of(&tables);
	struct link_map *map = NULL;

	return handle != RTLD_DEFAULT && !dlinfo(handle, RTLD_DI_LINKMAP, &map) && map == own;
}

static void *find_table(void *library, uint32_t version)
{
	char name[] = SYMBOL "0";

	name[SYMBOL_BYTES] = (char)('0' + version);
	return library ? torsh_symbol(library, name) : NULL;
}

static bool is_plugin(void *library)
{
	bool is_one = false;

	for (uint32_t version = 1; version <= NCCL_VERSIONS && !is_one; version++)
		is_one = find_table(library, version) != NULL;
	return is_one;
}

/*
 * The plugin that NCCL takes where NCCL_PROFILER_PLUGIN isn't set, which the agent did: the library
 * of that name. It stays open. NULL: there is none.
 */
static void *default_plugin(void)
{
	static void *_Atomic found;
	static _Atomic bool is_known;
	void *library = found;

	if (!is_known) {
		library = torsh_next.dlopen("libnccl-profiler.so", RTLD_NOW | RTLD_LOCAL);
		if (library && !is_plugin(library)) {
			torsh_next.dlclose(library);
			library = NULL;
		}
		found = library;
		is_known = true;
	}
	return library;
}

/* The agent's table, with this one behind it. */
static struct nccl_plugin *insert(uint32_t version, struct nccl_plugin *other)
{
	if (other) {
		torsh_nccl_note("NCCL: another profiler plugin is there: it gets all that it gets "
				"without the agent");
		tables[version]->name = other->name;
	} else {
		tables[version]->name = OWN_NAME;
	}
	torsh_nccl_chain(version, other);
	return tables[version];
}

void *torsh_nccl_instead(const char *name, void *handle, void *found, const void *caller)
{
	uint32_t version = (uint32_t)(name[SYMBOL_BYTES] - '0');
	bool is_wanted = torsh_nccl_mask() != 0, is_own = found == tables[version];
	void *other = found;

	if (is_own && !is_own_handle(handle))
		/* The whole process was searched: what would be found without the agent? */
		other = torsh_symbol(RTLD_NEXT, name);
	else if (is_own)
		other = is_wanted ? find_table(default_plugin(), version) : NULL;
	if (!is_wanted || (!is_own && !other))
		return other;
	/* An older table of the other plugin is asked for next, so that it gets what it expects. */
	if (is_own && !other && version > 1 && is_own_handle(handle) && default_plugin())
		return NULL;
	torsh_nccl_add_reporter(caller);
	return insert(version, other);
}
