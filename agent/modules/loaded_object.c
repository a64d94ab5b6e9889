/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reads program headers in memory. */
#include "agent/modules/loaded_object.h"

#include <link.h>
#include <string.h>

#include "agent/modules/memory_probe.h"

struct headers {
	const ElfW(Phdr) * segments;
	int n;
	uintptr_t bias;
};

static uintptr_t page_of(uintptr_t address)
{
	return torsh_probe_page(address);
}

/* False: there is no ELF header, or its program headers don't lie in the same page. */
static bool find_headers(uintptr_t start, struct headers *headers)
{
	const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)start;

	if (memcmp(elf->e_ident, ELFMAG, SELFMAG) || elf->e_phentsize != sizeof(ElfW(Phdr)) ||
	    elf->e_phoff > PROBE_PAGE_BYTES || elf->e_phoff % sizeof(uintptr_t) ||
	    elf->e_phoff + elf->e_phnum * sizeof(ElfW(Phdr)) > PROBE_PAGE_BYTES)
		return false;
	headers->segments = (const ElfW(Phdr) *)(start + elf->e_phoff);
	headers->n = elf->e_phnum;
	for (int i = 0; i < headers->n; i++) {
		if (headers->segments[i].p_type == PT_LOAD) {
			headers->bias = start - page_of(headers->segments[i].p_vaddr);
			return true;
		}
	}
	return false;
}

/* Segments are in ascending order. */
static void add_span(struct object_memory *memory, uintptr_t start, uintptr_t end)
{
	if (memory->n && memory->spans[memory->n - 1].end == start) {
		memory->spans[memory->n - 1].end = end;
	} else if (memory->n < OBJECT_SPANS) {
		memory->spans[memory->n].start = start;
		memory->spans[memory->n++].end = end;
	}
}

void torsh_object_describe(uintptr_t start, uintptr_t end, bool has_headers,
			   struct object_memory *memory)
{
	struct headers headers;

	memory->n = 0;
	if (!has_headers || !find_headers(start, &headers)) {
		add_span(memory, start, end);
		return;
	}
	for (int i = 0; i < headers.n; i++) {
		const ElfW(Phdr) *segment = &headers.segments[i];
		uintptr_t first = headers.bias + page_of(segment->p_vaddr);
		uintptr_t last = page_of(headers.bias + segment->p_vaddr + segment->p_memsz +
					 PROBE_PAGE_BYTES - 1);

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_R && first >= start &&
		    first < last)
			add_span(memory, first, last);
	}
}

/*
 * Whether there are relocations of read-only memory. A damaged list, which has no end, counts as
 * such.
 */
static bool has_text_relocations(const struct headers *headers, const struct object_memory *memory)
{
	for (int i = 0; i < headers->n; i++) {
		uintptr_t at = headers->bias + headers->segments[i].p_vaddr;

		if (headers->segments[i].p_type != PT_DYNAMIC)
			continue;
		for (; torsh_object_readable(memory, at) >= sizeof(ElfW(Dyn));
		     at += sizeof(ElfW(Dyn))) {
			const ElfW(Dyn) *entry = (const ElfW(Dyn) *)at;

			if (entry->d_tag == DT_TEXTREL ||
			    (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_TEXTREL))
				return true;
			if (entry->d_tag == DT_NULL)
				return false;
		}
		return true;
	}
	return false;
}

/*
 * .eh_frame_hdr in the form that linkers write: 32-bit offsets; that of .eh_frame is relative to
 * its own place, the others to the header.
 */
struct eh_frame_header {
	uint8_t version, eh_frame_form, count_form, table_form;
	int32_t eh_frame;
	uint32_t n_functions;
	struct {
		int32_t start, description;
	} functions[];
};

static const struct eh_frame_header *header_at(uintptr_t at, const struct object_memory *memory)
{
	static const uint8_t form[] = {1, 0x1b, 0x03, 0x3b};
	const struct eh_frame_header *header = (const struct eh_frame_header *)at;
	size_t room = torsh_object_readable(memory, at);

	if (room < sizeof(*header) || at % sizeof(int32_t) || memcmp(header, form, sizeof(form)) ||
	    header->n_functions == 0 ||
	    header->n_functions > (room - sizeof(*header)) / sizeof(*header->functions))
		return NULL;
	return header;
}

/*
 * From the unwind information to the end of its segment. An executable segment qualifies only if
 * its code precedes the unwind information.
 */
static bool find_clean_span(const struct eh_frame_header *header, uintptr_t from,
			    const ElfW(Phdr) * segment, struct object_span *span)
{
	uintptr_t at = (uintptr_t)header,
		  eh_frame = (uintptr_t)&header->eh_frame + (uintptr_t)(intptr_t)header->eh_frame;
	uintptr_t code = at + (uintptr_t)(intptr_t)header->functions[header->n_functions - 1].start;

	if (segment->p_flags & PF_W || segment->p_filesz != segment->p_memsz)
		return false;
	span->start =
		page_of((eh_frame >= from && eh_frame < at ? eh_frame : at) + PROBE_PAGE_BYTES - 1);
	span->end = page_of(from + segment->p_memsz);
	return span->start < span->end && (!(segment->p_flags & PF_X) || code < span->start);
}

bool torsh_object_clean_span(uintptr_t start, const struct object_memory *memory,
			     uintptr_t eh_frame_hdr, struct object_span *span)
{
	const struct eh_frame_header *header = header_at(eh_frame_hdr, memory);
	struct headers headers;

	if (!header || !find_headers(start, &headers) || has_text_relocations(&headers, memory))
		return false;
	for (int i = 0; i < headers.n; i++) {
		const ElfW(Phdr) *segment = &headers.segments[i];
		uintptr_t from = headers.bias + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && eh_frame_hdr - from < segment->p_memsz)
			return find_clean_span(header, from, segment, span) &&
			       torsh_object_readable(memory, span->start) >=
				       span->end - span->start;
	}
	return false;
}

/* The build-id in a note segment. */
static const uint8_t *find_build_id(const uint8_t *at, size_t n_bytes, uint32_t *n)
{
	while (n_bytes >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
		const char *name = (const char *)(note + 1);
		uint64_t name_bytes = ((uint64_t)note->n_namesz + 3) & ~UINT64_C(3);
		uint64_t size_bytes = sizeof(*note) + name_bytes +
				      (((uint64_t)note->n_descsz + 3) & ~UINT64_C(3));

		if (size_bytes > n_bytes)
			return NULL;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(name, "GNU", 4)) {
			*n = note->n_descsz;
			return (const uint8_t *)name + name_bytes;
		}
		at += size_bytes;
		n_bytes -= size_bytes;
	}
	return NULL;
}

const uint8_t *torsh_object_build_id(uintptr_t start, const struct object_memory *memory,
				     uint32_t *n)
{
	const uint8_t *found = NULL;
	struct headers headers;

	if (!find_headers(start, &headers))
		return NULL;
	for (int i = 0; i < headers.n && !found; i++) {
		const ElfW(Phdr) *segment = &headers.segments[i];
		uintptr_t at = headers.bias + segment->p_vaddr;
		size_t room = torsh_object_readable(memory, at);

		if (segment->p_type == PT_NOTE && at % 4 == 0)
			found = find_build_id((const uint8_t *)at,
					      segment->p_memsz < room ? segment->p_memsz : room, n);
	}
	return found;
}
