/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/helper_processes.h"

#include <fnmatch.h>
#include <string.h>

#include "tools/frames/frame_kind.h"

#define SMALL_BYTES (UINT64_C(64) << 10)

/* A process is a helper if another one has a higher rank. */
enum process_rank { RANK_NONE, RANK_SHELL, RANK_TOOL, RANK_SYSTEM, RANK_PROGRAM };

static const char *name_of(const struct recorded_process *process)
{
	const char *path = process->program ? process->program : "";
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool torsh_is_shell(const struct recorded_process *process)
{
	static const char *const shells[] = {"sh",  "bash", "dash", "ash",   "zsh",
					     "ksh", "fish", "env",  "rbash", "busybox"};

	for (size_t i = 0; i < sizeof(shells) / sizeof(*shells); i++) {
		if (strcmp(name_of(process), shells[i]) == 0)
			return true;
	}
	return false;
}

/* Compilers and linkers leave nearly all of their memory to the end of the process. */
static bool is_compiler(const struct recorded_process *process)
{
	static const char *const names[] = {
		"cc",	      "c++",	 "gcc",	    "g++",	    "gcc-[0-9]*",
		"g++-[0-9]*", "*-gcc",	 "*-g++",   "*-gcc-[0-9]*", "*-g++-[0-9]*",
		"cc1",	      "cc1plus", "lto1",    "lto-wrapper",  "collect2",
		"as",	      "*-as",	 "ld",	    "ld.*",	    "*-ld",
		"*-ld.*",     "clang",	 "clang++", "clang-[0-9]*", "nvcc",
		"cudafe++",   "cicc",	 "ptxas",   "fatbinary",    "nvlink",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (fnmatch(names[i], name_of(process), 0) == 0)
			return true;
	}
	return false;
}

/* A native program that an installed package of Python brings. */
static bool is_of_package(const struct recorded_process *process)
{
	return process->program && !process->tables->has_python &&
	       torsh_path_in_package(process->program);
}

static enum process_rank rank_of(const struct recorded_process *process)
{
	static const char *const folders[] = {"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/"};

	if (torsh_is_shell(process))
		return RANK_SHELL;
	if (is_compiler(process) || is_of_package(process))
		return RANK_TOOL;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		if (process->program && !process->tables->has_python &&
		    strncmp(process->program, folders[i], strlen(folders[i])) == 0)
			return RANK_SYSTEM;
	}
	return RANK_PROGRAM;
}

static void find_helpers(struct leaks *leaks, struct recorded_process *const *processes)
{
	enum process_rank highest = RANK_NONE;

	for (size_t i = 0; i < leaks->n_processes; i++) {
		enum process_rank rank = rank_of(processes[i]);

		highest = rank > highest ? rank : highest;
	}
	for (size_t i = 0; i < leaks->n_processes; i++) {
		enum process_rank rank = rank_of(processes[i]);
		struct leaks_process *of = &leaks->processes[i];

		of->is_helper = of->blocks && rank < highest &&
				(rank <= RANK_TOOL || of->bytes < SMALL_BYTES ||
				 of->bytes < leaks->bytes / 100);
	}
}

static void count_helpers(struct leaks *leaks)
{
	uint64_t blocks = 0, bytes = 0;

	for (size_t i = 0; i < leaks->n_processes; i++) {
		const struct leaks_process *of = &leaks->processes[i];

		if (!of->is_helper)
			continue;
		leaks->helpers.n_processes++;
		blocks += of->blocks;
		bytes += of->bytes;
	}
	leaks->helpers.blocks = blocks;
	leaks->helpers.bytes = bytes;
	leaks->blocks -= blocks;
	leaks->bytes -= bytes;
}

static bool is_of_helper(const struct leaks *leaks, struct recorded_process *const *processes,
			 const struct recorded_process *process)
{
	for (size_t i = 0; i < leaks->n_processes; i++) {
		if (processes[i] == process)
			return leaks->processes[i].is_helper;
	}
	return false;
}

void torsh_helper_processes_fold(struct leaks *leaks, struct recorded_process *const *processes)
{
	struct allocation_sites *found = &leaks->found;
	const struct recorded_process *last = NULL;
	bool last_is_helper = false;
	size_t n = 0;

	find_helpers(leaks, processes);
	count_helpers(leaks);
	if (!leaks->helpers.n_processes)
		return;
	for (size_t i = 0; i < found->n; i++) {
		if (found->items[i].process != last) {
			last = found->items[i].process;
			last_is_helper = is_of_helper(leaks, processes, last);
		}
		if (last_is_helper)
			leaks->usable_bytes -= found->items[i].usable_bytes;
		else
			found->items[n++] = found->items[i];
	}
	found->n = n;
}
