/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Two ways through the loaded objects: by dl_iterate_phdr, under the loader's lock; and along the
 * loader's list without a lock, if that may never be free: in a forked child, and at the end of a
 * process.
 */
#include "shim/loader/objects.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shim/find_text.h"
#include "shim/loader/elf_symbol.h"
#include "shim/loader/unloading.h"
#include "shim/sys.h"

#define PAGE_BYTES 4096u

/* This library's own entry, which is never removed; NULL before its constructor. */
static const struct link_map *own_map;
static const char *is_original; /* in a page that a forked child finds zeroed */

/* Called with each object until it returns 1; image is NULL along the list. */
typedef int look(const struct link_map *map, const struct torsh_elf_image *image, void *context);

/* Runs before the constructors that use it. */
__attribute__((constructor(101))) static void find_own_map(void)
{
	char *page = torsh_sys_own_pages(PAGE_BYTES);
	struct link_map *map = NULL;
	Dl_info info;

	if (page)
		*page = 1;
	is_original = page;
	if (dladdr1((const void *)&torsh_objects_find, &info, (void **)&map, RTLD_DL_LINKMAP))
		own_map = map;
}

bool torsh_objects_is_forked_child(void)
{
	return is_original && !*is_original;
}

/* ---- without a lock -------------------------------------------------------------------------- */

static bool is_readable(const void *at)
{
	return at && torsh_sys_compare((uintptr_t)at & ~(uintptr_t)3, 0) != -EFAULT;
}

/*
 * Whether the two are neighbours in the list. If a dlopen fails concurrently, or another thread was
 * in dlclose when the process forked, an entry may be incomplete.
 */
static bool follows(const struct link_map *map, const struct link_map *next)
{
	return is_readable(next) && is_readable(&next->l_prev) && next->l_prev == map &&
	       is_readable(next->l_name);
}

const struct link_map *torsh_objects_next(const struct link_map *map)
{
	const struct link_map *next = map->l_next;

	return follows(map, next) ? next : NULL;
}

static int walk_list(look *look, void *context)
{
	const struct link_map *map = own_map;

	while (map && map->l_prev && is_readable(map->l_prev))
		map = map->l_prev;
	for (; map; map = torsh_objects_next(map))
		if (look(map, NULL, context))
			return 1;
	return 0;
}

/* Also returns 0 if another thread is in dlclose: the list can't be read then. */
static int walk(look *look, void *context)
{
	int result;

	if (!torsh_unloading_forbid())
		return 0;
	result = walk_list(look, context);
	torsh_unloading_allow();
	return result;
}

bool torsh_objects_is_linked(const struct link_map *map)
{
	const struct link_map *before;
	int result;

	if (!torsh_unloading_forbid())
		return false;
	before = is_readable(map) && is_readable(&map->l_prev) ? map->l_prev : NULL;
	result = before ? is_readable(&before->l_next) && before->l_next == map
			: map && map == _r_debug.r_map;
	torsh_unloading_allow();
	return result;
}

/* ---- under the loader's lock ----------------------------------------------------------------- */

struct iteration {
	look *look;
	void *context;
};

static ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *object)
{
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
	return NULL;
}

static int look_at(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	const struct iteration *iteration = context;
	const struct torsh_elf_image image = {
		.bias = object->dlpi_addr, .segments = object->dlpi_phdr, .n = object->dlpi_phnum};
	/* The part of a link_map that is read. */
	struct link_map map = {.l_addr = object->dlpi_addr,
			       .l_name = (char *)object->dlpi_name,
			       .l_ld = dynamic_of(object)};

	(void)n_bytes;
	return iteration->look(&map, &image, iteration->context);
}

static int iterate(look *look, void *context)
{
	struct iteration iteration = {.look = look, .context = context};

	return torsh_objects_is_forked_child() ? walk(look, context)
					       : dl_iterate_phdr(look_at, &iteration);
}

/* ---- queries --------------------------------------------------------------------------------- */

struct search {
	const char *name;
	const char *text; /* of the path, NULL: any */
	bool is_behind; /* start after this library */
	bool is_only; /* go on behind the first one */
	void *found;
	uint32_t n; /* objects that have one */
};

static int is_called(const struct link_map *map, const struct torsh_elf_image *image, void *text)
{
	(void)image;
	return map->l_name && torsh_find_text(map->l_name, text);
}

static int look_into(const struct link_map *map, const struct torsh_elf_image *image, void *context)
{
	struct search *search = context;
	void *found;

	if (own_map && map->l_ld == own_map->l_ld) {
		search->is_behind = false;
		return 0;
	}
	if (search->is_behind || (search->text && !is_called(map, image, (void *)search->text)))
		return 0;
	if (torsh_objects_is_forked_child() && !is_readable(map->l_ld))
		return 0;
	found = image ? torsh_elf_symbol_in(image, map->l_ld, search->name, NULL)
		      : torsh_elf_symbol(map, search->name, NULL);
	if (!found)
		return 0;
	search->found = found;
	return ++search->n > 1 || !search->is_only;
}

void *torsh_objects_find(const char *name)
{
	struct search search = {.name = name};

	iterate(look_into, &search);
	return search.found;
}

void *torsh_objects_find_in(const char *text, const char *name)
{
	struct search search = {.name = name, .text = text};

	iterate(look_into, &search);
	return search.found;
}

void *torsh_objects_find_only(const char *name)
{
	struct search search = {.name = name, .is_only = true};

	iterate(look_into, &search);
	return search.n == 1 ? search.found : NULL;
}

void *torsh_objects_find_behind(const char *name)
{
	struct search search = {.name = name, .is_behind = 1};

	iterate(look_into, &search);
	return search.found;
}

bool torsh_objects_has(const char *text)
{
	return walk(is_called, (void *)text);
}

/* What _dl_find_object fills in; older C libraries neither have nor declare it. */
union object {
	struct {
		unsigned long long flags;
		void *start, *end;
		struct link_map *map;
	} found;
	char room[128];
};
typedef int find_object(void *address, union object *object);

/* NULL on older C libraries. */
static find_object *lock_free_way(void)
{
	static _Atomic bool is_known;
	static _Atomic(find_object *) known;
	find_object *find = atomic_load_explicit(&known, memory_order_relaxed);

	/* Not by dlsym, which would leave an error for the program's dlerror. */
	if (!find && !atomic_load_explicit(&is_known, memory_order_relaxed)) {
		find = (find_object *)torsh_objects_find("_dl_find_object");
		atomic_store_explicit(&known, find, memory_order_relaxed);
		atomic_store_explicit(&is_known, true, memory_order_relaxed);
	}
	return find;
}

/* Not inlined: the loader takes enough of the stack during the look-up. */
static __attribute__((noinline)) const struct link_map *find_map(find_object *find,
								 const void *code)
{
	struct link_map *map = NULL;
	union object object;
	Dl_info info;

	if (find)
		return find((void *)code, &object) == 0 ? object.found.map : NULL;
	return dladdr1(code, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

const struct link_map *torsh_objects_of(const void *code)
{
	return find_map(lock_free_way(), code);
}

struct place {
	const char *text;
	const void *address;
};

static bool has_address(const struct dl_phdr_info *object, const void *address)
{
	uintptr_t here = (uintptr_t)address - object->dlpi_addr;

	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && here - segment->p_vaddr < segment->p_memsz)
			return true;
	}
	return false;
}

static int is_there(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	const struct place *place = context;

	(void)n_bytes;
	return object->dlpi_name && torsh_find_text(object->dlpi_name, place->text) &&
	       has_address(object, place->address);
}

bool torsh_objects_lies_in(const char *text, const void *address)
{
	struct place place = {.text = text, .address = address};

	return dl_iterate_phdr(is_there, &place);
}
