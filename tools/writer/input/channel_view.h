/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A target's channel as the writer sees it: mapped, its layout checked once against the file's
 * size, its tables read by functions that copy before they check. The layout's numbers are copies:
 * the header may be overwritten at any time.
 */
#ifndef TORSH_WRITER_INPUT_CHANNEL_VIEW_H
#define TORSH_WRITER_INPUT_CHANNEL_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/wire/channel.h"

/* A table's pieces, each mapped when it is first looked at; NULL until then. */
struct view_table {
	void **pieces;
	uint64_t offset; /* in the file */
	uint64_t n_bytes; /* there */
};

struct channel_view {
	struct channel_header *header;
	struct view_table slots, modules, codes, addresses, text;
	uint32_t n_slots, n_modules, n_codes, n_addresses, n_text_bytes, ring_bytes;
	uint32_t n_large_rings;
	uint64_t rings_offset, large_rings_offset;
	int fd;
};

/*
 * Map the channel behind fd, which becomes the view's. On failure fd is closed, and where the
 * header could be mapped its writer_state becomes CHANNEL_WRITER_REFUSED. Returns 0, -EPROTO for
 * another version or an invalid layout, or -errno.
 */
int torsh_view_open(struct channel_view *view, int fd);

/* Unmap everything and close the descriptor. */
void torsh_view_close(struct channel_view *view);

/*
 * The slot, which is the target's to change; NULL when there is no such one, or no address space.
 */
struct thread_slot *torsh_view_slot(const struct channel_view *view, uint32_t slot);

/*
 * Map the ring of a slot, small or large; NULL when there is no such one, or no address space.
 * Stays until torsh_view_unmap_ring.
 */
const uint8_t *torsh_view_map_ring(const struct channel_view *view, uint32_t slot, bool is_large);

/* Unmap a ring that torsh_view_map_ring returned. */
void torsh_view_unmap_ring(const struct channel_view *view, const uint8_t *ring, bool is_large);

/* The size of a small or a large ring. */
static inline uint32_t torsh_view_ring_bytes(const struct channel_view *view, bool is_large)
{
	return is_large ? view->ring_bytes : CHANNEL_RING_SMALL_BYTES;
}

/*
 * Give back the memory of a slot's ring but for its first n_kept bytes: nothing of it will be read
 * any more.
 */
void torsh_view_clear_ring(const struct channel_view *view, uint32_t slot, bool is_large,
			   uint32_t n_kept);

/* Let the target see that the writer is there, and wake it where it waits for that. */
void torsh_view_attach(const struct channel_view *view);

/* Let the target use the slot again, and wake who waits for one. */
void torsh_view_free_slot(const struct channel_view *view, uint32_t slot);

/*
 * A copy of a piece of text, "" when it is not there, as UTF-8 with what is not replaced by "?".
 * Bytes that are `separator` (-1: none) become NULs: then it is *n bytes of strings, one after the
 * other. The caller frees it.
 */
char *torsh_view_text(const struct channel_view *view, struct channel_text text, int separator,
		      size_t *n);

struct view_address {
	uint64_t ip;
	uint32_t flags; /* enum channel_address_flag */
	uint32_t module; /* index, or CHANNEL_NO_MODULE; ADDRESS_PYTHON: index of a code */
};

/* Returns 0, or -ENOENT when there is no such entry (yet). */
int torsh_view_address(const struct channel_view *view, uint32_t id, struct view_address *address);

/* Returns 0, or -ENOENT. The code is there when an address that names it is. */
int torsh_view_code(const struct channel_view *view, uint32_t index, struct channel_code *code);

/* Returns 0, or -ENOENT. The module is there when an address that names it is. */
int torsh_view_module(const struct channel_view *view, uint32_t index,
		      struct channel_module *module);

#endif
