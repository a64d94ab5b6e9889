/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The target's side of the channel: the memfd is made here, filled in, and mapped piece by piece as
 * it is used. Its header stays mapped for as long as the process lives.
 *
 * A pointer into a table is NULL where a piece can't be mapped, because the process's own limits
 * leave no room: as if the table were full.
 */
#ifndef TORSH_AGENT_PRODUCER_CHANNEL_H
#define TORSH_AGENT_PRODUCER_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/wire/channel.h"
#include "agent/wire/ring.h"
#include "shim/sys.h"

/* Pieces of a table, where they are mapped: NULL until then. */
struct channel_table {
	void *_Atomic *pieces;
	uint64_t offset; /* in the file */
	uint32_t n; /* entries; of text, bytes */
	uint32_t n_pieces;
};

struct channel {
	struct channel_header *header;
	struct channel_table slots, modules, codes, addresses, text;
	void *directory; /* the tables' pieces; a forked child finds them too */
	size_t n_directory_bytes;
	uint32_t key; /* a copy of the header's */
	int fd; /* -1: none is kept */
};

/*
 * Create a channel with large rings of ring_bytes; *fd is a descriptor of it that the caller closes
 * after the hello. With parent, the mapping of a forked process, its tables and text are copied so
 * that ids keep their meaning. Returns 0 or -errno.
 */
int torsh_channel_create(struct channel *channel, uint32_t ring_bytes, const struct channel *parent,
			 int *fd);

/* Unmap everything but rings, and close the kept descriptor. */
void torsh_channel_unmap(struct channel *channel);

/* Copy n bytes into the text area, where a 0 follows them; length 0 when it is full. */
struct channel_text torsh_channel_add_text(struct channel *channel, const char *bytes, size_t n);

/* Add a sentence to the notes that every report shows. */
void torsh_channel_note(struct channel *channel, const char *sentence);

/* The slow path of torsh_channel_entry: map the piece. */
void *torsh_channel_map_piece(const struct channel *channel, const struct channel_table *table,
			      uint32_t piece);

static inline void *torsh_channel_piece(const struct channel *channel,
					const struct channel_table *table, uint32_t piece)
{
	/* Pairs with the release of who mapped it. */
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
#undef CHANNEL_ENTRY

/* The bytes of a text, which has no NUL. */
static inline char *torsh_channel_text(const struct channel *channel, uint32_t offset)
{
	char *piece = offset < channel->text.n ? torsh_channel_piece(channel, &channel->text,
								     offset / CHANNEL_PIECE_BYTES)
					       : NULL;

	return piece ? piece + offset % CHANNEL_PIECE_BYTES : NULL;
}

/*
 * Map n_bytes of the file from offset, followed by a second mapping of the first n_again of them.
 * Any thread, async-signal-safe. NULL when the kernel refuses.
 */
void *torsh_channel_map(const struct channel *channel, uint64_t offset, size_t n_bytes,
			size_t n_again);

/* Keep a descriptor of fd's file where one is allowed; close it again if the program did not. */
void torsh_channel_keep(struct channel *channel, int fd);
void torsh_channel_let_go(struct channel *channel);

/*
 * Take a free slot for the calling thread, or a new one while fewer than most_ended of those in use
 * have ended: its number, -EAGAIN where ended ones will be free, -ENOSPC where all are in use. It
 * is ready to be opened.
 */
int torsh_channel_take_slot(struct channel *channel, enum thread_slot_kind kind,
			    uint32_t most_ended);

/* Give back a slot that was taken and not opened. */
void torsh_channel_return_slot(struct channel *channel, int slot);

/* Map the slot's ring, small or large, with its mirror, into ring. 0 or -ENOMEM. */
int torsh_channel_map_ring(const struct channel *channel, int slot, bool is_large,
			   struct ring *ring);

void torsh_channel_unmap_ring(const struct ring *ring);

/* From here on the writer reads the slot's ring: head is where its tail was left. */
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
