/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/python/python_types.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

/* Offsets in PyTypeObject, the same from 3.8 on. */
enum {
	TYPE_OF = 8,
	NAME = 24,
	BASIC_BYTES = 32,
	ITEM_BYTES = 40,
	FLAGS = 168,
	MEMBERS = 240,
	BASE = 256,
	TYPE_BYTES = 264,
};

/* Py_TPFLAGS_..., Include/object.h */
enum {
	HAS_WEAKREF_BEFORE = 1 << 3, /* since 3.12 */
	HAS_DICT_BEFORE = 1 << 4, /* since 3.11 */
	IS_TRACKED = 1 << 14,
};
#define IS_INT (1u << 24)
#define IS_LIST (1u << 25)
#define IS_TUPLE (1u << 26)
#define IS_BYTES (1u << 27)
#define IS_STR (1u << 28)
#define IS_DICT (1u << 29)
#define IS_TYPE (1u << 31)

#define SLOTS_MIN 1024u
#define LOOKS_MAX \
	300000u /* each takes a microsecond or two; programs have some thousands of types */
#define BASES_MAX 32 /* of a type, one the base of the other */

void torsh_python_types_create(struct python_types *types, struct memory_reader *reader)
{
	*types = (struct python_types){
		.reader = reader,
		.addresses = torsh_memory_new(SLOTS_MIN, sizeof(*types->addresses)),
		.numbers = torsh_memory_new(SLOTS_MIN, sizeof(*types->numbers)),
		.n_slots = SLOTS_MIN,
	};
}

void torsh_python_types_destroy(struct python_types *types)
{
	for (uint32_t i = 0; i < types->n; i++)
		free(types->items[i]);
	free(types->items);
	free(types->addresses);
	free(types->numbers);
	*types = (struct python_types){0};
}

/* ---- the table ------------------------------------------------------------------------------- */

static size_t slot_of(const struct python_types *types, uint64_t address)
{
	size_t mask = types->n_slots - 1;
	size_t slot = (address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32 & mask;

	while (types->addresses[slot] && types->addresses[slot] != address)
		slot = (slot + 1) & mask;
	return slot;
}

static void grow(struct python_types *types)
{
	struct python_types old = *types;

	types->n_slots *= 2;
	types->addresses = torsh_memory_new(types->n_slots, sizeof(*types->addresses));
	types->numbers = torsh_memory_new(types->n_slots, sizeof(*types->numbers));
	for (size_t i = 0; i < old.n_slots; i++) {
		size_t slot = old.addresses[i] ? slot_of(types, old.addresses[i]) : 0;

		if (!old.addresses[i])
			continue;
		types->addresses[slot] = old.addresses[i];
		types->numbers[slot] = old.numbers[i];
	}
	free(old.addresses);
	free(old.numbers);
}

/* ---- types in memory ------------------------------------------------------------------------- */

static bool read_type(const struct python_types *types, uint64_t address, uint64_t *words)
{
	return torsh_memory_copy(types->reader, address, words, TYPE_BYTES) == TYPE_BYTES;
}

static bool is_flagged(const struct python_types *types, uint64_t type, uint32_t flags)
{
	return torsh_memory_word(types->reader, type + FLAGS) & flags;
}

/* An object whose type makes types, which is one itself. */
static bool is_type(const struct python_types *types, const uint64_t *words)
{
	uint64_t of = words[TYPE_OF / 8];
	uint64_t above;

	if (!words[0] || words[0] >> 32 & UINT16_MAX || !of || of % 8 || !words[NAME / 8] ||
	    words[BASIC_BYTES / 8] > UINT32_MAX || !is_flagged(types, of, IS_TYPE))
		return false;
	above = torsh_memory_word(types->reader, of + TYPE_OF);
	return above && above % 8 == 0 && is_flagged(types, above, IS_TYPE);
}

static bool read_name(struct python_type *type, const struct python_types *types, uint64_t at)
{
	size_t n = torsh_memory_copy(types->reader, at, type->name, sizeof(type->name) - 1);

	if (!n)
		return false;
	type->name[n] = '\0';
	for (const char *c = type->name; *c; c++) {
		if (*c < ' ' || *c == 0x7f)
			return false;
	}
	return *type->name;
}

static bool is_named(const struct python_types *types, const uint64_t *words, const char *name)
{
	struct python_type type;

	return read_name(&type, types, words[NAME / 8]) && !strcmp(type.name, name);
}

static enum python_kind kind_of_flags(uint32_t flags)
{
	static const struct {
		uint32_t flag;
		enum python_kind kind;
	} kinds[] = {{IS_LIST, PYTHON_LIST},
		     {IS_TUPLE, PYTHON_TUPLE},
		     {IS_STR, PYTHON_STR},
		     {IS_DICT, PYTHON_DICT},
		     {IS_TYPE, PYTHON_TYPE}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (flags & kinds[i].flag)
			return kinds[i].kind;
	}
	return PYTHON_OTHER;
}

/* An int or bytes; those of a class that adds fields to them are larger. */
static bool is_plain(const uint64_t *words)
{
	enum { INT_BYTES = 24, BYTES_BYTES = 33 };
	uint64_t basic_bytes = words[BASIC_BYTES / 8];

	return (words[FLAGS / 8] & IS_INT && basic_bytes == INT_BYTES) ||
	       (words[FLAGS / 8] & IS_BYTES && basic_bytes == BYTES_BYTES);
}

/* By its name, or that of a base. */
static enum python_kind kind_of(const struct python_types *types, uint64_t *words)
{
	static const struct {
		const char *name;
		enum python_kind kind;
	} kinds[] = {
		{"set", PYTHON_SET},
		{"frozenset", PYTHON_SET},
		{"collections.deque", PYTHON_DEQUE},
		{"frame", PYTHON_FRAME},
		{"generator", PYTHON_GENERATOR},
		{"coroutine", PYTHON_GENERATOR},
		{"async_generator", PYTHON_GENERATOR},
		{"cell", PYTHON_CELL},
		{"module", PYTHON_MODULE},
		{"weakref", PYTHON_WEAKREF},
		{"weakref.ReferenceType", PYTHON_WEAKREF},
		{"weakproxy", PYTHON_WEAKREF},
		{"weakref.ProxyType", PYTHON_WEAKREF},
		/* of torch.multiprocessing.reductions, which frees the storage by that number */
		{"StorageWeakRef", PYTHON_ADDRESSES},
	};
	enum python_kind kind =
		is_plain(words) ? PYTHON_PLAIN : kind_of_flags((uint32_t)words[FLAGS / 8]);

	for (int n = 0; kind == PYTHON_OTHER && n < BASES_MAX; n++) {
		for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
			if (is_named(types, words, kinds[i].name))
				return kinds[i].kind;
		}
		if (!words[BASE / 8] || !read_type(types, words[BASE / 8], words))
			break;
	}
	return kind;
}

static uint8_t object_offset(uint32_t flags)
{
	if (!(flags & IS_TRACKED))
		return 0;
	return flags & (HAS_WEAKREF_BEFORE | HAS_DICT_BEFORE) ? 32 : 16;
}

/* Returns the number of a new type, or NO_PYTHON_TYPE. */
static uint32_t add_type(struct python_types *types, uint64_t address)
{
	uint64_t words[TYPE_BYTES / 8], of;
	struct python_type *type;
	uint32_t number;

	if (!read_type(types, address, words) || !is_type(types, words))
		return NO_PYTHON_TYPE;
	type = torsh_memory_new(1, sizeof(*type));
	*type = (struct python_type){
		.address = address,
		.basic_bytes = words[BASIC_BYTES / 8],
		.item_bytes = words[ITEM_BYTES / 8],
		.members = words[MEMBERS / 8],
		.flags = (uint32_t)words[FLAGS / 8],
		.object_offset = object_offset((uint32_t)words[FLAGS / 8]),
	};
	if (!read_name(type, types, words[NAME / 8])) {
		free(type);
		return NO_PYTHON_TYPE;
	}
	of = words[TYPE_OF / 8];
	type->kind = (uint8_t)kind_of(types, words);
	types->items = torsh_array_reserve(types->items, types->n, &types->capacity,
					   sizeof(struct python_type *));
	number = types->n++;
	types->items[number] = type;
	/* Its own type is one, too; "type" is its own type. */
	if (of != address)
		torsh_python_types_at(types, of);
	return number;
}

uint32_t torsh_python_types_at(struct python_types *types, uint64_t address)
{
	size_t slot = slot_of(types, address);
	uint32_t number;

	if (types->addresses[slot] || types->n_used == LOOKS_MAX)
		return types->numbers[slot] - 1;
	number = add_type(types, address);
	slot = slot_of(types, address); /* the table may have grown */
	types->addresses[slot] = address;
	types->numbers[slot] = number + 1;
	if (++types->n_used > types->n_slots / 2)
		grow(types);
	return number;
}

/* A count of references, of which 3.12 and later have 32 bits, and an address. */
static bool may_be_object(const uint64_t *words)
{
	return words[0] & UINT32_MAX && !(words[0] >> 32 & UINT16_MAX) && words[1] >> 16 &&
	       words[1] % 16 == 0 && words[1] >> 47 == 0;
}

/* Returns the number of a type that was found before. */
static uint32_t known_type(const struct python_types *types, uint64_t address)
{
	size_t slot = slot_of(types, address);

	return types->addresses[slot] ? types->numbers[slot] - 1 : NO_PYTHON_TYPE;
}

uint32_t torsh_python_types_of(struct python_types *types, const uint64_t *words, size_t n,
			       bool is_known_only)
{
	/* Most objects that have memory of their own are tracked. */
	static const uint8_t offsets[] = {16, 32, 0};

	for (size_t i = 0; i < sizeof(offsets); i++) {
		size_t at = offsets[i] / sizeof(*words);
		uint32_t number;

		if (at + 2 > n || !may_be_object(words + at))
			continue;
		number = is_known_only ? known_type(types, words[at + 1])
				       : torsh_python_types_at(types, words[at + 1]);
		if (number != NO_PYTHON_TYPE && types->items[number]->object_offset == offsets[i])
			return number;
	}
	return NO_PYTHON_TYPE;
}

bool torsh_python_types_is_unused_frame(struct python_types *types, const uint64_t *words, size_t n)
{
	enum { FRAME_WORDS = 44 }; /* at least, until 3.10 */
	uint32_t number;

	if (n < FRAME_WORDS || words[2] || !words[3] || words[3] % 16)
		return false;
	number = torsh_python_types_at(types, words[3]);
	return number != NO_PYTHON_TYPE && types->items[number]->kind == PYTHON_FRAME;
}
