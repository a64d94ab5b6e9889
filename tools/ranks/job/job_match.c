/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Collectives of ranks by group and sequence. */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/ranks/job/job.h"

/* A sample of a rank, before it is matched. */
struct found {
	uint32_t group, name, step;
	uint64_t sequence, bytes;
	struct job_entry entry;
};

static uint32_t put_text(struct job *job, const char *text)
{
	const struct hash_entry *entry = torsh_hash_map_put_text(&job->text_of, text, job->n_texts);

	if (entry->value == job->n_texts) {
		job->texts = torsh_array_reserve(job->texts, job->n_texts, &job->texts_room,
						 sizeof(*job->texts));
		job->texts[job->n_texts++] = entry->key;
	}
	return (uint32_t)entry->value;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_found(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int rc = compare_numbers(x->group, y->group);

	if (!rc)
		rc = compare_numbers(x->sequence, y->sequence);
	if (!rc)
		rc = compare_numbers(x->name, y->name);
	return rc ? rc : compare_numbers(x->entry.rank, y->entry.rank);
}

static bool is_same_call(const struct found *a, const struct found *b)
{
	return a->group == b->group && a->sequence == b->sequence && a->name == b->name;
}

/* Append the samples of a rank. */
static size_t take_samples(struct job *job, uint32_t rank, struct found *found)
{
	const Torsh__FoldRank *row = job->ranks[rank].row;
	int64_t issued_ns = (int64_t)(row->start_ns - job->origin_ns);
	uint64_t sequence = 0;

	for (size_t i = 0; i < row->n_group; i++) {
		int64_t entered_ns;

		issued_ns = (int64_t)((uint64_t)issued_ns + (uint64_t)row->issued_step[i]);
		sequence += (uint64_t)row->sequence_step[i];
		entered_ns = (int64_t)((uint64_t)issued_ns + row->queued_ns[i]);
		found[i] = (struct found){
			.group = put_text(job, row->texts[row->group[i]]),
			.name = put_text(job, row->texts[row->name[i]]),
			.step = row->step[i],
			.sequence = sequence,
			.bytes = row->bytes[i],
			.entry = {.rank = rank,
				  .sample = (uint32_t)i,
				  .issued_ns = issued_ns,
				  .entered_ns = entered_ns,
				  .left_ns = (int64_t)((uint64_t)entered_ns + row->length_ns[i]),
				  .flags = row->flags[i]}};
	}
	return row->n_group;
}

/* Add the call of n samples; returns how many ranks it has. */
static size_t add_call(struct job *job, const struct found *found, size_t n)
{
	struct job_call *call = &job->calls[job->n_calls++];

	*call = (struct job_call){.group = found->group,
				  .name = found->name,
				  .sequence = found->sequence,
				  .step = found->step,
				  .first = job->n_entries,
				  .joins = true,
				  .all_end = true};
	for (size_t i = 0; i < n; i++) {
		/* A rank that has it twice is a damaged fold's. */
		if (i && found[i].entry.rank == found[i - 1].entry.rank)
			continue;
		job->entries[job->n_entries++] = found[i].entry;
		call->n++;
		call->joins &= !!(found[i].entry.flags & FOLD_SAMPLE_JOINS);
		call->all_end &= !!(found[i].entry.flags & FOLD_SAMPLE_ENDS);
		if (found[i].bytes > call->bytes)
			call->bytes = found[i].bytes;
	}
	return call->n;
}

/*
 * Ranks with more collectives keep fewer of them: only calls that all ranks of their group kept
 * are compared.
 */
static void drop_partial(struct job *job, const size_t *most)
{
	size_t n = 0;

	for (size_t i = 0; i < job->n_calls; i++) {
		if (job->calls[i].n > 1 && job->calls[i].n == most[job->calls[i].group])
			job->calls[n++] = job->calls[i];
	}
	job->n_calls = n;
}

void torsh_job_match(struct job *job)
{
	size_t n = 0, n_all = 0, *most;
	struct found *found;

	for (size_t i = 0; i < job->n_ranks; i++)
		n_all += job->ranks[i].row->n_group;
	found = torsh_need_items(NULL, 0, n_all, sizeof(*found));
	for (size_t i = 0; i < job->n_ranks; i++)
		n += take_samples(job, (uint32_t)i, found + n);
	if (n)
		qsort(found, n, sizeof(*found), compare_found);
	job->entries = torsh_need_items(NULL, 0, n, sizeof(*job->entries));
	job->calls = torsh_need_items(NULL, 0, n, sizeof(*job->calls));
	most = torsh_need_items(NULL, 0, job->n_texts, sizeof(*most));
	for (size_t i = 0, next; i < n; i = next) {
		size_t n_ranks;

		for (next = i + 1; next < n && is_same_call(&found[i], &found[next]); next++)
			;
		n_ranks = add_call(job, &found[i], next - i);
		if (n_ranks > most[found[i].group])
			most[found[i].group] = n_ranks;
	}
	drop_partial(job, most);
	free(most);
	free(found);
}
