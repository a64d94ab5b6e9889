/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loads who owned the resident memory of a process. */
#include "tools/recording/load_parts.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

static void forget(struct recorded_account *account)
{
	for (size_t i = 0; i < account->n_names; i++)
		free(account->names[i]);
	free(account->names);
	free(account->owners);
	free(account->fragments);
	free(account->undivided);
	free(account->breaks);
	free(account->unsampled);
	*account = (struct recorded_account){0};
}

void torsh_load_forget_accounts(struct recorded_process *process)
{
	for (int i = 0; i < N_RECORDED_ACCOUNTS; i++)
		forget(&process->accounts[i]);
	free(process->account_problem);
}

static bool is_whole(const Torsh__Residency *row)
{
	size_t n = row->n_kind, n_fragments = row->n_arena;

	return row->n_name == n && row->n_stack == n && row->n_bytes == n &&
	       row->n_owner_pss_bytes == n && row->n_size_class == n_fragments &&
	       row->n_live_bytes == n_fragments && row->n_free_bytes == n_fragments &&
	       row->n_whole_bytes == n_fragments && row->n_broken_samples == row->n_broken_stack &&
	       row->n_broken_pages == row->n_broken_stack;
}

static void load_names(struct recorded_account *account, const Torsh__Residency *row)
{
	account->names = torsh_need_items(NULL, 0, row->n_names, sizeof(*account->names));
	account->n_names = row->n_names;
	for (size_t i = 0; i < row->n_names; i++)
		account->names[i] = torsh_need(strdup(row->names[i]));
}

static const char *name_of(const struct recorded_account *account, uint32_t number)
{
	return number && number <= account->n_names ? account->names[number - 1] : NULL;
}

static void load_owners(struct recording *recording, const struct recorded_process *process,
			struct recorded_account *account, const Torsh__Residency *row)
{
	account->owners = torsh_need_items(NULL, 0, row->n_kind, sizeof(*account->owners));
	account->n_owners = row->n_kind;
	for (size_t i = 0; i < row->n_kind; i++) {
		bool is_known = row->kind[i] && row->kind[i] < N_RESIDENT_KINDS;
		bool has_stack =
			row->stack[i] && torsh_load_can_walk(recording, process, row->stack[i]);

		account->owners[i] = (struct recorded_owner){
			.kind = is_known ? (enum resident_kind)row->kind[i] : RESIDENT_UNKNOWN,
			.stack = has_stack ? row->stack[i] : 0,
			.name = name_of(account, row->name[i]),
			.bytes = row->bytes[i],
			.pss_bytes = row->owner_pss_bytes[i],
		};
	}
}

static void load_fragments(struct recorded_account *account, const Torsh__Residency *row)
{
	account->fragments = torsh_need_items(NULL, 0, row->n_arena, sizeof(*account->fragments));
	for (size_t i = 0; i < row->n_arena; i++) {
		struct recorded_fragment fragment = {
			.arena = name_of(account, row->arena[i]),
			.size_class = row->size_class[i],
			.live_bytes = row->live_bytes[i],
			.free_bytes = row->free_bytes[i],
			.whole_bytes = row->whole_bytes[i],
		};

		if (fragment.arena && fragment.size_class <= RESIDENT_NO_BLOCK)
			account->fragments[account->n_fragments++] = fragment;
	}
}

static void load_breaks(struct recording *recording, const struct recorded_process *process,
			struct recorded_account *account, const Torsh__Residency *row)
{
	size_t n = row->n_broken_stack;

	account->is_sampled = row->has_samples_lost;
	account->samples_lost = row->samples_lost;
	torsh_load_text(&account->unsampled, row->unsampled);
	account->breaks = torsh_need_items(NULL, 0, n, sizeof(*account->breaks));
	account->n_breaks = n;
	for (size_t i = 0; i < n; i++) {
		uint32_t stack = row->broken_stack[i];
		bool has_stack = stack && torsh_load_can_walk(recording, process, stack);

		account->breaks[i] = (struct recorded_break){
			.stack = has_stack ? stack : 0,
			.samples = row->broken_samples[i],
			.pages = row->broken_pages[i],
		};
	}
}

static void load_sums(struct recorded_account *account, const Torsh__Residency *row)
{
	*account = (struct recorded_account){
		.is_there = true,
		.is_at_end = row->at_end,
		.is_held = row->held,
		.is_of_fork = row->has_inherited_is_known,
		.inherited_is_known = row->inherited_is_known,
		.at_ns = row->at_ns,
		.rss_bytes = row->rss_bytes,
		.pss_bytes = row->pss_bytes,
		.swap_bytes = row->swap_bytes,
		.huge_bytes = row->huge_bytes,
		.status_bytes = row->status_rss_bytes,
		.page_table_bytes = row->page_table_bytes,
		.hugetlb_bytes = row->hugetlb_bytes,
		.cpu_ns = row->cpu_ns,
		.tree_rss_bytes = row->tree_rss_bytes,
		.tree_pss_bytes = row->tree_pss_bytes,
		.n_tree = row->tree_processes,
	};
	torsh_load_text(&account->undivided, row->undivided);
}

void torsh_load_residency(struct recording *recording, const Torsh__Residency *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	struct recorded_account *account;

	if (!process)
		return;
	if (row->problem)
		torsh_load_text(&process->account_problem, row->problem);
	if (row->number >= N_RECORDED_ACCOUNTS)
		return;
	if (!is_whole(row)) {
		recording->n_bad_rows++;
		return;
	}
	account = &process->accounts[row->number];
	forget(account);
	load_sums(account, row);
	load_names(account, row);
	load_owners(recording, process, account, row);
	load_fragments(account, row);
	load_breaks(recording, process, account, row);
}
