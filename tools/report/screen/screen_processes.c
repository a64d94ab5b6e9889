/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/screen_processes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/memory/leaks/helper_processes.h"
#include "tools/report/screen/screen_line.h"
#include "tools/report/text.h"

#define PROCESSES_SHOWN 5u
#define NAMES_SHOWN 4u
#define LEAST_SHARE 0.01

/* A process's share of the work: its allocations, or its events. */
struct weight {
	double share;
	size_t index;
};

static int compare_weights(const void *a, const void *b)
{
	const struct weight *x = a, *y = b;

	if (x->share != y->share)
		return x->share < y->share ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

static double share_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static void weigh(struct weight *weights, const struct overview *overview)
{
	uint64_t bytes = 0, events = 0;

	for (size_t i = 0; i < overview->n_processes; i++) {
		const struct recorded_process *process = overview->processes[i];

		bytes = process->heap.alloc_bytes > bytes ? process->heap.alloc_bytes : bytes;
		events = process->produced > events ? process->produced : events;
	}
	for (size_t i = 0; i < overview->n_processes; i++) {
		const struct recorded_process *process = overview->processes[i];
		double by_bytes = share_of(process->heap.alloc_bytes, bytes);
		double by_events = share_of(process->produced, events);

		weights[i].index = i;
		weights[i].share = by_bytes > by_events ? by_bytes : by_events;
		/* Shells come after all others. */
		if (torsh_is_shell(process))
			weights[i].share -= 2;
	}
	qsort(weights, overview->n_processes, sizeof(*weights), compare_weights);
}

void torsh_screen_processes_sort(struct screen_processes *processes,
				 const struct overview *overview)
{
	struct weight *weights = torsh_need_items(NULL, 0, overview->n_processes, sizeof(*weights));

	*processes = (struct screen_processes){.overview = overview};
	processes->order = torsh_need_items(NULL, 0, overview->n_processes, sizeof(size_t));
	weigh(weights, overview);
	for (size_t i = 0; i < overview->n_processes; i++) {
		processes->order[i] = weights[i].index;
		if (i == 0 || (weights[i].share >= LEAST_SHARE * weights[0].share &&
			       weights[i].share > 0 && i < PROCESSES_SHOWN))
			processes->n_shown = i + 1;
	}
	free(weights);
}

void torsh_screen_processes_free(struct screen_processes *processes)
{
	free(processes->order);
}

const char *torsh_screen_name(const struct recorded_process *process)
{
	const char *program = torsh_recording_program_name(process), *script, *slash;

	if (strncmp(program, "python", 6) != 0 || process->n_arguments < 2)
		return program;
	script = process->arguments[1];
	slash = strrchr(script, '/');
	return *script == '-' || !*script ? program : slash ? slash + 1 : script;
}

static void print_process(const struct overview *overview, size_t i, size_t n_steps)
{
	const struct recorded_process *process = overview->processes[i];
	const struct leaks_process *leaks = &overview->leaks.processes[i];
	uint64_t kept_bytes = torsh_leaks_kept(&overview->leaks).blocks ? leaks->kept.bytes : 0;
	char end[32], text[SIZE_TEXT_BYTES], heap[SIZE_TEXT_BYTES], leaked[SIZE_TEXT_BYTES];
	char *place = torsh_identity_text(process->rank, &process->identity);
	char *line = torsh_need_text("%s (pid %" PRIu32 "%s): ", torsh_screen_name(process),
				     process->pid, place);
	char *details;

	free(place);
	torsh_recording_end_name(process, end, sizeof(end));
	if (process->end == TORSH__PROCESS__END_KIND__RUNNING)
		details = torsh_need_text("had not ended when this was recorded");
	else if (process->has_end_ns && process->end_ns > process->start_ns)
		details = torsh_need_text(
			"%s after %s", end,
			torsh_size_duration(process->end_ns - process->start_ns, text));
	else
		details = torsh_need_text("%s", end);
	if (n_steps)
		details = torsh_screen_append(details, "%s",
					      torsh_size_counted(n_steps, "step", text));
	if (overview->n_processes > 1 && torsh_recording_has_heap(process))
		details = torsh_screen_append(details, "heap peak %s, %s leaked",
					      torsh_size_human(process->heap.peak_bytes, heap),
					      torsh_size_human(leaks->bytes - kept_bytes, leaked));
	torsh_screen_line(STYLE_PLAIN, 1, "%s%s", line, details);
	free(line);
	free(details);
}

void torsh_screen_processes_main(const struct screen_processes *processes, size_t n_steps)
{
	for (size_t i = 0; i < processes->n_shown; i++)
		print_process(processes->overview, processes->order[i],
			      processes->n_shown == 1 ? n_steps : 0);
}

/* ---- what is folded -------------------------------------------------------------------------- */

/* Processes of one program, which are folded into a line. */
struct program {
	const char *name;
	size_t n;
};

static int compare_programs(const void *a, const void *b)
{
	const struct program *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void count_program(struct program *programs, size_t *n, const char *name)
{
	size_t i = 0;

	while (i < *n && strcmp(programs[i].name, name) != 0)
		i++;
	if (i == *n)
		programs[(*n)++] = (struct program){.name = name};
	programs[i].n++;
}

char *torsh_screen_programs(const struct recorded_process *const *processes, size_t n)
{
	struct program *programs = torsh_need_items(NULL, 0, n, sizeof(*programs));
	char *text = NULL, others[SIZE_TEXT_BYTES];
	size_t n_programs = 0, n_others = 0;

	for (size_t i = 0; i < n; i++)
		count_program(programs, &n_programs, torsh_recording_program_name(processes[i]));
	qsort(programs, n_programs, sizeof(*programs), compare_programs);
	for (size_t i = 0; i < n_programs; i++) {
		if (i >= NAMES_SHOWN)
			n_others += programs[i].n;
		else if (programs[i].n == 1)
			text = torsh_screen_append(text, "%s", programs[i].name);
		else
			text = torsh_screen_append(text, "%s %zu", programs[i].name, programs[i].n);
	}
	if (n_others)
		text = torsh_screen_append(text, "%s",
					   torsh_size_counted(n_others, "other", others));
	free(programs);
	return text;
}

static bool has_failed(const struct recorded_process *process)
{
	return process->end == TORSH__PROCESS__END_KIND__SIGNALED ||
	       (process->end == TORSH__PROCESS__END_KIND__EXITED && process->has_end_code &&
		process->end_code);
}

static void print_helpers(const struct screen_processes *processes)
{
	const struct overview *overview = processes->overview;
	size_t n = overview->n_processes - processes->n_shown, n_failed = 0;
	const struct recorded_process **folded = torsh_need_items(NULL, 0, n, sizeof(*folded));
	char count[SIZE_TEXT_BYTES], *names;

	for (size_t i = 0; i < n; i++) {
		folded[i] = overview->processes[processes->order[processes->n_shown + i]];
		n_failed += has_failed(folded[i]);
	}
	names = torsh_screen_programs(folded, n);
	torsh_size_counted(n, processes->n_shown < PROCESSES_SHOWN ? "helper" : "more process",
			   count);
	if (n_failed)
		torsh_screen_line(STYLE_DIM, 1, "and %s: %s; %zu ended with an error (--tree)",
				  count, names, n_failed);
	else
		torsh_screen_line(STYLE_DIM, 1, "and %s: %s (--tree)", count, names);
	free(names);
	free(folded);
}

static void print_unfollowed(const struct overview *overview)
{
	const struct recorded_process *first = overview->unfollowed[0];
	char *names =
		torsh_screen_programs((const struct recorded_process *const *)overview->unfollowed,
				      overview->n_unfollowed);

	if (overview->n_unfollowed == 1)
		torsh_screen_line(STYLE_DIM, 1, "not followed: %s (pid %" PRIu32 "): %s", names,
				  first->pid, first->not_followed);
	else
		torsh_screen_line(STYLE_DIM, 1, "not followed: %s (-v): %s", names,
				  first->not_followed);
	free(names);
}

void torsh_screen_processes_folded(const struct screen_processes *processes)
{
	if (processes->overview->n_processes > processes->n_shown)
		print_helpers(processes);
	if (processes->overview->n_unfollowed)
		print_unfollowed(processes->overview);
}
