/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/data_symbol.h"

#include <stdbool.h>

#include "tools/base/die.h"
#include "tools/base/elf_file.h"

struct search {
	Elf *elf;
	uint64_t address;
	struct elf_symbol best;
};

static bool consider(void *context, const GElf_Sym *symbol, size_t strings)
{
	struct search *search = context;
	struct elf_symbol found = {.start = symbol->st_value, .n_bytes = symbol->st_size};

	if (GELF_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_shndx == SHN_UNDEF ||
	    search->address < found.start || search->address - found.start >= found.n_bytes)
		return false;
	found.name = elf_strptr(search->elf, strings, symbol->st_name);
	if (found.name && *found.name &&
	    (!search->best.name || torsh_elf_compare_symbols(&search->best, &found) < 0))
		search->best = found;
	return false;
}

/* The lowest address of what is loaded: 0 in a library. */
static uint64_t first_address(Elf *elf)
{
	GElf_Ehdr header;
	GElf_Phdr segment;

	for (int i = 0; gelf_getehdr(elf, &header) && i < header.e_phnum; i++) {
		if (gelf_getphdr(elf, i, &segment) && segment.p_type == PT_LOAD)
			return segment.p_vaddr - segment.p_offset;
	}
	return 0;
}

char *torsh_data_symbol(const char *path, uint64_t address)
{
	struct search search = {.address = address};
	struct elf_file file;
	char *name = NULL;

	if (!path || torsh_elf_open(&file, path, NULL, 0))
		return NULL;
	search.elf = file.elf;
	search.address += first_address(file.elf);
	torsh_elf_visit_symbols(file.elf, consider, &search);
	if (search.best.name)
		name = torsh_need_text("%s", search.best.name);
	torsh_elf_close(&file);
	return name;
}
