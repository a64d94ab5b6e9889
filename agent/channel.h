/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The target's side of the channel: the memfd is made here, filled in, and mapped for as long as the process lives.
 * No descriptor stays open: a thread's ring is mapped a second and third time out of the first mapping.
 */
#ifndef TORSH_AGENT_CHANNEL_H
#define TORSH_AGENT_CHANNEL_H

#include <stddef.h>

#include "agent/wire/channel.h"
#include "agent/wire/ring.h"
#include "shim/sys.h"

struct channel {
	struct channel_header *header;
	struct thread_slot *slots;
	struct channel_module *modules;
	struct channel_code *codes;
	struct channel_address *addresses;
	char *text;
	uint8_t *rings;
	size_t n_bytes;
};

/*
 * Make a channel with rings of ring_bytes; *fd is a descriptor of it that the caller closes after the hello. With
 * parent (a forked process's mapping), its tables and text are copied, so that numbers mean the same.
 * Returns 0 or -errno.
 */
int torsh_channel_create(struct channel *channel, uint32_t ring_bytes, const struct channel *parent, int *fd);

void torsh_channel_unmap(struct channel *channel);

/* Copy n bytes into the text area; length 0 when it is full. */
struct channel_text torsh_channel_add_text(struct channel *channel, const char *bytes, size_t n);

/* Add a sentence to the notes that every report shows. */
void torsh_channel_note(struct channel *channel, const char *sentence);

/* Take the lowest free slot for the calling thread: its index, or -EAGAIN. Free again until it is opened. */
int torsh_channel_take_slot(struct channel *channel, enum thread_slot_kind kind);

/* Map the slot's ring twice in a row into ring. 0 or -ENOMEM. */
int torsh_channel_map_ring(struct channel *channel, int slot, struct ring *ring);

/* From here on the writer reads the slot's ring: head is where its tail was left. */
void torsh_channel_open_slot(struct channel *channel, int slot, struct ring *ring, uint64_t base_stamp);

/* Wake the writer if it has said that it sleeps. */
static inline void torsh_channel_ring_doorbell(struct channel_header *header)
{
	if (atomic_load_explicit(&header->writer_sleeps, memory_order_relaxed) &&
	    atomic_exchange_explicit(&header->writer_sleeps, 0, memory_order_seq_cst))
		torsh_sys_futex_wake(&header->writer_sleeps, 1);
}

#endif
