/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/torch/privateuse1.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "shim/loader/objects.h"

#define STUBS "_ZN5torch8profiler4impl16privateuse1StubsEv"
#define BASE_CLASS "N5torch8profiler4impl13ProfilerStubsE"

/* Its virtual functions, in order of declaration. */
struct functions {
	void (*record)(const void *self, void *device, struct privateuse1_event *event,
		       int64_t *cpu_ns);
	float (*elapsed)(const void *self, const struct privateuse1_event *from,
			 const struct privateuse1_event *to);
	void (*mark)(const void *self, const char *name);
	void (*range_push)(const void *self, const char *name);
	void (*range_pop)(const void *self);
	bool (*enabled)(const void *self);
	void (*on_each_device)(const void *self, void *function);
	void (*synchronize)(const void *self);
};

/* std::type_info, and __si_class_type_info's base. */
struct type {
	const void *virtual_functions;
	const char *name; /* a leading '*' means that names are not shared */
	const struct type *base;
};

/* Before a table of virtual functions. */
struct table {
	ptrdiff_t to_top;
	const struct type *type;
	struct functions functions;
};

static const struct table *table_of(const void *object)
{
	return (const struct table *)((const char *)*(const void *const *)object -
				      offsetof(struct table, functions));
}

static const struct functions *functions_of(const void *stubs)
{
	return &table_of(stubs)->functions;
}

static bool is_base_class(const struct type *type)
{
	return type && type->name && !strcmp(type->name + (*type->name == '*'), BASE_CLASS);
}

/* The last object that was checked successfully. */
static bool is_known_class(const void *stubs)
{
	static const void *_Atomic known;

	if (atomic_load_explicit(&known, memory_order_relaxed) == stubs)
		return true;
	if (table_of(stubs)->to_top || !table_of(stubs)->type ||
	    !is_base_class(table_of(stubs)->type->base))
		return false;
	atomic_store_explicit(&known, stubs, memory_order_relaxed);
	return true;
}

static const void *(*find_stubs(void))(void)
{
	static void *_Atomic known;
	void *found = atomic_load_explicit(&known, memory_order_relaxed);
	const void *(*stubs)(void);

	if (!found) {
		found = torsh_objects_find_in("libtorch", STUBS);
		atomic_store_explicit(&known, found, memory_order_relaxed);
	}
	*(void **)&stubs = found;
	return stubs;
}

const void *torsh_privateuse1_stubs(void)
{
	const void *(*find)(void) = find_stubs();
	const void *stubs = find ? find() : NULL;

	return stubs && is_known_class(stubs) && functions_of(stubs)->enabled(stubs) ? stubs : NULL;
}

void torsh_privateuse1_record(const void *stubs, int *device, struct privateuse1_event *event,
			      int64_t *cpu_ns)
{
	/* c10::DeviceIndex is a byte, formerly an int. */
	union {
		int number;
		int8_t index;
	} place = {0};

	functions_of(stubs)->record(stubs, &place, event, cpu_ns);
	*device = place.index;
}

float torsh_privateuse1_elapsed(const void *stubs, const struct privateuse1_event *from,
				const struct privateuse1_event *to)
{
	return functions_of(stubs)->elapsed(stubs, from, to);
}

void torsh_privateuse1_synchronize(const void *stubs)
{
	functions_of(stubs)->synchronize(stubs);
}

void torsh_privateuse1_mark(const void *stubs, const char *name)
{
	functions_of(stubs)->mark(stubs, name);
}

void torsh_privateuse1_range_push(const void *stubs, const char *name)
{
	functions_of(stubs)->range_push(stubs, name);
}

void torsh_privateuse1_range_pop(const void *stubs)
{
	functions_of(stubs)->range_pop(stubs);
}

/* ---- std::function<void(int)> ---------------------------------------------------------------- */

struct closure {
	void (*op)(int device, void *context);
	void *context;
};

/* The inline storage of a std::function, with the function that copies and destroys it. */
struct function {
	struct closure closure;
	bool (*manage)(void *to, const void *from, int what);
	void (*invoke)(const struct closure *closure, int *device);
};

enum { FUNCTION_ADDRESS = 1, FUNCTION_COPY = 2 };

static bool manage(void *to, const void *from, int what)
{
	if (what == FUNCTION_COPY)
		memcpy(to, from, sizeof(struct closure));
	else if (what == FUNCTION_ADDRESS)
		memcpy(to, &from, sizeof(from));
	return false;
}

static void invoke(const struct closure *closure, int *device)
{
	closure->op(*device, closure->context);
}

void torsh_privateuse1_on_each_device(const void *stubs, void (*op)(int device, void *context),
				      void *context)
{
	struct function function = {
		.closure = {.op = op, .context = context}, .manage = manage, .invoke = invoke};

	functions_of(stubs)->on_each_device(stubs, &function);
}
