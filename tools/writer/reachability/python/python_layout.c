/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/python/python_layout.h"

#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "tools/base/elf_file.h"
#include "tools/base/memory.h"
#include "tools/writer/reachability/allocator_maps.h"

/* What tells versions apart, and is read, in the order of enum sign. */
static const char *const signs[] = {"_PyRuntime",
				    "Py_Version",
				    "Py_NewRef",
				    "PyThreadState_GetFrame",
				    "PyCode_NewWithPosOnlyArgs",
				    "PyCode_Type"};
enum sign { RUNTIME, VERSION, SINCE_3_10, SINCE_3_9, SINCE_3_8, CODE_TYPE, N_SIGNS };

struct sign_search {
	Elf *elf;
	uint64_t address[N_SIGNS]; /* as in the file; 0: not found */
};

static bool take_symbol(void *context, const GElf_Sym *symbol, size_t strings)
{
	struct sign_search *search = context;
	const char *name =
		symbol->st_shndx == SHN_UNDEF || GELF_ST_BIND(symbol->st_info) == STB_LOCAL
			? NULL
			: elf_strptr(search->elf, strings, symbol->st_name);

	for (int i = 0; name && *name && i < N_SIGNS; i++) {
		if (!strcmp(name, signs[i]))
			search->address[i] = symbol->st_value;
	}
	return false;
}

/* Returns what to add to addresses of the file, whose first byte is mapped there. */
static uint64_t bias_of(Elf *elf, uint64_t first)
{
	GElf_Phdr header;

	for (int i = 0; gelf_getphdr(elf, i, &header); i++) {
		if (header.p_type == PT_LOAD)
			return first - (header.p_vaddr - header.p_offset);
	}
	return first;
}

static bool find_signs(struct sign_search *search, const char *path, uint64_t first)
{
	struct elf_file file;
	uint64_t bias;

	if (torsh_elf_open(&file, path, NULL, 0))
		return false;
	search->elf = file.elf;
	torsh_elf_visit_symbols(file.elf, take_symbol, search);
	bias = bias_of(file.elf, first);
	for (int i = 0; i < N_SIGNS; i++)
		search->address[i] += search->address[i] ? bias : 0;
	torsh_elf_release_pages(file.elf);
	torsh_elf_close(&file);
	return search->address[RUNTIME];
}

static uint32_t version_of(const struct sign_search *search, const struct memory_reader *reader)
{
	if (search->address[VERSION])
		return CPYTHON_VERSION_OF_HEX(torsh_memory_word(reader, search->address[VERSION]));
	if (search->address[SINCE_3_10])
		return CPYTHON_FIRST_VERSION + 2;
	if (search->address[SINCE_3_9])
		return CPYTHON_FIRST_VERSION + 1;
	return search->address[SINCE_3_8] ? CPYTHON_FIRST_VERSION : 0;
}

static bool read_layout(struct python_layout *layout, uint32_t version,
			const struct memory_reader *reader)
{
	union {
		struct cpython_published published;
		char bytes[CPYTHON_PUBLISHED_BYTES];
	} runtime;

	if (version < CPYTHON_FIRST_PUBLISHED)
		return torsh_cpython_layout_of(&layout->at, version);
	return version <= CPYTHON_LAST_PUBLISHED &&
	       torsh_memory_copy(reader, layout->runtime, &runtime, sizeof(runtime)) ==
		       sizeof(runtime) &&
	       !runtime.published.is_free_threaded &&
	       torsh_cpython_layout_read(&layout->at, version, &runtime.published);
}

void torsh_python_layout_find(struct python_layout *layout, const struct memory_areas *areas,
			      const struct memory_reader *reader)
{
	const char *path = NULL;

	*layout = (struct python_layout){0};
	for (uint32_t i = 0; !layout->is_known && i < areas->n; i++) {
		const struct memory_area *area = &areas->items[i];
		struct sign_search search = {0};

		/* The program and a library may both be named so: one of them has the symbols. */
		if (!area->path || !torsh_is_python(area->path) ||
		    (path && !strcmp(path, area->path)))
			continue;
		path = area->path;
		if (!find_signs(&search, path, area->begin - area->file_offset))
			continue;
		layout->runtime = search.address[RUNTIME];
		layout->code_type = search.address[CODE_TYPE];
		layout->is_known = read_layout(layout, version_of(&search, reader), reader);
	}
}
