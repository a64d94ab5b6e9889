/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about who owned the resident memory when most was resident. */
#include "tools/analysis/host/host_rules.h"
#include "tools/memory/rss/resident.h"

/* Returns the bytes of that kind; 0 without an account. */
static double bytes_of(const struct recorded_account *account, enum resident_kind kind)
{
	double bytes = 0;

	for (size_t i = 0; account && i < account->n_owners; i++)
		bytes += account->owners[i].kind == kind ? (double)account->owners[i].bytes : 0;
	return bytes;
}

static bool can_evaluate(struct evaluation *evaluation, const struct recorded_account *account,
			 const char *further)
{
	const char *reason = account ? further : evaluation->of->process->account_problem;

	evaluation->share_of = "the resident memory";
	if (!account && !reason)
		reason = "nobody looked at who owns the resident memory (torsh rss)";
	return torsh_rule_can_evaluate(evaluation, reason);
}

static struct finding *fire(struct evaluation *evaluation, const struct recorded_account *account,
			    double bytes)
{
	struct finding *finding =
		torsh_rule_fire(evaluation, torsh_percent(bytes, (double)account->rss_bytes));

	torsh_finding_gains_bytes(finding, bytes);
	torsh_finding_add(finding, "resident", "bytes", (double)account->rss_bytes);
	return finding;
}

/* Returns why what the allocator keeps is not known, or NULL. */
static const char *no_division(const struct recorded_process *process,
			       const struct recorded_account *account)
{
	if (!account)
		return NULL;
	if (account->is_at_end && process->heap.current_bytes < process->heap.peak_bytes / 2)
		return "the resident memory was looked at when most blocks had been freed";
	return account->undivided;
}

void torsh_rule_evaluate_memory_kept(struct evaluation *evaluation)
{
	const struct recorded_account *account =
		torsh_resident_account(evaluation->of->process, RESIDENT_AT_PEAK);
	double kept = bytes_of(account, RESIDENT_RETAINED), kept_pct;
	struct finding *finding;

	if (!can_evaluate(evaluation, account, no_division(evaluation->of->process, account)))
		return;
	kept_pct = torsh_percent(kept, (double)account->rss_bytes);
	if (!torsh_limit_passed(LIMIT_MEMORY_KEPT_BYTES, kept) ||
	    !torsh_limit_passed(LIMIT_MEMORY_KEPT_SHARE, kept_pct))
		return;
	finding = fire(evaluation, account, kept);
	torsh_finding_limit(finding, LIMIT_MEMORY_KEPT_BYTES, kept);
	torsh_finding_limit(finding, LIMIT_MEMORY_KEPT_SHARE, kept_pct);
}

void torsh_rule_evaluate_copied_after_fork(struct evaluation *evaluation)
{
	const struct recorded_process *process = evaluation->of->process;
	const struct recorded_account *account = torsh_resident_account(process, RESIDENT_AT_PEAK);
	double copied = bytes_of(account, RESIDENT_COW);
	const char *reason = NULL;
	struct finding *finding;

	if (!process->forked_from)
		reason = "the process was not forked by one that was recorded";
	else if (account && !account->inherited_is_known)
		reason = "it is not known which pages the fork inherited";
	if (!can_evaluate(evaluation, account, reason) ||
	    !torsh_limit_passed(LIMIT_COPIED_AFTER_FORK_BYTES, copied))
		return;
	finding = fire(evaluation, account, copied);
	torsh_finding_limit(finding, LIMIT_COPIED_AFTER_FORK_BYTES, copied);
	if (account->n_breaks) {
		finding->stack = account->breaks[0].stack;
		finding->is_stack_of_program = true;
	}
}
