/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/producer/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/resource.h>

#include "shim/sys.h"

#define PAGE 4096u
#define N_SLOTS_MIN 16u
#define MAPPINGS_FILE "/proc/sys/vm/max_map_count"
#define MAPPINGS_DEFAULT 65530u
/*
 * A thread of the program takes two for its stack and two for its ring: the agent uses a third of
 * all.
 */
#define MAPPINGS_A_SLOT 6u
/*
 * Small rings and their memory take at most a quarter of a limit on address space, large rings
 * another.
 */
#define SHARE_OF_SPACE 4u
#define SPACE_A_SLOT (256u << 10)

static uint64_t align_page(uint64_t bytes)
{
	return (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

/* Put a table at *at, in whole pieces except the last one. */
static uint64_t lay_table(uint64_t *at, uint32_t n, size_t entry_bytes)
{
	uint32_t per_piece = CHANNEL_PER_PIECE(entry_bytes);
	uint64_t offset = *at;

	*at += (uint64_t)((n + per_piece - 1) / per_piece) * CHANNEL_PIECE_BYTES;
	return offset;
}

/* None if every block is sent. */
static uint32_t count_heap_counts(const struct channel_header *header)
{
	return header->heap_rate ? header->n_thread_slots : 0;
}

/*
 * Lay out the tables, each 2^shift times smaller than its maximum, followed by the rings; returns
 * the total size.
 */
static uint64_t lay_out(struct channel_header *header, uint32_t n_slots, uint32_t ring_bytes,
			uint32_t shift)
{
	uint64_t at = CHANNEL_PIECE_BYTES;

	header->n_thread_slots = n_slots >> shift;
	header->n_module_slots = CHANNEL_MODULES >> shift;
	header->n_code_slots = CHANNEL_CODES >> shift;
	header->n_address_slots = CHANNEL_ADDRESSES >> shift;
	header->n_text_bytes = CHANNEL_TEXT_BYTES >> shift;
	header->ring_bytes = ring_bytes;
	header->threads_offset = lay_table(&at, header->n_thread_slots, sizeof(struct thread_slot));
	header->modules_offset =
		lay_table(&at, header->n_module_slots, sizeof(struct channel_module));
	header->codes_offset = lay_table(&at, header->n_code_slots, sizeof(struct channel_code));
	header->addresses_offset =
		lay_table(&at, header->n_address_slots, sizeof(struct channel_address));
	header->text_offset = lay_table(&at, header->n_text_bytes, 1);
	header->heap_counts_offset =
		lay_table(&at, count_heap_counts(header), sizeof(struct heap_counts));
	header->rings_offset = at;
	at += (uint64_t)header->n_thread_slots * CHANNEL_RING_SMALL_BYTES +
	      CHANNEL_RING_MIRROR_BYTES;
	header->large_rings_offset = at;
	header->total_bytes = at;
	return at;
}

static uint64_t soft_limit(int resource)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return INT64_MAX;
	return limit.rlim_cur;
}

/*
 * Each ring takes two of the process's limited mappings; most of the address space is left to the
 * program.
 */
static uint32_t count_slots(void)
{
	char digits[16] = "";
	long fd = TORSH_SYS(SYS_openat, AT_FDCWD, MAPPINGS_FILE, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	uint64_t n = 0, space;

	if (!torsh_sys_failed(fd)) {
		TORSH_SYS(SYS_read, fd, digits, sizeof(digits) - 1, 0, 0, 0);
		TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
	}
	for (const char *at = digits; *at >= '0' && *at <= '9'; at++)
		n = n * 10 + (uint64_t)(*at - '0');
	n = (n ? n : MAPPINGS_DEFAULT) / MAPPINGS_A_SLOT;
	space = soft_limit(RLIMIT_AS) / SHARE_OF_SPACE / SPACE_A_SLOT;
	n = n < space ? n : space;
	return n < CHANNEL_THREADS ? (uint32_t)n : CHANNEL_THREADS;
}

/*
 * The largest layout that fits the limit on file sizes: a larger one would raise SIGXFSZ in the
 * target. The file takes memory only where it was written to.
 */
static int choose_layout(struct channel_header *header, uint32_t ring_bytes)
{
	uint64_t most = soft_limit(RLIMIT_FSIZE), space = soft_limit(RLIMIT_AS) / SHARE_OF_SPACE,
		 room, n_large;
	uint32_t n_slots = count_slots(), shift = 0;

	while (lay_out(header, n_slots, ring_bytes, shift) > most) {
		if (header->n_thread_slots / 2 < N_SLOTS_MIN)
			return -EFBIG;
		shift++;
	}
	room = most - header->total_bytes;
	room = room > CHANNEL_RING_MIRROR_BYTES ? room - CHANNEL_RING_MIRROR_BYTES : 0;
	n_large = ring_bytes > CHANNEL_RING_SMALL_BYTES ? room / ring_bytes : 0;
	header->n_large_rings =
		n_large < header->n_thread_slots ? (uint32_t)n_large : header->n_thread_slots;
	if (header->n_large_rings > space / ring_bytes)
		header->n_large_rings = (uint32_t)(space / ring_bytes);
	if (header->n_large_rings)
		header->total_bytes +=
			(uint64_t)header->n_large_rings * ring_bytes + CHANNEL_RING_MIRROR_BYTES;
	return 0;
}

static void locate_table(struct channel_table *table, void *_Atomic **directory, uint64_t offset,
			 uint32_t n, size_t entry_bytes)
{
	uint32_t per_piece = CHANNEL_PER_PIECE(entry_bytes);

	*table = (struct channel_table){
		.pieces = *directory,
		.offset = offset,
		.n = n,
		.n_pieces = (n + per_piece - 1) / per_piece,
	};
	*directory += table->n_pieces;
}

/* Find the tables by the layout; returns 0 or -ENOMEM. */
static int locate(struct channel *channel, const struct channel_header *layout)
{
	uint64_t n_pieces = (layout->rings_offset - layout->threads_offset) / CHANNEL_PIECE_BYTES;
	void *_Atomic *directory;

	channel->n_directory_bytes = align_page(n_pieces * sizeof(*directory));
	channel->directory = torsh_sys_pages(channel->n_directory_bytes);
	if (!channel->directory)
		return -ENOMEM;
	directory = channel->directory;
	locate_table(&channel->slots, &directory, layout->threads_offset, layout->n_thread_slots,
		     sizeof(struct thread_slot));
	locate_table(&channel->modules, &directory, layout->modules_offset, layout->n_module_slots,
		     sizeof(struct channel_module));
	locate_table(&channel->codes, &directory, layout->codes_offset, layout->n_code_slots,
		     sizeof(struct channel_code));
	locate_table(&channel->addresses, &directory, layout->addresses_offset,
		     layout->n_address_slots, sizeof(struct channel_address));
	locate_table(&channel->text, &directory, layout->text_offset, layout->n_text_bytes, 1);
	locate_table(&channel->heap_counts, &directory, layout->heap_counts_offset,
		     count_heap_counts(layout), sizeof(struct heap_counts));
	return 0;
}

/* How many entries a parent's table has: its own count, which goes past the end of a full table. */
static uint32_t n_used(const _Atomic uint32_t *mark, uint32_t most)
{
	uint32_t n = atomic_load_explicit(mark, memory_order_relaxed);

	return n < most ? n : most;
}

/* Copy the pieces of the first n entries that the parent wrote. Returns 0 or -ENOMEM. */
static int copy_table(const struct channel *channel, const struct channel_table *to,
		      const struct channel_table *from, uint32_t n, size_t entry_bytes)
{
	uint32_t per_piece = CHANNEL_PER_PIECE(entry_bytes);

	for (uint32_t i = 0; i * (uint64_t)per_piece < n && i < to->n_pieces; i++) {
		const void *piece = atomic_load_explicit(&from->pieces[i], memory_order_acquire);
		uint32_t n_here = n - i * per_piece;
		void *copy;

		if (!piece)
			continue;
		copy = torsh_channel_piece(channel, to, i);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, piece, (n_here < per_piece ? n_here : per_piece) * entry_bytes);
	}
	return 0;
}

/* Entries that another thread of the parent had claimed but not written at the fork stay empty. */
static int copy_tables(struct channel *channel, const struct channel *parent)
{
	struct channel_header *to = channel->header;
	const struct channel_header *from = parent->header;
	uint32_t n_modules = n_used(&from->n_modules, channel->modules.n);
	uint32_t n_codes = n_used(&from->n_codes, channel->codes.n);
	uint32_t n_addresses = n_used(&from->n_addresses, channel->addresses.n);
	uint32_t text_used = n_used(&from->text_used, channel->text.n);

	if (copy_table(channel, &channel->codes, &parent->codes, n_codes,
		       sizeof(struct channel_code)) ||
	    copy_table(channel, &channel->modules, &parent->modules, n_modules,
		       sizeof(struct channel_module)) ||
	    copy_table(channel, &channel->addresses, &parent->addresses, n_addresses,
		       sizeof(struct channel_address)) ||
	    copy_table(channel, &channel->text, &parent->text, text_used, 1))
		return -ENOMEM;
	/* Each process has its own notes. */
	memset(torsh_channel_text(channel, 0), 0, CHANNEL_NOTES_BYTES);
	atomic_store_explicit(&to->n_modules, n_modules, memory_order_relaxed);
	atomic_store_explicit(&to->n_codes, n_codes, memory_order_relaxed);
	atomic_store_explicit(&to->n_addresses, n_addresses, memory_order_relaxed);
	atomic_store_explicit(&to->text_used, text_used, memory_order_relaxed);
	to->program = from->program;
	to->rank = from->rank;
	to->identity = from->identity;
	to->arguments = from->arguments;
	to->allocator = from->allocator;
	to->forked_from = from->pid;
	to->forked_from_ticks = from->start_ticks;
	return 0;
}

/* The layout becomes the file's header, with a key that no other file has at this place. */
static int map_header(struct channel *channel, struct channel_header *layout, int fd)
{
	void *base = torsh_sys_mmap(NULL, CHANNEL_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				    fd, 0);

	if (torsh_sys_failed((long)base))
		return (int)(long)base;
	TORSH_SYS(SYS_madvise, base, CHANNEL_HEADER_BYTES, MADV_DONTDUMP, 0, 0, 0);
	channel->key = ((uint32_t)torsh_cpu_ticks() * UINT32_C(0x9e3779b1) ^
			(uint32_t)torsh_sys_getpid()) |
		       1;
	layout->key = channel->key;
	memcpy(base, layout, sizeof(*layout));
	channel->header = base;
	return 0;
}

static int fill(struct channel *channel, struct channel_header *layout,
		const struct channel *parent, int fd)
{
	int result = map_header(channel, layout, fd);

	if (result)
		return result;
	torsh_channel_keep(channel, fd);
	result = locate(channel, layout);
	/* Map the notes' piece before the first note. */
	if (!result && !torsh_channel_text(channel, 0))
		result = -ENOMEM;
	if (!result && parent)
		result = copy_tables(channel, parent);
	if (result)
		torsh_channel_unmap(channel);
	return result;
}

/* Create the file, with nothing mapped. Returns 0 or -errno; then *fd is closed. */
static int create_file(struct channel_header *layout, int *fd)
{
	int result;

	*fd = (int)TORSH_SYS(SYS_memfd_create, "torsh-channel", MFD_CLOEXEC, 0, 0, 0, 0);
	if (*fd < 0)
		return *fd;
	result = (int)TORSH_SYS(SYS_ftruncate, *fd, layout->total_bytes, 0, 0, 0, 0);
	if (result < 0)
		TORSH_SYS(SYS_close, *fd, 0, 0, 0, 0, 0);
	return result;
}

int torsh_channel_create(struct channel *channel, uint32_t ring_bytes, uint64_t heap_rate,
			 const struct channel *parent, int *fd)
{
	/* Not on the stack, which may be small in a forked child. */
	struct channel_header *layout = torsh_sys_pages(sizeof(*layout));
	int result = -ENOMEM;

	if (layout) {
		layout->heap_rate = heap_rate;
		result = choose_layout(layout, ring_bytes);
	}

	if (!result)
		result = create_file(layout, fd);
	if (result)
		goto free;
	atomic_init(&layout->text_used, CHANNEL_NOTES_BYTES);
	atomic_init(&layout->n_addresses, 1); /* 0 is REGISTRY_FULL */
	*channel = (struct channel){.fd = -1};
	result = fill(channel, layout, parent, *fd);
	if (result)
		TORSH_SYS(SYS_close, *fd, 0, 0, 0, 0, 0);
free:
	if (layout)
		torsh_sys_munmap(layout, sizeof(*layout));
	return result;
}

static void unmap_table(const struct channel_table *table)
{
	for (uint32_t i = 0; i < table->n_pieces; i++) {
		void *piece = atomic_load_explicit(&table->pieces[i], memory_order_relaxed);

		if (piece)
			torsh_sys_munmap(piece, CHANNEL_PIECE_BYTES);
	}
}

void torsh_channel_unmap(struct channel *channel)
{
	torsh_channel_let_go(channel);
	torsh_sys_munmap(channel->header, CHANNEL_HEADER_BYTES);
	if (!channel->directory)
		return;
	unmap_table(&channel->slots);
	unmap_table(&channel->modules);
	unmap_table(&channel->codes);
	unmap_table(&channel->addresses);
	unmap_table(&channel->text);
	unmap_table(&channel->heap_counts);
	torsh_sys_munmap(channel->directory, channel->n_directory_bytes);
}

/* The place for n bytes of text at or after `at`: not across two pieces. */
static uint32_t reserve_text(uint32_t at, size_t n)
{
	uint32_t in_piece = at % CHANNEL_PIECE_BYTES;

	return in_piece + n <= CHANNEL_PIECE_BYTES ? at : at - in_piece + CHANNEL_PIECE_BYTES;
}

struct channel_text torsh_channel_add_text(struct channel *channel, const char *bytes, size_t n)
{
	uint32_t used = atomic_load_explicit(&channel->header->text_used, memory_order_relaxed), at;
	char *place;

	/* Unwritten bytes are 0, the one after the text too, so it is a string. */
	if (n >= CHANNEL_PIECE_BYTES)
		return (struct channel_text){0};
	do {
		at = reserve_text(used, n + 1);
		if (at > channel->text.n || n >= channel->text.n - at)
			return (struct channel_text){0};
	} while (!atomic_compare_exchange_weak_explicit(&channel->header->text_used, &used,
							at + (uint32_t)n + 1, memory_order_relaxed,
							memory_order_relaxed));
	place = n ? torsh_channel_text(channel, at) : NULL;
	if (!place)
		return (struct channel_text){0};
	memcpy(place, bytes, n);
	return (struct channel_text){.offset = at, .length = (uint32_t)n};
}

void torsh_channel_note(struct channel *channel, const char *sentence)
{
	uint32_t at = atomic_load_explicit(&channel->header->notes_length, memory_order_relaxed);
	char *notes = torsh_channel_text(channel, 0);
	size_t n = strlen(sentence);

	if (at > CHANNEL_NOTES_BYTES)
		return;
	/* A program that is started again and again is noted once. */
	if (memmem(notes, at, sentence, n))
		return;
	if (n + 1 > CHANNEL_NOTES_BYTES - at) {
		atomic_fetch_add_explicit(&channel->header->counters[COUNTER_notes_lost], 1,
					  memory_order_relaxed);
		return;
	}
	memcpy(notes + at, sentence, n);
	notes[at + n] = '\n';
	/* Pairs with the acquire in the writer, which reads no further than this. */
	atomic_store_explicit(&channel->header->notes_length, at + (uint32_t)n + 1,
			      memory_order_release);
}
