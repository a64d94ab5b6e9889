/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/brief/brief.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/report/growth_report.h"
#include "tools/report/screen/screen_processes.h"

#define COMMAND_MAX 400u /* bytes of the program's command */

static void find_suspects(struct brief *brief, const struct prepass *prepass)
{
	const struct overview *overview = brief->overview;
	const struct metrics_process *of = torsh_overview_metrics(overview, brief->main);

	for (enum suspect_kind kind = 0; kind < N_SUSPECTS; kind++)
		brief->suspects.items[kind] = (struct suspect){
			.kind = kind, .reason = "no timeline was recorded", .gain_pct = NAN};
	if (of && of->of)
		torsh_suspects_find(&brief->suspects, overview->recording, of, prepass);
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
	torsh_overview_all_growth(&brief->growth, overview);
	torsh_brief_find_costs(brief, prepass);
	find_suspects(brief, prepass);
	torsh_brief_find_hypotheses(brief);
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
