/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/leaks/helper_processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/report/text.h"

#define SMALL_BYTES (UINT64_C(64) << 10)

/* A process is a helper if another one has a higher rank. */
enum process_rank { RANK_NONE, RANK_SHELL, RANK_SYSTEM, RANK_PROGRAM };

static enum process_rank rank_of(const struct recorded_process *process)
{
	static const char *const shells[] = {"sh",  "bash", "dash", "ash",  "zsh",
					     "ksh", "fish", "env",  "rbash"};
	static const char *const folders[] = {"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/"};
	const char *path = process->program ? process->program : "";
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(shells) / sizeof(*shells); i++)
		if (!strcmp(name, shells[i]))
			return RANK_SHELL;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if (!process->has_python && !strncmp(path, folders[i], strlen(folders[i])))
			return RANK_SYSTEM;
	return RANK_PROGRAM;
}

static enum process_rank highest_rank(const struct reading *reading)
{
	enum process_rank highest = RANK_NONE;

	for (size_t i = 0; i < reading->n_processes; i++) {
		enum process_rank rank = rank_of(reading->processes[i]);

		highest = rank > highest ? rank : highest;
	}
	return highest;
}

/* Returns for each process whether it is a helper; the caller frees the array. */
static bool *find_helpers(const struct leaks_view *view)
{
	const struct reading *reading = view->reading;
	const struct leaks_process *of = view->leaks.processes;
	enum process_rank highest = highest_rank(reading);
	bool *is_helper = torsh_need_items(NULL, 0, reading->n_processes + 1, sizeof(*is_helper));

	for (size_t i = 0; i < reading->n_processes; i++) {
		enum process_rank rank = rank_of(reading->processes[i]);

		is_helper[i] = rank < highest && (rank == RANK_SHELL || of[i].bytes < SMALL_BYTES ||
						  of[i].bytes < view->leaks.bytes / 100);
	}
	return is_helper;
}

static bool is_of_helper(const struct leaks_view *view, const bool *is_helper,
			 const struct recorded_process *process)
{
	for (size_t i = 0; i < view->reading->n_processes; i++)
		if (view->reading->processes[i] == process)
			return is_helper[i];
	return false;
}

static void count_helpers(struct leaks_view *view, const bool *is_helper)
{
	struct leaks *leaks = &view->leaks;

	for (size_t i = 0; i < view->reading->n_processes; i++) {
		struct leaks_process *of = &leaks->processes[i];

		if (!is_helper[i] || !of->blocks)
			continue;
		view->helpers.n_processes++;
		view->helpers.blocks += of->blocks;
		view->helpers.bytes += of->bytes;
		leaks->blocks -= of->blocks;
		leaks->bytes -= of->bytes;
		of->blocks = of->bytes = 0;
	}
}

void torsh_helper_processes_fold(struct leaks_view *view)
{
	bool *is_helper = find_helpers(view);
	struct allocation_sites *found = &view->leaks.found;
	const struct recorded_process *last = NULL;
	bool last_is_helper = false;
	size_t n = 0;

	count_helpers(view, is_helper);
	for (size_t i = 0; view->helpers.n_processes && i < found->n; i++) {
		if (found->items[i].process != last) {
			last = found->items[i].process;
			last_is_helper = is_of_helper(view, is_helper, last);
		}
		if (last_is_helper)
			view->leaks.usable_bytes -= found->items[i].usable_bytes;
		else
			found->items[n++] = found->items[i];
	}
	if (view->helpers.n_processes)
		found->n = n;
	free(is_helper);
}

void torsh_helper_processes_print(const struct helper_leaks *helpers)
{
	char bytes[SIZE_TEXT_BYTES], blocks[64];

	if (helpers->n_processes)
		printf("Shells and helpers that the command went through: %s in %s of %zu process%s  (-v, --pid)\n",
		       torsh_size_human(helpers->bytes, bytes),
		       torsh_text_blocks(helpers->blocks, blocks), helpers->n_processes,
		       helpers->n_processes == 1 ? "" : "es");
}
