/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/elf_symbol.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

/* The header of a DT_GNU_HASH table; a Bloom filter, the buckets and the hashes follow. */
struct gnu_hash {
	uint32_t n_buckets, first_symbol, n_filter_words, filter_shift;
};

struct tables {
	const struct gnu_hash *hash;
	const ElfW(Sym) * symbols;
	const char *names;
};

/* glibc has added the load address, but not in every object: the vdso is read-only. */
const void *torsh_elf_locate(const struct link_map *map, const ElfW(Dyn) * entry)
{
	return (const void *)(entry->d_un.d_ptr < map->l_addr ? entry->d_un.d_ptr + map->l_addr : entry->d_un.d_ptr);
}

static int find_tables(const struct link_map *map, struct tables *tables)
{
	*tables = (struct tables){0};
	for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
		case DT_GNU_HASH:
			tables->hash = torsh_elf_locate(map, entry);
			break;
		case DT_SYMTAB:
			tables->symbols = torsh_elf_locate(map, entry);
			break;
		case DT_STRTAB:
			tables->names = torsh_elf_locate(map, entry);
			break;
		}
	}
	return tables->hash && tables->symbols && tables->names && tables->hash->n_buckets;
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

void *torsh_elf_symbol(const struct link_map *map, const char *name, size_t *n_bytes)
{
	const uint32_t *buckets, *chain;
	uint32_t hash = hash_name(name), i;
	struct tables tables;

	if (!find_tables(map, &tables))
		return NULL;
	buckets = (const uint32_t *)((const ElfW(Addr) *)(tables.hash + 1) + tables.hash->n_filter_words);
	chain = buckets + tables.hash->n_buckets;
	i = buckets[hash % tables.hash->n_buckets];
	if (i < tables.hash->first_symbol)
		return NULL;
	for (;; i++) {
		const ElfW(Sym) *symbol = &tables.symbols[i];
		uint32_t found = chain[i - tables.hash->first_symbol];

		/* The lowest bit says that the bucket ends here. */
		if ((found | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
		    !strcmp(tables.names + symbol->st_name, name)) {
			if (n_bytes)
				*n_bytes = symbol->st_size;
			return (void *)(map->l_addr + symbol->st_value);
		}
		if (found & 1)
			return NULL;
	}
}
