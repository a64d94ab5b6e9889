/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Recognises the one or two instructions by which compilers return the address of a constant. */
#include "tools/writer/output/elf_text.h"

#include <errno.h>
#include <string.h>

#include "tools/base/elf_file.h"
#include "tools/base/memory.h"

#define CODE_MAX 32u

struct code {
	const uint8_t *bytes;
	size_t n, at;
	uint64_t address; /* of the first byte */
};

static bool skip(struct code *code, const char *bytes, size_t n)
{
	if (code->n - code->at < n || memcmp(code->bytes + code->at, bytes, n) != 0)
		return false;
	code->at += n;
	return true;
}

#define SKIP(code, bytes) skip(code, bytes, sizeof(bytes) - 1)

static uint32_t take_word(struct code *code)
{
	uint32_t word = 0;

	if (code->n - code->at >= sizeof(word))
		memcpy(&word, code->bytes + code->at, sizeof(word));
	code->at = code->n - code->at >= sizeof(word) ? code->at + sizeof(word) : code->n;
	return word;
}

/*
 * Decodes lea address(%rip),%rax or mov $address,%eax, with or without a frame; returns 0 for other
 * code.
 */
static uint64_t returned_x86_64(struct code *code)
{
	uint64_t address;

	SKIP(code, "\xf3\x0f\x1e\xfa");
	if (SKIP(code, "\x55") && !SKIP(code, "\x48\x89\xe5"))
		return 0;
	if (SKIP(code, "\x48\x8d\x05")) {
		int32_t distance = (int32_t)take_word(code);

		address = code->address + code->at + (uint64_t)(int64_t)distance;
	} else if (SKIP(code, "\xb8")) {
		address = take_word(code);
	} else {
		return 0;
	}
	SKIP(code, "\x5d");
	return SKIP(code, "\xc3") ? address : 0;
}

/* Decodes adrp x0, page; add x0, x0, #offset; ret. */
static uint64_t returned_aarch64(struct code *code)
{
	uint32_t page, offset;
	uint64_t address;
	int64_t pages;

	SKIP(code, "\x5f\x24\x03\xd5");
	address = (code->address + code->at) & ~(uint64_t)0xfff;
	page = take_word(code);
	offset = take_word(code);
	if ((page & 0x9f00001f) != 0x90000000 || (offset & 0xffc003ff) != 0x91000000 ||
	    take_word(code) != 0xd65f03c0)
		return 0;
	pages = (int64_t)((uint64_t)((page >> 5 & 0x7ffff) << 2 | (page >> 29 & 3)) << 43) >> 43;
	return address + (uint64_t)(pages * 4096) + (offset >> 10 & 0xfff);
}

/*
 * Returns at most n bytes at an address, or NULL if the file has none there or they are writable.
 */
static const uint8_t *bytes_at(Elf *elf, uint64_t address, size_t *n)
{
	size_t n_headers, n_file;
	const char *file = elf_rawfile(elf, &n_file);

	if (!file || elf_getphdrnum(elf, &n_headers))
		return NULL;
	for (size_t i = 0; i < n_headers; i++) {
		GElf_Phdr header;
		uint64_t within, left;

		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD ||
		    address < header.p_vaddr)
			continue;
		within = address - header.p_vaddr;
		if (within >= header.p_filesz)
			continue;
		if (header.p_flags & PF_W || header.p_offset > n_file ||
		    within >= n_file - header.p_offset)
			return NULL;
		left = n_file - header.p_offset - within;
		left = header.p_filesz - within < left ? header.p_filesz - within : left;
		*n = left < *n ? (size_t)left : *n;
		return (const uint8_t *)file + header.p_offset + within;
	}
	return NULL;
}

struct wanted {
	Elf *elf;
	const char *name;
	GElf_Sym symbol;
	bool is_found;
};

static bool match_function(void *context, const GElf_Sym *symbol, size_t strings)
{
	struct wanted *wanted = context;
	const char *name;

	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF)
		return false;
	name = elf_strptr(wanted->elf, strings, symbol->st_name);
	if (!name || strcmp(name, wanted->name) != 0)
		return false;
	wanted->symbol = *symbol;
	wanted->is_found = true;
	return true;
}

static int read_text(Elf *elf, const char *function, char **text)
{
	size_t n_code = CODE_MAX, n_text = ELF_TEXT_MAX;
	const uint8_t *bytes;
	struct code code = {0};
	GElf_Ehdr header;
	struct wanted wanted = {.elf = elf, .name = function};
	uint64_t address = 0;

	if (!gelf_getehdr(elf, &header))
		return -ENOEXEC;
	torsh_elf_visit_symbols(elf, match_function, &wanted);
	if (!wanted.is_found)
		return -ENOENT;
	code.address = wanted.symbol.st_value;
	code.bytes = bytes_at(elf, wanted.symbol.st_value, &n_code);
	code.n = code.bytes ? n_code : 0;
	if (header.e_machine == EM_X86_64)
		address = returned_x86_64(&code);
	else if (header.e_machine == EM_AARCH64)
		address = returned_aarch64(&code);
	bytes = address ? bytes_at(elf, address, &n_text) : NULL;
	if (!bytes || !memchr(bytes, '\0', n_text))
		return -ENOTSUP;
	*text = torsh_memory_text((const char *)bytes);
	return 0;
}

int torsh_elf_returned_text(const char *path, const uint8_t *build_id, size_t n_build_id,
			    const char *function, char **text)
{
	struct elf_file file;
	int rc = torsh_elf_open(&file, path, build_id, n_build_id);

	if (rc)
		return rc;
	rc = read_text(file.elf, function, text);
	torsh_elf_close(&file);
	return rc;
}
