/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/loader/elf_symbol.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "shim/sys.h"

#define HEADERS_BYTES 4096u /* of the first page: later ones may not be mapped */

/* ---- bounds ---------------------------------------------------------------------------------- */

/*
 * The bytes of a segment with any of the wanted permissions, from address on; 0: no segment
 * contains it.
 */
static size_t find_room(const struct torsh_elf_image *image, uintptr_t address, uint32_t wanted)
{
	for (size_t i = 0; i < image->n; i++) {
		const ElfW(Phdr) *segment = &image->segments[i];
		uintptr_t within = address - (image->bias + segment->p_vaddr);

		if (segment->p_type == PT_LOAD && segment->p_flags & wanted &&
		    within < segment->p_memsz)
			return segment->p_memsz - within;
	}
	return 0;
}

const void *torsh_elf_at(const struct torsh_elf_image *image, uintptr_t address, size_t n_bytes)
{
	return find_room(image, address, PF_R) >= n_bytes ? (const void *)address : NULL;
}

void **torsh_elf_address(const struct torsh_elf_image *image, uintptr_t address)
{
	bool is_there =
		address % sizeof(void *) == 0 && find_room(image, address, PF_W) >= sizeof(void *);

	return is_there ? (void **)address : NULL;
}

const char *torsh_elf_text(const struct torsh_elf_image *image, uintptr_t address)
{
	size_t n_room = find_room(image, address, PF_R);

	return n_room && memchr((const void *)address, 0, n_room) ? (const char *)address : NULL;
}

/* Whether these are the program headers of the object with this dynamic section. */
static bool is_of(const struct torsh_elf_image *image, const void *dynamic)
{
	for (size_t i = 0; i < image->n; i++)
		if (image->segments[i].p_type == PT_DYNAMIC)
			return image->bias + image->segments[i].p_vaddr == (uintptr_t)dynamic;
	return false;
}

/* Linkers lay out libraries from address 0 on, so that the file header is at the load address. */
static bool find_headers(uintptr_t start, struct torsh_elf_image *image)
{
	const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)start;
	uint32_t magic;

	memcpy(&magic, ELFMAG, sizeof(magic));
	if (!start || start % HEADERS_BYTES || torsh_sys_compare(start, magic) ||
	    elf->e_phentsize != sizeof(ElfW(Phdr)) || elf->e_phoff > HEADERS_BYTES ||
	    elf->e_phoff % sizeof(uintptr_t) ||
	    elf->e_phoff + elf->e_phnum * sizeof(ElfW(Phdr)) > HEADERS_BYTES)
		return false;
	image->segments = (const ElfW(Phdr) *)(start + elf->e_phoff);
	image->n = elf->e_phnum;
	return true;
}

bool torsh_elf_describe(const struct link_map *map, struct torsh_elf_image *image)
{
	*image = (struct torsh_elf_image){.bias = map->l_addr};
	if (find_headers(map->l_addr, image) && is_of(image, map->l_ld))
		return true;
	/* A program linked to a fixed address. */
	image->segments = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	image->n = image->segments ? getauxval(AT_PHNUM) : 0;
	return is_of(image, map->l_ld);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* The header of a DT_GNU_HASH table, followed by a Bloom filter, the buckets and the hashes. */
struct gnu_hash {
	uint32_t n_buckets, first_symbol, n_filter_words, filter_shift;
};

struct tables {
	uintptr_t hash, symbols, names;
};

/* glibc has added the load address, but not in every object: the vdso is read-only. */
uintptr_t torsh_elf_locate(const struct torsh_elf_image *image, const ElfW(Dyn) * entry)
{
	return entry->d_un.d_ptr < image->bias ? entry->d_un.d_ptr + image->bias
					       : entry->d_un.d_ptr;
}

static bool find_tables(const struct torsh_elf_image *image, uintptr_t dynamic,
			struct tables *tables)
{
	const ElfW(Dyn) * entry;

	*tables = (struct tables){0};
	for (; (entry = torsh_elf_at(image, dynamic, sizeof(*entry))) && entry->d_tag != DT_NULL;
	     dynamic += sizeof(*entry)) {
		switch (entry->d_tag) {
		case DT_GNU_HASH:
			tables->hash = torsh_elf_locate(image, entry);
			break;
		case DT_SYMTAB:
			tables->symbols = torsh_elf_locate(image, entry);
			break;
		case DT_STRTAB:
			tables->names = torsh_elf_locate(image, entry);
			break;
		}
	}
	/* Damaged ones may be misaligned, which the reads below can't handle. */
	return tables->hash && tables->symbols && tables->names &&
	       tables->hash % sizeof(uint32_t) == 0 && tables->symbols % sizeof(uintptr_t) == 0;
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/*
 * The first symbol of the name's bucket, and the places of its hash and the next; 0: there is none.
 */
static uint32_t find_bucket(const struct torsh_elf_image *image, const struct tables *tables,
			    uint32_t hash, uintptr_t *chain)
{
	const struct gnu_hash *header = torsh_elf_at(image, tables->hash, sizeof(*header));
	const uint32_t *bucket;
	uintptr_t buckets;

	if (!header || !header->n_buckets)
		return 0;
	buckets = tables->hash + sizeof(*header) + header->n_filter_words * sizeof(ElfW(Addr));
	bucket = torsh_elf_at(image, buckets + hash % header->n_buckets * sizeof(*bucket),
			      sizeof(*bucket));
	if (!bucket || *bucket < header->first_symbol)
		return 0;
	*chain = buckets + (header->n_buckets + (uintptr_t)(*bucket - header->first_symbol)) *
				   sizeof(*bucket);
	return *bucket;
}

static bool is_called(const struct torsh_elf_image *image, uintptr_t text, const char *name)
{
	size_t n_bytes = strlen(name) + 1;
	const char *found = torsh_elf_at(image, text, n_bytes);

	return found && !memcmp(found, name, n_bytes);
}

void *torsh_elf_symbol_in(const struct torsh_elf_image *image, const void *dynamic,
			  const char *name, size_t *n_bytes)
{
	uint32_t hash = hash_name(name);
	struct tables tables;
	uintptr_t chain, symbol_at;

	if (!find_tables(image, (uintptr_t)dynamic, &tables))
		return NULL;
	symbol_at = find_bucket(image, &tables, hash, &chain) * sizeof(ElfW(Sym));
	if (!symbol_at)
		return NULL;
	for (symbol_at += tables.symbols;;
	     symbol_at += sizeof(ElfW(Sym)), chain += sizeof(uint32_t)) {
		const ElfW(Sym) *symbol = torsh_elf_at(image, symbol_at, sizeof(*symbol));
		const uint32_t *found = torsh_elf_at(image, chain, sizeof(*found));

		if (!symbol || !found)
			return NULL;
		if ((*found | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
		    is_called(image, tables.names + symbol->st_name, name)) {
			/* What a resolver chooses is not known here. */
			if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC ||
			    !find_room(image, image->bias + symbol->st_value, PF_R | PF_X))
				return NULL;
			if (n_bytes)
				*n_bytes = symbol->st_size;
			return (void *)(image->bias + symbol->st_value);
		}
		/* The lowest bit marks the end of the bucket. */
		if (*found & 1)
			return NULL;
	}
}

void *torsh_elf_symbol(const struct link_map *map, const char *name, size_t *n_bytes)
{
	struct torsh_elf_image image;

	return torsh_elf_describe(map, &image)
		       ? torsh_elf_symbol_in(&image, map->l_ld, name, n_bytes)
		       : NULL;
}
