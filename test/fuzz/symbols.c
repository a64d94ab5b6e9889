/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A module's file, whoever made it, as reports read it: its symbols, and lines and inlined
 * functions at addresses of them and of its compilation units, and at some others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/symbols/lines.h"

#define FRAMES_MAX 8
#define N_EACH 16 /* symbols and units with addresses that are looked up */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/* A name that can be read to its end. */
static void read_text(const char *text)
{
	if (text && strlen(text) == SIZE_MAX)
		abort();
}

static void look_up(struct object *object, uint64_t address)
{
	const struct elf_symbol *symbol = torsh_object_symbol(object, address);
	struct line_frame frames[FRAMES_MAX];
	size_t n = torsh_lines_find(object, address, frames, FRAMES_MAX);

	if (symbol && address - symbol->start >= symbol->n_bytes)
		abort();
	read_text(symbol ? symbol->name : NULL);
	if (n > FRAMES_MAX)
		abort();
	for (size_t i = 0; i < n; i++) {
		read_text(frames[i].name);
		read_text(frames[i].file);
	}
}

static void look_up_all(struct object *object)
{
	static const uint64_t others[] = {0, 0x205, 0x1005, UINT64_MAX};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		look_up(object, others[i]);
	for (size_t i = 0; i < object->symbols.n && i < N_EACH; i++)
		look_up(object, object->symbols.items[i].start + 1);
	for (size_t i = 0; i < object->units.n && i < N_EACH; i++) {
		look_up(object, object->units.items[i].start - object->bias);
		look_up(object, object->units.items[i].end - object->bias - 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	static const uint8_t build_id[20] = {0x11, 0x22, 0x33};
	int fd = memfd_create("fuzzed-module", MFD_CLOEXEC);
	struct object object;
	char path[32];

	if (fd < 0 || write(fd, bytes, n_bytes) != (ssize_t)n_bytes)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	torsh_object_open(&object, path, build_id, n_bytes & 1 ? sizeof(build_id) : 0);
	look_up_all(&object);
	torsh_object_close(&object);
	close(fd);
	return 0;
}
