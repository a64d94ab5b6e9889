/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The target's side of a channel, for tests of the writer: a real memfd with the layout of agent/wire/channel.h, and
 * threads that put events on its rings with the agent's own encoder.
 */
#ifndef TORSH_TEST_CHANNEL_FIXTURE_H
#define TORSH_TEST_CHANNEL_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/wire/channel.h"
#include "agent/wire/codec.h"
#include "agent/wire/ring.h"

#define FAKE_ADDRESSES 4096u
#define FAKE_MODULES 16u
#define FAKE_CODES 16u
#define FAKE_TEXT (64u << 10)
#define FAKE_RING CHANNEL_RING_SMALL_BYTES
#define FAKE_LARGE_RING (256u << 10)

struct fake_channel {
	int fd;
	struct channel_header *header;
	struct thread_slot *slots;
	struct channel_module *modules;
	struct channel_code *codes;
	struct channel_address *addresses;
	char *text;
	uint64_t n_bytes;
};

struct fake_thread {
	struct ring ring;
	struct codec codec;
	uint8_t *begin; /* of the event that is under way */
	int has_frame; /* its stack is one frame deep, not empty */
};

static inline uint64_t fake_align(uint64_t n)
{
	return (n + 4095) & ~UINT64_C(4095);
}

static inline struct channel_text fake_text(struct fake_channel *channel, const void *bytes, uint32_t n)
{
	uint32_t at = atomic_load(&channel->header->text_used);

	memcpy(channel->text + at, bytes, n);
	atomic_store(&channel->header->text_used, at + n);
	return (struct channel_text){.offset = at, .length = n};
}

/* Address id i is 0x400000 + 16 * i, without a module. */
static inline void fake_channel_create(struct fake_channel *channel, uint32_t n_slots)
{
	struct channel_header layout = {
		.magic = CHANNEL_MAGIC,
		.version = CHANNEL_VERSION,
		.header_bytes = sizeof(layout),
		.n_thread_slots = n_slots,
		.n_module_slots = FAKE_MODULES,
		.n_code_slots = FAKE_CODES,
		.n_address_slots = FAKE_ADDRESSES,
		.n_text_bytes = FAKE_TEXT,
		.n_large_rings = n_slots,
		.ring_bytes = FAKE_LARGE_RING,
		.pid = (uint32_t)getpid(),
		.clock = CHANNEL_CLOCK_MONOTONIC,
		.stamp_shift = CHANNEL_STAMP_SHIFT,
	};
	uint8_t *base;

	layout.threads_offset = CHANNEL_HEADER_BYTES;
	layout.modules_offset = fake_align(layout.threads_offset + n_slots * sizeof(struct thread_slot));
	layout.codes_offset = fake_align(layout.modules_offset + FAKE_MODULES * sizeof(struct channel_module));
	layout.addresses_offset = fake_align(layout.codes_offset + FAKE_CODES * sizeof(struct channel_code));
	layout.text_offset = fake_align(layout.addresses_offset + FAKE_ADDRESSES * sizeof(struct channel_address));
	layout.rings_offset = fake_align(layout.text_offset + FAKE_TEXT);
	layout.large_rings_offset = layout.rings_offset + (uint64_t)n_slots * FAKE_RING;
	layout.total_bytes = layout.large_rings_offset + (uint64_t)n_slots * FAKE_LARGE_RING;
	channel->fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (channel->fd < 0 || ftruncate(channel->fd, (off_t)layout.total_bytes))
		abort();
	base = mmap(NULL, layout.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, channel->fd, 0);
	if (base == MAP_FAILED)
		abort();
	memcpy(base, &layout, sizeof(layout));
	channel->header = (struct channel_header *)base;
	channel->slots = (struct thread_slot *)(base + layout.threads_offset);
	channel->modules = (struct channel_module *)(base + layout.modules_offset);
	channel->codes = (struct channel_code *)(base + layout.codes_offset);
	channel->addresses = (struct channel_address *)(base + layout.addresses_offset);
	channel->text = (char *)base + layout.text_offset;
	channel->n_bytes = layout.total_bytes;
	atomic_store(&channel->header->text_used, CHANNEL_NOTES_BYTES);
	atomic_store(&channel->header->n_addresses, FAKE_ADDRESSES);
	for (uint32_t i = 1; i < FAKE_ADDRESSES; i++) {
		channel->addresses[i].module = CHANNEL_NO_MODULE;
		atomic_store(&channel->addresses[i].ip_and_flags,
			     (0x400000 + 16 * (uint64_t)i) << 8 | CHANNEL_ADDRESS_THERE);
	}
}

static inline void fake_channel_destroy(struct fake_channel *channel)
{
	munmap(channel->header, channel->n_bytes);
	if (channel->fd >= 0)
		close(channel->fd);
}

static inline void fake_map_ring(struct ring *ring, const struct fake_channel *channel, uint64_t offset, size_t n_bytes)
{
	uint8_t *bytes = mmap(NULL, n_bytes + CHANNEL_RING_MIRROR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, channel->fd,
			      (off_t)offset);

	if (bytes == MAP_FAILED || mmap(bytes + n_bytes, CHANNEL_RING_MIRROR_BYTES, PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_FIXED, channel->fd, (off_t)offset) == MAP_FAILED)
		abort();
	ring->bytes = bytes;
	ring->mask = n_bytes - 1;
}

static inline void fake_thread_map(struct fake_thread *thread, const struct fake_channel *channel, uint32_t index)
{
	fake_map_ring(&thread->ring, channel, channel->header->rings_offset + (uint64_t)index * FAKE_RING, FAKE_RING);
}

static inline void fake_unmap_ring(const struct ring *ring)
{
	munmap(ring->bytes, ring->mask + 1 + CHANNEL_RING_MIRROR_BYTES);
}

/* The thread goes on in its slot's large ring. */
static inline void fake_thread_enlarge(struct fake_thread *thread, const struct fake_channel *channel, uint32_t index)
{
	fake_unmap_ring(&thread->ring);
	fake_map_ring(&thread->ring, channel, channel->header->large_rings_offset + (uint64_t)index * FAKE_LARGE_RING,
		      FAKE_LARGE_RING);
	thread->ring.room_until = 0;
	atomic_store(&thread->ring.slot->large_from, thread->ring.head);
}

/* Takes the slot as the agent does: goes on where the last use ended. */
static inline void fake_thread_open(struct fake_thread *thread, struct fake_channel *channel, uint32_t index,
				    uint32_t tid, uint64_t base_stamp)
{
	struct thread_slot *slot = &channel->slots[index];

	memset(thread, 0, sizeof(*thread));
	fake_thread_map(thread, channel, index);
	thread->ring.slot = slot;
	thread->ring.head = atomic_load(&slot->tail);
	torsh_codec_start(&thread->codec, base_stamp);
	slot->tid = tid;
	slot->kind = THREAD_SLOT_MAIN_FLOW;
	snprintf(slot->name, sizeof(slot->name), "t-%u", tid % 100000000);
	slot->base_stamp = base_stamp;
	atomic_store(&slot->large_from, CHANNEL_NOT_LARGE);
	slot->use++;
	atomic_store(&slot->head, thread->ring.head << 1);
	atomic_store(&slot->produced, 0);
	atomic_store(&slot->dropped, 0);
	atomic_store(&slot->waited_ns, 0);
	atomic_store(&slot->state, THREAD_SLOT_ACTIVE);
	if (atomic_load(&channel->header->n_threads) <= index)
		atomic_store(&channel->header->n_threads, index + 1);
}

/* The producer is done with its mapping; its events stay. */
static inline void fake_thread_leave(struct fake_thread *thread)
{
	fake_unmap_ring(&thread->ring);
}

static inline void fake_thread_close(struct fake_thread *thread)
{
	atomic_store(&thread->ring.slot->state, THREAD_SLOT_CLOSED);
	fake_thread_leave(thread);
}

/* Each event in two steps, so that a test can look in between. */
static inline void fake_begin(struct fake_thread *thread)
{
	thread->begin = torsh_ring_begin(&thread->ring);
}

static inline void fake_commit_alloc(struct fake_thread *thread, uint64_t stamp, const struct event_alloc *alloc,
				     uint32_t pop, uint32_t n, const uint32_t *ids)
{
	uint32_t readable[CODEC_INLINE_IDS + CODEC_CHANGE_IDS] = {0};

	memcpy(readable, ids, n * sizeof(*ids));
	torsh_ring_commit(&thread->ring, thread->begin,
			  torsh_codec_put_alloc(&thread->codec, thread->begin, stamp, alloc, 1, pop, n, readable));
}

static inline void fake_commit_free(struct fake_thread *thread, uint64_t stamp, uint64_t address, int is_realloc)
{
	torsh_ring_commit(&thread->ring, thread->begin,
			  torsh_codec_put_free(&thread->codec, thread->begin, stamp, address, (uint32_t)is_realloc));
}

static inline void fake_commit_cold(struct fake_thread *thread, uint64_t stamp, const struct event *event)
{
	uint8_t payload[64];
	uint32_t n = torsh_codec_pack(event, payload);

	torsh_ring_commit(&thread->ring, thread->begin,
			  torsh_codec_put_cold(&thread->codec, thread->begin, stamp, event->id, payload, n));
}

/* A block of `size` bytes with the stack of one frame, address id `id`. */
static inline void fake_alloc(struct fake_thread *thread, uint64_t stamp, uint64_t address, uint64_t size, uint32_t id)
{
	const struct event_alloc alloc = {
		.address = address, .size = size, .usable = torsh_codec_expected_usable(size)};

	fake_begin(thread);
	fake_commit_alloc(thread, stamp, &alloc, (uint32_t)thread->has_frame, 1, &id);
	thread->has_frame = 1;
}

static inline void fake_free(struct fake_thread *thread, uint64_t stamp, uint64_t address)
{
	fake_begin(thread);
	fake_commit_free(thread, stamp, address, 0);
}

#endif
