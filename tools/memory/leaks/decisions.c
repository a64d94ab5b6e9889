/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/decisions.h"

#include <stdlib.h>

#include "agent/wire/channel.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/base/die.h"
#include "tools/memory/leaks/bookkeeping.h"
#include "tools/memory/leaks/first_uses.h"
#include "tools/memory/leaks/kept_imports.h"
#include "tools/memory/leaks/python_holds.h"
#include "tools/memory/leaks/rules/stack_bytes.h"

/*
 * Returns the kind of bookkeeping of each allocation site, NULL for none; the caller frees the
 * list.
 */
static const char **find_bookkeeping(const struct recorded_process *process,
				     struct symbols *symbols, const struct site_reader *sites)
{
	const char **found = torsh_need_items(NULL, 0, sites->n, sizeof(*found));
	uint32_t *callers = torsh_need_items(NULL, 0, sites->n, sizeof(*callers));
	struct sparse_array bytes; /* uint64_t by the caller's stack */
	struct bookkeeping book;

	torsh_sparse_array_create(&bytes, sizeof(uint64_t));
	torsh_bookkeeping_start(&book, symbols, process);
	for (size_t i = 0; i < sites->n; i++) {
		found[i] =
			torsh_bookkeeping_of(&book, torsh_site_reader_stack(sites, i), &callers[i]);
		if (found[i])
			torsh_stack_bytes_add(&bytes, callers[i],
					      torsh_site_reader_at(sites, i).bytes);
	}
	for (size_t i = 0; i < sites->n; i++)
		if (callers[i] && torsh_stack_bytes_at(&bytes, callers[i]) > LEAKS_KEPT_BYTES)
			found[i] = NULL;
	torsh_bookkeeping_end(&book);
	free(callers);
	torsh_sparse_array_destroy(&bytes);
	return found;
}

static bool is_left_out(const struct decisions *decisions, size_t i)
{
	return decisions->packages[i] || (decisions->kept && decisions->kept[i]) ||
	       (decisions->rulings &&
		torsh_ruling_holds(&decisions->rules, &decisions->rulings[i]));
}

/* What the interpreter holds for itself, unless it is too much, of what nothing else left out. */
static void decide_outside(struct decisions *decisions, const struct site_reader *sites)
{
	bool *is_outside = torsh_need_items(NULL, 0, decisions->n, sizeof(*is_outside));
	uint64_t bytes = 0;

	for (size_t i = 0; i < decisions->n; i++) {
		is_outside[i] = !is_left_out(decisions, i) &&
				torsh_python_holds_outside(&decisions->kinds,
							   torsh_site_reader_stack(sites, i));
		bytes += is_outside[i] ? torsh_site_reader_at(sites, i).bytes : 0;
	}
	for (size_t i = 0; bytes <= LEAKS_KEPT_BYTES && i < decisions->n; i++)
		if (is_outside[i])
			decisions->kept[i] = PYTHON_HOLDS_OUTSIDE;
	free(is_outside);
}

/* What keeps sites since the first use of a package, of those that nothing else left out. */
static void decide_first_uses(struct decisions *decisions, const struct site_reader *sites)
{
	bool *is_decided = torsh_need_items(NULL, 0, decisions->n, sizeof(*is_decided));

	for (size_t i = 0; i < decisions->n; i++)
		is_decided[i] = is_left_out(decisions, i);
	decisions->users =
		torsh_first_uses_find(&decisions->kinds, sites, is_decided, &decisions->names);
	free(is_decided);
}

void torsh_decisions_start(struct decisions *decisions, const struct recorded_process *process,
			   struct symbols *symbols, struct suppress *suppress)
{
	torsh_address_kinds_start(&decisions->kinds, process, symbols);
	if (!decisions->of_device && process->tables->has_python)
		torsh_import_runs_find(&decisions->runs, &decisions->kinds);
	if (suppress)
		torsh_suppress_add_own(suppress, process->number, process->program,
				       process->lsan_suppressions);
	if (!suppress || !suppress->n)
		return;
	decisions->rules = (struct rules){
		.suppress = suppress,
		.symbols = symbols,
		.process = process,
		.kinds = &decisions->kinds,
		.runs = &decisions->runs,
	};
	torsh_rules_start(&decisions->rules);
}

static void free_lists(struct decisions *decisions)
{
	free(decisions->rulings);
	free(decisions->kept);
	free(decisions->packages);
	free(decisions->users);
	torsh_intern_free(&decisions->names);
	decisions->rulings = NULL;
	decisions->kept = NULL;
	decisions->packages = NULL;
	decisions->users = NULL;
	decisions->n = 0;
}

void torsh_decisions_find(struct decisions *decisions, const struct site_reader *sites)
{
	const struct recorded_process *process = decisions->kinds.process;

	free_lists(decisions);
	decisions->n = sites->n;
	if (decisions->rules.suppress)
		decisions->rulings = torsh_rulings_find(&decisions->rules, sites);
	if (!decisions->of_device)
		decisions->kept = find_bookkeeping(process, decisions->kinds.symbols, sites);
	if (decisions->without_imports || !decisions->runs.is_repeated)
		return;
	decisions->packages = torsh_kept_imports_find(&decisions->kinds, &decisions->runs, sites,
						      &decisions->names);
	decide_outside(decisions, sites);
	if (process->ran_exit_handlers || process->end == TORSH__PROCESS__END_KIND__SIGNALED ||
	    (process->forked_from && process->ended_by__exit))
		decide_first_uses(decisions, sites);
}

void torsh_decisions_end(struct decisions *decisions)
{
	free_lists(decisions);
	torsh_import_runs_end(&decisions->runs);
	torsh_address_kinds_end(&decisions->kinds);
	torsh_rules_end(&decisions->rules);
}
