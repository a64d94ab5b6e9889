/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/judgement.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/reachability/python/python_heap.h"
#include "tools/writer/reachability/python/python_reach.h"
#include "tools/writer/reachability/root_scan.h"

#define AGENT_FILE "/libtorshagent.so"

/* ---- the image ------------------------------------------------------------------------------- */

/* The memory of the process. */
struct image {
	struct memory_areas areas;
	struct memory_reader reader;
	struct python_heap python;
};

/* Returns 0, or a positive error number with nothing to close. */
static int open_image(struct image *image, const struct judged_moment *moment)
{
	int error = -torsh_memory_areas_read(&image->areas, moment->pid, AGENT_FILE);

	if (error)
		return error;
	error = -torsh_memory_reader_open(&image->reader, moment->pid);
	if (!error) {
		error = -torsh_python_heap_find(&image->python, &moment->python_maps, &image->areas,
						&image->reader, moment->n_python_max);
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

static void index_blocks(struct block_index *index, const struct judged_moment *moment,
			 struct python_heap *python)
{
	for (uint64_t i = 0; i < moment->n_blocks; i++) {
		const struct moment_block *block = &moment->blocks[i];

		torsh_block_index_add(index, block->address, block->size,
				      torsh_moment_block_site(block));
	}
	torsh_python_heap_add_to(python, index);
	torsh_block_index_end(index);
	torsh_python_heap_number(python, index);
}

/*
 * Find who keeps what: in Python as it was when the exit began, if that is known. Nothing needs the
 * pointers afterwards.
 */
static void find_holders(struct judgement *judgement, struct scan *scan,
			 const struct judged_moment *moment, const struct judgement *before)
{
	struct python_account account;
	struct python_reach reach;

	torsh_python_reach_find(&reach, scan->python, scan->graph);
	torsh_pointer_graph_trim(scan->graph);
	torsh_python_account_make(&account, scan->python, &judgement->verdicts, &reach);
	torsh_holders_add(&judgement->holders, before ? &before->holders : NULL, scan,
			  &judgement->verdicts, &(struct python_owners){&reach, account.owner_of},
			  moment);
	torsh_python_account_trim(&account);
	torsh_python_reach_free(&reach);
	if (before) {
		torsh_python_account_free(&account);
		return;
	}
	judgement->python = account;
	judgement->python.at_ns = judgement->at_ns;
}

static void add_ranges(struct heap_ranges *ranges, const struct heap_ranges *others)
{
	for (uint32_t i = 0; i < others->n; i++)
		torsh_heap_ranges_add(ranges, others->items[i].begin, others->items[i].end);
}

/* Returns 0 and fills the index and the verdicts, or a positive error number. */
static int judge_image(struct judgement *judgement, const struct judged_moment *moment,
		       const struct judging_options *options)
{
	struct image image;
	struct heap_ranges heap = {0};
	struct pointer_graph graph;
	struct scan scan = {.reader = &image.reader,
			    .areas = &image.areas,
			    .heap = &heap,
			    .threads = &moment->threads,
			    .graph = &graph,
			    .python = &image.python,
			    .go_on = options->go_on,
			    .context = options->context};
	int error = open_image(&image, moment);

	if (error)
		return error;
	index_blocks(&judgement->index, moment, &image.python);
	torsh_pointer_graph_create(&graph, &judgement->index);
	add_ranges(&heap, &moment->allocator_maps);
	add_ranges(&heap, &image.python.pools);
	torsh_heap_ranges_find(&heap, &image.areas, &judgement->index, &image.reader);
	error = -torsh_scan(&scan);
	if (!error) {
		torsh_verdicts_find(&judgement->verdicts, &graph);
		find_holders(judgement, &scan, moment, options->before);
		torsh_verdicts_trim(&judgement->verdicts);
		torsh_block_index_drop_python(&judgement->index, judgement->verdicts.of);
	}
	judgement->read_bytes = image.reader.n_bytes;
	torsh_pointer_graph_destroy(&graph);
	torsh_heap_ranges_free(&heap);
	close_image(&image);
	return error;
}

/* ---- sums ------------------------------------------------------------------------------------ */

struct summing {
	struct judgement *judgement;
	const struct judgement *before;
	uint32_t *numbers; /* by site: of its first sum + 1; 0: none */
	size_t capacity;
	bool *is_there; /* by block of the judgement before */
};

static uint32_t add_sum(struct summing *summing, const struct verdict_sum *sum)
{
	struct judgement *judgement = summing->judgement;

	judgement->sums = torsh_array_reserve(judgement->sums, judgement->n_sums,
					      &summing->capacity, sizeof(*judgement->sums));
	judgement->sums[judgement->n_sums] = *sum;
	return judgement->n_sums++;
}

/* Returns the number of a site's sum, which is added if it is new. */
static uint32_t number_of(struct summing *summing, uint32_t site, unsigned verdict)
{
	struct judgement *judgement = summing->judgement;
	struct verdict_sum sum = {.site = site, .verdict = verdict & 7};
	uint32_t last = summing->numbers[site], added;

	if (!last) {
		sum.is_first = 1;
		added = add_sum(summing, &sum);
		summing->numbers[site] = added + 1;
		return added;
	}
	for (last--; judgement->sums[last].verdict != verdict; last = judgement->sums[last].next) {
		if (judgement->sums[last].next)
			continue;
		added = add_sum(summing, &sum);
		judgement->sums[last].next = added;
		return added;
	}
	return last;
}

static void add(struct summing *summing, uint32_t site, uint64_t bytes, int verdict)
{
	struct verdict_sum *sum;
	uint32_t number;

	if (verdict == VERDICT_UNKNOWN)
		return;
	number = number_of(summing, site, (unsigned)verdict);
	sum = &summing->judgement->sums[number];
	sum->blocks++;
	sum->bytes += bytes;
}

static uint32_t find_block(const struct block_index *index, uint64_t address)
{
	uint32_t i = torsh_block_index_find(index, address);

	return i != NO_BLOCK && index->blocks[i].address == address ? i : NO_BLOCK;
}

/* With the verdict from before the exit began, if the block was there then. */
static void add_live(struct summing *summing, const struct moment_block *block)
{
	const struct judgement *judgement = summing->judgement, *before = summing->before;
	uint32_t old =
		before && block->is_old ? find_block(&before->index, block->address) : NO_BLOCK;
	uint32_t site = torsh_moment_block_site(block), i;

	if (old != NO_BLOCK) {
		summing->is_there[old] = true;
		add(summing, site, block->size, before->verdicts.of[old]);
		return;
	}
	i = find_block(&judgement->index, block->address);
	if (i != NO_BLOCK)
		add(summing, site, block->size, judgement->verdicts.of[i]);
}

/*
 * Put the sums in the order of sites, a site's one after the other: in that of addresses, their
 * stacks take more room in the recording and in what reads it.
 */
static void order_sums(struct judgement *judgement, const uint32_t *numbers, size_t n_sites)
{
	struct verdict_sum *ordered =
		torsh_memory_alloc(((size_t)judgement->n_sums + 1) * sizeof(*ordered));
	uint32_t n = 0;

	for (size_t site = 0; site < n_sites; site++) {
		for (uint32_t number = numbers[site]; number;) {
			const struct verdict_sum *sum = &judgement->sums[number - 1];

			ordered[n] = *sum;
			ordered[n].next = sum->next ? n + 1 : 0;
			n++;
			number = sum->next ? sum->next + 1 : 0;
		}
	}
	free(judgement->sums);
	judgement->sums = ordered;
}

static void sum_up(struct judgement *judgement, const struct judged_moment *moment,
		   const struct judgement *before)
{
	struct summing summing = {
		.judgement = judgement,
		.before = before,
		.numbers = torsh_memory_new((size_t)moment->n_sites + 1, sizeof(uint32_t)),
		.is_there =
			before ? torsh_memory_new((size_t)before->index.n + 1, sizeof(bool)) : NULL,
	};

	for (uint64_t i = 0; i < moment->n_blocks; i++)
		add_live(&summing, &moment->blocks[i]);
	for (uint32_t i = 0; before && i < before->index.n; i++) {
		const struct indexed_block *old = &before->index.blocks[i];

		if (!summing.is_there[i])
			add(&summing, old->site, torsh_block_size(old), VERDICT_FREED_AT_EXIT);
	}
	order_sums(judgement, summing.numbers, (size_t)moment->n_sites + 1);
	free(summing.is_there);
	free(summing.numbers);
}

/* ---- the whole ------------------------------------------------------------------------------- */

void torsh_judgement_free_blocks(struct judgement *judgement)
{
	torsh_block_index_destroy(&judgement->index);
	torsh_verdicts_free(&judgement->verdicts);
}

/* Returns false if there is nothing to judge: short programs often end without a live block. */
static bool has_blocks(const struct judged_moment *moment)
{
	return moment->n_blocks || moment->python_maps.n;
}

void torsh_judgement_make(struct judgement *judgement, struct judged_moment *moment,
			  const struct judging_options *options)
{
	*judgement = (struct judgement){
		.at_ns = moment->at_ns,
		.n_threads = moment->threads.n,
		.stamp = moment->stamp,
	};
	torsh_block_index_create(&judgement->index);
	if (has_blocks(moment))
		judgement->error = judge_image(judgement, moment, options);
	if (!judgement->error && !options->is_begin)
		sum_up(judgement, moment, options->before);
	torsh_judged_moment_free_blocks(moment);
	if (!judgement->error && options->is_begin)
		return;
	torsh_judgement_free_blocks(judgement);
}

void torsh_judgement_free(struct judgement *judgement)
{
	torsh_judgement_free_blocks(judgement);
	torsh_holders_free(&judgement->holders);
	torsh_python_account_free(&judgement->python);
	free(judgement->sums);
	*judgement = (struct judgement){0};
}
