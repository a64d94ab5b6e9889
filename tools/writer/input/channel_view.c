/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/channel_view.h"

#include <stdbool.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/base/utf8.h"

#define PAGE 4096u
#define HEAP_RATE_MAX (UINT64_C(1) << 40)
#define TEXT_MAX (64u << 10)

/* Returns true if these are whole pages within the file, after the header. */
static bool is_area(uint64_t offset, uint64_t n_bytes, uint64_t end)
{
	return offset >= CHANNEL_HEADER_BYTES && offset % PAGE == 0 && offset <= end &&
	       n_bytes <= end - offset;
}

/* Returns the size of n entries: whole pieces except for the last one. */
static uint64_t table_bytes(uint32_t n, size_t entry_bytes)
{
	uint32_t per_piece = CHANNEL_PER_PIECE(entry_bytes);

	return (uint64_t)(n / per_piece) * CHANNEL_PIECE_BYTES + n % per_piece * entry_bytes;
}

static bool is_layout(const struct channel_view *view, const struct channel_header *header,
		      uint64_t n_bytes)
{
	uint64_t tables_end = header->rings_offset;

	if (header->magic != CHANNEL_MAGIC || header->version != CHANNEL_VERSION ||
	    header->header_bytes < sizeof(*header) || header->header_bytes > CHANNEL_HEADER_BYTES)
		return false;
	if (header->stamp_shift != CHANNEL_STAMP_SHIFT ||
	    (header->clock != CHANNEL_CLOCK_TSC && header->clock != CHANNEL_CLOCK_MONOTONIC))
		return false;
	if (header->total_bytes != n_bytes || tables_end > n_bytes || tables_end % PAGE)
		return false;
	if (!view->n_slots || view->n_slots > CHANNEL_THREADS ||
	    view->n_large_rings > view->n_slots || view->n_modules > CHANNEL_MODULES ||
	    view->n_codes > CHANNEL_CODES || view->n_addresses > CHANNEL_ADDRESSES ||
	    view->n_text_bytes > CHANNEL_TEXT_BYTES)
		return false;
	if (view->ring_bytes < CHANNEL_RING_MIN_BYTES ||
	    view->ring_bytes > CHANNEL_RING_MAX_BYTES ||
	    (view->ring_bytes & (view->ring_bytes - 1)) || view->heap_rate > HEAP_RATE_MAX)
		return false;
	return is_area(view->slots.offset, view->slots.n_bytes, tables_end) &&
	       is_area(view->modules.offset, view->modules.n_bytes, tables_end) &&
	       is_area(view->codes.offset, view->codes.n_bytes, tables_end) &&
	       is_area(view->addresses.offset, view->addresses.n_bytes, tables_end) &&
	       is_area(view->text.offset, view->text.n_bytes, tables_end) &&
	       (!view->heap_rate ||
		is_area(view->heap_counts.offset, view->heap_counts.n_bytes, tables_end)) &&
	       is_area(view->rings_offset, (uint64_t)view->n_slots * CHANNEL_RING_SMALL_BYTES,
		       n_bytes) &&
	       is_area(view->large_rings_offset, (uint64_t)view->n_large_rings * view->ring_bytes,
		       n_bytes);
}

/* hdr is a copy of the header that no longer changes. */
static int take_layout(struct channel_view *view, const struct channel_header *header,
		       uint64_t n_bytes)
{
	view->n_slots = header->n_thread_slots;
	view->n_modules = header->n_module_slots;
	view->n_codes = header->n_code_slots;
	view->n_addresses = header->n_address_slots;
	view->n_text_bytes = header->n_text_bytes;
	view->ring_bytes = header->ring_bytes;
	view->n_large_rings = header->n_large_rings;
	view->rings_offset = header->rings_offset;
	view->large_rings_offset = header->large_rings_offset;
	view->slots.offset = header->threads_offset;
	view->slots.n_bytes = table_bytes(view->n_slots, sizeof(struct thread_slot));
	view->modules.offset = header->modules_offset;
	view->modules.n_bytes = table_bytes(view->n_modules, sizeof(struct channel_module));
	view->codes.offset = header->codes_offset;
	view->codes.n_bytes = table_bytes(view->n_codes, sizeof(struct channel_code));
	view->addresses.offset = header->addresses_offset;
	view->addresses.n_bytes = table_bytes(view->n_addresses, sizeof(struct channel_address));
	view->text.offset = header->text_offset;
	view->text.n_bytes = view->n_text_bytes;
	view->heap_rate = header->heap_rate;
	view->heap_counts.offset = header->heap_counts_offset;
	view->heap_counts.n_bytes =
		view->heap_rate ? table_bytes(view->n_slots, sizeof(struct heap_counts)) : 0;
	return is_layout(view, header, n_bytes) ? 0 : -EPROTO;
}

static uint32_t count_pieces(const struct view_table *table)
{
	return (uint32_t)((table->n_bytes + CHANNEL_PIECE_BYTES - 1) / CHANNEL_PIECE_BYTES);
}

static size_t piece_bytes(const struct view_table *table, uint32_t piece)
{
	uint64_t n_behind = table->n_bytes - (uint64_t)piece * CHANNEL_PIECE_BYTES;

	return n_behind < CHANNEL_PIECE_BYTES ? (size_t)n_behind : CHANNEL_PIECE_BYTES;
}

/* Entry i of the table, or NULL. */
static void *find_entry(const struct channel_view *view, const struct view_table *table, uint32_t i,
			size_t entry_bytes)
{
	uint32_t per_piece = CHANNEL_PER_PIECE(entry_bytes), piece = i / per_piece;
	void *at = table->pieces[piece];

	if (!at) {
		at = mmap(NULL, piece_bytes(table, piece), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_NORESERVE, view->fd,
			  (off_t)(table->offset + (uint64_t)piece * CHANNEL_PIECE_BYTES));
		if (at == MAP_FAILED)
			return NULL;
		table->pieces[piece] = at;
	}
	return (uint8_t *)at + i % per_piece * entry_bytes;
}

static void start_table(struct view_table *table)
{
	table->pieces = torsh_memory_new(count_pieces(table) + 1, sizeof(*table->pieces));
}

static void end_table(struct view_table *table)
{
	for (uint32_t i = 0; i < count_pieces(table); i++) {
		if (table->pieces[i])
			munmap(table->pieces[i], piece_bytes(table, i));
	}
	free(table->pieces);
}

/*
 * A file that cannot be sealed against shrinking is accepted too: its owner harms only the
 * recording.
 */
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

static int open_header(struct channel_view *view, uint64_t n_bytes)
{
	struct channel_header copy, *header;
	int result;

	header = mmap(NULL, CHANNEL_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, view->fd, 0);
	if (header == MAP_FAILED)
		return -errno;
	memcpy(&copy, (const void *)header, sizeof(copy));
	result = take_layout(view, &copy, n_bytes);
	if (!result) {
		view->header = header;
		return 0;
	}
	atomic_store_explicit(&header->writer_state, CHANNEL_WRITER_REFUSED, memory_order_release);
	munmap(header, CHANNEL_HEADER_BYTES);
	return result;
}

int torsh_view_open(struct channel_view *view, int fd)
{
	uint64_t n_bytes = 0;
	int result = check_file(fd, &n_bytes);

	*view = (struct channel_view){.fd = fd};
	if (!result)
		result = open_header(view, n_bytes);
	if (result) {
		close(fd);
		view->fd = -1;
		return result;
	}
	start_table(&view->slots);
	start_table(&view->modules);
	start_table(&view->codes);
	start_table(&view->addresses);
	start_table(&view->text);
	start_table(&view->heap_counts);
	return 0;
}

void torsh_view_close(struct channel_view *view)
{
	end_table(&view->slots);
	end_table(&view->modules);
	end_table(&view->codes);
	end_table(&view->addresses);
	end_table(&view->text);
	end_table(&view->heap_counts);
	munmap(view->header, CHANNEL_HEADER_BYTES);
	close(view->fd);
	*view = (struct channel_view){.fd = -1};
}

struct thread_slot *torsh_view_slot(const struct channel_view *view, uint32_t slot)
{
	return slot < view->n_slots
		       ? find_entry(view, &view->slots, slot, sizeof(struct thread_slot))
		       : NULL;
}

const struct heap_counts *torsh_view_heap_counts(const struct channel_view *view, uint32_t slot)
{
	return view->heap_rate && slot < view->n_slots
		       ? find_entry(view, &view->heap_counts, slot, sizeof(struct heap_counts))
		       : NULL;
}

static off_t ring_offset(const struct channel_view *view, uint32_t slot, bool is_large)
{
	return (off_t)((is_large ? view->large_rings_offset : view->rings_offset) +
		       (uint64_t)slot * torsh_view_ring_bytes(view, is_large));
}

const uint8_t *torsh_view_map_ring(const struct channel_view *view, uint32_t slot, bool is_large)
{
	void *ring;

	if (slot >= (is_large ? view->n_large_rings : view->n_slots))
		return NULL;
	ring = mmap(NULL, torsh_view_ring_bytes(view, is_large), PROT_READ,
		    MAP_SHARED | MAP_NORESERVE, view->fd, ring_offset(view, slot, is_large));
	return ring == MAP_FAILED ? NULL : ring;
}

void torsh_view_unmap_ring(const struct channel_view *view, const uint8_t *ring, bool is_large)
{
	munmap((void *)(uintptr_t)ring, torsh_view_ring_bytes(view, is_large));
}

void torsh_view_clear_ring(const struct channel_view *view, uint32_t slot, bool is_large,
			   uint32_t n_kept)
{
	/* If the kernel refuses, the memory stays allocated until the target ends. */
	fallocate(view->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  ring_offset(view, slot, is_large) + n_kept,
		  (off_t)(torsh_view_ring_bytes(view, is_large) - n_kept));
}

void torsh_view_let_rest(const struct channel_view *view)
{
	atomic_store_explicit(&view->header->is_paused, CHANNEL_ENDED, memory_order_relaxed);
	atomic_store_explicit(&view->header->heap_is_off, CHANNEL_ENDED, memory_order_relaxed);
}

bool torsh_view_rests(const struct channel_view *view)
{
	return atomic_load_explicit(&view->header->is_paused, memory_order_relaxed) ==
	       CHANNEL_ENDED;
}

void torsh_view_leave(const struct channel_view *view)
{
	if (torsh_view_rests(view)) {
		off_t from = (off_t)view->rings_offset;
		struct stat status;

		if (!fstat(view->fd, &status))
			fallocate(view->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from,
				  status.st_size - from);
	}
	/* Pairs with the acquire in is_writer_there of the agent. */
	atomic_store_explicit(&view->header->writer_state, CHANNEL_WRITER_CLOSED,
			      memory_order_release);
}

void torsh_view_attach(const struct channel_view *view)
{
	struct channel_header *header = view->header;

	/* Pairs with the acquire in torsh_start_wait of the agent. */
	atomic_store_explicit(&header->writer_state, CHANNEL_WRITER_ATTACHED, memory_order_release);
	syscall(SYS_futex, &header->writer_state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void torsh_view_free_slot(const struct channel_view *view, uint32_t number)
{
	struct channel_header *header = view->header;
	struct thread_slot *slot = torsh_view_slot(view, number);

	atomic_store_explicit(&slot->state, THREAD_SLOT_FREE, memory_order_relaxed);
	/* If it cannot be returned it stays unused. */
	torsh_channel_push_free(header, slot, number);
	atomic_fetch_add_explicit(&header->n_freed, 1, memory_order_release);
	/*
	 * A waiter sets the word, then looks for free slots; the writer does it in the opposite
	 * order: at least one of them sees the other.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_exchange_explicit(&header->freed_awaited, 0, memory_order_relaxed))
		syscall(SYS_futex, &header->n_freed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool is_control(char c)
{
	return ((uint8_t)c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
}

char *torsh_view_text(const struct channel_view *view, struct channel_text text, int separator,
		      size_t *n)
{
	uint32_t n_bytes = text.length < TEXT_MAX ? text.length : TEXT_MAX;
	const char *there;
	char *copy, *end;
	size_t length;

	if (text.offset >= view->n_text_bytes || n_bytes > view->n_text_bytes - text.offset ||
	    n_bytes > CHANNEL_PIECE_BYTES - text.offset % CHANNEL_PIECE_BYTES)
		n_bytes = 0;
	there = n_bytes ? find_entry(view, &view->text, text.offset, 1) : NULL;
	if (!there)
		n_bytes = 0;
	copy = torsh_memory_new(n_bytes + 1, 1);
	end = copy + n_bytes;
	if (n_bytes)
		memcpy(copy, there, n_bytes);
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
	const struct channel_address *there;
	uint64_t entry;

	if (!id) {
		*address = (struct view_address){.flags = ADDRESS_CUT_TABLE_FULL,
						 .module = CHANNEL_NO_MODULE};
		return 0;
	}
	there = id < view->n_addresses ? find_entry(view, &view->addresses, id, sizeof(*there))
				       : NULL;
	if (!there)
		return -ENOENT;
	entry = atomic_load_explicit(&there->ip_and_flags, memory_order_acquire);
	if (!(entry & CHANNEL_ADDRESS_THERE))
		return -ENOENT;
	address->ip = entry >> 8;
	address->flags = (uint32_t)entry & 0x7f;
	address->module = there->module;
	return 0;
}

int torsh_view_code(const struct channel_view *view, uint32_t index, struct channel_code *code)
{
	const void *there =
		index < view->n_codes ? find_entry(view, &view->codes, index, sizeof(*code)) : NULL;

	if (!there)
		return -ENOENT;
	memcpy(code, there, sizeof(*code));
	return 0;
}

int torsh_view_module(const struct channel_view *view, uint32_t index,
		      struct channel_module *module)
{
	const void *there = index < view->n_modules
				    ? find_entry(view, &view->modules, index, sizeof(*module))
				    : NULL;

	if (!there)
		return -ENOENT;
	memcpy(module, there, sizeof(*module));
	if (module->n_build_id > CHANNEL_BUILD_ID_MAX)
		module->n_build_id = 0;
	return 0;
}
