/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdio.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/ranks/fold/fold_file.h"
#include "tools/ranks/job/job.h"

static uint64_t n_collectives(const Torsh__FoldRank *row)
{
	return row->n_totals > FOLD_TOTAL_collectives && row->totals[FOLD_TOTAL_collectives]
		       ? row->totals[FOLD_TOTAL_collectives] - 1
		       : 0;
}

/* Of two processes of a rank that with more collectives counts: the last start of the job. */
static void add_rank(struct job *job, Torsh__FoldRank *row)
{
	struct job_rank *last = job->n_ranks ? &job->ranks[job->n_ranks - 1] : NULL;

	if (last && last->number == row->rank && last->row->has_rank == row->has_rank) {
		job->n_twins++;
		if (n_collectives(row) > n_collectives(last->row)) {
			torsh__fold_rank__free_unpacked(last->row, NULL);
			last->row = row;
		} else {
			torsh__fold_rank__free_unpacked(row, NULL);
		}
		return;
	}
	job->ranks[job->n_ranks++] = (struct job_rank){.row = row, .number = row->rank};
}

static bool read_ranks(struct job *job, const struct fold_bytes *file,
		       const struct fold_entries *entries)
{
	job->ranks = torsh_need_items(NULL, 0, entries->n, sizeof(*job->ranks));
	for (size_t i = 0; i < entries->n; i++) {
		Torsh__FoldRank *row = torsh_fold_entry_rank(file, &entries->items[i]);

		if (!row)
			return false;
		add_rank(job, row);
	}
	return true;
}

/* ---- clocks, steps --------------------------------------------------------------------------- */

static uint32_t find_clock(struct job *job, struct hash_map *clocks, const Torsh__FoldRank *row)
{
	char *key = torsh_need_text("%llu %s", (unsigned long long)row->clock,
				    row->host ? row->host : "");
	size_t i = torsh_hash_map_put_text(clocks, key, job->n_clocks)->value;

	free(key);
	if (i == job->n_clocks)
		job->clocks[job->n_clocks++] = (struct job_clock){
			.host = row->host ? row->host : "", .start_ns = row->clock};
	return (uint32_t)i;
}

static void take_ranks(struct job *job)
{
	struct hash_map clocks = {0};

	job->clocks = torsh_need_items(NULL, 0, job->n_ranks, sizeof(*job->clocks));
	job->origin_ns = job->n_ranks ? job->ranks[0].row->start_ns : 0;
	for (size_t i = 0; i < job->n_ranks; i++) {
		const Torsh__FoldRank *row = job->ranks[i].row;
		uint32_t n = (uint32_t)(row->n_phases / N_FOLD_PHASES);

		job->ranks[i].clock = find_clock(job, &clocks, row);
		job->n_collectives += n_collectives(row);
		if (row->world_size > job->world_size)
			job->world_size = row->world_size;
		if (row->shift > job->shift)
			job->shift = row->shift;
		/* Zero rows have no buckets, whatever their shift. */
		if (n && ((n - 1) >> (job->shift - row->shift)) + 1 > job->n_buckets)
			job->n_buckets = ((n - 1) >> (job->shift - row->shift)) + 1;
	}
	torsh_hash_map_free(&clocks);
}

/* ---- the job --------------------------------------------------------------------------------- */

struct job *torsh_job_read(const char *path, char *error, size_t n_error)
{
	struct job *job = torsh_need(calloc(1, sizeof(*job)));
	struct fold_entries entries = {0};
	struct fold_bytes file;
	char sentence[256];
	bool is_good;

	job->fold = torsh_fold_create();
	if (torsh_fold_map(&file, path, error, n_error)) {
		torsh_job_free(job);
		return NULL;
	}
	is_good = !torsh_fold_read_bytes(job->fold, &entries, 0, file.bytes, file.n, sentence,
					 sizeof(sentence));
	if (is_good) {
		torsh_fold_sort_entries(&entries);
		is_good = read_ranks(job, &file, &entries);
		snprintf(sentence, sizeof(sentence),
			 "is damaged: the row of a process can't be read");
	}
	free(entries.items);
	torsh_fold_unmap(&file);
	if (!is_good) {
		snprintf(error, n_error, "%s %s", path, sentence);
		torsh_job_free(job);
		return NULL;
	}
	take_ranks(job);
	torsh_job_match(job);
	torsh_job_align(job);
	torsh_job_use_probes(job);
	torsh_job_judge(job);
	torsh_job_find_stragglers(job);
	torsh_job_find_outliers(job);
	torsh_job_measure_bandwidth(job);
	return job;
}

void torsh_job_free(struct job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < job->n_ranks; i++)
		torsh__fold_rank__free_unpacked(job->ranks[i].row, NULL);
	for (size_t i = 0; i < job->n_stragglers; i++) {
		for (size_t k = 0; k < job->stragglers[i].n_causes; k++)
			free(job->stragglers[i].causes[k].evidence);
	}
	for (size_t i = 0; i < job->n_clocks; i++)
		free(job->clocks[i].points);
	torsh_fold_destroy(job->fold);
	torsh_hash_map_free(&job->text_of);
	free(job->texts);
	free(job->ranks);
	free(job->clocks);
	free(job->calls);
	free(job->entries);
	free(job->verdicts);
	free(job->path);
	free(job->stragglers);
	free(job->outliers);
	free(job->bandwidths);
	free(job);
}
