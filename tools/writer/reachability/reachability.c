/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/reachability.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/input/process_info.h"
#include "tools/writer/input/target.h"
#include "tools/writer/reachability/allocator_maps.h"
#include "tools/writer/reachability/python/python_heap.h"
#include "tools/writer/reachability/python/python_reach.h"
#include "tools/writer/reachability/root_scan.h"

/* What the verdicts take, about: for a block, and for its bytes that may be pointers. */
#define BLOCK_BYTES 64u
#define HEAP_SHARE 64u
#define AGENT_FILE "/libtorshagent.so"
/* A thread that was stopped while it allocates is let go on, and stopped again. */
#define HOLD_NS UINT64_C(5000000) /* without progress */
#define RETRY_NS UINT64_C(2000000)
#define N_TRIES 100u

static void give_reason(struct reachability *reachability, const char *reason, int error)
{
	reachability->is_judged = false;
	snprintf(reachability->reason, sizeof(reachability->reason), "%s%s%s", reason,
		 error ? ": " : "", error ? strerror(error) : "");
}

/* ---- whether its blocks are known ------------------------------------------------------------ */

/* Returns why its live blocks are not all known, or too many for the memory; NULL: they are. */
static const char *why_not(const struct target *target, uint64_t left_bytes)
{
	const struct heap *heap = &target->state.heap;
	uint64_t n_blocks = heap->live.n_blocks;

	if (heap->sampling.rate)
		return "blocks are sampled";
	if (torsh_target_is_lossy(target))
		return "events were lost";
	if (heap->small_site)
		return "memory was short, and small blocks were counted only";
	if (heap->was_paused)
		return "recording was paused: blocks from then are not known";
	if (n_blocks >= BLOCKS_MAX)
		return "there are too many blocks";
	if (n_blocks * BLOCK_BYTES + heap->tracker.bytes / HEAP_SHARE > left_bytes / 2)
		return "memory is short";
	return NULL;
}

/* Returns how many blocks of CPython's allocator there is memory for, beside its other blocks. */
static uint32_t python_max(const struct target *target, uint64_t left_bytes)
{
	uint64_t n_blocks = target->state.heap.live.n_blocks, n = left_bytes / 2 / BLOCK_BYTES;

	n = n < BLOCKS_MAX ? n : BLOCKS_MAX;
	return n > n_blocks ? (uint32_t)(n - n_blocks) : 0;
}

static bool is_reallocating(const struct target *target)
{
	for (uint32_t i = 0; i < target->n_consumers; i++) {
		if (target->consumers[i]->heap.is_reallocating ||
		    target->consumers[i]->heap.is_reallocating_unknown)
			return true;
	}
	return false;
}

/* ---- the image ------------------------------------------------------------------------------- */

static void index_blocks(struct block_index *index, const struct target *target,
			 struct python_heap *python)
{
	struct live_block block;
	uint64_t at = 0;

	while (torsh_live_next(&target->state.heap.live, &at, &block))
		torsh_block_index_add(index, block.address, block.size, block.site);
	torsh_python_heap_add_to(python, index);
	torsh_block_index_end(index);
	torsh_python_heap_number(python, index);
}

static void beat(void *context)
{
	struct target *target = context;

	atomic_fetch_add_explicit(&target->view.header->heartbeat, 1, memory_order_relaxed);
}

/* The memory of the process while it is held. */
struct image {
	struct memory_areas areas;
	struct memory_reader reader;
	struct python_heap python;
};

/* Returns 0, or a positive error number with nothing to close. */
static int open_image(struct image *image, const struct target *target)
{
	int error = -torsh_memory_areas_read(&image->areas, target->pid, AGENT_FILE);

	if (error)
		return error;
	error = -torsh_memory_reader_open(&image->reader, target->pid);
	if (!error) {
		error = -torsh_python_heap_find(&image->python, target, &image->areas,
						&image->reader, target->reachability->n_python_max);
		if (error)
			torsh_memory_reader_close(&image->reader);
	}
	if (error)
		torsh_memory_areas_free(&image->areas);
	return error;
}

static void close_image(struct image *image)
{
	torsh_python_heap_destroy(&image->python);
	torsh_memory_reader_close(&image->reader);
	torsh_memory_areas_free(&image->areas);
}

/* Find who keeps what: in Python as it was when the exit began, if that is known. */
static void find_holders(const struct target *target, const struct scan *scan,
			 const struct verdicts *verdicts)
{
	struct reachability *reachability = target->reachability;
	struct python_account account;
	struct python_reach reach;

	torsh_python_reach_find(&reach, scan->python, scan->graph);
	torsh_python_account_make(&account, scan->python, verdicts, &reach);
	torsh_holders_add(&reachability->holders, scan, verdicts,
			  &(struct python_owners){&reach, account.owner_of}, target);
	torsh_python_account_trim(&account);
	torsh_python_reach_free(&reach);
	if (reachability->before) {
		torsh_python_account_free(&account);
		return;
	}
	torsh_python_account_free(&reachability->python);
	reachability->python = account;
	reachability->python.at_ns =
		torsh_clock_to_ns(&target->state.clock, target->state.last_stamp);
}

/* Returns 0 and fills an index and its verdicts, or a positive error number. */
static int judge_image(struct target *target, struct block_index *index, struct verdicts *verdicts)
{
	struct reachability *reachability = target->reachability;
	struct image image;
	struct heap_ranges heap = {0};
	struct pointer_graph graph;
	struct scan scan = {.reader = &image.reader,
			    .areas = &image.areas,
			    .heap = &heap,
			    .threads = &reachability->threads,
			    .graph = &graph,
			    .python = &image.python,
			    .go_on = beat,
			    .context = target};
	int error = open_image(&image, target);

	if (error)
		return error;
	index_blocks(index, target, &image.python);
	torsh_pointer_graph_create(&graph, index);
	torsh_allocator_maps_add(&heap, target);
	for (uint32_t i = 0; i < image.python.pools.n; i++)
		torsh_heap_ranges_add(&heap, image.python.pools.items[i].begin,
				      image.python.pools.items[i].end);
	torsh_heap_ranges_find(&heap, &image.areas, index, &image.reader);
	error = -torsh_scan(&scan);
	if (!error) {
		torsh_verdicts_find(verdicts, &graph);
		find_holders(target, &scan, verdicts);
		torsh_verdicts_trim(verdicts);
		torsh_block_index_drop_python(index, verdicts->of);
	}
	reachability->read_bytes += image.reader.n_bytes;
	torsh_pointer_graph_destroy(&graph);
	torsh_heap_ranges_free(&heap);
	close_image(&image);
	return error;
}

/* ---- sums ------------------------------------------------------------------------------------ */

struct adding {
	struct reachability *reachability;
	uint32_t *numbers; /* by site: of its sum + 1; 0: none */
	size_t capacity;
};

static void add(struct adding *adding, const struct indexed_block *block, uint64_t bytes,
		int verdict)
{
	struct reachability *reachability = adding->reachability;
	uint32_t *number = &adding->numbers[block->site];
	struct verdict_sum *sum;

	if (!*number) {
		reachability->sums =
			torsh_array_reserve(reachability->sums, reachability->n_sums,
					    &adding->capacity, sizeof(*reachability->sums));
		reachability->sums[reachability->n_sums].site = block->site;
		*number = ++reachability->n_sums;
	}
	sum = &reachability->sums[*number - 1];
	sum->blocks[verdict]++;
	sum->bytes[verdict] += bytes;
}

/* The verdict from before the exit began, if the block was there then. */
static uint8_t verdict_of(const struct reachability *reachability, const struct live_block *block,
			  uint8_t now)
{
	uint32_t i;

	if (!reachability->before || block->stamp >= reachability->before_stamp)
		return now;
	i = torsh_block_index_find(reachability->before, block->address);
	if (i == NO_BLOCK || reachability->before->blocks[i].address != block->address)
		return now;
	return reachability->verdicts_before.of[i];
}

static void sum_up(struct target *target, const struct block_index *index, const uint8_t *verdicts)
{
	struct reachability *reachability = target->reachability;
	struct adding adding = {
		.reachability = reachability,
		.numbers = torsh_memory_new(target->state.heap.n_sites, sizeof(uint32_t)),
	};
	const struct live_table *live = &target->state.heap.live;

	free(reachability->sums);
	reachability->sums = NULL;
	reachability->n_sums = 0;
	for (uint32_t i = 0; i < index->n; i++) {
		const struct indexed_block *indexed = &index->blocks[i];
		struct live_block block = {.size = indexed->size};

		/* The index doesn't have all of a block that is large or may be older. */
		if ((reachability->before || indexed->size >> 31 || indexed->size <= 1) &&
		    !torsh_live_find(live, indexed->address, &block))
			continue;
		add(&adding, indexed, block.size, verdict_of(reachability, &block, verdicts[i]));
	}
	for (uint32_t i = 0; reachability->before && i < reachability->before->n; i++) {
		const struct indexed_block *old = &reachability->before->blocks[i];
		struct live_block block;

		if (!torsh_live_find(live, old->address, &block) ||
		    block.stamp >= reachability->before_stamp)
			add(&adding, old, torsh_block_size(old), VERDICT_FREED_AT_EXIT);
	}
	free(adding.numbers);
}

/* ---- one moment ------------------------------------------------------------------------------ */

static void let_go(struct target *target)
{
	struct reachability *reachability = target->reachability;

	torsh_threads_continue(&reachability->threads);
	torsh_target_release(target);
	reachability->is_held = false;
	reachability->took_ns += torsh_clock_monotonic_ns() - reachability->stopped_ns;
}

static void free_before(struct reachability *reachability)
{
	if (reachability->before)
		torsh_block_index_destroy(reachability->before);
	free(reachability->before);
	torsh_verdicts_free(&reachability->verdicts_before);
	reachability->before = NULL;
}

static uint64_t waits_at(const struct target *target)
{
	return atomic_load_explicit(&target->view.header->waiting_at, memory_order_seq_cst);
}

/*
 * Returns whether a thread that was not stopped, because it waited, has gone on meanwhile: a signal
 * or its time limit ended the wait.
 */
static bool has_gone_on(const struct target *target)
{
	const struct stopped_threads *threads = &target->reachability->threads;

	return threads->n && !threads->items[0].is_stopped &&
	       waits_at(target) != target->reachability->waiting_at;
}

/* Its threads are stopped, and everything is folded. */
static void judge_now(struct target *target, const struct judging_request *request)
{
	struct reachability *reachability = target->reachability;
	struct block_index *index = torsh_memory_new(1, sizeof(*index));
	struct verdicts verdicts = {0};
	int error;

	if (request->held)
		request->held(request->context, target);
	if (request->is_begin)
		free_before(reachability);
	if (!reachability->before)
		torsh_holders_free(&reachability->holders);
	torsh_block_index_create(index);
	error = judge_image(target, index, &verdicts);
	reachability->n_threads = reachability->threads.n;
	reachability->at_ns = torsh_clock_to_ns(&target->state.clock, target->state.last_stamp);
	if (error) {
		give_reason(reachability, "its memory can't be read", error);
	} else if (has_gone_on(target)) {
		give_reason(reachability, "it went on while its memory was read", 0);
	} else if (request->is_begin) {
		reachability->has_begin = true;
		reachability->before = index;
		reachability->verdicts_before = verdicts;
		reachability->before_stamp =
			target->state.last_stamp + 1 - target->state.heap.first_stamp;
		return;
	} else {
		reachability->is_judged = true;
		*reachability->reason = '\0';
		sum_up(target, index, verdicts.of);
	}
	torsh_verdicts_free(&verdicts);
	torsh_block_index_destroy(index);
	free(index);
}

/* Returns whether it has filters of system calls that this process lacks. */
static bool has_filters(const struct target *target)
{
	int own = torsh_process_open_status(getpid());
	uint64_t n_own = torsh_process_filters(own);

	if (own >= 0)
		close(own);
	return torsh_process_filters(target->status_fd) > n_own;
}

/* Stop the threads and hold the fold there. Returns false if it can't be done. */
static bool hold(struct target *target)
{
	struct reachability *reachability = target->reachability;
	struct clock_instant moment;
	int result;

	reachability->stopped_ns = torsh_clock_monotonic_ns();
	reachability->waiting_at = waits_at(target);
	result = torsh_threads_stop(&reachability->threads, target->pid, reachability->waiting_at,
				    !has_filters(target));
	if (result == -EACCES) {
		give_reason(reachability, "a filter of its system calls may not let it be stopped",
			    0);
		return false;
	}
	if (result) {
		give_reason(reachability, "its threads can't be stopped", -result);
		return false;
	}
	moment = torsh_clock_instant();
	torsh_target_hold(target, &moment);
	reachability->is_held = true;
	return true;
}

/* Returns whether events from before the stop are still being folded. */
static bool goes_on(struct target *target, uint64_t now_ns)
{
	struct reachability *reachability = target->reachability;
	uint64_t bound = torsh_target_bound(target);

	if (bound != reachability->bound || reachability->bound_ns < reachability->stopped_ns)
		reachability->bound_ns = now_ns;
	reachability->bound = bound;
	return now_ns - reachability->bound_ns < HOLD_NS;
}

/* A thread was stopped within a call of its allocator: let it go on for a moment. */
static enum judging try_again(struct target *target)
{
	struct reachability *reachability = target->reachability;

	let_go(target);
	reachability->retry_ns = torsh_clock_monotonic_ns() + RETRY_NS;
	if (++reachability->n_tries < N_TRIES)
		return JUDGING_WAITS;
	reachability->n_tries = 0;
	give_reason(reachability, "its threads were allocating whenever they were stopped", 0);
	return JUDGING_IS_DONE;
}

enum judging torsh_reachability_judge(struct target *target, const struct judging_request *request)
{
	struct reachability *reachability = target->reachability;
	uint64_t now_ns = torsh_clock_monotonic_ns();

	if (!reachability)
		reachability = target->reachability = torsh_memory_new(1, sizeof(*reachability));
	if (!reachability->is_held) {
		const char *reason = why_not(target, request->left_bytes);

		if (reason)
			give_reason(reachability, reason, 0);
		else
			reachability->n_python_max = python_max(target, request->left_bytes);
		if (!reason && now_ns < reachability->retry_ns)
			return JUDGING_WAITS;
		return !reason && hold(target) ? JUDGING_WAITS : JUDGING_IS_DONE;
	}
	if (!torsh_target_is_at_hold(target))
		return goes_on(target, now_ns) ? JUDGING_WAITS : try_again(target);
	if (is_reallocating(target))
		return try_again(target);
	judge_now(target, request);
	let_go(target);
	reachability->n_tries = 0;
	return JUDGING_IS_DONE;
}

void torsh_reachability_destroy(struct reachability *reachability)
{
	if (!reachability)
		return;
	torsh_threads_continue(&reachability->threads);
	free_before(reachability);
	torsh_holders_free(&reachability->holders);
	torsh_python_account_free(&reachability->python);
	free(reachability->sums);
	free(reachability);
}
