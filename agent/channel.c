/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/channel.h"

#include <errno.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "shim/sys.h"
#include "shim/thread.h"

#define PAGE 4096u
#define N_SLOTS_MIN 16u

static uint64_t align_page(uint64_t bytes)
{
	return (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

/* Lays the tables and rings out behind each other; returns the size of all. */
static uint64_t lay_out(struct channel_header *header, uint32_t n_slots, uint32_t ring_bytes)
{
	uint64_t at = CHANNEL_HEADER_BYTES;

	header->n_thread_slots = n_slots;
	header->n_module_slots = CHANNEL_MODULES;
	header->n_code_slots = CHANNEL_CODES;
	header->n_address_slots = CHANNEL_ADDRESSES;
	header->n_text_bytes = CHANNEL_TEXT_BYTES;
	header->ring_bytes = ring_bytes;
	header->threads_offset = at;
	at = align_page(at + n_slots * sizeof(struct thread_slot));
	header->modules_offset = at;
	at = align_page(at + CHANNEL_MODULES * sizeof(struct channel_module));
	header->codes_offset = at;
	at = align_page(at + CHANNEL_CODES * sizeof(struct channel_code));
	header->addresses_offset = at;
	at = align_page(at + CHANNEL_ADDRESSES * sizeof(struct channel_address));
	header->text_offset = at;
	at = align_page(at + CHANNEL_TEXT_BYTES);
	header->rings_offset = at;
	header->total_bytes = at + (uint64_t)n_slots * ring_bytes;
	return header->total_bytes;
}

static uint64_t soft_limit(int resource)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

/*
 * As many slots as the process's own limits leave room for: a file larger than RLIMIT_FSIZE would bring SIGXFSZ on
 * the target, address space beyond a quarter of RLIMIT_AS would be taken from it.
 */
static uint32_t choose_slots(uint32_t ring_bytes)
{
	uint64_t file = soft_limit(RLIMIT_FSIZE), space = soft_limit(RLIMIT_AS) / 4;
	uint64_t most = file < space ? file : space;
	uint32_t n = CHANNEL_THREADS;
	struct channel_header header;

	while (n >= N_SLOTS_MIN && lay_out(&header, n, ring_bytes) > most)
		n /= 2;
	return n < N_SLOTS_MIN ? 0 : n;
}

static void locate(struct channel *channel)
{
	uint8_t *base = (uint8_t *)channel->header;

	channel->slots = (struct thread_slot *)(base + channel->header->threads_offset);
	channel->modules = (struct channel_module *)(base + channel->header->modules_offset);
	channel->codes = (struct channel_code *)(base + channel->header->codes_offset);
	channel->addresses = (struct channel_address *)(base + channel->header->addresses_offset);
	channel->text = (char *)base + channel->header->text_offset;
	channel->rings = base + channel->header->rings_offset;
	channel->n_bytes = channel->header->total_bytes;
}

/* How much of a parent's table there is: its own word for it, which a full table has let run on. */
static uint32_t n_used(const _Atomic uint32_t *mark, uint32_t most)
{
	uint32_t n = atomic_load_explicit(mark, memory_order_relaxed);

	return n < most ? n : most;
}

/* Entries that another thread of the parent had claimed but not written at the fork stay empty for ever. */
static void copy_tables(struct channel *channel, const struct channel *parent)
{
	struct channel_header *to = channel->header;
	const struct channel_header *from = parent->header;
	uint32_t n_modules = n_used(&from->n_modules, CHANNEL_MODULES);
	uint32_t n_codes = n_used(&from->n_codes, CHANNEL_CODES);
	uint32_t n_addresses = n_used(&from->n_addresses, CHANNEL_ADDRESSES);
	uint32_t text_used = n_used(&from->text_used, CHANNEL_TEXT_BYTES);

	memcpy(channel->codes, parent->codes, n_codes * sizeof(*channel->codes));
	memcpy(channel->modules, parent->modules, n_modules * sizeof(*channel->modules));
	memcpy((void *)channel->addresses, (const void *)parent->addresses, n_addresses * sizeof(*channel->addresses));
	memcpy(channel->text + CHANNEL_NOTES_BYTES, parent->text + CHANNEL_NOTES_BYTES,
	       text_used > CHANNEL_NOTES_BYTES ? text_used - CHANNEL_NOTES_BYTES : 0);
	atomic_store_explicit(&to->n_modules, n_modules, memory_order_relaxed);
	atomic_store_explicit(&to->n_codes, n_codes, memory_order_relaxed);
	atomic_store_explicit(&to->n_addresses, n_addresses, memory_order_relaxed);
	atomic_store_explicit(&to->text_used, text_used, memory_order_relaxed);
	to->program = from->program;
	to->rank = from->rank;
	to->arguments = from->arguments;
	to->allocator = from->allocator;
	to->forked_from = from->pid;
	to->forked_from_ticks = from->start_ticks;
}

int torsh_channel_create(struct channel *channel, uint32_t ring_bytes, const struct channel *parent, int *fd)
{
	uint32_t n_slots = choose_slots(ring_bytes);
	struct channel_header layout = {0};
	uint64_t n_bytes;
	long result;
	void *base;

	if (!n_slots)
		return -EFBIG;
	n_bytes = lay_out(&layout, n_slots, ring_bytes);
	*fd = (int)TORSH_SYS(SYS_memfd_create, "torsh-channel", MFD_CLOEXEC, 0, 0, 0, 0);
	if (*fd < 0)
		return *fd;
	result = TORSH_SYS(SYS_ftruncate, *fd, n_bytes, 0, 0, 0, 0);
	if (result < 0)
		goto close;
	base = torsh_sys_mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
	result = (long)base;
	if (torsh_sys_failed(result))
		goto close;
	TORSH_SYS(SYS_madvise, base, n_bytes, MADV_DONTDUMP, 0, 0, 0);
	channel->header = base;
	memcpy(base, &layout, sizeof(layout));
	locate(channel);
	atomic_store_explicit(&channel->header->text_used, CHANNEL_NOTES_BYTES, memory_order_relaxed);
	atomic_store_explicit(&channel->header->n_addresses, 1, memory_order_relaxed); /* 0 is REGISTRY_FULL */
	if (parent)
		copy_tables(channel, parent);
	return 0;
close:
	TORSH_SYS(SYS_close, *fd, 0, 0, 0, 0, 0);
	return (int)result;
}

void torsh_channel_unmap(struct channel *channel)
{
	torsh_sys_munmap(channel->header, channel->n_bytes);
}

struct channel_text torsh_channel_add_text(struct channel *channel, const char *bytes, size_t n)
{
	uint32_t at = atomic_load_explicit(&channel->header->text_used, memory_order_relaxed);

	do {
		if (n > CHANNEL_TEXT_BYTES || at > CHANNEL_TEXT_BYTES - n)
			return (struct channel_text){0};
	} while (!atomic_compare_exchange_weak_explicit(&channel->header->text_used, &at, at + (uint32_t)n,
							memory_order_relaxed, memory_order_relaxed));
	memcpy(channel->text + at, bytes, n);
	return (struct channel_text){.offset = at, .length = (uint32_t)n};
}

void torsh_channel_note(struct channel *channel, const char *sentence)
{
	uint32_t at = atomic_load_explicit(&channel->header->notes_length, memory_order_relaxed);
	size_t n = strlen(sentence);

	if (at > CHANNEL_NOTES_BYTES || n + 1 > CHANNEL_NOTES_BYTES - at)
		return;
	/* A program started again and again is noted once. */
	if (memmem(channel->text, at, sentence, n))
		return;
	memcpy(channel->text + at, sentence, n);
	channel->text[at + n] = '\n';
	/* Pairs with the acquire of the writer, which reads no further than this. */
	atomic_store_explicit(&channel->header->notes_length, at + (uint32_t)n + 1, memory_order_release);
}

int torsh_channel_take_slot(struct channel *channel, enum thread_slot_kind kind)
{
	uint32_t n = channel->header->n_thread_slots;

	/* The lowest first: its ring's pages have been touched already. */
	for (uint32_t i = 0; i < n; i++) {
		struct thread_slot *slot = &channel->slots[i];
		uint32_t expected = THREAD_SLOT_FREE;

		/* Acquire pairs with the writer's release when it freed the slot: its tail is final. */
		if (!atomic_compare_exchange_strong_explicit(&slot->state, &expected, THREAD_SLOT_CLAIMED,
							     memory_order_acquire, memory_order_relaxed))
			continue;
		slot->kind = kind;
		slot->tid = (uint32_t)torsh_thread_tid();
		slot->name[0] = '\0';
		if (!atomic_load_explicit(&channel->header->n_threads, memory_order_relaxed))
			TORSH_SYS(SYS_prctl, PR_GET_NAME, slot->name, 0, 0, 0, 0);
		return (int)i;
	}
	return -EAGAIN;
}

int torsh_channel_map_ring(struct channel *channel, int slot, struct ring *ring)
{
	size_t n_bytes = channel->header->ring_bytes;
	uint8_t *first = channel->rings + (size_t)slot * n_bytes;
	uint8_t *place = torsh_sys_mmap(NULL, 2 * n_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (torsh_sys_failed((long)place))
		return -ENOMEM;
	/* An old size of 0 makes mremap map the shared pages a second time. */
	for (int half = 0; half < 2; half++) {
		long result = TORSH_SYS(SYS_mremap, first, 0, n_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
					place + (size_t)half * n_bytes, 0);

		if (torsh_sys_failed(result)) {
			torsh_sys_munmap(place, 2 * n_bytes);
			return -ENOMEM;
		}
	}
	TORSH_SYS(SYS_madvise, place, 2 * n_bytes, MADV_DONTFORK, 0, 0, 0);
	ring->bytes = place;
	ring->mask = n_bytes - 1;
	return 0;
}

void torsh_channel_open_slot(struct channel *channel, int index, struct ring *ring, uint64_t base_stamp)
{
	struct thread_slot *slot = &channel->slots[index];
	uint32_t known = atomic_load_explicit(&channel->header->n_threads, memory_order_relaxed);

	ring->slot = slot;
	ring->head = atomic_load_explicit(&slot->tail, memory_order_relaxed);
	ring->room_until = 0;
	ring->n_events = 0;
	slot->base_stamp = base_stamp;
	slot->use++;
	atomic_store_explicit(&slot->head, ring->head << 1, memory_order_relaxed);
	atomic_store_explicit(&slot->produced, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->dropped, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->waited_ns, 0, memory_order_relaxed);
	/* Pairs with the acquire of the writer that finds the slot active: the identity above is written. */
	atomic_store_explicit(&slot->state, THREAD_SLOT_ACTIVE, memory_order_release);
	while (known <= (uint32_t)index &&
	       !atomic_compare_exchange_weak_explicit(&channel->header->n_threads, &known, (uint32_t)index + 1,
						      memory_order_release, memory_order_relaxed))
		;
}
