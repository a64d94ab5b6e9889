/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/python/python_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "tools/base/memory.h"
#include "tools/writer/reachability/python/python_frames.h"
#include "tools/writer/reachability/python/python_text.h"

#define PATH_BYTES 512u
#define MODULE_NAME 48u /* offset in PyModuleObject */
#define WORD sizeof(uint64_t)
#define SMALL_BYTES 4096u
/* Of an object in front of it: since 3.12 a dict or values at 3 words, before values at 4. */
#define VALUES_BEFORE 32u
#define DICT_BEFORE 24u

struct naming {
	struct python_heap *heap;
	const uint32_t *way;
	struct python_name *names;
	uint32_t owner; /* in the way: the last object; NO_BLOCK: none yet */
	uint32_t of_variable; /* in the way: to which a frame's variable leads; NO_BLOCK: none */
	char path[PATH_BYTES];
	char key[PYTHON_TEXT_BYTES];
};

uint64_t torsh_python_object(const struct python_heap *heap, uint32_t block)
{
	const struct python_type *type = torsh_python_heap_type(heap, block);

	return heap->index->blocks[block].address + (type ? type->object_offset : 0);
}

static const struct python_type *type_at(const struct naming *naming, uint32_t i)
{
	return torsh_python_heap_type(naming->heap, naming->way[i]);
}

static uint64_t word_at(const struct naming *naming, uint64_t address)
{
	return torsh_memory_word(naming->heap->types.reader, address);
}

/* ---- where a pointer is ---------------------------------------------------------------------- */

struct search {
	const struct indexed_block *to;
	uint64_t not_before; /* addresses of the collector's header are none */
	uint64_t place;
};

static void look(void *context, uint64_t address, uint64_t *words, size_t n)
{
	struct search *search = context;

	for (size_t i = 0; i < n && !search->place; i++) {
		uint64_t offset = words[i] - search->to->address;

		if (offset < torsh_block_size(search->to) &&
		    address + i * WORD >= search->not_before)
			search->place = address + i * WORD;
	}
}

/* Most blocks are small: one call reads them. */
static void look_in(const struct naming *naming, uint64_t begin, uint64_t end,
		    struct search *search)
{
	struct memory_reader *reader = naming->heap->types.reader;
	uint64_t words[SMALL_BYTES / WORD], n = end - begin;

	if (n > sizeof(words)) {
		torsh_memory_read(reader, begin, end, false, look, search);
		return;
	}
	if (torsh_memory_copy(reader, begin, words, n) == n)
		look(search, begin, words, n / WORD);
}

/* Returns where in block i of the way a pointer to the next one is; 0: not found. */
static uint64_t place_of(const struct naming *naming, uint32_t i)
{
	const struct indexed_block *blocks = naming->heap->index->blocks;
	const struct indexed_block *from = &blocks[naming->way[i]];
	const struct python_type *type = type_at(naming, i);
	struct search search = {.to = &blocks[naming->way[i + 1]]};

	/* Fields before the collector's header come last: they lead to what fields do, too. */
	search.not_before = type ? from->address + type->object_offset : 0;
	look_in(naming, from->address, from->address + torsh_block_size(from), &search);
	search.not_before = 0;
	if (!search.place && type && type->object_offset == VALUES_BEFORE)
		look_in(naming, from->address, from->address + 2 * WORD, &search);
	return search.place;
}

/* ---- labels ---------------------------------------------------------------------------------- */

static void put_label(struct naming *naming, const char *before, const char *text,
		      const char *after)
{
	size_t n = strlen(naming->path);

	snprintf(naming->path + n, sizeof(naming->path) - n, "%s%s%s", before, text, after);
}

static void put_number(struct naming *naming, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	put_label(naming, "[", text, "]");
}

/* A dict that the program sees as one is written with brackets. */
static void put_key(struct naming *naming, bool is_attribute)
{
	if (is_attribute)
		put_label(naming, *naming->path ? "." : "", naming->key, "");
	else
		put_label(naming, "['", naming->key, "']");
}

/* Where an instance of this type that is in block i of the way keeps its attributes' values. */
static uint64_t values_of(const struct naming *naming, uint32_t i)
{
	uint64_t object = torsh_python_object(naming->heap, naming->way[i]);
	uint64_t tagged = word_at(naming, object - DICT_BEFORE);

	return tagged & 1 ? tagged + 1 : word_at(naming, object - VALUES_BEFORE);
}

static bool put_attribute(struct naming *naming, uint32_t i, uint64_t values, uint64_t place)
{
	struct python_types *types = &naming->heap->types;
	uint64_t keys = torsh_python_shared_keys(types, type_at(naming, i));

	if (!keys || place < values ||
	    !torsh_python_key(types, keys, (place - values) / WORD, naming->key))
		return false;
	put_key(naming, true);
	return true;
}

/* Whether a frame's variable is at that place; its name becomes the label for the next block. */
static bool put_variable(struct naming *naming, uint32_t i, uint64_t frame, uint64_t place)
{
	struct python_types *types = &naming->heap->types;
	const struct python_layout *layout = &naming->heap->layout;
	uint64_t first = frame + layout->at.frame_locals;

	if (!layout->is_known || !frame || place < first ||
	    !torsh_python_variable(types, layout, frame, (place - first) / WORD, naming->key))
		return false;
	put_key(naming, true);
	naming->of_variable = i + 1;
	return true;
}

/* Since 3.11 a generator has its frame inside, and a frame object may have one. */
static bool put_frames_variable(struct naming *naming, uint32_t i, uint64_t place)
{
	const struct cpython_layout *at = &naming->heap->layout.at;
	const struct python_type *type = type_at(naming, i);
	uint64_t object = torsh_python_object(naming->heap, naming->way[i]);
	size_t n = strlen(naming->path);

	if (type->kind == PYTHON_FRAME)
		return put_variable(naming, i,
				    at->frame_object_frame
					    ? word_at(naming, object + at->frame_object_frame)
					    : object,
				    place);
	if (!at->generator_frame)
		return false;
	put_label(naming, *naming->path ? "." : "",
		  *type->name == 'c'   ? "cr_frame"
		  : *type->name == 'a' ? "ag_frame"
				       : "gi_frame",
		  "");
	if (put_variable(naming, i, object + at->generator_frame, place))
		return true;
	naming->path[n] = '\0';
	return false;
}

/* The object in block i leads to the next block at that place. Returns false without a label. */
static bool put_field(struct naming *naming, uint32_t i, uint64_t place)
{
	const struct python_type *type = type_at(naming, i);
	uint64_t object = torsh_python_object(naming->heap, naming->way[i]);
	uint64_t offset = place - object;

	if (place < object)
		return false;
	if (type->kind == PYTHON_TUPLE && offset >= type->basic_bytes) {
		put_number(naming, (offset - type->basic_bytes) / WORD);
		return true;
	}
	if (type->kind == PYTHON_LIST || type->kind == PYTHON_DICT || type->kind == PYTHON_MODULE ||
	    type->kind == PYTHON_TYPE)
		return false;
	/* Since 3.13 the values follow a head of a word. */
	if (offset >= type->basic_bytes + WORD && type->object_offset == VALUES_BEFORE)
		return put_attribute(naming, i, object + type->basic_bytes + WORD, place);
	/* A variable that functions share leads to its cell, which a program doesn't see. */
	if (type->kind == PYTHON_CELL && naming->of_variable == i)
		return true;
	if (type->kind == PYTHON_CELL) {
		strcpy(naming->key, "cell_contents");
		put_key(naming, true);
		return true;
	}
	if ((type->kind == PYTHON_FRAME || type->kind == PYTHON_GENERATOR) &&
	    put_frames_variable(naming, i, place))
		return true;
	if (!torsh_python_member(&naming->heap->types, type, offset, naming->key)) {
		/* An exception's is no member. */
		if (!type_at(naming, i + 1) || strcmp(type_at(naming, i + 1)->name, "traceback"))
			return false;
		strcpy(naming->key, *type->name == 't' ? "tb_next" : "__traceback__");
	}
	put_key(naming, true);
	return true;
}

/* Whether the dict in block i of the way is an object's attributes, or a module's variables. */
static bool is_of_attributes(const struct naming *naming, uint32_t i)
{
	return naming->names[i].is_inner || !naming->names[i].name ||
	       !strcmp(naming->names[i].type, "module");
}

/* Block i, a part of the object in block `owner`, leads to the next block at that place. */
static bool put_part(struct naming *naming, uint32_t owner, uint32_t i, uint64_t place)
{
	struct python_types *types = &naming->heap->types;
	const struct python_type *type = type_at(naming, owner);
	uint64_t part = naming->heap->index->blocks[naming->way[i]].address;
	uint64_t object = torsh_python_object(naming->heap, naming->way[owner]);

	switch (type->kind) {
	case PYTHON_LIST:
		put_number(naming, (place - part) / WORD);
		return true;
	case PYTHON_SET:
		put_label(naming, "", "{...}", "");
		return true;
	case PYTHON_DEQUE:
		if (type_at(naming, i + 1))
			put_label(naming, "", "[...]", "");
		return true;
	case PYTHON_DICT:
		if (!torsh_python_key_at(types, word_at(naming, object + 32), place, naming->key) &&
		    /* values of their own, in the order of shared keys: before 3.11 */
		    (word_at(naming, object + 40) != part ||
		     !torsh_python_key(types, word_at(naming, object + 32), (place - part) / WORD,
				       naming->key)))
			return false;
		put_key(naming, is_of_attributes(naming, owner));
		return true;
	default:
		return type->object_offset == VALUES_BEFORE &&
		       put_attribute(naming, owner, values_of(naming, owner), place);
	}
}

/* ---- objects --------------------------------------------------------------------------------- */

/* A module begins a path of its own, and a class where there is none. Returns whether one does. */
static bool begin_path(struct naming *naming, uint32_t i)
{
	struct python_types *types = &naming->heap->types;
	const struct python_type *type = type_at(naming, i);
	uint64_t object = torsh_python_object(naming->heap, naming->way[i]);

	if (type->kind == PYTHON_MODULE &&
	    torsh_python_str(types, word_at(naming, object + MODULE_NAME), naming->key)) {
		snprintf(naming->path, sizeof(naming->path), "%s", naming->key);
		return true;
	}
	if (type->kind == PYTHON_DICT && torsh_python_module_of_dict(types, object, naming->key)) {
		snprintf(naming->path, sizeof(naming->path), "%s", naming->key);
		return true;
	}
	if (type->kind == PYTHON_TYPE && !*naming->path) {
		uint32_t number = torsh_python_types_at(types, object);

		snprintf(naming->path, sizeof(naming->path), "%s",
			 number == NO_PYTHON_TYPE ? "" : types->items[number]->name);
	}
	return false;
}

static void name_object(struct naming *naming, uint32_t i, bool has_label)
{
	const struct python_type *type = type_at(naming, i);
	struct python_name *name = &naming->names[i];
	bool is_below_module = i && naming->owner != NO_BLOCK &&
			       type_at(naming, naming->owner)->kind == PYTHON_MODULE;
	/* A dict of the program's own may have a key __name__, too. */
	bool may_begin = type->kind == PYTHON_MODULE || !has_label;
	bool is_module = (type->kind == PYTHON_DICT && is_below_module) ||
			 (may_begin && begin_path(naming, i));

	name->type = is_module ? "module" : type->name;
	/* An object's dict, which has no name of its own. */
	name->is_inner = type->kind == PYTHON_DICT &&
			 (is_module ? is_below_module : !has_label && *naming->path);
	if (type->kind == PYTHON_CELL && naming->of_variable == i)
		name->is_inner = true;
	if (*naming->path)
		name->name = torsh_memory_text(naming->path);
	naming->owner = i;
}

/* Returns whether the path has a label for block i. */
static bool put_step(struct naming *naming, uint32_t i)
{
	uint64_t place = i ? place_of(naming, i - 1) : 0;

	if (!place || naming->owner == NO_BLOCK)
		return false;
	if (naming->owner == i - 1)
		return put_field(naming, i - 1, place);
	return put_part(naming, naming->owner, i - 1, place);
}

/* Whether block i, which holds no object, is part of a container. */
static bool is_part(const struct naming *naming, uint32_t i)
{
	const struct python_type *type =
		naming->owner == NO_BLOCK ? NULL : type_at(naming, naming->owner);

	if (torsh_block_is_python(&naming->heap->index->blocks[naming->way[i]]))
		return true;
	if (!type || (naming->owner != i - 1 && type->kind != PYTHON_DEQUE))
		return false;
	return type->kind == PYTHON_LIST || type->kind == PYTHON_DICT || type->kind == PYTHON_SET ||
	       type->kind == PYTHON_DEQUE;
}

void torsh_python_names_find(struct python_heap *heap, const uint32_t *way, uint32_t n,
			     const char *root, struct python_name *names)
{
	struct naming naming = {.heap = heap,
				.way = way,
				.names = names,
				.owner = NO_BLOCK,
				.of_variable = root ? 0 : NO_BLOCK};

	if (root)
		snprintf(naming.path, sizeof(naming.path), "%s", root);
	for (uint32_t i = 0; i < n; i++) {
		bool has_label;

		names[i] = (struct python_name){0};
		if (!heap->type_of)
			continue;
		has_label = i ? put_step(&naming, i) : root != NULL;
		if (type_at(&naming, i))
			name_object(&naming, i, has_label);
		else
			names[i].is_inner = is_part(&naming, i);
	}
	/* The last block is what was looked for. */
	if (n)
		names[n - 1].is_inner = false;
}
