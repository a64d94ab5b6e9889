/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/output/elf_symbols.h"

#include <stdbool.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/base/regular.h"

/* The file's build-id is in a note of one of its PT_NOTE segments. */
static bool is_build_id_note(Elf_Data *notes, const uint8_t *build_id, size_t n_build_id,
			     bool *is_found)
{
	size_t at = 0, name_at, descriptor_at;
	GElf_Nhdr note;

	while ((at = gelf_getnote(notes, at, &note, &name_at, &descriptor_at)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp((char *)notes->d_buf + name_at, "GNU", sizeof("GNU")) != 0)
			continue;
		*is_found = true;
		return note.n_descsz == n_build_id &&
		       !memcmp((char *)notes->d_buf + descriptor_at, build_id, n_build_id);
	}
	return false;
}

bool torsh_elf_has_build_id(Elf *elf, const uint8_t *build_id, size_t n_build_id)
{
	size_t n_headers;
	bool is_found = false;

	if (!n_build_id)
		return true;
	if (elf_getphdrnum(elf, &n_headers))
		return false;
	for (size_t i = 0; i < n_headers && !is_found; i++) {
		GElf_Phdr header;
		Elf_Data *notes;

		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_NOTE)
			continue;
		notes = elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz,
					     header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		if (notes && is_build_id_note(notes, build_id, n_build_id, &is_found))
			return true;
	}
	return false;
}

/* The first place at or above the address. */
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

/* Of several symbols the one that starts last, of these the shortest, of these the first read. */
static bool is_better(const struct elf_lookup *lookup, const GElf_Sym *symbol)
{
	if (!lookup->name || symbol->st_value != lookup->start)
		return !lookup->name || symbol->st_value > lookup->start;
	return symbol->st_size < lookup->n_bytes;
}

static void name_covered(Elf *elf, size_t strings, const GElf_Sym *symbol,
			 struct elf_lookup *lookups, size_t n_lookups)
{
	uint64_t end = symbol->st_value + symbol->st_size;

	for (size_t i = first_lookup(lookups, n_lookups, symbol->st_value);
	     i < n_lookups && lookups[i].address < end; i++) {
		/* The file stays mapped until the names are copied. */
		char *name = is_better(&lookups[i], symbol)
				     ? elf_strptr(elf, strings, symbol->st_name)
				     : NULL;

		if (!name || !*name)
			continue;
		lookups[i].name = name;
		lookups[i].start = symbol->st_value;
		lookups[i].n_bytes = symbol->st_size;
	}
}

static bool is_function(const GElf_Sym *symbol)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_size && symbol->st_value + symbol->st_size > symbol->st_value;
}

static void read_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
		       struct elf_lookup *lookups, size_t n_lookups)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n_symbols = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;

	for (size_t i = 0; i < n_symbols; i++) {
		GElf_Sym symbol;

		if (gelf_getsym(data, (int)i, &symbol) && is_function(&symbol))
			name_covered(elf, header->sh_link, &symbol, lookups, n_lookups);
	}
}

static int read_tables(Elf *elf, const uint8_t *build_id, size_t n_build_id,
		       struct elf_lookup *lookups, size_t n_lookups)
{
	Elf_Scn *section = NULL;

	if (elf_kind(elf) != ELF_K_ELF)
		return -ENOEXEC;
	if (!torsh_elf_has_build_id(elf, build_id, n_build_id))
		return -ESTALE;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
			read_table(elf, section, &header, lookups, n_lookups);
	}
	for (size_t i = 0; i < n_lookups; i++) {
		if (lookups[i].name)
			lookups[i].name = torsh_memory_text(lookups[i].name);
	}
	return 0;
}

int torsh_elf_find_functions(const char *path, const uint8_t *build_id, size_t n_build_id,
			     struct elf_lookup *lookups, size_t n_lookups)
{
	int fd = torsh_open_regular(path), result;
	Elf *elf;

	if (fd < 0)
		return fd == -EINVAL ? -ENOEXEC : fd;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	result = elf ? read_tables(elf, build_id, n_build_id, lookups, n_lookups) : -ENOEXEC;
	elf_end(elf);
	close(fd);
	return result;
}
