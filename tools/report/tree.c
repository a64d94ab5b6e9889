/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/report/tree.h. */
#include "tools/report/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/die.h"
#include "tools/size.h"

#define ARGUMENTS_SHOWN 3
#define ARGUMENT_COLUMNS 40

struct tree {
	FILE *out;
	struct profile_process *const *processes;
	size_t n;
	const struct leaks *leaks;
	size_t *parents;
};

size_t torsh_tree_parent(struct profile_process *const *processes, size_t n, size_t i)
{
	const struct profile_process *child = processes[i];
	uint32_t number = child->executed_from ? child->executed_from : child->forked_from;
	size_t parent = n;

	for (size_t k = 0; number && parent == n && k < i; k++) {
		if (processes[k]->number == number)
			parent = k;
	}
	/* Recordings of older versions tell an exec by the pid. Pids come back: the latest that had it is meant. */
	for (size_t k = i; parent == n && k-- > 0;) {
		if (processes[k]->pid != child->pid)
			continue;
		if (processes[k]->end == TORSH__PROCESS__END_KIND__EXECUTED)
			parent = k;
		break;
	}
	for (size_t k = i; parent == n && k-- > 0;) {
		if (processes[k]->pid == child->parent_pid)
			parent = k;
	}
	return parent;
}

static void print_arguments(FILE *out, const struct profile_process *process)
{
	size_t n = process->n_arguments < 1 + ARGUMENTS_SHOWN ? process->n_arguments : 1 + ARGUMENTS_SHOWN;

	fputs(torsh_profile_program_name(process), out);
	for (size_t i = 1; i < n; i++) {
		const char *argument = process->arguments[i];

		fprintf(out, " %.*s%s", ARGUMENT_COLUMNS, argument, strlen(argument) > ARGUMENT_COLUMNS ? "..." : "");
	}
	if (process->n_arguments > n)
		fputs(" ...", out);
}

static void print_process(const struct tree *tree, size_t i)
{
	const struct profile_process *process = tree->processes[i];
	char text[SIZE_TEXT_BYTES], end[32];

	print_arguments(tree->out, process);
	fprintf(tree->out, " (pid %" PRIu32, process->pid);
	if (process->rank)
		fprintf(tree->out, ", rank %s", process->rank);
	fprintf(tree->out, "): from %s", torsh_size_duration(process->start_ns, text));
	torsh_profile_end_name(process, end, sizeof(end));
	if (process->end != TORSH__PROCESS__END_KIND__RUNNING)
		fprintf(tree->out, " to %s", torsh_size_duration(process->end_ns, text));
	fprintf(tree->out, ", %s", end);
	if (process->heap.is_there)
		fprintf(tree->out, ", peak %s", torsh_size_human(process->heap.peak_bytes, text));
	if (tree->leaks->processes[i].blocks)
		fprintf(tree->out, ", leaked %s", torsh_size_human(tree->leaks->processes[i].bytes, text));
	fputc('\n', tree->out);
}

static size_t next_child(const struct tree *tree, size_t parent, size_t i)
{
	while (i < tree->n && (tree->parents[i] != parent || i == parent))
		i++;
	return i;
}

/* prefix: what stands before each line of these children, but for their own branch. */
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

void torsh_tree_print(FILE *out, struct profile_process *const *processes, size_t n, const struct leaks *leaks)
{
	struct tree tree = {.out = out, .processes = processes, .n = n, .leaks = leaks};

	tree.parents = torsh_need_items(NULL, 0, n, sizeof(*tree.parents));
	for (size_t i = 0; i < n; i++)
		tree.parents[i] = torsh_tree_parent(processes, n, i);
	for (size_t i = next_child(&tree, n, 0); i < n; i = next_child(&tree, n, i + 1)) {
		print_process(&tree, i);
		print_children(&tree, i, "");
	}
	free(tree.parents);
}
