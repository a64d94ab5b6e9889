/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A target's channel as the writer sees it: mapped, its layout validated once against the file's
 * size, its tables read by functions that copy before they check. The layout's numbers are copies,
 * because the target may overwrite the header at any time.
 */
#ifndef TORSH_WRITER_INPUT_CHANNEL_VIEW_H
#define TORSH_WRITER_INPUT_CHANNEL_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/wire/channel.h"

/* The pieces of a table, each mapped at its first use; NULL before. */
struct view_table {
	void **pieces;
	uint64_t offset; /* in the file */
	uint64_t n_bytes; /* of the mapping */
};

struct channel_view {
	struct channel_header *header;
	struct view_table slots, modules, codes, addresses, text, heap_counts;
	uint32_t n_slots, n_modules, n_codes, n_addresses, n_text_bytes, ring_bytes;
	uint32_t n_large_rings;
	uint64_t rings_offset, large_rings_offset;
	uint64_t heap_rate; /* as in the header */
	int fd;
};

/*
 * Map the channel behind fd, which the view owns from then on. On failure fd is closed, and if the
 * header could be mapped its writer_state becomes CHANNEL_WRITER_REFUSED. Returns 0, -EPROTO for
 * another version or an invalid layout, or -errno.
 */
int torsh_view_open(struct channel_view *view, int fd);

/* Unmap everything and close the descriptor. */
void torsh_view_close(struct channel_view *view);

/*
 * Returns the slot, which the target may change at any time; NULL if it does not exist or cannot be
 * mapped.
 */
struct thread_slot *torsh_view_slot(const struct channel_view *view, uint32_t slot);

/*
 * Returns the counts of a slot where blocks are sampled, which the target may change at any time;
 * NULL if it has none or they cannot be mapped.
 */
const struct heap_counts *torsh_view_heap_counts(const struct channel_view *view, uint32_t slot);

/*
 * Map the ring of a slot, small or large; returns NULL if it does not exist or cannot be mapped.
 * Valid until torsh_view_unmap_ring.
 */
const uint8_t *torsh_view_map_ring(const struct channel_view *view, uint32_t slot, bool is_large);

/* Unmap a ring that torsh_view_map_ring returned. */
void torsh_view_unmap_ring(const struct channel_view *view, const uint8_t *ring, bool is_large);

/* Returns the size of a small or a large ring. */
static inline uint32_t torsh_view_ring_bytes(const struct channel_view *view, bool is_large)
{
	return is_large ? view->ring_bytes : CHANNEL_RING_SMALL_BYTES;
}

/*
 * Release the memory of a slot's ring except for its first n_kept bytes. None of it is read any
 * more.
 */
void torsh_view_clear_ring(const struct channel_view *view, uint32_t slot, bool is_large,
			   uint32_t n_kept);

/* Whether torsh_view_let_rest was called. */
bool torsh_view_rests(const struct channel_view *view);

/* Tell the process that nothing is recorded any more, and that it can be armed again. */
void torsh_view_let_rest(const struct channel_view *view);

/*
 * The writer of a process that rests is done with its channel: release the memory of all rings, and
 * let the process use it for another writer.
 */
void torsh_view_leave(const struct channel_view *view);

/*
 * Set writer_state to show the target that the writer is there, and wake the target if it waits for
 * that.
 */
void torsh_view_attach(const struct channel_view *view);

/* Return the slot to the target, and wake threads that wait for a free one. */
void torsh_view_free_slot(const struct channel_view *view, uint32_t slot);

/*
 * Copy a piece of text; returns "" if it does not exist. Invalid UTF-8 is replaced by "?". Bytes
 * equal to `separator` (-1: none) become NULs: the result then consists of *n bytes of consecutive
 * strings. The caller frees it.
 */
char *torsh_view_text(const struct channel_view *view, struct channel_text text, int separator,
		      size_t *n);

struct view_address {
	uint64_t ip;
	uint32_t flags; /* enum channel_address_flag */
	uint32_t module; /* index, or CHANNEL_NO_MODULE; ADDRESS_PYTHON: index of a code */
};

/* Returns 0, or -ENOENT if the entry does not exist (yet). */
int torsh_view_address(const struct channel_view *view, uint32_t id, struct view_address *address);

/* Returns 0, or -ENOENT. A code exists before any address that refers to it. */
int torsh_view_code(const struct channel_view *view, uint32_t index, struct channel_code *code);

/* Returns 0, or -ENOENT. A module exists before any address that refers to it. */
int torsh_view_module(const struct channel_view *view, uint32_t index,
		      struct channel_module *module);

#endif
