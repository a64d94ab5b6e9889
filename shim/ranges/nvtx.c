/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The entry points by which NVTX finds the agent and, through it, another consumer: that is opened
 * once and gets a single client, the agent; every call of any client goes to it and to the
 * collector.
 */
#include "shim/ranges/nvtx.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/loader/symbol.h"
#include "shim/ranges/ranges.h"
#include "shim/sys.h"

#define N_MODULES 7 /* NVTX_CB_MODULE_SIZE */
#define N_SLOTS 16 /* of the largest module */
#define CALLBACKS 1 /* NVTX_ETID_CALLBACKS */
#define VERSION_INFO 3 /* NVTX_ETID_VERSIONINFO */
#define NVTX_VERSION 3

typedef void function(void);

struct callbacks {
	size_t struct_size;
	int (*get_module)(int module, function ***table[], unsigned int *n_slots);
};

struct version_info {
	size_t struct_size;
	uint32_t version, reserved;
	void (*set_injection_version)(uint32_t version);
};

typedef const void *get_table(uint32_t id);
typedef int initialize(get_table *get);
typedef int initialize_extension(struct nvtx_module *module);

/* Where each module's slots are stored: in a struct nvtx_functions, or nowhere. */
static const struct place {
	uint8_t module, slot;
	uint16_t offset;
} entries[] = {
#define NVTX(module, slot, result, Name, parameters, arguments) \
	{module, slot, offsetof(struct nvtx_functions, Name)},
#define NVTX_VOID(module, slot, Name, parameters, arguments) \
	{module, slot, offsetof(struct nvtx_functions, Name)},
#include "shim/ranges/nvtx.def"
#undef NVTX
#undef NVTX_VOID
};

#define N_ENTRIES (sizeof(entries) / sizeof(*entries))

/*
 * What the consumer requests from its client. Modules that are not recorded (names of CUDA's
 * objects) have slots here.
 */
static function *consumer_slots[N_MODULES][N_SLOTS];
static function **consumer_tables[N_MODULES][N_SLOTS];
static const unsigned int n_slots_of[N_MODULES] = {0, 16, 9, 15, 7, 16, 7};

static int consumer_module(int module, function ***table[], unsigned int *n_slots)
{
	if (module <= 0 || module >= N_MODULES)
		return 0;
	for (unsigned int i = 1; i < n_slots_of[module]; i++)
		consumer_tables[module][i] = &consumer_slots[module][i];
	if (table)
		*table = consumer_tables[module];
	if (n_slots)
		*n_slots = n_slots_of[module];
	return 1;
}

static void take_injection_version(uint32_t version)
{
	(void)version;
}

static const void *consumer_table(uint32_t id)
{
	static const struct callbacks callbacks = {sizeof(callbacks), consumer_module};
	static const struct version_info version = {sizeof(version), NVTX_VERSION, 0,
						    take_injection_version};

	return id == CALLBACKS	    ? (const void *)&callbacks
	       : id == VERSION_INFO ? (const void *)&version
				    : NULL;
}

static void *open_consumer(const char *name)
{
	const char *path = torsh_injection_consumer(RANGE_BY_NVTX);
	void *library, *entry;

	if (!path)
		return NULL;
	library = torsh_next.dlopen(path, RTLD_LAZY);
	entry = library ? torsh_symbol(library, name) : NULL;
	if (!entry)
		torsh_ranges_note(
			"NVTX: what NVTX_INJECTION64_PATH names can't be opened, or is no tool for NVTX");
	return entry;
}

static void attach(void)
{
	initialize *entry = (initialize *)open_consumer("InitializeInjectionNvtx2");

	if (!entry)
		return;
	if (!entry(consumer_table)) {
		torsh_ranges_note(
			"NVTX: the tool that NVTX_INJECTION64_PATH names didn't start; the agent records alone");
		return;
	}
	for (size_t i = 0; i < N_ENTRIES; i++)
		memcpy((char *)&torsh_nvtx_consumer + entries[i].offset,
		       &consumer_slots[entries[i].module][entries[i].slot], sizeof(function *));
	torsh_nvtx_has_consumer = 1;
	torsh_ranges_note(
		"NVTX: another tool was there first (NVTX_INJECTION64_PATH): it gets all calls too");
}

enum { NOT_ATTACHED, ATTACHING, ATTACHED };

void torsh_nvtx_attach_consumer(void)
{
	static _Atomic int state;
	static _Thread_local bool is_attaching;
	int expected = NOT_ATTACHED;

	if (atomic_load_explicit(&state, memory_order_acquire) == ATTACHED || is_attaching)
		return;
	if (atomic_compare_exchange_strong(&state, &expected, ATTACHING)) {
		is_attaching = true;
		attach();
		is_attaching = false;
		/* Pairs with the acquires above and below: the consumer's slots are visible. */
		atomic_store_explicit(&state, ATTACHED, memory_order_release);
	}
	/* Handles made before would not be the consumer's. */
	while (atomic_load_explicit(&state, memory_order_acquire) != ATTACHED)
		TORSH_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static void install(const struct callbacks *callbacks, int module)
{
	function ***table = NULL;
	unsigned int n_slots = 0;

	if (!callbacks->get_module(module, &table, &n_slots) || !table)
		return;
	for (unsigned int slot = 1; slot < n_slots && slot < N_SLOTS; slot++)
		if (table[slot] && consumer_slots[module][slot])
			*table[slot] = consumer_slots[module][slot];
	for (size_t i = 0; i < N_ENTRIES; i++)
		if (entries[i].module == module && entries[i].slot < n_slots &&
		    table[entries[i].slot])
			memcpy(table[entries[i].slot],
			       (const char *)&torsh_nvtx_functions + entries[i].offset,
			       sizeof(function *));
}

/*
 * Called by each DSO that embeds NVTX, some of them concurrently. On a result of 0 that DSO's calls
 * do nothing from then on.
 */
EXPORT int InitializeInjectionNvtx2(get_table *get)
{
	const struct callbacks *callbacks;

	if (!torsh_ranges_wanted(RANGE_BY_NVTX))
		return 0;
	callbacks = get(CALLBACKS);
	if (!callbacks || callbacks->struct_size < sizeof(*callbacks))
		return 0;
	torsh_nvtx_attach_consumer();
	for (int module = 1; module < N_MODULES; module++)
		install(callbacks, module);
	return 1;
}

/* The consumer gets separate slots for recorded functions, and the client's for all others. */
static int initialize_consumer(struct nvtx_module *module, intptr_t *slots)
{
	static _Atomic bool is_missing;
	struct nvtx_segment segment = {0, NVTX_EXTENSION_SLOTS, slots};
	struct nvtx_module shadow = *module;
	initialize_extension *entry = NULL;

	if (!atomic_load_explicit(&is_missing, memory_order_relaxed) &&
	    torsh_injection_consumer(RANGE_BY_NVTX))
		entry = (initialize_extension *)open_consumer("InitializeInjectionNvtxExtension");
	if (!entry) {
		atomic_store_explicit(&is_missing, true, memory_order_relaxed);
		return 0;
	}
	if (slots) {
		shadow.n_segments = 1;
		shadow.segments = &segment;
	}
	return entry(slots ? &shadow : module);
}

/* The slots of an extension; NULL: it is not recorded. */
static void extension_slots(uint16_t id, const intptr_t **ours, intptr_t **theirs)
{
	*ours = id == NVTX_EXTENSION_MEMORY	? torsh_nvtx_memory
		: id == NVTX_EXTENSION_PAYLOAD	? torsh_nvtx_payload
		: id == NVTX_EXTENSION_COUNTERS ? torsh_nvtx_counters
						: NULL;
	*theirs = id == NVTX_EXTENSION_MEMORY	  ? torsh_nvtx_consumer_memory
		  : id == NVTX_EXTENSION_PAYLOAD  ? torsh_nvtx_consumer_payload
		  : id == NVTX_EXTENSION_COUNTERS ? torsh_nvtx_consumer_counters
						  : NULL;
}

/* Without functions of the agent or the consumer the extension's calls do nothing, as before. */
EXPORT int InitializeInjectionNvtxExtension(struct nvtx_module *module)
{
	const intptr_t *ours;
	intptr_t *theirs;

	if (!torsh_ranges_wanted(RANGE_BY_NVTX) || module->struct_size < sizeof(*module) ||
	    !module->n_segments)
		return 0;
	torsh_nvtx_attach_consumer();
	extension_slots(module->id, &ours, &theirs);
	if (!initialize_consumer(module, theirs) && !ours)
		return 0;
	for (size_t i = 0; ours && i < module->segments[0].n_slots && i < NVTX_EXTENSION_SLOTS; i++)
		if (ours[i] || theirs[i])
			module->segments[0].slots[i] = ours[i] ? ours[i] : theirs[i];
	return 1;
}
