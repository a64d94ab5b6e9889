/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/symbol_table.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/base/regular.h"
#include "tools/symbols/named_files.h"

#define SLICE 4096u /* symbols that are read at once */
#define NAME_MAX_BYTES (1u << 20)
#define STEPS_BACK 16 /* a symbol nested in another one may end before the address */

static bool read_all(int fd, void *out, size_t n_bytes, uint64_t at)
{
	char *end = out;

	while (n_bytes) {
		ssize_t n = at <= INT64_MAX ? pread(fd, end, n_bytes, (off_t)at) : -1;

		if (n <= 0)
			return false;
		end += n;
		at += (size_t)n;
		n_bytes -= (size_t)n;
	}
	return true;
}

static void add(struct symbol_table *table, uint64_t start, uint64_t n_bytes, uint32_t name)
{
	table->items =
		torsh_array_reserve(table->items, table->n, &table->room, sizeof(*table->items));
	table->items[table->n++] = (struct symbol_entry){
		.start = start,
		.n_bytes = n_bytes < UINT32_MAX ? (uint32_t)n_bytes : UINT32_MAX,
		.name = name,
	};
}

/* Returns the section headers of a program or library of this machine's kind, or NULL. */
static Elf64_Shdr *read_sections(int fd, size_t *n)
{
	Elf64_Ehdr header;
	Elf64_Shdr *sections;

	if (!read_all(fd, &header, sizeof(header), 0) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ ||
	    (header.e_type != ET_DYN && header.e_type != ET_EXEC) || !header.e_shnum ||
	    header.e_shentsize != sizeof(*sections))
		return NULL;
	*n = header.e_shnum;
	sections = torsh_need_items(NULL, 0, *n, sizeof(*sections));
	if (read_all(fd, sections, *n * sizeof(*sections), header.e_shoff))
		return sections;
	free(sections);
	return NULL;
}

static bool add_slice(struct symbol_table *table, uint64_t at, size_t n, bool is_first)
{
	static Elf64_Sym symbols[SLICE];

	if (!read_all(table->fd, symbols, n * sizeof(*symbols), at))
		return false;
	for (size_t i = is_first; i < n; i++) {
		const GElf_Sym *symbol = &symbols[i];

		if (symbol->st_name && symbol->st_name < table->n_name_bytes &&
		    torsh_elf_is_function(symbol))
			add(table, symbol->st_value, symbol->st_size, symbol->st_name);
	}
	return true;
}

/* Returns false if there is no such section, or it can't be read. */
static bool add_section(struct symbol_table *table, const Elf64_Shdr *sections, size_t n)
{
	const Elf64_Shdr *symbols = NULL;
	uint64_t n_symbols;

	for (size_t i = 0; i < n && !symbols; i++)
		symbols = sections[i].sh_type == SHT_SYMTAB ? &sections[i] : NULL;
	if (!symbols || symbols->sh_entsize != sizeof(Elf64_Sym) || symbols->sh_link >= n ||
	    ((symbols->sh_flags | sections[symbols->sh_link].sh_flags) & SHF_COMPRESSED))
		return false;
	table->names_at = sections[symbols->sh_link].sh_offset;
	table->n_name_bytes = sections[symbols->sh_link].sh_size;
	n_symbols = symbols->sh_size / sizeof(Elf64_Sym);
	for (uint64_t i = 0; i < n_symbols; i += SLICE) {
		size_t n_slice = n_symbols - i < SLICE ? (size_t)(n_symbols - i) : SLICE;

		if (!add_slice(table, symbols->sh_offset + i * sizeof(Elf64_Sym), n_slice, i == 0))
			return false;
	}
	return true;
}

/* libdwfl touches the whole table of names of what it maps. */
static bool read_file(struct symbol_table *table, const char *path)
{
	Elf64_Shdr *sections;
	size_t n;
	bool is_read;

	table->fd = torsh_open_regular(path);
	if (table->fd < 0)
		return false;
	sections = read_sections(table->fd, &n);
	is_read = sections && add_section(table, sections, n);
	free(sections);
	if (!is_read) {
		close(table->fd);
		table->n = 0;
	}
	return is_read;
}

static void read_module(struct symbol_table *table, Dwfl_Module *module, uint64_t bias)
{
	bool was_guarded = torsh_named_files_guard(true);
	int n = dwfl_module_getsymtab(module);

	torsh_named_files_guard(was_guarded);
	table->module = module;
	for (int i = 1; i < n; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		GElf_Word section;
		const char *name =
			dwfl_module_getsym_info(module, i, &symbol, &address, &section, NULL, NULL);

		if (name && symbol.st_name && torsh_elf_is_function(&symbol))
			add(table, address - bias, symbol.st_size, (uint32_t)i);
	}
}

static int compare_entries(const void *a, const void *b)
{
	const struct symbol_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

void torsh_symbol_table_read(struct symbol_table *table, Dwfl_Module *module, const char *path,
			     uint64_t bias)
{
	table->is_read = true;
	if (bias || !read_file(table, path))
		read_module(table, module, bias);
	if (table->n)
		qsort(table->items, table->n, sizeof(*table->items), compare_entries);
}

/* Returns the name at an offset of the file's names; NULL if it can't be read. */
static const char *read_name(struct symbol_table *table, uint32_t offset)
{
	uint64_t n_left = table->n_name_bytes - offset;
	size_t n_max = n_left < NAME_MAX_BYTES ? (size_t)n_left : NAME_MAX_BYTES;
	const char *name = NULL;

	for (size_t n = n_max < 256 ? n_max : 256;; n = n * 4 < n_max ? n * 4 : n_max) {
		char *text = torsh_need_items(NULL, 0, n, 1);

		if (!read_all(table->fd, text, n, table->names_at + offset))
			n = n_max;
		else if (memchr(text, 0, n))
			name = torsh_intern(&table->names, text);
		free(text);
		if (name || n == n_max)
			return name;
	}
}

/* Returns NULL for an entry without a name. */
static const char *name_of(struct symbol_table *table, const struct symbol_entry *entry)
{
	GElf_Sym symbol;
	GElf_Addr address;
	const char *name = table->module
				   ? dwfl_module_getsym_info(table->module, (int)entry->name,
							     &symbol, &address, NULL, NULL, NULL)
				   : read_name(table, entry->name);

	return name && *name ? name : NULL;
}

/*
 * Find the entry that names an address, among those that are equal to the one before number `end`.
 * Returns false if they have no names.
 */
static bool choose(struct symbol_table *table, size_t end)
{
	const struct symbol_entry *last = &table->items[end - 1];
	struct elf_symbol *found = &table->found;

	found->name = NULL;
	for (; end && compare_entries(&table->items[end - 1], last) == 0; end--) {
		const struct symbol_entry *entry = &table->items[end - 1];
		struct elf_symbol symbol = {.start = entry->start,
					    .n_bytes = entry->n_bytes,
					    .name = name_of(table, entry)};

		if (symbol.name && (!found->name || torsh_elf_compare_symbols(found, &symbol) < 0))
			*found = symbol;
	}
	return found->name;
}

const struct elf_symbol *torsh_symbol_table_find(struct symbol_table *table, uint64_t address)
{
	size_t low = 0, high = table->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t back = 0; low > 0 && back < STEPS_BACK; back++, low--) {
		const struct symbol_entry *entry = &table->items[low - 1];

		if (address - entry->start < entry->n_bytes && choose(table, low))
			return &table->found;
	}
	return NULL;
}

void torsh_symbol_table_free(struct symbol_table *table)
{
	if (table->is_read && !table->module)
		close(table->fd);
	free(table->items);
	torsh_intern_free(&table->names);
	*table = (struct symbol_table){0};
}
