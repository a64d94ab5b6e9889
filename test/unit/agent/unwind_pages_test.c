/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Pages of files that unwinding has read: which are unmapped again, and that nothing is lost by it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/stack/unwind_pages.h"

#define PAGE_BYTES 4096u
#define ENOUGH_READS 1000

static void nothing_is_gone(uintptr_t start, uintptr_t end)
{
	(void)start;
	(void)end;
}

/* ---- an object of this process ---- */

static struct module libc_module(struct object_span *span)
{
	struct module module;

	torsh_modules_start(nothing_is_gone, true);
	if (torsh_modules_find((uintptr_t)dlsym(RTLD_DEFAULT, "qsort"), &module) == MODULE_NONE ||
	    !torsh_object_clean_span(module.start, &module.memory, (uintptr_t)module.eh_frame_hdr,
				     span))
		skip();
	assert_true(span->start >= module.start && span->end <= module.end);
	return module;
}

static size_t n_resident(const struct object_span *span)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t n = 0;

	assert_true(fd >= 0);
	for (uintptr_t page = span->start; page < span->end; page += PAGE_BYTES) {
		uint64_t entry;

		assert_int_equal(pread(fd, &entry, sizeof(entry),
				       (off_t)(page / PAGE_BYTES * sizeof(entry))),
				 sizeof(entry));
		n += entry >> 63;
	}
	close(fd);
	return n;
}

static void read_all(const struct object_span *span)
{
	for (uintptr_t page = span->start; page < span->end; page += PAGE_BYTES)
		(void)*(const volatile uint8_t *)page;
}

static void read_often(const struct module *module)
{
	for (int i = 0; i < ENOUGH_READS; i++)
		torsh_unwind_pages_were_read(module, module->start);
}

static void pages_of_the_file_are_unmapped_and_come_back(void **state)
{
	struct object_span span;
	struct module module = libc_module(&span);
	size_t n_bytes = span.end - span.start;
	uint8_t *before = malloc(n_bytes);

	(void)state;
	memcpy(before, (const void *)span.start, n_bytes);
	read_all(&span);
	assert_int_equal(n_resident(&span), n_bytes / PAGE_BYTES);
	read_often(&module);
	/* The header's first page is read for each release. */
	assert_true(n_resident(&span) <= 1);
	assert_memory_equal((const void *)span.start, before, n_bytes);
	free(before);
}

/* As a checkpoint is restored: memory of the process's own in place of the file's. */
static void pages_of_the_process_stay(void **state)
{
	struct object_span span;
	struct module module = libc_module(&span);
	size_t n_bytes = span.end - span.start;
	uint8_t *copy =
		mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	memcpy(copy, (const void *)span.start, n_bytes);
	copy[n_bytes - 1] ^= 0xff;
	assert_ptr_equal(
		mremap(copy, n_bytes, n_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)span.start),
		(void *)span.start);
	read_often(&module);
	assert_int_equal(n_resident(&span), n_bytes / PAGE_BYTES);
}

/* ---- objects as others make them ---- */

#define IMAGE_BYTES (8 * PAGE_BYTES)
#define HDR_AT (3 * PAGE_BYTES + 16)

static _Alignas(PAGE_BYTES) uint8_t image[IMAGE_BYTES];

struct made {
	ElfW(Ehdr) elf;
	ElfW(Phdr) code, data, dynamic_header;
	ElfW(Dyn) dynamic[3];
};

/* Code from page 1 on, unwind information in page 3, to the end of the image. */
static struct made *make_object(void)
{
	struct made *made = (struct made *)image;
	int32_t *hdr = (int32_t *)(image + HDR_AT);

	memset(image, 0, sizeof(image));
	memcpy(made->elf.e_ident, ELFMAG, SELFMAG);
	made->elf.e_phoff = offsetof(struct made, code);
	made->elf.e_phentsize = sizeof(ElfW(Phdr));
	made->elf.e_phnum = 3;
	made->code =
		(ElfW(Phdr)){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = 2 * PAGE_BYTES};
	made->code.p_filesz = made->code.p_memsz;
	made->data = (ElfW(Phdr)){.p_type = PT_LOAD,
				  .p_flags = PF_R,
				  .p_vaddr = 2 * PAGE_BYTES,
				  .p_memsz = 6 * PAGE_BYTES};
	made->data.p_filesz = made->data.p_memsz;
	made->dynamic_header =
		(ElfW(Phdr)){.p_type = PT_DYNAMIC, .p_vaddr = offsetof(struct made, dynamic)};
	memcpy(hdr, (const uint8_t[]){1, 0x1b, 0x03, 0x3b}, 4);
	hdr[1] = 64 - 4;
	hdr[2] = 1;
	hdr[3] = (int32_t)PAGE_BYTES - (int32_t)HDR_AT;
	return made;
}

static bool has_clean_span(struct object_span *span)
{
	uintptr_t start = (uintptr_t)image;
	struct object_memory memory = {.n = 1,
				       .spans = {{.start = start, .end = start + IMAGE_BYTES}}};

	return torsh_object_clean_span(start, &memory, start + HDR_AT, span);
}

static void whole_pages_from_the_header_on_are_clean(void **state)
{
	struct object_span span;

	(void)state;
	make_object();
	assert_true(has_clean_span(&span));
	assert_int_equal(span.start, (uintptr_t)image + 4 * PAGE_BYTES);
	assert_int_equal(span.end, (uintptr_t)image + IMAGE_BYTES);
}

static void entries_that_come_first_are_clean_too(void **state)
{
	struct object_span span;

	(void)state;
	make_object();
	((int32_t *)(image + HDR_AT))[1] = -(int32_t)PAGE_BYTES - 4 - 16;
	assert_true(has_clean_span(&span));
	assert_int_equal(span.start, (uintptr_t)image + 2 * PAGE_BYTES);
}

static void what_may_be_written_is_not_clean(void **state)
{
	struct object_span span;
	struct made *made = make_object();

	(void)state;
	made->data.p_flags |= PF_W;
	assert_false(has_clean_span(&span));
	made = make_object();
	made->data.p_filesz -= 8;
	assert_false(has_clean_span(&span));
	made = make_object();
	made->dynamic[0].d_tag = DT_TEXTREL;
	assert_false(has_clean_span(&span));
	made = make_object();
	made->dynamic[0].d_tag = DT_FLAGS;
	made->dynamic[0].d_un.d_val = DF_TEXTREL;
	assert_false(has_clean_span(&span));
}

/* Debuggers write into code. */
static void code_is_not_clean(void **state)
{
	struct object_span span;
	struct made *made = make_object();

	(void)state;
	made->code.p_type = PT_NULL;
	made->data.p_flags |= PF_X;
	made->data.p_vaddr = 0;
	made->data.p_memsz = made->data.p_filesz = IMAGE_BYTES;
	assert_true(has_clean_span(&span));
	((int32_t *)(image + HDR_AT))[3] = 2 * (int32_t)PAGE_BYTES;
	assert_false(has_clean_span(&span));
}

static void damaged_headers_have_nothing_clean(void **state)
{
	struct object_span span;
	struct made *made = make_object();

	(void)state;
	((int32_t *)(image + HDR_AT))[2] = INT32_MAX;
	assert_false(has_clean_span(&span));
	made = make_object();
	made->data.p_memsz = made->data.p_filesz = (uint64_t)1 << 40;
	assert_false(has_clean_span(&span));
	made = make_object();
	made->dynamic_header.p_vaddr = IMAGE_BYTES - 16;
	image[IMAGE_BYTES - 16] = DT_NEEDED;
	assert_false(has_clean_span(&span));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_of_the_file_are_unmapped_and_come_back),
		cmocka_unit_test(whole_pages_from_the_header_on_are_clean),
		cmocka_unit_test(entries_that_come_first_are_clean_too),
		cmocka_unit_test(what_may_be_written_is_not_clean),
		cmocka_unit_test(code_is_not_clean),
		cmocka_unit_test(damaged_headers_have_nothing_clean),
		/* Last: the C library's unwind information is a copy afterwards. */
		cmocka_unit_test(pages_of_the_process_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
