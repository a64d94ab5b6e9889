/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rules about lines that allocate and free again and again. See tools/analysis/rules.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/host/stack_line.h"
#include "tools/analysis/rules.h"
#include "tools/base/containers/array.h"

#define NO_HEAP "no allocation of the host was recorded"

/* The allocations of one line. */
struct line {
	uint64_t key;
	uint32_t stack; /* the stack that allocated most bytes */
	uint64_t stack_bytes;
	uint64_t blocks, bytes;
};

struct lines {
	struct line *items;
	size_t n, room;
};

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* Merge the entries of each line. */
static void merge_lines(struct lines *lines)
{
	size_t n = 0;

	if (!lines->n)
		return;
	qsort(lines->items, lines->n, sizeof(*lines->items), compare_lines);
	for (size_t i = 0; i < lines->n; i++) {
		const struct line *line = &lines->items[i];
		struct line *to = n ? &lines->items[n - 1] : NULL;

		if (!to || to->key != line->key) {
			lines->items[n++] = *line;
			continue;
		}
		to->blocks += line->blocks;
		to->bytes += line->bytes;
		if (line->stack_bytes > to->stack_bytes) {
			to->stack = line->stack;
			to->stack_bytes = line->stack_bytes;
		}
	}
	lines->n = n;
}

/* Adds a stack's row to its line, as a rule counts it. */
typedef void count_total(const struct recorded_process *process, const struct recorded_total *total,
			 struct line *line);

/* part: rows without it count nothing. */
static struct lines collect_lines(const struct recorded_process *process, count_total *count,
				  enum total_part part)
{
	struct lines lines = {0};

	for (size_t i = 0; i < process->totals.n; i++) {
		struct recorded_total total;
		struct line line;

		if (!torsh_totals_has_part(&process->totals, i, part))
			continue;
		total = torsh_totals_at(&process->totals, i);
		line = (struct line){.stack = total.stack};
		count(process, &total, &line);
		if (!line.blocks)
			continue;
		line.key = torsh_stack_line(process, total.stack);
		line.stack_bytes = line.bytes;
		lines.items = torsh_array_reserve(lines.items, lines.n, &lines.room, sizeof(line));
		lines.items[lines.n++] = line;
	}
	merge_lines(&lines);
	return lines;
}

static struct finding *fire(struct evaluation *evaluation, const struct line *line)
{
	struct finding *finding = torsh_rule_fire(evaluation, NAN);

	finding->stack = line->stack;
	finding->is_stack_of_program = true;
	return finding;
}

/* ---- temporaries ----------------------------------------------------------------------------- */

static void count_temporary(const struct recorded_process *process,
			    const struct recorded_total *total, struct line *line)
{
	(void)process;
	line->blocks = total->temporary;
	line->bytes = total->temporary_bytes;
}

/* reason: a further reason why not; NULL: none. */
static bool can_evaluate(struct evaluation *evaluation, const char *reason)
{
	reason = evaluation->of->process->totals.n ? reason : NO_HEAP;

	evaluation->share_of = NULL;
	if (!reason && torsh_run_seconds(evaluation->of) <= 0)
		reason = "it is not known how long the process ran";
	return torsh_rule_can_evaluate(evaluation, reason);
}

static void add_sums(struct finding *finding, const struct line *line)
{
	torsh_finding_add(finding, "blocks", "blocks", (double)line->blocks);
	torsh_finding_add(finding, "bytes", "bytes", (double)line->bytes);
}

void torsh_rule_evaluate_host_allocation_churn(struct evaluation *evaluation)
{
	double seconds = torsh_run_seconds(evaluation->of);
	struct lines lines;

	if (!can_evaluate(evaluation, NULL))
		return;
	lines = collect_lines(evaluation->of->process, count_temporary, TOTAL_TEMPORARY);
	for (size_t i = 0; i < lines.n; i++) {
		const struct line *line = &lines.items[i];
		double rate = (double)line->blocks / seconds;
		struct finding *finding;

		if (!torsh_limit_passed(LIMIT_HOST_ALLOCATION_CHURN_RATE, rate))
			continue;
		finding = fire(evaluation, line);
		add_sums(finding, line);
		torsh_finding_limit(finding, LIMIT_HOST_ALLOCATION_CHURN_RATE, rate);
	}
	free(lines.items);
}

void torsh_rule_evaluate_large_temporaries(struct evaluation *evaluation)
{
	double seconds = torsh_run_seconds(evaluation->of);
	struct lines lines;

	if (!can_evaluate(evaluation, NULL))
		return;
	lines = collect_lines(evaluation->of->process, count_temporary, TOTAL_TEMPORARY);
	for (size_t i = 0; i < lines.n; i++) {
		const struct line *line = &lines.items[i];
		double rate = (double)line->bytes / seconds;
		double block_bytes = (double)line->bytes / (double)line->blocks;
		struct finding *finding;

		if (!torsh_limit_passed(LIMIT_LARGE_TEMPORARIES_SIZE, block_bytes) ||
		    !torsh_limit_passed(LIMIT_LARGE_TEMPORARIES_RATE, rate))
			continue;
		finding = fire(evaluation, line);
		add_sums(finding, line);
		torsh_finding_limit(finding, LIMIT_LARGE_TEMPORARIES_SIZE, block_bytes);
		torsh_finding_limit(finding, LIMIT_LARGE_TEMPORARIES_RATE, rate);
	}
	free(lines.items);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/*
 * Counts blocks that are freed again: none of a stack that still holds more than a tenth, and none
 * of operators, because the framework decides on its tensors.
 */
static void count_in_steps(const struct recorded_process *process,
			   const struct recorded_total *total, struct line *line)
{
	const struct recorded_live *live =
		torsh_recording_row(&process->live, total->stack, sizeof(*live));

	if (total->operator|| !total->last_step ||(live && live->blocks > total->allocs / 10))
		return;
	line->blocks = total->allocs;
	line->bytes = total->alloc_bytes;
}

void torsh_rule_evaluate_allocation_in_hot_step(struct evaluation *evaluation)
{
	double n_steps = (double)evaluation->of->of->steps.n_all;
	struct lines lines;

	if (!can_evaluate(evaluation, n_steps >= 3 ? NULL : "fewer than 3 steps are known"))
		return;
	lines = collect_lines(evaluation->of->process, count_in_steps, TOTAL_STEPS);
	for (size_t i = 0; i < lines.n; i++) {
		const struct line *line = &lines.items[i];
		double bytes_per_step = (double)line->bytes / n_steps;
		double block_bytes = (double)line->bytes / (double)line->blocks;
		struct finding *finding;

		if ((double)line->blocks < n_steps ||
		    !torsh_limit_passed(LIMIT_ALLOCATION_IN_HOT_STEP_SIZE, block_bytes) ||
		    !torsh_limit_passed(LIMIT_ALLOCATION_IN_HOT_STEP_BYTES, bytes_per_step))
			continue;
		finding = fire(evaluation, line);
		torsh_finding_limit(finding, LIMIT_ALLOCATION_IN_HOT_STEP_BYTES, bytes_per_step);
		torsh_finding_limit(finding, LIMIT_ALLOCATION_IN_HOT_STEP_SIZE, block_bytes);
		torsh_finding_add(finding, "blocks_per_step", "blocks a step",
				  (double)line->blocks / n_steps);
	}
	free(lines.items);
}
