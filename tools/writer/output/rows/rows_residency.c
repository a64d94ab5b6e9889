/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who owns the resident memory of a process. */
#include <string.h>

#include "tools/writer/output/rows/rows_parts.h"
#include "tools/writer/residency/residency.h"

static void put_sums(Torsh__Residency *row, const struct account *account)
{
	ROWS_SET(row, at_ns, account->at_ns);
	ROWS_SET(row, rss_bytes, account->rss_bytes);
	ROWS_SET(row, pss_bytes, account->pss_bytes);
	ROWS_SET(row, swap_bytes, account->swap_bytes);
	ROWS_SET(row, huge_bytes, account->huge_bytes);
	ROWS_SET(row, status_rss_bytes, account->status_bytes);
	ROWS_SET(row, page_table_bytes, account->page_table_bytes);
	ROWS_SET(row, hugetlb_bytes, account->hugetlb_bytes);
	ROWS_SET(row, cpu_ns, account->cpu_ns);
	ROWS_SET(row, at_end, account->is_at_end);
	ROWS_SET(row, held, account->is_held);
	ROWS_SET(row, tree_rss_bytes, account->tree_rss_bytes);
	ROWS_SET(row, tree_pss_bytes, account->tree_pss_bytes);
	ROWS_SET(row, tree_processes, account->n_tree);
	row->undivided = (char *)(uintptr_t)account->undivided;
	row->n_names = account->n_names;
	row->names = account->names;
}

static void put_owners(Torsh__Residency *row, struct rows_memory *memory,
		       const struct account *account)
{
	uint32_t n = account->n_owners;

	ROWS_COLUMN(memory, row, kind, n);
	ROWS_COLUMN(memory, row, name, n);
	ROWS_COLUMN(memory, row, stack, n);
	ROWS_COLUMN(memory, row, bytes, n);
	ROWS_COLUMN(memory, row, owner_pss_bytes, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct owner_bytes *owner = &account->owners[i];

		row->kind[i] = owner->owner.kind;
		row->name[i] = owner->owner.name;
		row->stack[i] = owner->owner.stack;
		row->bytes[i] = owner->bytes;
		row->owner_pss_bytes[i] = owner->pss_bytes;
	}
}

static void put_fragments(Torsh__Residency *row, struct rows_memory *memory,
			  const struct account *account)
{
	uint32_t n = account->n_fragments;

	ROWS_COLUMN(memory, row, arena, n);
	ROWS_COLUMN(memory, row, size_class, n);
	ROWS_COLUMN(memory, row, live_bytes, n);
	ROWS_COLUMN(memory, row, free_bytes, n);
	ROWS_COLUMN(memory, row, whole_bytes, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct fragment *fragment = &account->fragments[i];

		row->arena[i] = fragment->name;
		row->size_class[i] = fragment->size_class;
		row->live_bytes[i] = fragment->live_bytes;
		row->free_bytes[i] = fragment->free_bytes;
		row->whole_bytes[i] = fragment->whole_bytes;
	}
}

static void put_breaks(Torsh__Residency *row, struct rows_memory *memory,
		       const struct account *account)
{
	const struct account_breaks *breaks = &account->breaks;
	uint32_t n = breaks->n_lines;

	if (!account->is_fork)
		return;
	if (account->breaks_error) {
		row->unsampled = strerror(account->breaks_error);
		return;
	}
	ROWS_SET(row, samples_lost, breaks->lost);
	ROWS_COLUMN(memory, row, broken_stack, n);
	ROWS_COLUMN(memory, row, broken_samples, n);
	ROWS_COLUMN(memory, row, broken_pages, n);
	for (uint32_t i = 0; i < n; i++) {
		row->broken_stack[i] = breaks->lines[i].stack;
		row->broken_samples[i] = breaks->lines[i].samples;
		row->broken_pages[i] = breaks->lines[i].pages;
	}
}

/* extent: of the row that this one replaces, or empty; NULL: it is appended. */
static int put(struct recording_file *file, Torsh__Residency *row, enum recording_priority priority,
	       struct extent *extent)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct extent former;
	int result;

	chunk.n_residency = 1;
	chunk.residency = &row;
	if (!extent)
		return torsh_recording_append(file, &chunk, priority);
	former = *extent;
	result = torsh_recording_put(file, &chunk, priority, extent);
	if (result)
		*extent = former;
	else
		torsh_recording_free_extent(file, former);
	return result;
}

static int put_account(struct recording_file *file, const struct target *target, uint32_t number,
		       enum recording_priority priority, struct extent *extent)
{
	const struct residency *residency = target->residency;
	const struct account *account = &residency->accounts[number];
	Torsh__Residency row = TORSH__RESIDENCY__INIT;
	struct rows_memory memory = {0};
	int result;

	ROWS_SET(&row, process, target->number);
	ROWS_SET(&row, number, number);
	if (target->inheritance.is_fork)
		ROWS_SET(&row, inherited_is_known, residency->has_inherited);
	put_sums(&row, account);
	put_owners(&row, &memory, account);
	put_fragments(&row, &memory, account);
	put_breaks(&row, &memory, account);
	result = put(file, &row, priority, extent);
	torsh_rows_free(&memory);
	return result;
}

static void put_problem(struct recording_file *file, const struct target *target,
			enum recording_priority priority)
{
	Torsh__Residency row = TORSH__RESIDENCY__INIT;

	ROWS_SET(&row, process, target->number);
	ROWS_SET(&row, number, N_ACCOUNTS);
	row.problem = target->residency->problem ? (char *)(uintptr_t)target->residency->problem
						 : strerror(target->residency->error);
	put(file, &row, priority, NULL);
}

void torsh_rows_append_residency(struct recording_file *file, const struct target *target,
				 enum recording_priority priority, bool is_all)
{
	struct residency *residency = target->residency;

	for (uint32_t i = 0; residency && i < N_ACCOUNTS; i++) {
		if (!residency->is_there[i] || (!is_all && !residency->is_changed[i]))
			continue;
		if (!put_account(file, target, i, priority,
				 is_all ? NULL : &residency->extents[i]) &&
		    !is_all)
			residency->is_changed[i] = false;
	}
	if (residency && (residency->error || residency->problem) &&
	    (is_all || !residency->is_error_written)) {
		put_problem(file, target, priority);
		residency->is_error_written |= !is_all;
	}
}
