/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A brief as Markdown. */
#include "tools/report/brief/claims.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/metrics.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/frames/frame_kind.h"
#include "tools/frames/short_name.h"
#include "tools/recording/losses.h"
#include "tools/report/screen/screen_processes.h"

#define TEXT_MAX 200 /* bytes of one name, place or list of inputs */
#define RULES_LISTED 12u

/* ---- the run --------------------------------------------------------------------------------- */

static void print_program(FILE *out, const struct brief *brief)
{
	char *command = torsh_brief_rerun(brief), n[SIZE_TEXT_BYTES], ran[SIZE_TEXT_BYTES];
	uint64_t ns = torsh_brief_run_ns(brief);
	size_t n_processes = brief->overview->n_processes;

	fprintf(out, "- Program: `%.*s`, %s", TEXT_MAX,
		command ? command : torsh_screen_name(brief->main),
		torsh_size_counted(n_processes, "process", n));
	if (ns)
		fprintf(out, ", ran %s", torsh_size_duration(ns, ran));
	fputs("\n", out);
	free(command);
}

static void print_steps(FILE *out, const struct step_durations *steps)
{
	char n[SIZE_TEXT_BYTES], median[SIZE_TEXT_BYTES], p99[SIZE_TEXT_BYTES];

	if (steps->n)
		fprintf(out, "- Steps: %s, median %s, p99 %s\n",
			torsh_size_counted(steps->n, "step", n),
			torsh_size_duration(steps->median_ns, median),
			torsh_size_duration(steps->p99_ns, p99));
	else
		fputs("- Steps: none were found\n", out);
}

static void print_memory(FILE *out, const struct overview *overview)
{
	char bytes[SIZE_TEXT_BYTES], blocks[SIZE_TEXT_BYTES];

	if (overview->highest.is_known)
		fprintf(out, "- Memory: %s of heap at the peak",
			torsh_size_human(overview->highest.bytes, bytes));
	else
		fputs("- Memory: nothing is known about the heap", out);
	if (overview->leaks.blocks)
		fprintf(out, "; %s in %s not freed", torsh_size_human(overview->leaks.bytes, bytes),
			torsh_size_counted(overview->leaks.blocks, "block", blocks));
	else if (overview->highest.is_known)
		fputs("; nothing leaked", out);
	fputs("\n", out);
}

static void print_devices(FILE *out, const struct overview *overview)
{
	const struct metrics *metrics = overview->analysis.metrics;
	size_t n = 0;

	for (size_t i = 0; metrics && i < metrics->n; i++) {
		const struct metrics_process *of = &metrics->processes[i];

		for (size_t k = 0; k < of->n_devices; k++) {
			const struct metrics_device *device = &of->devices[k];
			char share[SIZE_TEXT_BYTES];

			if (!device->scope_ns || n++ >= 4)
				continue;
			fprintf(out, "%s device %" PRIu32 " at work %s of the time",
				n == 1 ? "- Devices:" : ",", device->number,
				torsh_size_percent((double)device->busy_ns,
						   (double)device->scope_ns, share));
		}
	}
	fputs(n ? "\n" : "- Devices: none were used, or recorded\n", out);
}

static void print_losses(FILE *out, const struct overview *overview)
{
	struct losses losses;
	char lost[SIZE_TEXT_BYTES], all[SIZE_TEXT_BYTES];

	torsh_losses_sum(&losses, overview->processes, overview->n_processes);
	fprintf(out, "- Recording: `%.*s`, %s of %s lost\n", TEXT_MAX, overview->path,
		torsh_size_counted(losses.dropped, "event", lost),
		torsh_size_grouped(losses.produced, all));
	torsh_losses_free(&losses);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* Print "**aten::mm**: 1.2 s in 300 calls, 40.0% of the operators' time". */
static void print_amount(FILE *out, const struct brief_cost *cost)
{
	static const char *const names[N_COST_KINDS] = {
		[COST_PYTHON] = "Between operators that follow each other: Python",
		[COST_WAITING] = "Gaps of at least 1 ms without any operator",
		[COST_COLLECTOR] = "Python's garbage collector",
		[COST_PEAK] = "Memory at the peak",
		[COST_LEAK] = "Memory that was not freed",
	};
	static const char *const units[N_COST_KINDS] = {
		[COST_OPERATOR] = "call", [COST_DEVICE] = "call",   [COST_PYTHON] = "gap",
		[COST_WAITING] = "gap",	  [COST_COLLECTOR] = "run", [COST_PEAK] = "block",
		[COST_LEAK] = "block",
	};
	char amount[SIZE_TEXT_BYTES], calls[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES];

	fprintf(out, "**%.*s**%s: %s in %s, %s of %s", TEXT_MAX,
		cost->name ? cost->name : names[cost->kind],
		cost->kind == COST_DEVICE ? " on devices" : "",
		cost->bytes ? torsh_size_human(cost->bytes, amount)
			    : torsh_size_duration(cost->ns, amount),
		torsh_size_counted(cost->calls, units[cost->kind], calls),
		torsh_size_percent(cost->share_pct, 100, share), cost->share_of);
}

/* Print the line with most of it, and what stands there. */
static void print_line(FILE *out, const struct brief_cost *cost)
{
	char *place, *function;

	if (!cost->frame)
		return;
	place = torsh_short_place(cost->frame, torsh_working_directory());
	function = torsh_short_frame(cost->frame);
	fprintf(out, "   %s at `%.*s` (%.*s)", cost->name ? "Called most" : "Most of it", TEXT_MAX,
		place, TEXT_MAX, function);
	if (cost->quoted)
		fprintf(out, ":\n   `` %s ``\n", cost->quoted);
	else if (cost->unquoted)
		fprintf(out, "; not quoted: %s\n", cost->unquoted);
	else
		fputs("\n", out);
	free(place);
	free(function);
}

static void print_costs(FILE *out, const struct brief *brief)
{
	fputs("\n## Most costly\n\n", out);
	for (size_t i = 0; i < brief->n_costs; i++) {
		const struct brief_cost *cost = &brief->costs[i];

		fprintf(out, "%zu. ", i + 1);
		print_amount(out, cost);
		fputs("\n", out);
		if (cost->inputs)
			fprintf(out, "   Inputs with most of it: `%.*s`\n", TEXT_MAX, cost->inputs);
		print_line(out, cost);
	}
	if (!brief->n_costs)
		fputs("Nothing was measured that costs time or memory.\n", out);
}

/* ---- hypotheses ------------------------------------------------------------------------------ */

static void print_gain(FILE *out, const struct brief_hypothesis *hypothesis)
{
	char share[SIZE_TEXT_BYTES];

	if (hypothesis->site)
		return; /* the sentence has it */
	if (isnan(hypothesis->gain_pct))
		fputs("   Gain: not known\n", out);
	else if (!isnan(hypothesis->speedup))
		fprintf(out, "   Gain: at most %s of %s, %.2f times as fast\n",
			torsh_size_percent(hypothesis->gain_pct, 100, share), hypothesis->share_of,
			hypothesis->speedup);
	else
		fprintf(out, "   Gain: at most %s of %s\n",
			torsh_size_percent(hypothesis->gain_pct, 100, share), hypothesis->share_of);
}

static void print_hypothesis(FILE *out, const struct brief *brief,
			     const struct brief_hypothesis *hypothesis)
{
	char *sentence = torsh_brief_sentence(brief, hypothesis);
	char *place = torsh_brief_place(brief, hypothesis);
	const char *check = torsh_brief_check(hypothesis);

	fprintf(out, "**%s**: %.*s%s%.*s%s\n", torsh_brief_rule(hypothesis), 2 * TEXT_MAX, sentence,
		place ? " At `" : "", TEXT_MAX, place ? place : "", place ? "`." : "");
	fprintf(out, "   Change: %s\n", torsh_brief_change(hypothesis));
	print_gain(out, hypothesis);
	if (check)
		fprintf(out, "   Check: `%s AFTER`\n", check);
	free(sentence);
	free(place);
}

static char *hypotheses_text(const struct brief *brief, size_t n)
{
	char *text = NULL;
	size_t n_text;
	FILE *out = torsh_need(open_memstream(&text, &n_text));

	fputs("\n## Hypotheses, by what they gain at most\n\n", out);
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "%zu. ", i + 1);
		print_hypothesis(out, brief, &brief->hypotheses[i]);
	}
	if (!brief->n_hypotheses)
		fputs("None: no rule found anything. The most costly lines above are where to look.\n",
		      out);
	if (n < brief->n_hypotheses)
		fprintf(out, "\n%zu more: `torsh report -v`\n", brief->n_hypotheses - n);
	if (fclose(out))
		torsh_die("out of memory");
	return text;
}

static char *claims_text(const struct brief *brief, size_t n)
{
	char *text = NULL;
	size_t n_text;
	FILE *out = torsh_need(open_memstream(&text, &n_text));

	torsh_claims_write(out, brief, n);
	if (fclose(out))
		torsh_die("out of memory");
	return text;
}

/* ---- what was ruled out, and how to check ---------------------------------------------------- */

static void list_rules(FILE *out, const struct brief *brief, enum rule_state state,
		       const char *heading)
{
	const struct analysis *analysis = &brief->overview->analysis;
	size_t n = 0;

	for (size_t i = 0; i < N_SUSPECTS + N_RULES; i++) {
		bool is_rule = i >= N_SUSPECTS;
		size_t rule = is_rule ? i - N_SUSPECTS : i;

		if ((is_rule ? analysis->rules[rule].state
			     : torsh_brief_suspect_state(brief, rule)) != state)
			continue;
		if (n < RULES_LISTED)
			fprintf(out, "%s%s", n ? ", " : heading,
				is_rule ? torsh_rules[rule].name : torsh_suspects[rule].name);
		n++;
	}
	if (n > RULES_LISTED)
		fprintf(out, " and %zu more", n - RULES_LISTED);
	fputs(n ? "\n" : "", out);
}

static void print_ruled_out(FILE *out, const struct brief *brief)
{
	fputs("\n## Ruled out\n\n", out);
	list_rules(out, brief, RULE_CLEAR, "Below their limits: ");
	list_rules(out, brief, RULE_NOT_EVALUATED,
		   "Not judged, as the recording lacks what they need (`torsh report -v`): ");
}

static void print_commands(FILE *out, const struct brief *brief)
{
	char *command = torsh_brief_rerun(brief);
	const char *path = brief->overview->path;

	fputs("\n## Check a change\n\n```\n", out);
	fprintf(out, "torsh run -o AFTER -- %s\n", command ? command : "PROGRAM ARGUMENTS");
	fprintf(out, "torsh validate %.*s AFTER --brief BRIEF\n", TEXT_MAX, path);
	fprintf(out, "torsh diff %.*s AFTER\n", TEXT_MAX, path);
	fputs(brief->steps.n ? "torsh steps AFTER\n" : "torsh report AFTER\n", out);
	fputs("```\n", out);
	free(command);
}

void torsh_brief_text(FILE *out, const struct brief *brief)
{
	char *before = NULL, *after = NULL, *hypotheses = NULL, *claims = NULL;
	size_t n_before, n_after, n = brief->n_hypotheses;
	FILE *part = torsh_need(open_memstream(&before, &n_before));

	fprintf(part, "# %.*s: what costs, and what to try\n\n", TEXT_MAX,
		torsh_screen_name(brief->main));
	print_program(part, brief);
	print_steps(part, &brief->steps);
	print_memory(part, brief->overview);
	print_devices(part, brief->overview);
	print_losses(part, brief->overview);
	print_costs(part, brief);
	if (fclose(part))
		torsh_die("out of memory");
	part = torsh_need(open_memstream(&after, &n_after));
	print_ruled_out(part, brief);
	print_commands(part, brief);
	if (fclose(part))
		torsh_die("out of memory");
	do {
		free(hypotheses);
		free(claims);
		hypotheses = hypotheses_text(brief, n);
		claims = claims_text(brief, n);
	} while (n_before + strlen(hypotheses) + n_after + strlen(claims) > BRIEF_BYTES_MAX && n--);
	fprintf(out, "%s%s%s%s", before, hypotheses, after, claims);
	free(before);
	free(hypotheses);
	free(claims);
	free(after);
}
