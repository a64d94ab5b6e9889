/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/report_screen.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/recording/losses.h"
#include "tools/report/growth_report.h"
#include "tools/report/screen/next_commands.h"
#include "tools/report/screen/screen_devices.h"
#include "tools/report/screen/screen_findings.h"
#include "tools/report/screen/screen_leaks.h"
#include "tools/report/screen/screen_line.h"
#include "tools/report/screen/screen_memory.h"
#include "tools/report/screen/screen_path.h"
#include "tools/report/screen/screen_processes.h"
#include "tools/report/screen/screen_stacks.h"
#include "tools/report/screen/screen_time.h"
#include "tools/report/text.h"
#include "tools/terminal/width.h"

#define LOSSES_SHOWN 3u
#define NOTES_SHOWN 3u
#define ROWS_BELOW 7u /* folded processes, the recorder, and the next commands */

struct notes {
	size_t n;
};

static void print_verdict(const struct overview *overview)
{
	struct growth growth;

	torsh_overview_growth(&growth, overview);
	torsh_screen_leaks(overview, &growth);
	torsh_growth_free(&growth);
}

/* Returns how many rows losses, notes and the final lines take. */
static size_t rows_at_the_end(const struct losses *losses, const struct notes *notes)
{
	size_t n_losses = losses->n < LOSSES_SHOWN ? losses->n : LOSSES_SHOWN;
	size_t n_notes = notes->n < NOTES_SHOWN ? notes->n : NOTES_SHOWN;

	return (n_losses ? 3 + 2 * n_losses : 0) + (n_notes ? 1 + 2 * n_notes : 0) + ROWS_BELOW;
}

static void count_note(void *context, const char *note)
{
	struct notes *notes = context;

	(void)note;
	notes->n++;
}

static void print_note(void *context, const char *note)
{
	struct notes *notes = context;

	if (notes->n++ < NOTES_SHOWN)
		torsh_screen_line(STYLE_WARNING, 2, "note: %s", note);
}

static void print_notes(const struct overview *overview)
{
	struct notes notes = {0};

	torsh_text_visit_notes(overview->recording, overview->processes, overview->n_processes,
			       print_note, &notes);
	if (notes.n > NOTES_SHOWN)
		torsh_screen_line(STYLE_DIM, 1, "note: and %zu more (-v)", notes.n - NOTES_SHOWN);
}

/* Print that the verdict is an estimate, where no notes follow. */
static void print_sampling(const struct overview *overview)
{
	uint64_t every = torsh_recording_sampled_every(overview->processes, overview->n_processes);
	char rate[SIZE_TEXT_BYTES];

	if (every)
		torsh_screen_line(STYLE_WARNING, 1,
				  "an estimate from sampled blocks, one in %s on average",
				  torsh_size_human(every, rate));
}

static void print_losses(const struct losses *losses)
{
	char lost[SIZE_TEXT_BYTES], all[SIZE_TEXT_BYTES];

	if (!losses->n && !losses->dropped)
		return;
	torsh_screen_section("LOST", "%s of %s", torsh_size_counted(losses->dropped, "event", lost),
			     torsh_size_grouped(losses->produced, all));
	for (size_t i = 0; i < losses->n && i < LOSSES_SHOWN; i++) {
		char *words = torsh_losses_words(&losses->items[i]);

		torsh_screen_line(STYLE_BAD, 2, "   %s", words);
		free(words);
	}
	if (losses->n > LOSSES_SHOWN)
		torsh_screen_line(STYLE_DIM, 1, "   and %zu more (-v)", losses->n - LOSSES_SHOWN);
}

/* Findings take the rows that nothing else needs; losses follow. */
static void print_findings_and_losses(const struct overview *overview)
{
	struct losses losses;
	struct notes notes = {0};
	size_t n_rows;

	torsh_losses_sum(&losses, overview->processes, overview->n_processes);
	torsh_text_visit_notes(overview->recording, overview->processes, overview->n_processes,
			       count_note, &notes);
	n_rows = rows_at_the_end(&losses, &notes);
	torsh_screen_findings(&overview->analysis, overview->symbols,
			      n_rows < SCREEN_ROWS ? SCREEN_ROWS - n_rows : 0);
	print_losses(&losses);
	print_notes(overview);
	torsh_losses_free(&losses);
}

static void print_next(const struct overview *overview, const struct prepass *prepass)
{
	struct next_command commands[NEXT_COMMANDS];
	char *path = torsh_next_path(overview);
	size_t limit = torsh_width_limit(), columns = strlen("Next:");
	const char *separator;

	torsh_next_commands(commands, overview, prepass);
	for (size_t i = 0; i < NEXT_COMMANDS; i++)
		columns += strlen("  torsh ") + strlen(commands[i].name) + strlen(path) +
			   strlen(commands[i].options);
	separator = limit && columns > limit ? "\n  " : "  ";
	putchar('\n');
	torsh_style_print(stdout, STYLE_HEADING, "Next:");
	for (size_t i = 0; i < NEXT_COMMANDS; i++)
		printf("%storsh %s%s%s", separator, commands[i].name, path, commands[i].options);
	putchar('\n');
	free(path);
}

static void print_time(const struct screen_time *time, const struct overview *overview,
		       const struct prepass *prepass)
{
	torsh_screen_time(time, overview, prepass);
	torsh_screen_path(overview);
}

void torsh_screen_print(const struct overview *overview, const struct prepass *prepass)
{
	struct screen_processes processes;
	struct screen_time time = {0};
	const struct recorded_process *main;

	torsh_screen_processes_sort(&processes, overview);
	main = overview->highest.process ? overview->highest.process
					 : overview->processes[processes.order[0]];
	if (prepass)
		torsh_screen_time_collect(&time, overview, prepass);
	torsh_text_missing(stdout, overview->recording, overview->processes, overview->n_processes);
	print_verdict(overview);
	torsh_screen_stacks(&overview->recording->thread_stacks);
	torsh_screen_processes_main(&processes, time.steps.n);
	torsh_screen_memory(overview, main);
	if (prepass)
		print_time(&time, overview, prepass);
	else
		puts("\nLeft out: time, devices and findings (--no-timeline)");
	torsh_screen_devices(&overview->devices, overview->symbols);
	print_findings_and_losses(overview);
	torsh_screen_processes_folded(&processes);
	torsh_screen_remark(&overview->analysis, overview->symbols);
	print_next(overview, prepass);
	torsh_screen_time_free(&time);
	torsh_screen_processes_free(&processes);
}

void torsh_screen_open(const struct overview *overview, const struct prepass *prepass)
{
	struct next_command commands[NEXT_COMMANDS];
	char *path = torsh_next_path(overview);

	torsh_text_missing(stdout, overview->recording, overview->processes, overview->n_processes);
	print_verdict(overview);
	print_sampling(overview);
	torsh_next_commands(commands, overview, prepass);
	for (size_t i = 0; i < NEXT_COMMANDS; i++)
		printf("  torsh %s%s%s    %s\n", commands[i].name, path, commands[i].options,
		       commands[i].why);
	free(path);
}
