/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/output/elf_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/base/regular.h"

/* The file's build-id is in a note of one of its PT_NOTE segments. */
static int is_build_id_note(Elf_Data *notes, const uint8_t *build_id, size_t n_build_id,
			    int *is_found)
{
	size_t at = 0, name_at, descriptor_at;
	GElf_Nhdr note;

	while ((at = gelf_getnote(notes, at, &note, &name_at, &descriptor_at)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp((char *)notes->d_buf + name_at, "GNU", sizeof("GNU")) != 0)
			continue;
		*is_found = 1;
		return note.n_descsz == n_build_id &&
		       !memcmp((char *)notes->d_buf + descriptor_at, build_id, n_build_id);
	}
	return 0;
}

int torsh_elf_has_build_id(Elf *elf, const uint8_t *build_id, size_t n_build_id)
{
	size_t n_headers;
	int is_found = 0;

	if (!n_build_id)
		return 1;
	if (elf_getphdrnum(elf, &n_headers))
		return 0;
	for (size_t i = 0; i < n_headers && !is_found; i++) {
		GElf_Phdr header;
		Elf_Data *notes;

		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_NOTE)
			continue;
		notes = elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz,
					     header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		if (notes && is_build_id_note(notes, build_id, n_build_id, &is_found))
			return 1;
	}
	return 0;
}

/* The first place at or above the address. */
static size_t first_place(const struct elf_place *places, size_t n_places, uint64_t address)
{
	size_t first = 0;

	while (n_places) {
		size_t half = n_places / 2;

		if (places[first + half].address < address) {
			first += half + 1;
			n_places -= half + 1;
		} else {
			n_places = half;
		}
	}
	return first;
}

/* Of several symbols the one that starts last, of these the shortest, of these the first read. */
static int is_better(const struct elf_place *place, const GElf_Sym *symbol)
{
	if (!place->name || symbol->st_value != place->start)
		return !place->name || symbol->st_value > place->start;
	return symbol->st_size < place->n_bytes;
}

static void name_covered(Elf *elf, size_t strings, const GElf_Sym *symbol, struct elf_place *places,
			 size_t n_places)
{
	uint64_t end = symbol->st_value + symbol->st_size;

	for (size_t i = first_place(places, n_places, symbol->st_value);
	     i < n_places && places[i].address < end; i++) {
		/* The file stays mapped until the names are copied. */
		char *name = is_better(&places[i], symbol)
				     ? elf_strptr(elf, strings, symbol->st_name)
				     : NULL;

		if (!name || !*name)
			continue;
		places[i].name = name;
		places[i].start = symbol->st_value;
		places[i].n_bytes = symbol->st_size;
	}
}

static int is_function(const GElf_Sym *symbol)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_size && symbol->st_value + symbol->st_size > symbol->st_value;
}

static void read_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
		       struct elf_place *places, size_t n_places)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n_symbols = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;

	for (size_t i = 0; i < n_symbols; i++) {
		GElf_Sym symbol;

		if (gelf_getsym(data, (int)i, &symbol) && is_function(&symbol))
			name_covered(elf, header->sh_link, &symbol, places, n_places);
	}
}

static int read_tables(Elf *elf, const uint8_t *build_id, size_t n_build_id,
		       struct elf_place *places, size_t n_places)
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
			read_table(elf, section, &header, places, n_places);
	}
	for (size_t i = 0; i < n_places; i++) {
		if (places[i].name)
			places[i].name = torsh_memory_text(places[i].name);
	}
	return 0;
}

int torsh_elf_name_places(const char *path, const uint8_t *build_id, size_t n_build_id,
			  struct elf_place *places, size_t n_places)
{
	int fd = torsh_open_regular(path), result;
	Elf *elf;

	if (fd < 0)
		return fd == -EINVAL ? -ENOEXEC : fd;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	result = elf ? read_tables(elf, build_id, n_build_id, places, n_places) : -ENOEXEC;
	elf_end(elf);
	close(fd);
	return result;
}
