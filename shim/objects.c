/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/objects.h"

#include <link.h>
#include <string.h>

#include "shim/elf_symbol.h"

struct search {
	const char *name;
	const char *text; /* of the path, NULL: any */
	int is_behind; /* begin after this library */
	void *found;
};

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *object)
{
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
	return NULL;
}

static int has_address(const struct dl_phdr_info *object, const void *address)
{
	uintptr_t here = (uintptr_t)address - object->dlpi_addr;

	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && here - segment->p_vaddr < segment->p_memsz)
			return 1;
	}
	return 0;
}

static int is_this_library(const struct dl_phdr_info *object)
{
	return has_address(object, (const void *)&torsh_objects_find);
}

static int look_into(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	struct search *search = context;
	/* As much of a link_map as the look-up asks for. */
	struct link_map map = {.l_addr = object->dlpi_addr, .l_ld = (ElfW(Dyn) *)dynamic_of(object)};

	(void)n_bytes;
	if (is_this_library(object)) {
		search->is_behind = 0;
		return 0;
	}
	if (search->is_behind || (search->text && !(object->dlpi_name && strstr(object->dlpi_name, search->text))))
		return 0;
	search->found = torsh_elf_symbol(&map, search->name, NULL);
	return search->found != NULL;
}

void *torsh_objects_find(const char *name)
{
	struct search search = {.name = name};

	dl_iterate_phdr(look_into, &search);
	return search.found;
}

void *torsh_objects_find_in(const char *text, const char *name)
{
	struct search search = {.name = name, .text = text};

	dl_iterate_phdr(look_into, &search);
	return search.found;
}

void *torsh_objects_find_behind(const char *name)
{
	struct search search = {.name = name, .is_behind = 1};

	dl_iterate_phdr(look_into, &search);
	return search.found;
}

static int is_called(struct dl_phdr_info *object, size_t n_bytes, void *text)
{
	(void)n_bytes;
	return object->dlpi_name && strstr(object->dlpi_name, text);
}

int torsh_objects_has(const char *text)
{
	return dl_iterate_phdr(is_called, (void *)text);
}

struct place {
	const char *text;
	const void *address;
};

static int is_there(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	const struct place *place = context;

	(void)n_bytes;
	return object->dlpi_name && strstr(object->dlpi_name, place->text) && has_address(object, place->address);
}

int torsh_objects_lies_in(const char *text, const void *address)
{
	struct place place = {.text = text, .address = address};

	return dl_iterate_phdr(is_there, &place);
}
