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

struct channel {
	struct channel_header *header;
	struct thread_slot *slots;
	struct channel_module *modules;
	struct channel_address *addresses;
	char *text;
	uint8_t *rings;
	size_t n_bytes;
};

/*
 * Make a channel with rings of ring_bytes; *fd is a descriptor of it that the caller closes after the hello. With
 * parent (a forked process's mapping), its modules, addresses and text are copied, so that numbers mean the same.
 * Returns 0 or -errno.
 */
int torsh_channel_create(struct channel *channel, uint32_t ring_bytes, const struct channel *parent, int *fd);

void torsh_channel_unmap(struct channel *channel);

/* Copy n bytes into the text area; length 0 when it is full. */
struct channel_text torsh_channel_add_text(struct channel *channel, const char *bytes, size_t n);

/* Add a sentence to the notes that every report shows. */
void torsh_channel_note(struct channel *channel, const char *sentence);

/*
 * Take a free slot for the calling thread; its ring is mapped at ring->bytes (again, where a previous owner of the
 * slot in this process mapped it: pass its address as mapped_before, or NULL).
 * Returns the slot's index, -EAGAIN when none is free, or -ENOMEM.
 */
int torsh_channel_take_slot(struct channel *channel, enum thread_slot_kind kind, uint32_t hint);
int torsh_channel_map_ring(struct channel *channel, int slot, struct ring *ring);
void torsh_channel_open_slot(struct channel *channel, int slot, struct ring *ring, uint64_t base_stamp);

#endif
