/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The target's side of the channel: the memfd is created here, filled in, and mapped piece by piece
 * as it is used. Its header stays mapped as long as the process lives.
 *
 * A pointer into a table is NULL if a piece can't be mapped because of the process's own limits, as
 * if the table were full.
 */
#ifndef TORSH_AGENT_PRODUCER_CHANNEL_H
#define TORSH_AGENT_PRODUCER_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/wire/channel.h"
#include "agent/wire/ring.h"
#include "shim/sys.h"

/* Mapped pieces of a table; NULL until mapped. */
struct channel_table {
	void *_Atomic *pieces;
	uint64_t offset; /* in the file */
	uint32_t n; /* entries; for text, bytes */
	uint32_t n_pieces;
};

struct channel {
	struct channel_header *header;
	struct channel_table slots, modules, codes, addresses, text, heap_counts;
	void *directory; /* the tables' pieces; kept where a forked child finds them */
	size_t n_directory_bytes;
	uint32_t key; /* a copy of the header's key */
	int fd; /* -1: no descriptor is kept */
};

/*
 * Create a channel with large rings of ring_bytes; *fd is its descriptor, which the caller closes
 * after the hello. With parent, the mapping of a forked process, its tables and text are copied so
 * that ids keep their meaning. heap_rate is the header's. Returns 0 or -errno.
 */
int torsh_channel_create(struct channel *channel, uint32_t ring_bytes, uint64_t heap_rate,
			 const struct channel *parent, int *fd);

/* Unmap everything except rings, and close the kept descriptor. */
void torsh_channel_unmap(struct channel *channel);

/*
 * Copy n bytes into the text area, NUL-terminated; the length is 0 when the area is full. Any
 * thread, async-signal-safe.
 */
struct channel_text torsh_channel_add_text(struct channel *channel, const char *bytes, size_t n);

/* Append a sentence to the notes that every report shows; a repeated one is kept once. */
void torsh_channel_note(struct channel *channel, const char *sentence);

/* The slow path of torsh_channel_entry: map the piece. */
void *torsh_channel_map_piece(const struct channel *channel, const struct channel_table *table,
			      uint32_t piece);

static inline void *torsh_channel_piece(const struct channel *channel,
					const struct channel_table *table, uint32_t piece)
{
	/* Pairs with the release in torsh_channel_map_piece. */
	void *at = atomic_load_explicit(&table->pieces[piece], memory_order_acquire);

	return __builtin_expect(at != NULL, 1) ? at
					       : torsh_channel_map_piece(channel, table, piece);
}

#define CHANNEL_ENTRY(function, table, type)                                                   \
	static inline struct type *function(const struct channel *channel, uint32_t i)         \
	{                                                                                      \
		const uint32_t per_piece = CHANNEL_PER_PIECE(sizeof(struct type));             \
		struct type *piece =                                                           \
			i < channel->table.n                                                   \
				? torsh_channel_piece(channel, &channel->table, i / per_piece) \
				: NULL;                                                        \
                                                                                               \
		return piece ? &piece[i % per_piece] : NULL;                                   \
	}

CHANNEL_ENTRY(torsh_channel_slot, slots, thread_slot)
CHANNEL_ENTRY(torsh_channel_module, modules, channel_module)
CHANNEL_ENTRY(torsh_channel_code, codes, channel_code)
CHANNEL_ENTRY(torsh_channel_address, addresses, channel_address)
CHANNEL_ENTRY(torsh_channel_heap_counts, heap_counts, heap_counts)
#undef CHANNEL_ENTRY

/* The bytes of a text in the text area. */
static inline char *torsh_channel_text(const struct channel *channel, uint32_t offset)
{
	char *piece = offset < channel->text.n ? torsh_channel_piece(channel, &channel->text,
								     offset / CHANNEL_PIECE_BYTES)
					       : NULL;

	return piece ? piece + offset % CHANNEL_PIECE_BYTES : NULL;
}

/*
 * Map n_bytes of the file from offset, followed by a second mapping of the first n_again of them.
 * Any thread, async-signal-safe. NULL if the kernel refuses.
 */
void *torsh_channel_map(const struct channel *channel, uint64_t offset, size_t n_bytes,
			size_t n_again);

/* Keep a descriptor of fd's file if one is allowed; fd stays the caller's. */
void torsh_channel_keep(struct channel *channel, int fd);

/* Whether the kept descriptor is there, and the channel's: the program may have closed it. */
bool torsh_channel_is_kept(const struct channel *channel);

/* Close the kept descriptor, if the program did not. */
void torsh_channel_let_go(struct channel *channel);

/*
 * Take a free slot for the calling thread, or a new one while fewer than most_ended of the used
 * slots have ended. Returns its number, ready to be opened, -EAGAIN if ended slots will become
 * free, or -ENOSPC if all are in use.
 */
int torsh_channel_take_slot(struct channel *channel, enum thread_slot_kind kind,
			    uint32_t most_ended);

/* Return a slot that was taken and not opened. */
void torsh_channel_return_slot(struct channel *channel, int slot);

/* Map the slot's ring, small or large, with its mirror, into ring. Returns 0 or -ENOMEM. */
int torsh_channel_map_ring(const struct channel *channel, int slot, bool is_large,
			   struct ring *ring);

/* Unmap a ring and its mirror. */
void torsh_channel_unmap_ring(const struct ring *ring);

/* Let the writer read the slot's ring from now on: head starts where its tail was left. */
void torsh_channel_open_slot(struct channel *channel, int slot, struct ring *ring,
			     uint64_t base_stamp);

/* Close the slot: the writer drains it, then frees it. */
void torsh_channel_close_slot(struct channel *channel, struct thread_slot *slot);

/* Wake the writer if it sleeps. */
static inline void torsh_channel_ring_doorbell(struct channel_header *header)
{
	if (atomic_load_explicit(&header->writer_sleeps, memory_order_relaxed) &&
	    atomic_exchange_explicit(&header->writer_sleeps, 0, memory_order_seq_cst))
		torsh_sys_futex_wake(&header->writer_sleeps, 1);
}

#endif
