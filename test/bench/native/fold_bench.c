/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How many events a second the writer decodes, orders and folds, on one core: rings are filled by
 * the agent's own encoder (not timed), then taken, merged and folded as the drain thread does
 * (timed: CPU time).
 *
 *	fold_bench [EVENTS [THREADS [LIVE_BLOCKS [STACKS]]]]
 *
 * Each thread allocates with one of STACKS stacks at random, 30 frames deep, up to 4 of them
 * not those of its last allocation, and frees a block of its own at random, so that LIVE_BLOCKS are
 * live in all. Prints one line of JSON.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/writer/input/merge.h"
#include "tools/writer/input/order.h"

#define RING_BYTES (1u << 20)
#define N_ADDRESSES (1u << 16)
#define DEPTH 30u
#define FORKS 4u

struct producer {
	struct thread_slot slot;
	struct ring ring;
	struct codec codec;
	struct ring_consumer *consumer;
	uint64_t *blocks;
	uint32_t n_blocks;
	uint32_t site; /* of its last allocation */
	bool has_stack;
	uint64_t random;
};

struct bench {
	struct channel_view view;
	struct process_state state;
	struct producer *producers;
	struct ring_consumer **consumers;
	uint32_t n_threads, n_stacks;
	uint64_t *free_addresses; /* given out again, last in first out */
	uint64_t n_free, next_address;
	uint64_t stamp;
};

static uint64_t next_random(struct producer *producer)
{
	producer->random ^= producer->random << 13;
	producer->random ^= producer->random >> 7;
	producer->random ^= producer->random << 17;
	return producer->random;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/*
 * Frame `level` of a site's stack: the outermost are common to all, then the sites fork out by
 * four.
 */
static uint32_t frame_of(uint32_t site, uint32_t level)
{
	uint32_t common = DEPTH - FORKS;

	if (level < common)
		return 1 + level;
	return DEPTH +
	       ((site >> 2 * (DEPTH - 1 - level)) * FORKS + level - common) % (N_ADDRESSES - DEPTH);
}

/*
 * The frames that differ from the last allocation's. Returns how many: as many are popped as
 * pushed.
 */
static uint32_t change_stack(struct producer *producer, uint32_t site, uint32_t *ids)
{
	uint32_t level = 0, n = 0;

	while (producer->has_stack && level < DEPTH &&
	       frame_of(site, level) == frame_of(producer->site, level))
		level++;
	for (; level < DEPTH; level++)
		ids[n++] = frame_of(site, level);
	producer->site = site;
	return n;
}

static void put_alloc(struct bench *bench, struct producer *producer, uint32_t place)
{
	uint32_t site = (uint32_t)(next_random(producer) % bench->n_stacks), ids[DEPTH];
	uint32_t n = change_stack(producer, site, ids);
	struct event_alloc alloc = {
		.address = bench->n_free ? bench->free_addresses[--bench->n_free]
					 : (bench->next_address += 64),
		.size = 8 + site % 200,
	};
	uint8_t *begin, *end;

	alloc.usable = torsh_codec_expected_usable(alloc.size);
	begin = torsh_ring_begin(&producer->ring);
	end = torsh_codec_put_alloc(&producer->codec, begin, bench->stamp, &alloc, 1,
				    producer->has_stack ? n : 0, n, ids);
	producer->has_stack = true;
	torsh_ring_commit(&producer->ring, begin, end);
	producer->blocks[place] = alloc.address;
}

static void put_free(struct bench *bench, struct producer *producer, uint32_t place)
{
	uint64_t address = producer->blocks[place];
	uint8_t *begin = torsh_ring_begin(&producer->ring);
	uint8_t *end = torsh_codec_put_free(&producer->codec, begin, bench->stamp, address, 0);

	torsh_ring_commit(&producer->ring, begin, end);
	bench->free_addresses[bench->n_free++] = address;
	producer->blocks[place] = 0;
}

/* Threads take turns of a few events each, until one ring is nearly full. Returns the events. */
static uint64_t fill_rings(struct bench *bench, uint64_t n_most)
{
	uint64_t n = 0;

	for (uint32_t turn = 0; n < n_most; turn = (turn + 1) % bench->n_threads) {
		struct producer *producer = &bench->producers[turn];
		uint32_t place = (uint32_t)(next_random(producer) % producer->n_blocks);

		if (!torsh_ring_has_room(&producer->ring, 2 * CODEC_EVENT_MAX))
			break;
		bench->stamp += 1 + (n & 3);
		if (producer->blocks[place])
			put_free(bench, producer, place);
		else
			put_alloc(bench, producer, place);
		n++;
	}
	return n;
}

static void start_view(struct bench *bench)
{
	const uint32_t per_piece = CHANNEL_PER_PIECE(sizeof(struct channel_address));
	struct channel_address *addresses = calloc(N_ADDRESSES, sizeof(*addresses));

	for (uint32_t i = 1; i < N_ADDRESSES; i++) {
		atomic_init(&addresses[i].ip_and_flags,
			    (0x400000u + 16 * (uint64_t)i) << 8 | CHANNEL_ADDRESS_THERE);
		addresses[i].module = CHANNEL_NO_MODULE;
	}
	bench->view = (struct channel_view){.n_addresses = N_ADDRESSES, .ring_bytes = RING_BYTES};
	bench->view.addresses.pieces = calloc(N_ADDRESSES / per_piece + 1, sizeof(void *));
	for (uint32_t i = 0; i < N_ADDRESSES; i += per_piece)
		bench->view.addresses.pieces[i / per_piece] = &addresses[i];
}

static void start_producer(struct bench *bench, uint32_t i, uint32_t n_blocks)
{
	struct producer *producer = &bench->producers[i];

	/*
	 * Events are written beyond the end and copied to the start: in place of the second
	 * mapping.
	 */
	producer->ring = (struct ring){
		.slot = &producer->slot,
		.bytes = malloc(RING_BYTES + 2 * CODEC_EVENT_MAX),
		.mask = RING_BYTES - 1,
	};
	producer->blocks = calloc(n_blocks, sizeof(*producer->blocks));
	producer->n_blocks = n_blocks;
	atomic_init(&producer->slot.large_from, CHANNEL_NOT_LARGE);
	producer->random = 88172645463325252u + i;
	torsh_codec_start(&producer->codec, 0);
	producer->consumer = torsh_ring_consumer_create();
	torsh_ring_consumer_start(producer->consumer, &producer->slot, producer->ring.bytes,
				  RING_BYTES, 0, 0);
	producer->consumer->heap.number = producer->consumer->slot = i;
	producer->consumer->thread =
		torsh_process_state_add_thread(&bench->state, 1000 + i, "bench", 0, 0);
	bench->consumers[i] = producer->consumer;
}

/* A ring without a second mapping: it begins anew each time, when the writer has taken all. */
static void rewind_rings(struct bench *bench)
{
	for (uint32_t i = 0; i < bench->n_threads; i++) {
		struct ring *ring = &bench->producers[i].ring;

		ring->head = (ring->head + RING_BYTES - 1) & ~(uint64_t)(RING_BYTES - 1);
		atomic_store_explicit(&ring->slot->head, ring->head << 1, memory_order_relaxed);
		atomic_store_explicit(&ring->slot->tail, ring->head, memory_order_relaxed);
		bench->consumers[i]->ring.head = ring->head;
		ring->room_until = 0;
	}
}

static uint64_t take_rings(struct bench *bench)
{
	uint64_t n = 0, n_now;

	do {
		for (uint32_t i = 0; i < bench->n_threads; i++)
			torsh_ring_consumer_copy(bench->consumers[i], ORDER_NO_BOUND, 0);
		n_now = torsh_merge_fold(&bench->state, bench->consumers, bench->n_threads,
					 ORDER_NO_BOUND, 32768);
		n += n_now;
	} while (n_now);
	return n;
}

static uint64_t argument(int argc, char **argv, int i, uint64_t otherwise)
{
	return argc > i ? strtoull(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	uint64_t n_events = argument(argc, argv, 1, 100000000),
		 n_live = argument(argc, argv, 3, 100000);
	struct bench bench = {
		.n_threads = (uint32_t)argument(argc, argv, 2, 1),
		.n_stacks = (uint32_t)argument(argc, argv, 4, 10000),
		.next_address = 0x5555000000,
	};
	const struct clock_conversion clock = {0};
	uint64_t n_made = 0, n_folded = 0;
	double spent = 0;

	bench.producers = calloc(bench.n_threads, sizeof(*bench.producers));
	bench.consumers = calloc(bench.n_threads, sizeof(*bench.consumers));
	/* Half of the places are live at any time. */
	bench.free_addresses = calloc(2 * n_live + bench.n_threads, sizeof(*bench.free_addresses));
	start_view(&bench);
	torsh_process_state_create(&bench.state, &bench.view, &clock,
				   torsh_program_tables_create(1), 1);
	for (uint32_t i = 0; i < bench.n_threads; i++)
		start_producer(&bench, i, (uint32_t)(2 * n_live / bench.n_threads + 1));
	while (n_made < n_events) {
		double start;

		n_made += fill_rings(&bench, n_events - n_made);
		start = now_s();
		n_folded += take_rings(&bench);
		spent += now_s() - start;
		rewind_rings(&bench);
	}
	printf("{\"events\": %llu, \"threads\": %u, \"live_blocks\": %llu, \"stacks\": %u, \"seconds\": %.3f, "
	       "\"ns_per_event\": %.1f, \"events_per_second\": %.0f, \"bytes_per_block\": %.1f}\n",
	       (unsigned long long)n_folded, bench.n_threads,
	       (unsigned long long)bench.state.heap.tracker.n, bench.state.tables->stacks.n_rows,
	       spent, spent * 1e9 / (double)n_folded, (double)n_folded / spent,
	       (double)torsh_live_bytes(&bench.state.heap.live) /
		       (double)bench.state.heap.live.n_blocks);
	return n_folded != n_events || bench.state.heap.unknown_frees ||
	       bench.state.heap.implicit_frees;
}
