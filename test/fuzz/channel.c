/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A channel that a hostile target made: its header, its tables, its text. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/writer/input/channel_view.h"

#define FILE_BYTES (16u << 20)
#define N_LOOKED_AT 64u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/*
 * The layout that the agent makes, for the input to overwrite: far from it nothing is ever mapped.
 */
static void lay_out(struct channel_header *header)
{
	memset(header, 0, sizeof(*header));
	header->magic = CHANNEL_MAGIC;
	header->version = CHANNEL_VERSION;
	header->header_bytes = CHANNEL_HEADER_BYTES;
	header->n_thread_slots = 4;
	header->n_module_slots = 64;
	header->n_code_slots = 128;
	header->n_address_slots = 1024;
	header->n_text_bytes = 8192;
	header->n_large_rings = 2;
	header->ring_bytes = 2 * CHANNEL_RING_SMALL_BYTES;
	header->threads_offset = CHANNEL_HEADER_BYTES;
	header->modules_offset = header->threads_offset + 4096;
	header->codes_offset = header->modules_offset + 8192;
	header->addresses_offset = header->codes_offset + 4096;
	header->text_offset = header->addresses_offset + 16384;
	header->rings_offset = header->text_offset + 8192;
	header->large_rings_offset = header->rings_offset + 4 * CHANNEL_RING_SMALL_BYTES;
	header->total_bytes = FILE_BYTES;
	header->clock = CHANNEL_CLOCK_TSC;
	header->stamp_shift = CHANNEL_STAMP_SHIFT;
}

static uint64_t n_nonzero;

static void look_at(struct channel_view *view)
{
	struct channel_text text = {0};

	for (uint32_t i = 0; i < N_LOOKED_AT; i++) {
		struct channel_module module;
		struct channel_code code;
		struct view_address address;

		torsh_view_address(view, i, &address);
		if (torsh_view_module(view, i, &module) == 0)
			text = module.path;
		if (torsh_view_code(view, i, &code) == 0)
			free(torsh_view_text(view, code.name, -1, &(size_t){0}));
		free(torsh_view_text(view, text, 0, &(size_t){0}));
	}
	for (uint32_t i = 0; i < 8; i++) {
		bool is_large = i >= 4;
		const struct thread_slot *slot = torsh_view_slot(view, i);
		const volatile uint8_t *ring = torsh_view_map_ring(view, i % 4, is_large);

		if (slot)
			n_nonzero += slot->use;
		if (!ring)
			continue;
		/* Both ends of it must be there; the rings of this channel hold nothing. */
		if (ring[0] | ring[torsh_view_ring_bytes(view, is_large) - 1])
			n_nonzero++;
		torsh_view_unmap_ring(view, (const uint8_t *)ring, is_large);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	int fd = memfd_create("fuzzed-channel", MFD_CLOEXEC);
	struct channel_header header;
	struct channel_view view;

	if (fd < 0 || ftruncate(fd, FILE_BYTES))
		abort();
	lay_out(&header);
	if (pwrite(fd, &header, sizeof(header), 0) < 0 ||
	    (n_bytes && pwrite(fd, bytes, n_bytes % FILE_BYTES, 0) < 0))
		abort();
	if (torsh_view_open(&view, fd))
		return 0;
	look_at(&view);
	torsh_view_close(&view);
	return 0;
}
