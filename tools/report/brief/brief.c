/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/brief/brief.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/sentence.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/short_name.h"
#include "tools/report/growth_report.h"
#include "tools/report/screen/screen_processes.h"

#define COMMAND_MAX 400u /* bytes of the program's command */

/* Returns true if a share of it is a share of the time that a user waits for. */
static bool is_time(const char *share_of)
{
	return share_of && (strstr(share_of, "steps") || strcmp(share_of, "the run") == 0);
}

static void add(struct brief *brief, const struct finding *finding,
		const struct allocation_site *site)
{
	bool of_time = finding && is_time(finding->share_of) && finding->share_pct < 100;

	if (brief->n_hypotheses == BRIEF_HYPOTHESES)
		return;
	brief->hypotheses[brief->n_hypotheses++] = (struct brief_hypothesis){
		.finding = finding,
		.site = site,
		.gain_pct = finding ? finding->share_pct : NAN,
		.speedup = of_time ? 100 / (100 - finding->share_pct) : NAN,
	};
}

static bool has_rule(const struct brief *brief, enum rule rule)
{
	for (size_t i = 0; i < brief->n_hypotheses; i++) {
		if (brief->hypotheses[i].finding && brief->hypotheses[i].finding->rule == rule)
			return true;
	}
	return false;
}

/* The findings of time come first, by their gain; those of memory and of unknown gain follow. */
static int compare(const void *a, const void *b)
{
	const struct brief_hypothesis *x = a, *y = b;
	bool x_is_time = !isnan(x->speedup), y_is_time = !isnan(y->speedup);

	if (x_is_time != y_is_time)
		return x_is_time ? -1 : 1;
	if (isnan(x->gain_pct) || isnan(y->gain_pct))
		return isnan(x->gain_pct) - isnan(y->gain_pct);
	return (x->gain_pct < y->gain_pct) - (x->gain_pct > y->gain_pct);
}

/* The worst finding of each rule about the program. */
static void find_hypotheses(struct brief *brief)
{
	const struct analysis *analysis = &brief->overview->analysis;

	if (brief->overview->n_leaks && brief->overview->leaks.blocks)
		add(brief, NULL, brief->overview->leaks.found.items);
	else if (brief->growth.found.n)
		add(brief, NULL, brief->growth.found.items);
	for (size_t i = 0; i < analysis->n; i++) {
		const struct finding *finding = &analysis->findings[i];

		if (!torsh_analysis_kind_names[torsh_rules[finding->rule].kind] ||
		    torsh_finding_is_remark(finding) || has_rule(brief, finding->rule))
			continue;
		add(brief, finding, NULL);
	}
	qsort(brief->hypotheses, brief->n_hypotheses, sizeof(*brief->hypotheses), compare);
}

void torsh_brief_make(struct brief *brief, const struct overview *overview,
		      const struct prepass *prepass)
{
	struct screen_processes processes;

	torsh_screen_processes_sort(&processes, overview);
	*brief = (struct brief){.overview = overview,
				.main = overview->highest.process
						? overview->highest.process
						: overview->processes[processes.order[0]],
				.steps = torsh_step_durations_find(prepass)};
	torsh_screen_processes_free(&processes);
	torsh_overview_growth(&brief->growth, overview);
	torsh_brief_find_costs(brief, prepass);
	find_hypotheses(brief);
}

void torsh_brief_free(struct brief *brief)
{
	for (size_t i = 0; i < brief->n_costs; i++) {
		free(brief->costs[i].name);
		free(brief->costs[i].inputs);
		free(brief->costs[i].quoted);
	}
	torsh_growth_free(&brief->growth);
}

static bool is_growth(const struct brief *brief, const struct brief_hypothesis *hypothesis)
{
	return hypothesis->site && hypothesis->site == brief->growth.found.items;
}

const char *torsh_brief_rule(const struct brief *brief, const struct brief_hypothesis *hypothesis)
{
	if (hypothesis->finding)
		return torsh_rules[hypothesis->finding->rule].name;
	return is_growth(brief, hypothesis) ? "growth" : "leak";
}

char *torsh_brief_sentence(const struct brief *brief, const struct brief_hypothesis *hypothesis)
{
	char bytes[SIZE_TEXT_BYTES], blocks[SIZE_TEXT_BYTES];

	if (hypothesis->finding)
		return torsh_finding_sentence(hypothesis->finding, brief->overview->symbols);
	torsh_size_counted(hypothesis->site->blocks, "block", blocks);
	if (is_growth(brief, hypothesis))
		return torsh_need_text(
			"%s a %s more stay alive.",
			torsh_size_human(
				(uint64_t)(torsh_growth_rate(hypothesis->site).bytes + 0.5), bytes),
			brief->growth.over == GROWTH_OVER_STEPS ? "step" : "second");
	return torsh_need_text("%s in %s were not freed.",
			       torsh_size_human(hypothesis->site->bytes, bytes), blocks);
}

const char *torsh_brief_change(const struct brief_hypothesis *hypothesis)
{
	return hypothesis->finding ? torsh_rules[hypothesis->finding->rule].suggestion
				   : "Free it, drop what refers to it, or bound what keeps it.";
}

const char *torsh_brief_check(const struct brief_hypothesis *hypothesis)
{
	return hypothesis->finding ? torsh_rules[hypothesis->finding->rule].next : "torsh leaks";
}

char *torsh_brief_place(const struct brief *brief, const struct brief_hypothesis *hypothesis)
{
	const struct allocation_site *site = hypothesis->site;
	const char *directory = torsh_working_directory();
	size_t where;

	if (hypothesis->finding)
		return torsh_finding_place(hypothesis->finding, brief->overview->symbols);
	where = site->frames ? torsh_blamed_line(site->frames, site->n_frames, directory).where
			     : FRAME_NONE;
	return where == FRAME_NONE ? NULL : torsh_short_place(site->frames[where], directory);
}

/* Write an argument so that a shell reads it as it is. */
static void put_word(FILE *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "%+,-./:=@_";

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, out);
		return;
	}
	fputc('\'', out);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", out);
		else
			fputc(*word, out);
	}
	fputc('\'', out);
}

char *torsh_brief_rerun(const struct brief *brief)
{
	const struct recorded_process *process = brief->overview->processes[0];
	char *text = NULL;
	size_t n;
	FILE *out;

	if (!process->n_arguments)
		return NULL;
	out = torsh_need(open_memstream(&text, &n));
	for (size_t i = 0; i < process->n_arguments; i++) {
		if (i)
			fputc(' ', out);
		put_word(out, process->arguments[i]);
	}
	if (fclose(out))
		torsh_die("out of memory");
	if (n <= COMMAND_MAX && !strpbrk(text, "\n\r\033"))
		return text;
	free(text);
	return NULL;
}

uint64_t torsh_brief_run_ns(const struct brief *brief)
{
	const struct recorded_process *process = brief->main;

	return process->has_end_ns && process->end_ns > process->start_ns
		       ? process->end_ns - process->start_ns
		       : 0;
}
