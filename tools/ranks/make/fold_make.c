/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/fold_make.h"

#include <stdlib.h>

#include "tools/analysis/analysis.h"
#include "tools/base/die.h"
#include "tools/memory/allocation_sites.h"
#include "tools/ranks/make/rank_row.h"

/* ---- memory ---------------------------------------------------------------------------------- */

static void add_site(struct fold *fold, uint32_t node, uint32_t step, uint64_t blocks,
		     uint64_t bytes)
{
	const uint64_t values[N_FOLD_MEMORY] = {
		[FOLD_MEMORY_ranks] = 1,
		[FOLD_MEMORY_peak_blocks] = blocks,
		[FOLD_MEMORY_peak_bytes] = bytes,
		[FOLD_MEMORY_most_bytes] = bytes,
	};

	torsh_fold_add(fold, FOLD_MEMORY, node,
		       torsh_fold_step_sub(fold, step ? step - 1 : SIZE_MAX), values);
}

static uint32_t name_node(struct fold *fold, const char *name)
{
	return torsh_fold_node(fold, 0,
			       &(struct fold_key){.kind = FOLD_FUNCTION, .function = name});
}

static void add_memory(struct fold *fold, struct call_paths *paths,
		       struct recorded_process *process, struct symbols *symbols)
{
	struct allocation_sites sites = {0};
	struct sites_source source = {.processes = &process, .n_processes = 1, .what = SITES_PEAK};

	torsh_sites_collect_first(&sites, &source, false, ORDER_BYTES, FOLD_SITES, symbols);
	torsh_sites_sort(&sites, ORDER_BYTES);
	for (size_t i = 0; i < sites.n; i++) {
		const struct allocation_site *site = &sites.items[i];
		const struct frame **frames;
		uint32_t node;
		size_t n;

		if (i >= FOLD_SITES) {
			sites.rest.blocks += site->blocks;
			sites.rest.bytes += site->bytes;
			continue;
		}
		frames = torsh_stack_frames(process, site->stack, symbols, STACK_VIEW_MERGED, &n);
		node = torsh_call_path_frames(paths, frames, n, false);
		free(frames);
		add_site(fold, node ? node : name_node(fold, "(unknown)"), site->last_step,
			 site->blocks, site->bytes);
	}
	if (sites.rest.bytes)
		add_site(fold, name_node(fold, "(smaller sites)"), 0, sites.rest.blocks,
			 sites.rest.bytes);
	torsh_sites_free(&sites);
}

/* ---- findings -------------------------------------------------------------------------------- */

static void add_findings(struct fold *fold, const struct recording *recording,
			 struct recorded_process *process, const struct prepass *prepass)
{
	struct analysis analysis;
	struct analysis_request request = {.recording = recording,
					   .processes = &process,
					   .n_processes = 1,
					   .prepass = prepass,
					   .to_ns = UINT64_MAX};
	bool is_counted[N_RULES] = {false};

	torsh_analysis_make(&analysis, &request);
	for (size_t i = 0; i < analysis.n; i++) {
		const struct finding *finding = &analysis.findings[i];
		uint32_t node = torsh_fold_node(
			fold, 0,
			&(struct fold_key){.kind = FOLD_FINDING,
					   .function = torsh_rules[finding->rule].name});
		const uint64_t values[N_FOLD_FINDINGS] = {
			[FOLD_FINDINGS_ranks] = !is_counted[finding->rule],
			[FOLD_FINDINGS_findings] = 1,
			[FOLD_FINDINGS_most_ppm] =
				finding->share_pct > 0 ? (uint64_t)(finding->share_pct * 1e4) : 0,
		};

		torsh_fold_add(fold, FOLD_FINDINGS, node, finding->severity, values);
		is_counted[finding->rule] = true;
	}
	torsh_analysis_free(&analysis);
}

/* ---- which processes ------------------------------------------------------------------------- */

/* Returns whether a is more of a training than b: more operators, then allocations; no two tie. */
static bool is_better(const struct prepass_process *a, const struct prepass_process *b)
{
	if (a->process->is_data_worker != b->process->is_data_worker)
		return b->process->is_data_worker;
	if (a->n_operators != b->n_operators)
		return a->n_operators > b->n_operators;
	if (a->process->heap.allocs != b->process->heap.allocs)
		return a->process->heap.allocs > b->process->heap.allocs;
	return a->process->number < b->process->number;
}

/* Returns the process that stands for the rank of process i, and how many there are of it. */
static size_t choose(const struct prepass *prepass, size_t i, uint32_t *n_others)
{
	uint32_t rank, other;
	bool has_rank = torsh_recording_rank(prepass->items[i].process->rank, &rank);
	size_t best = i;

	*n_others = 0;
	for (size_t k = 0; k < prepass->n; k++) {
		if (k == i ||
		    torsh_recording_rank(prepass->items[k].process->rank, &other) != has_rank ||
		    (has_rank && other != rank))
			continue;
		++*n_others;
		if (is_better(&prepass->items[k], &prepass->items[best]))
			best = k;
	}
	return best;
}

static bool has_any_rank(const struct prepass *prepass)
{
	uint32_t rank;

	for (size_t i = 0; i < prepass->n; i++) {
		if (torsh_recording_rank(prepass->items[i].process->rank, &rank))
			return true;
	}
	return false;
}

/* ---- the fold -------------------------------------------------------------------------------- */

static Torsh__FoldRank *fold_process(struct folded *folded, struct recording *recording,
				     struct recorded_process *process,
				     const struct prepass *prepass, struct symbols *symbols)
{
	const struct prepass_process *of = torsh_prepass_of(prepass, process);
	struct fold *fold = torsh_fold_create();
	struct process_pass pass;
	struct call_paths paths;
	Torsh__FoldRank *row;

	while (of->steps.n && (of->steps.n - 1) >> fold->shift >= FOLD_STEP_BUCKETS)
		fold->shift++;
	torsh_call_paths_start(&paths, fold, process, symbols);
	torsh_process_pass(&pass, fold, &paths, recording, process, prepass);
	pass.n_samples = folded->n_samples;
	row = torsh_rank_row(fold, recording, process, of, &pass);
	add_memory(fold, &paths, process, symbols);
	add_findings(fold, recording, process, prepass);
	torsh_fold_merge(folded->fold, fold);
	torsh_process_pass_free(&pass);
	torsh_call_paths_end(&paths);
	torsh_fold_destroy(fold);
	return row;
}

void torsh_fold_make(struct folded *folded, struct recording *recording,
		     struct recorded_process *const *processes, size_t n_processes,
		     struct symbols *symbols)
{
	struct prepass prepass;
	bool has_ranks;
	uint32_t rank, n_others;

	torsh_prepass_make(&prepass, recording, processes, n_processes);
	has_ranks = has_any_rank(&prepass);
	*folded = (struct folded){
		.n_samples = folded->n_samples ? folded->n_samples : FOLD_SAMPLES,
		.fold = torsh_fold_create(),
		.ranks = torsh_need_items(NULL, 0, n_processes, sizeof(*folded->ranks))};
	for (size_t i = 0; i < prepass.n; i++) {
		Torsh__FoldRank *row;

		if (has_ranks && !torsh_recording_rank(processes[i]->rank, &rank))
			continue;
		if (choose(&prepass, i, &n_others) != i)
			continue;
		row = fold_process(folded, recording, processes[i], &prepass, symbols);
		row->has_other_processes = true;
		row->other_processes = n_others;
		folded->ranks[folded->n_ranks++] = row;
	}
	torsh_prepass_free(&prepass);
}

void torsh_folded_free(struct folded *folded)
{
	for (size_t i = 0; i < folded->n_ranks; i++)
		torsh_rank_row_free(folded->ranks[i]);
	free(folded->ranks);
	torsh_fold_destroy(folded->fold);
	*folded = (struct folded){0};
}
