/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/next_commands.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/recording/read.h"

static bool has_steps(const struct prepass *prepass)
{
	for (size_t i = 0; prepass && i < prepass->n; i++) {
		if (prepass->items[i].steps.n > 1)
			return true;
	}
	return false;
}

static bool has_ranges(const struct prepass *prepass)
{
	for (size_t i = 0; prepass && i < prepass->n; i++) {
		if (prepass->items[i].n_ranges)
			return true;
	}
	return false;
}

void torsh_next_commands(struct next_command commands[NEXT_COMMANDS],
			 const struct overview *overview, const struct prepass *prepass)
{
	const struct {
		bool is_wanted;
		struct next_command command;
	} all[] = {
		{overview->leaks.blocks, {"leaks", "", "the lines that leak"}},
		{overview->devices.n_groups, {"kernels", "", "what the devices did, by operator"}},
		{prepass && torsh_prepass_has_operators(prepass),
		 {"ops", "", "time, memory and FLOPs by operator"}},
		{has_steps(prepass), {"steps", "", "how long each step took, and for what"}},
		{has_ranges(prepass), {"regions", "", "the program's own ranges"}},
		{overview->highest.is_known, {"peak", "", "who held memory when most was in use"}},
		{true, {"report", " --tree", "what ran, and how each process ended"}},
		{true, {"report", " -v", "all that is known about the run"}},
	};
	size_t n = 0;

	/* The page for a browser is always last: it shows all the rest. */
	for (size_t i = 0; i < sizeof(all) / sizeof(*all) && n + 1 < NEXT_COMMANDS; i++) {
		if (all[i].is_wanted)
			commands[n++] = all[i].command;
	}
	commands[n] = (struct next_command){"html", " -o report.html", "all of it, in a browser"};
}

char *torsh_next_path(const struct overview *overview)
{
	char *newest = torsh_recording_newest_here(), *own = realpath(overview->path, NULL);
	char *other = newest ? realpath(newest, NULL) : NULL;
	bool is_newest = own && other && strcmp(own, other) == 0;

	free(newest);
	free(own);
	free(other);
	return torsh_need_text("%s%s", is_newest ? "" : " ", is_newest ? "" : overview->path);
}
