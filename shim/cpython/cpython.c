/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cpython/cpython.h"

#include <string.h>

#include "shim/hot.h"
#include "shim/loader/elf_symbol.h"

#define COOKIE "xdebugpy"
/* PY_VERSION_HEX: major, minor, micro and more, a byte each */
#define VERSION_OF_HEX(hex) ((uint32_t)((hex) >> 16))
#define FIRST_VERSION 0x0308u
#define FIRST_PUBLISHED 0x030du /* the first version with _Py_DebugOffsets */
#define LAST_PUBLISHED 0x030fu

struct cpython torsh_cpython;
HOT _Atomic int torsh_cpython_is_there;
_Atomic uint64_t torsh_cpython_deaths;
_Atomic uint32_t torsh_cpython_code_versions[CPYTHON_CODE_VERSIONS];

static _Atomic bool is_looked_at;

/* ---- layouts --------------------------------------------------------------------------------- */

/* Common to all rows of the table: objects have a head of two words, and a length as the third. */
#define OBJECTS .object_type = 8, .type_dealloc = 48, .bytes_length = 16, .bytes_data = 32
/* A str with a second form of its characters, up to 3.11. */
#define TEXT_WITH_WSTR .text_length = 16, .text_state = 32, .text_ascii = 48, .text_other = 72

static const struct layout_of_version {
	uint32_t version;
	struct cpython_layout layout;
} layouts[] = {
#define CPYTHON(number, ...) {.version = (number), .layout = {__VA_ARGS__}},
#include "shim/cpython/cpython.def"
#undef CPYTHON
};

enum offset {
#define OFFSET(since, name) OFFSET_##name,
#include "shim/cpython/cpython_offsets.def"
#undef OFFSET
	N_OFFSETS
};

static const uint16_t offset_since[N_OFFSETS] = {
#define OFFSET(since, name) [OFFSET_##name] = (since),
#include "shim/cpython/cpython_offsets.def"
#undef OFFSET
};

struct published {
	char cookie[8];
	uint64_t version; /* PY_VERSION_HEX */
	uint64_t is_free_threaded;
	uint64_t offsets[];
};

/* A non-ASCII str has the length and pointer of its UTF-8 form before its characters. */
#define UTF8_CACHE_BYTES 16
/* A type has a name, two sizes, then the destructor. */
#define TYPE_NAME_TO_DEALLOC 24

/*
 * Not inlined: the layout is assembled on the stack, which is released before symbols are looked
 * up.
 */
static __attribute__((noinline)) int read_published(const struct published *published,
						    struct cpython *python)
{
	uint16_t is[N_OFFSETS] = {0};
	uint32_t n = 0;

	if (memcmp(published->cookie, COOKIE, sizeof(published->cookie)) ||
	    VERSION_OF_HEX(published->version) != python->version)
		return -1;
	for (uint32_t i = 0; i < N_OFFSETS; i++) {
		if (offset_since[i] <= python->version)
			is[i] = (uint16_t)published->offsets[n++];
	}
	python->is_free_threaded = published->is_free_threaded != 0;
	python->at = (struct cpython_layout){
		.activations = CPYTHON_BY_FRAME,
		.lines = CPYTHON_LOCATIONS,
		.instruction = CPYTHON_POINTER,
		.tstate_frame = is[OFFSET_tstate_current_frame],
		.frame_previous = is[OFFSET_frame_previous],
		.frame_code = is[OFFSET_frame_executable],
		.frame_instruction = is[OFFSET_frame_instr_ptr],
		.frame_owner = is[OFFSET_frame_owner],
		.frame_tlbc = python->is_free_threaded ? is[OFFSET_frame_tlbc_index] : 0,
		.code_first_line = is[OFFSET_code_firstlineno],
		.code_file = is[OFFSET_code_filename],
		.code_name = is[OFFSET_code_qualname],
		.code_lines = is[OFFSET_code_linetable],
		.code_bytes = is[OFFSET_code_adaptive],
		.code_tlbc = python->is_free_threaded ? is[OFFSET_code_tlbc] : 0,
		.object_type = is[OFFSET_object_type],
		.type_dealloc = (uint16_t)(is[OFFSET_type_name] + TYPE_NAME_TO_DEALLOC),
		.text_length = is[OFFSET_unicode_length],
		.text_state = is[OFFSET_unicode_state],
		.text_ascii = is[OFFSET_unicode_ascii_size],
		.text_other = (uint16_t)(is[OFFSET_unicode_ascii_size] + UTF8_CACHE_BYTES),
		.bytes_length = is[OFFSET_bytes_length],
		.bytes_data = is[OFFSET_bytes_data],
	};
	return 0;
}

static int find_layout(const struct link_map *map, struct cpython *python)
{
	if (python->version >= FIRST_PUBLISHED && python->version <= LAST_PUBLISHED) {
		const struct published *published = torsh_elf_symbol(map, "_PyRuntime", NULL);

		return published ? read_published(published, python) : -1;
	}
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		if (layouts[i].version == python->version) {
			python->at = layouts[i].layout;
			return 0;
		}
	}
	return -1;
}

/*
 * 3.11 and later have a version symbol; earlier ones are recognised by the functions that each
 * added.
 */
static uint32_t find_version(const struct link_map *map)
{
	const unsigned long *hex = torsh_elf_symbol(map, "Py_Version", NULL);

	if (hex)
		return VERSION_OF_HEX(*hex);
	if (torsh_elf_symbol(map, "Py_NewRef", NULL))
		return 0x030a;
	if (torsh_elf_symbol(map, "PyThreadState_GetFrame", NULL))
		return 0x0309;
	if (torsh_elf_symbol(map, "PyCode_NewWithPosOnlyArgs", NULL))
		return FIRST_VERSION;
	return FIRST_VERSION - 1;
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
