/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/channel_view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/utf8.h"
#include "tools/writer/memory.h"

#define PAGE 4096u
#define TEXT_MAX (64u << 10)

/* n items of n_bytes at offset: aligned, within the file, behind the header. */
static int is_table(uint64_t offset, uint64_t n, uint64_t n_bytes, uint64_t end)
{
	return offset >= CHANNEL_HEADER_BYTES && offset % PAGE == 0 && offset <= end && n <= (end - offset) / n_bytes;
}

static int is_layout(const struct channel_view *view, const struct channel_header *header, uint64_t n_bytes)
{
	uint64_t tables_end = header->rings_offset;

	if (header->magic != CHANNEL_MAGIC || header->version != CHANNEL_VERSION ||
	    header->header_bytes < sizeof(*header) || header->header_bytes > CHANNEL_HEADER_BYTES)
		return 0;
	if (header->stamp_shift != CHANNEL_STAMP_SHIFT ||
	    (header->clock != CHANNEL_CLOCK_TSC && header->clock != CHANNEL_CLOCK_MONOTONIC))
		return 0;
	if (header->total_bytes != n_bytes || tables_end > n_bytes || tables_end % PAGE)
		return 0;
	if (!view->n_slots || view->n_slots > CHANNEL_THREADS || view->n_modules > CHANNEL_MODULES ||
	    view->n_codes > CHANNEL_CODES || view->n_addresses > CHANNEL_ADDRESSES ||
	    view->n_text_bytes > CHANNEL_TEXT_BYTES)
		return 0;
	if (view->ring_bytes < CHANNEL_RING_MIN_BYTES || view->ring_bytes > CHANNEL_RING_MAX_BYTES ||
	    (view->ring_bytes & (view->ring_bytes - 1)))
		return 0;
	return is_table(header->threads_offset, view->n_slots, sizeof(struct thread_slot), tables_end) &&
	       is_table(header->modules_offset, view->n_modules, sizeof(struct channel_module), tables_end) &&
	       is_table(header->codes_offset, view->n_codes, sizeof(struct channel_code), tables_end) &&
	       is_table(header->addresses_offset, view->n_addresses, sizeof(struct channel_address), tables_end) &&
	       is_table(header->text_offset, view->n_text_bytes, 1, tables_end) &&
	       is_table(header->rings_offset, view->n_slots, view->ring_bytes, n_bytes);
}

/* From a copy of the header that doesn't change any more. */
static int take_layout(struct channel_view *view, const struct channel_header *header, uint64_t n_bytes)
{
	view->n_slots = header->n_thread_slots;
	view->n_modules = header->n_module_slots;
	view->n_codes = header->n_code_slots;
	view->n_addresses = header->n_address_slots;
	view->n_text_bytes = header->n_text_bytes;
	view->ring_bytes = header->ring_bytes;
	view->rings_offset = header->rings_offset;
	view->n_mapped = header->rings_offset;
	return is_layout(view, header, n_bytes) ? 0 : -EPROTO;
}

static int map_tables(struct channel_view *view, const struct channel_header *header)
{
	uint8_t *base = mmap(NULL, view->n_mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, view->fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	view->header = (struct channel_header *)base;
	view->slots = (struct thread_slot *)(base + header->threads_offset);
	view->modules = (const struct channel_module *)(base + header->modules_offset);
	view->codes = (const struct channel_code *)(base + header->codes_offset);
	view->addresses = (const struct channel_address *)(base + header->addresses_offset);
	view->text = (const char *)(base + header->text_offset);
	return 0;
}

/* A file that can't be sealed against shrinking is taken all the same: its owner harms only the recording. */
static int check_file(int fd, uint64_t *n_bytes)
{
	struct stat status;

	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size < (off_t)CHANNEL_HEADER_BYTES)
		return -EPROTO;
	*n_bytes = (uint64_t)status.st_size;
	return 0;
}

int torsh_view_open(struct channel_view *view, int fd)
{
	struct channel_header copy, *header = MAP_FAILED;
	uint64_t n_bytes = 0;
	int result = check_file(fd, &n_bytes);

	*view = (struct channel_view){.fd = fd};
	if (result)
		goto close;
	header = mmap(NULL, CHANNEL_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED) {
		result = -errno;
		goto close;
	}
	memcpy(&copy, (const void *)header, sizeof(copy));
	result = take_layout(view, &copy, n_bytes);
	if (!result)
		result = map_tables(view, &copy);
	if (result)
		atomic_store_explicit(&header->writer_state, CHANNEL_WRITER_REFUSED, memory_order_release);
	munmap(header, CHANNEL_HEADER_BYTES);
	if (!result)
		return 0;
close:
	close(fd);
	view->fd = -1;
	return result;
}

void torsh_view_close(struct channel_view *view)
{
	munmap(view->header, view->n_mapped);
	close(view->fd);
	*view = (struct channel_view){.fd = -1};
}

const uint8_t *torsh_view_map_ring(const struct channel_view *view, uint32_t slot)
{
	void *ring = mmap(NULL, view->ring_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, view->fd,
			  (off_t)(view->rings_offset + (uint64_t)slot * view->ring_bytes));

	return ring == MAP_FAILED ? NULL : ring;
}

void torsh_view_unmap_ring(const struct channel_view *view, const uint8_t *ring)
{
	munmap((void *)(uintptr_t)ring, view->ring_bytes);
}

static int is_control(char c)
{
	return ((uint8_t)c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
}

char *torsh_view_text(const struct channel_view *view, struct channel_text text, int separator, size_t *n)
{
	uint32_t n_bytes = text.length < TEXT_MAX ? text.length : TEXT_MAX;
	char *copy, *end;
	size_t length;

	if (text.offset > view->n_text_bytes || n_bytes > view->n_text_bytes - text.offset)
		n_bytes = 0;
	copy = torsh_memory_new(n_bytes + 1, 1);
	end = copy + n_bytes;
	if (n_bytes)
		memcpy(copy, view->text + text.offset, n_bytes);
	for (char *at = copy; at < end; at += length ? length : 1) {
		length = torsh_utf8_bytes(at, (size_t)(end - at));
		if (separator >= 0 && *at == (char)separator)
			*at = '\0';
		else if (!length || is_control(*at))
			*at = '?';
	}
	*n = n_bytes;
	return copy;
}

int torsh_view_address(const struct channel_view *view, uint32_t id, struct view_address *address)
{
	uint64_t entry;

	if (!id) {
		*address = (struct view_address){.flags = ADDRESS_CUT_TABLE_FULL, .module = CHANNEL_NO_MODULE};
		return 0;
	}
	if (id >= view->n_addresses)
		return -ENOENT;
	entry = atomic_load_explicit(&view->addresses[id].ip_and_flags, memory_order_acquire);
	if (!(entry & CHANNEL_ADDRESS_THERE))
		return -ENOENT;
	address->ip = entry >> 8;
	address->flags = (uint32_t)entry & 0x7f;
	address->module = view->addresses[id].module;
	return 0;
}

int torsh_view_code(const struct channel_view *view, uint32_t index, struct channel_code *code)
{
	if (index >= view->n_codes)
		return -ENOENT;
	memcpy(code, &view->codes[index], sizeof(*code));
	return 0;
}

int torsh_view_module(const struct channel_view *view, uint32_t index, struct channel_module *module)
{
	if (index >= view->n_modules)
		return -ENOENT;
	memcpy(module, &view->modules[index], sizeof(*module));
	if (module->n_build_id > CHANNEL_BUILD_ID_MAX)
		module->n_build_id = 0;
	return 0;
}
