/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The tables by which an object that is loaded exports its names, as anybody may have made them.
 * The input is the file, mapped at one piece; its segments end where it does, as the kernel has
 * seen to, and nothing can be read behind it.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/loader/elf_symbol.h"

#define PAGE_BYTES 4096u
#define LONGEST 16384u
#define N_SEGMENTS 16u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/* The last bytes before a page that nobody can read. */
static uint8_t *make_room(void)
{
	static uint8_t *room;

	if (room)
		return room;
	room = mmap(NULL, LONGEST + PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (room == MAP_FAILED || mprotect(room + LONGEST, PAGE_BYTES, PROT_NONE))
		abort();
	return room;
}

static void bound(ElfW(Phdr) * segment, size_t n_bytes)
{
	if (segment->p_vaddr > n_bytes)
		segment->p_vaddr = n_bytes;
	if (segment->p_memsz > n_bytes - segment->p_vaddr)
		segment->p_memsz = n_bytes - segment->p_vaddr;
}

static void look_up(const struct torsh_elf_image *image, uintptr_t dynamic, size_t n_bytes)
{
	static const char *const names[] = {"", "first", "second", "absent", "Py_Version"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *found = torsh_elf_symbol_in(image, (const void *)dynamic, names[i], NULL);

		if (found && (uintptr_t)found - image->bias >= n_bytes)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	ElfW(Phdr) segments[N_SEGMENTS];
	size_t n_used = (n_bytes + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
	uint8_t *object = make_room() + LONGEST - n_used;
	const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)object;
	struct torsh_elf_image image = {.bias = (uintptr_t)object, .segments = segments};
	uintptr_t dynamic = 0;

	if (n_bytes < sizeof(*elf) || n_bytes > LONGEST)
		return 0;
	memcpy(object, bytes, n_bytes);
	image.n = elf->e_phnum < N_SEGMENTS ? elf->e_phnum : N_SEGMENTS;
	if (elf->e_phoff > n_bytes || image.n * sizeof(*segments) > n_bytes - elf->e_phoff)
		return 0;
	memcpy(segments, object + elf->e_phoff, image.n * sizeof(*segments));
	for (size_t i = 0; i < image.n; i++) {
		bound(&segments[i], n_bytes);
		if (segments[i].p_type == PT_DYNAMIC)
			dynamic = image.bias + (segments[i].p_vaddr & ~(uintptr_t)7);
	}
	if (dynamic)
		look_up(&image, dynamic, n_bytes);
	return 0;
}
