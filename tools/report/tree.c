/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/report/text.h"

#define ARGUMENTS_SHOWN 3
#define ARGUMENT_COLUMNS 40

/* A line of the tree. */
struct line {
	const struct recorded_process *process;
	const struct leaks_process *leaks; /* NULL: the process was not followed */
	size_t parent; /* index of the parent; n: none */
};

struct tree {
	FILE *out;
	struct line *lines; /* in the order of their start */
	size_t n;
};

/* Returns whether the line is an unfollowed program that this process ran before an exec. */
static bool is_unfollowed_former(const struct recorded_process *process,
				 const struct recorded_process *child)
{
	return process->not_followed && process->pid == child->pid &&
	       process->end == TORSH__PROCESS__END_KIND__EXECUTED;
}

/* Returns the latest line before i with this pid, because pids are reused; n: there is none. */
static size_t find_pid(const struct tree *tree, size_t i, uint32_t pid)
{
	while (i-- > 0) {
		if (tree->lines[i].process->pid == pid)
			return i;
	}
	return tree->n;
}

static size_t find_number(const struct tree *tree, size_t i, uint32_t number)
{
	while (number && i-- > 0) {
		if (!tree->lines[i].process->not_followed &&
		    tree->lines[i].process->number == number)
			return i;
	}
	return tree->n;
}

/*
 * Returns the process's state before an exec if there is one, else the one that forked it, else
 * the one with the parent's pid.
 */
static size_t find_parent(const struct tree *tree, size_t i)
{
	const struct recorded_process *child = tree->lines[i].process;
	uint32_t number = child->executed_from ? child->executed_from : child->forked_from;
	size_t former = find_pid(tree, i, child->pid), parent;

	if (former < tree->n && is_unfollowed_former(tree->lines[former].process, child))
		return former;
	parent = find_number(tree, i, number);
	if (parent < tree->n)
		return parent;
	/* Recordings of older versions identify an exec by the pid only. */
	if (former < tree->n &&
	    tree->lines[former].process->end == TORSH__PROCESS__END_KIND__EXECUTED)
		return former;
	return find_pid(tree, i, child->parent_pid);
}

/* Print an argument on one line, whatever it contains. */
static void print_argument(FILE *out, const char *argument)
{
	size_t n = strlen(argument), n_shown = n < ARGUMENT_COLUMNS ? n : ARGUMENT_COLUMNS;

	fputc(' ', out);
	for (size_t i = 0; i < n_shown; i++)
		fputc((unsigned char)argument[i] < ' ' ? ' ' : argument[i], out);
	if (n_shown < n)
		fputs("...", out);
}

static void print_arguments(FILE *out, const struct recorded_process *process)
{
	size_t n = process->n_arguments < 1 + ARGUMENTS_SHOWN ? process->n_arguments
							      : 1 + ARGUMENTS_SHOWN;

	fputs(torsh_recording_program_name(process), out);
	for (size_t i = 1; i < n; i++)
		print_argument(out, process->arguments[i]);
	if (process->n_arguments > n)
		fputs(" ...", out);
}

static void print_process(const struct tree *tree, size_t i)
{
	const struct recorded_process *process = tree->lines[i].process;
	const struct leaks_process *leaks = tree->lines[i].leaks;
	char *place = torsh_identity_text(process->rank, &process->identity);
	char text[SIZE_TEXT_BYTES], end[32];

	print_arguments(tree->out, process);
	fprintf(tree->out, " (pid %" PRIu32, process->pid);
	fprintf(tree->out, "%s): from %s", place, torsh_size_duration(process->start_ns, text));
	free(place);
	torsh_recording_end_name(process, end, sizeof(end));
	if (process->has_end_ns && process->end != TORSH__PROCESS__END_KIND__RUNNING)
		fprintf(tree->out, " to %s", torsh_size_duration(process->end_ns, text));
	fprintf(tree->out, ", %s", end);
	if (process->not_followed)
		fprintf(tree->out, ", not followed: %s", process->not_followed);
	if (torsh_recording_has_heap(process))
		fprintf(tree->out, ", peak %s", torsh_size_human(process->heap.peak_bytes, text));
	if (leaks && leaks->blocks)
		fprintf(tree->out, ", leaked %s", torsh_size_human(leaks->bytes, text));
	fputc('\n', tree->out);
}

static size_t next_child(const struct tree *tree, size_t parent, size_t i)
{
	while (i < tree->n && tree->lines[i].parent != parent)
		i++;
	return i;
}

/* prefix: precedes each line of these children, before their own branch. */
static void print_children(const struct tree *tree, size_t parent, const char *prefix)
{
	for (size_t i = next_child(tree, parent, 0), next; i < tree->n; i = next) {
		char *deeper;

		next = next_child(tree, parent, i + 1);
		fprintf(tree->out, "%s%s", prefix, next < tree->n ? "├─ " : "└─ ");
		print_process(tree, i);
		deeper = torsh_need_text("%s%s", prefix, next < tree->n ? "│  " : "   ");
		print_children(tree, i, deeper);
		free(deeper);
	}
}

static int compare_starts(const void *a, const void *b)
{
	const struct recorded_process *one = ((const struct line *)a)->process;
	const struct recorded_process *other = ((const struct line *)b)->process;

	if (one->start_ns != other->start_ns)
		return one->start_ns < other->start_ns ? -1 : 1;
	if (!one->not_followed != !other->not_followed)
		return one->not_followed ? 1 : -1;
	return one->number < other->number ? -1 : one->number > other->number;
}

static void collect_lines(struct tree *tree, const struct overview *overview)
{
	size_t n_all = overview->n_processes + overview->n_unfollowed;

	tree->lines = torsh_need_items(NULL, 0, n_all, sizeof(*tree->lines));
	for (size_t i = 0; i < overview->n_processes; i++)
		tree->lines[tree->n++] = (struct line){.process = overview->processes[i],
						       .leaks = &overview->leaks.processes[i]};
	for (size_t i = 0; i < overview->n_unfollowed; i++)
		tree->lines[tree->n++] = (struct line){.process = overview->unfollowed[i]};
	qsort(tree->lines, tree->n, sizeof(*tree->lines), compare_starts);
	for (size_t i = 0; i < tree->n; i++)
		tree->lines[i].parent = find_parent(tree, i);
}

void torsh_tree_print(FILE *out, const struct overview *overview)
{
	struct tree tree = {.out = out};

	torsh_text_missing(out, overview->recording, overview->processes, overview->n_processes);
	collect_lines(&tree, overview);
	for (size_t i = next_child(&tree, tree.n, 0); i < tree.n;
	     i = next_child(&tree, tree.n, i + 1)) {
		print_process(&tree, i);
		print_children(&tree, i, "");
	}
	free(tree.lines);
}
