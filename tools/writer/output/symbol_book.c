/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/output/symbol_book.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/key_index.h"
#include "tools/base/memory.h"
#include "tools/writer/output/elf_symbols.h"

/* One file. */
struct book_page {
	char *path;
	uint32_t n_build_id;
	uint8_t build_id[CHANNEL_BUILD_ID_MAX];
	struct key_index index; /* address + 1 -> number in entries */
	struct symbol_name *entries;
	uint32_t n_entries;
	size_t capacity;
};

struct symbol_book {
	struct book_page *pages;
	uint32_t n_pages;
	size_t capacity;
};

struct symbol_book *torsh_book_create(void)
{
	return torsh_memory_new(1, sizeof(struct symbol_book));
}

void torsh_book_destroy(struct symbol_book *book)
{
	for (uint32_t i = 0; i < book->n_pages; i++) {
		struct book_page *page = &book->pages[i];

		for (uint32_t k = 0; k < page->n_entries; k++)
			free((char *)(uintptr_t)page->entries[k].name);
		free(page->entries);
		free(page->path);
		torsh_key_index_destroy(&page->index);
	}
	free(book->pages);
	free(book);
}

static struct book_page *find_page(struct symbol_book *book, const struct code_module *module)
{
	struct book_page *page;

	for (uint32_t i = 0; i < book->n_pages; i++) {
		page = &book->pages[i];
		if (page->n_build_id == module->n_build_id &&
		    !memcmp(page->build_id, module->build_id, page->n_build_id) &&
		    !strcmp(page->path, module->path))
			return page;
	}
	book->pages =
		torsh_array_reserve(book->pages, book->n_pages, &book->capacity, sizeof(*page));
	page = &book->pages[book->n_pages++];
	page->path = torsh_memory_text(module->path);
	page->n_build_id = module->n_build_id;
	memcpy(page->build_id, module->build_id, sizeof(page->build_id));
	torsh_key_index_create(&page->index);
	return page;
}

static int by_address(const void *a, const void *b)
{
	const struct elf_lookup *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* The addresses that the page lacks, sorted and unique. */
static struct elf_lookup *collect_lookups(const struct book_page *page, const uint64_t *addresses,
					  uint32_t n, uint32_t *n_lookups)
{
	struct elf_lookup *lookups = torsh_memory_new(n, sizeof(*lookups));
	uint32_t n_new = 0, n_kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!torsh_key_index_find(&page->index, addresses[i] + 1)->key)
			lookups[n_new++].address = addresses[i];
	}
	qsort(lookups, n_new, sizeof(*lookups), by_address);
	for (uint32_t i = 0; i < n_new; i++) {
		if (!n_kept || lookups[n_kept - 1].address != lookups[i].address)
			lookups[n_kept++] = lookups[i];
	}
	*n_lookups = n_kept;
	return lookups;
}

static void add_entries(struct book_page *page, const struct elf_lookup *lookups,
			uint32_t n_lookups)
{
	for (uint32_t i = 0; i < n_lookups; i++) {
		uint64_t key = lookups[i].address + 1;

		page->entries = torsh_array_reserve(page->entries, page->n_entries, &page->capacity,
						    sizeof(*page->entries));
		page->entries[page->n_entries] = (struct symbol_name){
			.name = lookups[i].name, .start = lookups[i].symbol.start};
		torsh_key_index_fill(&page->index, torsh_key_index_find(&page->index, key), key,
				     page->n_entries++);
	}
}

void torsh_book_look_up(struct symbol_book *book, const struct code_module *module,
			const uint64_t *addresses, uint32_t n, struct symbol_name *names)
{
	struct book_page *page = find_page(book, module);
	uint32_t n_lookups;
	struct elf_lookup *lookups = collect_lookups(page, addresses, n, &n_lookups);

	if (n_lookups)
		torsh_elf_find_functions(page->path, page->build_id, page->n_build_id, lookups,
					 n_lookups);
	add_entries(page, lookups, n_lookups);
	free(lookups);
	for (uint32_t i = 0; i < n; i++)
		names[i] =
			page->entries[torsh_key_index_find(&page->index, addresses[i] + 1)->number];
}
