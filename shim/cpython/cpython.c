/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cpython/cpython.h"

#include <string.h>

#include "shim/hot.h"
#include "shim/loader/elf_symbol.h"

struct cpython torsh_cpython;
HOT _Atomic int torsh_cpython_is_there;
_Atomic uint64_t torsh_cpython_deaths;
_Atomic uint32_t torsh_cpython_code_versions[CPYTHON_CODE_VERSIONS];

static _Atomic bool is_looked_at;

/* ---- layouts --------------------------------------------------------------------------------- */

static int find_layout(const struct link_map *map, struct cpython *python)
{
	if (python->version >= CPYTHON_FIRST_PUBLISHED &&
	    python->version <= CPYTHON_LAST_PUBLISHED) {
		const struct cpython_published *published =
			torsh_elf_symbol(map, "_PyRuntime", NULL);

		python->is_free_threaded = published && published->is_free_threaded;
		return published && torsh_cpython_layout_read(&python->at, python->version,
							      published)
			       ? 0
			       : -1;
	}
	return torsh_cpython_layout_of(&python->at, python->version) ? 0 : -1;
}

/*
 * 3.11 and later have a version symbol; earlier ones are recognised by the functions that each
 * added.
 */
static uint32_t find_version(const struct link_map *map)
{
	const unsigned long *hex = torsh_elf_symbol(map, "Py_Version", NULL);

	if (hex)
		return CPYTHON_VERSION_OF_HEX(*hex);
	if (torsh_elf_symbol(map, "Py_NewRef", NULL))
		return 0x030a;
	if (torsh_elf_symbol(map, "PyThreadState_GetFrame", NULL))
		return 0x0309;
	if (torsh_elf_symbol(map, "PyCode_NewWithPosOnlyArgs", NULL))
		return CPYTHON_FIRST_VERSION;
	return CPYTHON_FIRST_VERSION - 1;
}

/* ---- deaths of code objects ------------------------------------------------------------------ */

static void (*next_dealloc)(void *code);

static void code_dying(void *code)
{
	/*
	 * Counted before the memory can be reused: its next user synchronises with this thread
	 * through the allocator.
	 */
	atomic_fetch_add_explicit(torsh_cpython_version_of((uintptr_t)code), 1,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&torsh_cpython_deaths, 1, memory_order_relaxed);
	next_dealloc(code);
}

/*
 * Interpose the destructor of the type "code". Two code objects at the same address, one after the
 * other, can't be distinguished reliably: names and tables are reused at old addresses too, and
 * only 3.12 began to number code objects, in each interpreter separately.
 */
static void watch_deaths(void *code_type, const struct cpython_layout *at)
{
	void **dealloc = (void **)((uintptr_t)code_type + at->type_dealloc);
	void (*dying)(void *) = code_dying;

	memcpy(&next_dealloc, dealloc, sizeof(next_dealloc));
	atomic_thread_fence(memory_order_release);
	memcpy(dealloc, &dying, sizeof(dying));
}

/* ---- detection ------------------------------------------------------------------------------- */

static void find(const struct link_map *map, const char *name, void *place)
{
	void *found = torsh_elf_symbol(map, name, NULL);

	memcpy(place, &found, sizeof(found));
}

static int find_functions(const struct link_map *map, struct cpython *python)
{
	size_t n_bytes = 0;
	void *code_type = torsh_elf_symbol(map, "PyCode_Type", NULL);

	find(map, "PyGILState_GetThisThreadState", &python->this_thread);
	find(map, python->version < 0x030d ? "_Py_IsFinalizing" : "Py_IsFinalizing",
	     &python->is_finalizing);
	find(map, "Py_IsInitialized", &python->is_initialized);
	find(map, "Py_AddPendingCall", &python->add_pending_call);
	if (python->at.tstate_thread_id) {
		find(map, "_PyThreadState_UncheckedGet", &python->holder);
		find(map, "PyInterpreterState_Head", &python->first_interpreter);
		find(map, "PyInterpreterState_Main", &python->main_interpreter);
		if (!python->holder || !python->first_interpreter || !python->main_interpreter)
			return -1;
	}
	python->eval_start = (uintptr_t)torsh_elf_symbol(map, "_PyEval_EvalFrameDefault", &n_bytes);
	python->eval_bytes = n_bytes;
	python->code_type = (uintptr_t)code_type;
	return code_type && python->this_thread && python->is_finalizing &&
			       python->is_initialized && python->add_pending_call
		       ? 0
		       : -1;
}

enum cpython_answer torsh_cpython_consider(const struct link_map *map)
{
	static struct cpython python; /* written by the one call that passes the first check */

	if (atomic_load_explicit(&is_looked_at, memory_order_relaxed) ||
	    !torsh_elf_symbol(map, "PyGILState_GetThisThreadState", NULL) ||
	    !torsh_elf_symbol(map, "_PyEval_EvalFrameDefault", NULL) ||
	    atomic_exchange_explicit(&is_looked_at, true, memory_order_relaxed))
		return CPYTHON_NONE;
	python.version = find_version(map);
	if (find_layout(map, &python) || find_functions(map, &python)) {
		torsh_cpython.version = python.version;
		return CPYTHON_UNKNOWN;
	}
	watch_deaths((void *)python.code_type, &python.at);
	torsh_cpython = python;
	/* Pairs with the acquire loads of torsh_cpython_is_there. */
	atomic_store_explicit(&torsh_cpython_is_there, 1, memory_order_release);
	return CPYTHON_FOUND;
}
