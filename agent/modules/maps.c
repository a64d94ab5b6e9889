/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The kernel's list of mappings, read line by line. */
#include "agent/modules/maps.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

#include "agent/modules/memory_probe.h"
#include "agent/process/text_buffer.h"
#include "shim/loader/objects.h"
#include "shim/sys.h"

/* One line of maps. Objects are distinguished by their inodes. */
struct mapping {
	uintptr_t start, end, offset, device_major, device_minor, inode;
	char permissions[4];
};

/* In pages of its own: the calling hook may run on a signal handler's small stack. */
struct reader {
	int fd;
	uint32_t at, n;
	struct mapping now, first; /* the line read last, and the first one of its file */
	char bytes[3840];
};

static int next_byte(struct reader *r)
{
	if (r->at == r->n) {
		long n = TORSH_SYS(SYS_read, r->fd, r->bytes, sizeof(r->bytes), 0, 0, 0);

		if (n <= 0)
			return -1;
		r->at = 0;
		r->n = (uint32_t)n;
	}
	return (unsigned char)r->bytes[r->at++];
}

/* A number; consumes the byte after it. */
static uintptr_t next_number(struct reader *r, uintptr_t base)
{
	uintptr_t value = 0;

	for (;;) {
		int c = next_byte(r);
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
						   : -1;

		if (digit < 0)
			return value;
		value = value * base + (uintptr_t)digit;
	}
}

/*
 * Parse "start-end perms offset major:minor inode path"; the path goes to text unless that is NULL.
 */
static bool next_mapping(struct reader *r, struct mapping *m, struct text *text)
{
	int c;

	m->start = next_number(r, 16);
	m->end = next_number(r, 16);
	for (int i = 0; i < 4; i++)
		m->permissions[i] = (char)next_byte(r);
	next_byte(r);
	m->offset = next_number(r, 16);
	m->device_major = next_number(r, 16);
	m->device_minor = next_number(r, 16);
	m->inode = next_number(r, 10);
	do
		c = next_byte(r);
	while (c == ' ');
	for (; c != '\n' && c >= 0; c = next_byte(r)) {
		char byte = (char)c;

		if (text)
			torsh_text_put_bytes(text, &byte, 1);
	}
	return m->end > m->start;
}

static bool is_same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode == b->inode && a->device_major == b->device_major &&
	       a->device_minor == b->device_minor;
}

/*
 * The loader's entry of the object with this dynamic section. The list is read without its lock:
 * objects are appended, those on the calling thread's stack stay, and all other entries are probed
 * before they are read.
 */
static const struct link_map *map_of(uintptr_t dynamic)
{
	for (const struct link_map *map = _r_debug.r_map; map; map = torsh_objects_next(map))
		if ((uintptr_t)map->l_ld == dynamic)
			return map;
	return NULL;
}

/* first maps the start of a file: find the unwind information through its program headers. */
static bool read_object(const struct mapping *first, struct module *module)
{
	const Elf64_Ehdr *elf = (const Elf64_Ehdr *)first->start;
	const Elf64_Phdr *phdr;
	uintptr_t bias = 0, eh_frame = 0, dynamic = 0, end = 0;
	bool has_bias = false;

	if (first->permissions[0] != 'r' || !torsh_probe(first->start) ||
	    memcmp(elf->e_ident, ELFMAG, SELFMAG) || elf->e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf->e_phentsize != sizeof(*phdr) || elf->e_phoff > PROBE_PAGE_BYTES ||
	    elf->e_phnum * sizeof(*phdr) > PROBE_PAGE_BYTES - elf->e_phoff)
		return false;
	phdr = (const Elf64_Phdr *)(first->start + elf->e_phoff);
	for (int i = 0; i < elf->e_phnum; i++) {
		if (phdr[i].p_type == PT_LOAD && !has_bias) {
			bias = first->start - (phdr[i].p_vaddr - phdr[i].p_offset);
			has_bias = true;
		}
		if (phdr[i].p_type == PT_LOAD)
			end = bias + phdr[i].p_vaddr + phdr[i].p_memsz;
		if (phdr[i].p_type == PT_GNU_EH_FRAME)
			eh_frame = bias + phdr[i].p_vaddr;
		if (phdr[i].p_type == PT_DYNAMIC)
			dynamic = bias + phdr[i].p_vaddr;
	}
	if (!has_bias || !eh_frame || !torsh_probe(eh_frame & ~(uintptr_t)7))
		return false;
	*module = (struct module){
		.start = first->start,
		.end = end,
		.link_map = dynamic ? map_of(dynamic) : NULL,
		.eh_frame_hdr = (const uint8_t *)eh_frame,
	};
	return true;
}

bool torsh_maps_find_in(int fd, uintptr_t pc, struct module *module)
{
	struct reader *reader = torsh_sys_pages(sizeof(*reader));
	struct mapping *now, *first;
	bool is_found = false;

	if (!reader)
		return false;
	reader->fd = fd;
	now = &reader->now;
	first = &reader->first;
	while (next_mapping(reader, now, NULL) && now->start <= pc) {
		if (now->offset == 0 && (!is_same_file(now, first) || now->inode == 0))
			*first = *now;
		if (pc < now->end) {
			is_found = is_same_file(now, first) && read_object(first, module) &&
				   pc < module->end;
			break;
		}
	}
	torsh_sys_munmap(reader, sizeof(*reader));
	return is_found;
}

static _Atomic bool may_not_open;

void torsh_maps_forbid(void)
{
	atomic_store_explicit(&may_not_open, true, memory_order_relaxed);
}

static int open_maps(void)
{
	return (int)TORSH_SYS(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0,
			      0);
}

/*
 * The object in the loader's list with the highest start below pc, if it contains pc. No other
 * object is read: another thread may be unloading it.
 */
static bool find_in_list(uintptr_t pc, struct module *module)
{
	uintptr_t program = torsh_probe_page(getauxval(AT_PHDR));
	struct mapping first = {.permissions = {'r'}};

	for (const struct link_map *map = _r_debug.r_map; map; map = torsh_objects_next(map)) {
		uintptr_t start = map->l_addr ? map->l_addr : program;

		if (start <= pc && start > first.start)
			first.start = start;
	}
	return first.start && read_object(&first, module) && pc < module->end;
}

bool torsh_maps_find(uintptr_t pc, struct module *module)
{
	int fd = atomic_load_explicit(&may_not_open, memory_order_relaxed) ? -1 : open_maps();
	bool is_found;

	if (fd < 0)
		return find_in_list(pc, module);
	is_found = torsh_maps_find_in(fd, pc, module);
	TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
	return is_found;
}

static void read_path(struct reader *reader, uintptr_t address, struct text *path)
{
	const struct text empty = *path;
	const struct mapping *now = &reader->now;

	do
		*path = empty;
	while (next_mapping(reader, &reader->now, path) && now->end <= address);
	if (address - now->start >= now->end - now->start || path->is_cut)
		*path = empty;
	path->bytes[path->length] = '\0';
}

void torsh_maps_put_path(uintptr_t address, struct text *path)
{
	struct reader *reader = torsh_sys_pages(sizeof(*reader));

	if (!reader)
		return;
	reader->fd = open_maps();
	if (reader->fd >= 0) {
		read_path(reader, address, path);
		TORSH_SYS(SYS_close, reader->fd, 0, 0, 0, 0, 0);
	}
	torsh_sys_munmap(reader, sizeof(*reader));
}
