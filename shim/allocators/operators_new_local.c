/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Operators new and delete of libraries that were opened at run time: see torsh_operators_of. */
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "shim/allocators/operators_new.h"
#include "shim/allocators/operators_new_bind.h"
#include "shim/loader/elf_symbol.h"
#include "shim/loader/objects.h"

const char *const torsh_operator_names[N_OPERATORS] = {
#define OPERATOR_NEW(name, parameters, arguments, entry) #name,
#define OPERATOR_DELETE(name, parameters, arguments) #name,
#include "shim/allocators/operators_new.def"
#undef OPERATOR_NEW
#undef OPERATOR_DELETE
};

#define SETS_MAX 255u /* C++ run-times, closed ones included */

/* Sets never change once they are counted; one thread at a time adds them. */
union torsh_operators torsh_operators_sets[SETS_MAX];
static _Atomic uint32_t n_sets;
static _Atomic bool is_adding;

_Atomic uint64_t torsh_operators_callers[OPERATOR_CALLERS];

#define OBJECTS 1024u
#define FAILURES_MAX 16u /* attempts to bind an object's calls: some calls are unusual ones */

/*
 * By object: the address of its link_map, and the number of the set in the low byte. An object has
 * many pages, and each of its 20 look-ups may search all objects.
 */
static _Atomic uint64_t objects[OBJECTS];

/* For libraries that have no operators; 0: not looked up since a library was closed. */
static _Atomic uintptr_t shared[N_OPERATORS];

/* The shared C++ run-time, else any other definition. */
static void *find_shared(size_t i)
{
	static const char *const run_times[] = {"/libstdc++.so", "/libc++.so", "/libc++abi.so"};
	void *found = (void *)atomic_load_explicit(&shared[i], memory_order_relaxed);

	for (size_t k = 0; !found && k < sizeof(run_times) / sizeof(*run_times); k++)
		found = torsh_objects_find_in(run_times[k], torsh_operator_names[i]);
	if (!found)
		found = torsh_objects_find(torsh_operator_names[i]);
	atomic_store_explicit(&shared[i], (uintptr_t)found, memory_order_relaxed);
	return found;
}

/*
 * The object of the caller. NULL for the agent, which has no operators but its own (in a build
 * without tail calls it is the caller).
 */
static const struct link_map *object_of(const void *caller)
{
	const struct link_map *map = torsh_objects_of(caller);

	return map == torsh_objects_of((const void *)&torsh_operators_find) ? NULL : map;
}

static _Atomic uint64_t *object_slot(const struct link_map *map)
{
	return &objects[(uintptr_t)map * 0x9e3779b97f4a7c15u >> 54];
}

/* The object of a call. It is described once, when that is needed: a system call. */
struct calling_object {
	const struct link_map *map; /* NULL: none */
	bool is_tried, is_described;
	struct torsh_elf_image image;
};

/* Returns NULL if it can't be described. */
static const struct torsh_elf_image *image_of(struct calling_object *object)
{
	if (!object->is_tried)
		object->is_described =
			object->map && torsh_elf_describe(object->map, &object->image);
	object->is_tried = true;
	return object->is_described ? &object->image : NULL;
}

static void find_for(struct calling_object *object, union torsh_operators *found)
{
	const struct torsh_elf_image *image = image_of(object);

	for (size_t i = 0; i < N_OPERATORS; i++) {
		found->all[i] = image ? torsh_elf_symbol_in(image, object->map->l_ld,
							    torsh_operator_names[i], NULL)
				      : NULL;
		if (!found->all[i])
			found->all[i] = find_shared(i);
	}
}

/*
 * The number of the set with these functions, added if needed; SETS_MAX if another thread is adding
 * one, or all are used.
 */
static uint32_t number_of(const union torsh_operators *found)
{
	uint32_t n, i;

	if (atomic_exchange_explicit(&is_adding, true, memory_order_acquire))
		return SETS_MAX;
	n = atomic_load_explicit(&n_sets, memory_order_relaxed);
	for (i = 0; i < n && memcmp(&torsh_operators_sets[i], found, sizeof(*found)) != 0; i++)
		;
	if (i == n && n < SETS_MAX) {
		torsh_operators_sets[n] = *found;
		atomic_store_explicit(&n_sets, n + 1, memory_order_release);
	}
	atomic_store_explicit(&is_adding, false, memory_order_release);
	return i;
}

/* SETS_MAX: nothing is cached. */
static uint32_t find_number(struct calling_object *object, union torsh_operators *found)
{
	const struct link_map *map = object->map;
	_Atomic uint64_t *slot = object_slot(map);
	/* Pairs with the release below. */
	uint64_t known = atomic_load_explicit(slot, memory_order_acquire);
	uint32_t i;

	if (map && known >> 8 == (uintptr_t)map)
		return known & 0xff;
	find_for(object, found);
	i = number_of(found);
	if (map && i < SETS_MAX)
		atomic_store_explicit(slot, (uint64_t)(uintptr_t)map << 8 | i,
				      memory_order_release);
	return i;
}

/*
 * An operator that only jumps to another one, as a sized delete to delete: the call seems to come
 * from the first one's caller. place: of that caller's call.
 */
static bool bind_jump(void *const *place, const void *exported, void *definition)
{
	const void *first = __atomic_load_n(place, __ATOMIC_RELAXED);
	const struct link_map *map = torsh_objects_of(first);
	struct torsh_elf_image image;
	void **next;

	if (!map || map != torsh_objects_of(definition) || !torsh_elf_describe(map, &image))
		return false;
	next = torsh_operators_jumped_place(&image, first);
	return next && torsh_operators_bind(map, &image, next, exported, definition, true);
}

/*
 * Most calls then don't come here again: each would cost a line of the cache, which a large program
 * doesn't keep.
 */
static bool bind(struct calling_object *object, const void *caller, const void *exported,
		 void *definition)
{
	static _Atomic uint8_t failures[OBJECTS];
	_Atomic uint8_t *n_failed = &failures[object_slot(object->map) - objects];
	const struct torsh_elf_image *image;
	void **place;

	if (!definition || atomic_load_explicit(n_failed, memory_order_relaxed) >= FAILURES_MAX)
		return false;
	image = image_of(object);
	place = image ? torsh_operators_called_place(image, caller) : NULL;
	if (place && __atomic_load_n(place, __ATOMIC_RELAXED) != exported) {
		if (bind_jump(place, exported, definition))
			return true;
	} else if (place && torsh_operators_bind(object->map, image, place, exported, definition,
						 torsh_objects_of(definition) == object->map)) {
		return true;
	}
	atomic_fetch_add_explicit(n_failed, 1, memory_order_relaxed);
	return false;
}

const union torsh_operators *torsh_operators_find(const void *caller, enum torsh_operator which,
						  const void *exported)
{
	static _Thread_local union torsh_operators found;
	struct calling_object object = {.map = object_of(caller)};
	uint32_t i = find_number(&object, &found);

	if (i >= SETS_MAX)
		return &found;
	if (object.map && bind(&object, caller, exported, torsh_operators_sets[i].all[which]))
		return &torsh_operators_sets[i];
	/* Pairs with the acquire in torsh_operators_of. */
	atomic_store_explicit(torsh_operators_caller_slot(caller),
			      torsh_operators_page(caller) << 8 | i, memory_order_release);
	return &torsh_operators_sets[i];
}

void torsh_operators_forget_callers(void)
{
	if (atomic_load_explicit(&n_sets, memory_order_relaxed) == 0)
		return;
	for (size_t i = 0; i < OPERATOR_CALLERS; i++)
		atomic_store_explicit(&torsh_operators_callers[i], 0, memory_order_relaxed);
	for (size_t i = 0; i < OBJECTS; i++)
		atomic_store_explicit(&objects[i], 0, memory_order_relaxed);
	for (size_t i = 0; i < N_OPERATORS; i++)
		atomic_store_explicit(&shared[i], 0, memory_order_relaxed);
}
