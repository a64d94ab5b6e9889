/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/elf_file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/base/regular.h"

#define PAGE_BYTES ((size_t)4096)
#define RELEASED_SYMBOLS (1u << 15) /* pages are released after so many */

/* Returns whether the note segment holds a build-id; *is_same: it is the given one. */
static bool find_build_id(Elf_Data *notes, const uint8_t *build_id, size_t n_build_id,
			  bool *is_same)
{
	size_t at = 0, name_at, descriptor_at;
	GElf_Nhdr note;

	while ((at = gelf_getnote(notes, at, &note, &name_at, &descriptor_at)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp((char *)notes->d_buf + name_at, "GNU", sizeof("GNU")) != 0)
			continue;
		*is_same = note.n_descsz == n_build_id &&
			   !memcmp((char *)notes->d_buf + descriptor_at, build_id, n_build_id);
		return true;
	}
	return false;
}

/* Compares with the first build-id in the file's PT_NOTE segments. */
static bool has_build_id(Elf *elf, const uint8_t *build_id, size_t n_build_id)
{
	bool is_same = false;
	size_t n_headers;

	if (!n_build_id)
		return true;
	if (elf_getphdrnum(elf, &n_headers))
		return false;
	for (size_t i = 0; i < n_headers; i++) {
		GElf_Phdr header;
		Elf_Data *notes;

		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_NOTE)
			continue;
		notes = elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz,
					     header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		if (notes && find_build_id(notes, build_id, n_build_id, &is_same))
			break;
	}
	return is_same;
}

int torsh_elf_open(struct elf_file *file, const char *path, const uint8_t *build_id,
		   size_t n_build_id)
{
	int rc;

	file->fd = torsh_open_regular(path);
	if (file->fd < 0)
		return file->fd == -EINVAL ? -ENOEXEC : file->fd;
	elf_version(EV_CURRENT);
	file->elf = elf_begin(file->fd, ELF_C_READ_MMAP, NULL);
	if (!file->elf || elf_kind(file->elf) != ELF_K_ELF)
		rc = -ENOEXEC;
	else
		rc = has_build_id(file->elf, build_id, n_build_id) ? 0 : -ESTALE;
	if (rc)
		torsh_elf_close(file);
	return rc;
}

void torsh_elf_close(struct elf_file *file)
{
	elf_end(file->elf);
	close(file->fd);
}

/* elf_begin mapped the whole file privately, for reading only: nothing is lost. */
void torsh_elf_release_pages(Elf *elf)
{
	size_t n_bytes;
	char *start = elf_rawfile(elf, &n_bytes);

	if (start && (uintptr_t)start % PAGE_BYTES == 0)
		madvise(start, n_bytes, MADV_DONTNEED);
}

/* Returns whether the visitor stopped. */
static bool visit_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
			elf_symbol_visitor *visit, void *context)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n_symbols = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;

	for (size_t i = 0; i < n_symbols; i++) {
		GElf_Sym symbol;

		if (i % RELEASED_SYMBOLS == RELEASED_SYMBOLS - 1)
			torsh_elf_release_pages(elf);
		if (gelf_getsym(data, (int)i, &symbol) && visit(context, &symbol, header->sh_link))
			return true;
	}
	return false;
}

void torsh_elf_visit_symbols(Elf *elf, elf_symbol_visitor *visit, void *context)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
		    visit_table(elf, section, &header, visit, context))
			return;
	}
}

bool torsh_elf_is_function(const GElf_Sym *symbol)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
	       symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS;
}

int torsh_elf_compare_symbols(const void *a, const void *b)
{
	const struct elf_symbol *x = a, *y = b;
	size_t n_x, n_y;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->n_bytes != y->n_bytes)
		return x->n_bytes < y->n_bytes ? -1 : 1;
	n_x = strlen(x->name);
	n_y = strlen(y->name);
	if (n_x != n_y)
		return n_x > n_y ? -1 : 1;
	return strcmp(x->name, y->name);
}
