/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/output/elf_symbols.h"

#include "tools/base/elf_file.h"
#include "tools/base/memory.h"

#define RELEASED_NAMES (1u << 12) /* pages are released after so many */

/* The lookups that symbols are compared with, sorted by address. */
struct wanted {
	Elf *elf;
	struct elf_lookup *lookups;
	size_t n;
};

/* The first lookup at or above the address. */
static size_t first_lookup(const struct elf_lookup *lookups, size_t n_lookups, uint64_t address)
{
	size_t first = 0;

	while (n_lookups) {
		size_t half = n_lookups / 2;

		if (lookups[first + half].address < address) {
			first += half + 1;
			n_lookups -= half + 1;
		} else {
			n_lookups = half;
		}
	}
	return first;
}

static bool name_covered(void *context, const GElf_Sym *symbol, size_t strings)
{
	const struct wanted *wanted = context;
	struct elf_symbol found = {.start = symbol->st_value, .n_bytes = symbol->st_size};
	uint64_t end = found.start + found.n_bytes;

	if (end <= found.start || !torsh_elf_is_function(symbol))
		return false;
	for (size_t i = first_lookup(wanted->lookups, wanted->n, found.start);
	     i < wanted->n && wanted->lookups[i].address < end; i++) {
		struct elf_symbol *best = &wanted->lookups[i].symbol;

		/* The file stays mapped until the names are copied. */
		found.name =
			found.name ? found.name : elf_strptr(wanted->elf, strings, symbol->st_name);
		if (!found.name || !*found.name)
			return false;
		if (!best->name || torsh_elf_compare_symbols(best, &found) < 0)
			*best = found;
	}
	return false;
}

int torsh_elf_find_functions(const char *path, const uint8_t *build_id, size_t n_build_id,
			     struct elf_lookup *lookups, size_t n_lookups)
{
	struct wanted wanted = {.lookups = lookups, .n = n_lookups};
	struct elf_file file;
	int rc = torsh_elf_open(&file, path, build_id, n_build_id);

	if (rc)
		return rc;
	wanted.elf = file.elf;
	torsh_elf_visit_symbols(file.elf, name_covered, &wanted);
	for (size_t i = 0; i < n_lookups; i++) {
		if (lookups[i].symbol.name)
			lookups[i].name = torsh_memory_text(lookups[i].symbol.name);
		if (i % RELEASED_NAMES == RELEASED_NAMES - 1)
			torsh_elf_release_pages(file.elf);
	}
	torsh_elf_close(&file);
	return 0;
}
