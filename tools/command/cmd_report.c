/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh report: a recording on one page. The page's sections: tools/report/overview.c and
 * overview_json.c.
 */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/command/options.h"
#include "tools/report/overview.h"
#include "tools/report/tree.h"

#define TEXT_LIMIT 5

static const char doc[] =
	"Show a recording on one page: what ran, what leaked, who held memory at the peak, what devices did, "
	"what is inefficient, who allocates in vain, and what to keep in mind about the numbers.";

enum { KEY_TREE = 1, KEY_NO_TIMELINE };

struct own_options {
	bool is_tree, without_timeline;
};

static const struct argp_option own_options[] = {
	{"tree", KEY_TREE, NULL, 0,
	 "only the tree of the processes: who started whom, when, and how each ended", 0},
	{"no-timeline", KEY_NO_TIMELINE, NULL, 0,
	 "leave out devices and what is inefficient, for which the timeline is read: a second or so for each million kernels",
	 0},
	{0},
};

static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	struct own_options *own = state->input;

	(void)argument;
	if (key == KEY_TREE)
		own->is_tree = true;
	else if (key == KEY_NO_TIMELINE)
		own->without_timeline = true;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

/*
 * What the page takes from the timeline, which the tree does without; as long as it is there it
 * needs this.
 */
struct timeline_part {
	struct prepass prepass;
	struct analysis_request request;
};

static void collect_timeline(struct overview *overview, struct timeline_part *part,
			     const struct reading *reading, const struct read_options *options)
{
	torsh_reading_prepass(&part->prepass, reading, options);
	part->request = (struct analysis_request){.recording = reading->recording,
						  .processes = reading->processes,
						  .n_processes = reading->n_processes,
						  .prepass = &part->prepass,
						  .to_ns = UINT64_MAX};
	torsh_analysis_make(&overview->analysis, &part->request);
	torsh_overview_devices_collect(&overview->devices, reading->recording, reading->processes,
				       reading->n_processes, &part->prepass);
}

int torsh_command_report(int argc, char **argv)
{
	struct read_options options = {0};
	struct reading reading;
	struct overview overview = {.path = NULL};
	struct timeline_part timeline = {0};
	struct own_options own = {0};

	torsh_options_parse(argc, argv, doc, own_options, parse_own, &own, &options);
	torsh_reading_open(&reading, &options);
	overview.path = options.path;
	overview.recording = reading.recording;
	overview.processes = reading.processes;
	overview.n_processes = reading.n_processes;
	overview.highest =
		torsh_peak_choose(reading.recording, reading.processes, reading.n_processes);
	overview.unfollowed = reading.unfollowed;
	overview.n_unfollowed = reading.n_unfollowed;
	overview.suppress = &options.suppress;
	overview.symbols = reading.symbols;
	overview.leaks.found.depth = overview.peak.depth = overview.temporary.depth = options.depth;
	overview.leaks.found.view = overview.peak.view = overview.temporary.view = options.view;
	torsh_leaks_find(&overview.leaks, reading.processes, reading.n_processes, reading.symbols,
			 &options.suppress);
	torsh_peak_collect(&overview.peak, &overview.highest, reading.recording);
	torsh_sites_merge_stacks(&overview.peak, reading.symbols);
	for (size_t i = 0; i < reading.n_processes; i++)
		torsh_sites_collect(&overview.temporary, reading.processes[i], SITES_TEMPORARY);
	torsh_sites_merge_stacks(&overview.temporary, reading.symbols);
	overview.n_leaks =
		torsh_options_choose(&options, &overview.leaks.found, reading.symbols, TEXT_LIMIT);
	overview.n_peak =
		torsh_options_choose(&options, &overview.peak, reading.symbols, TEXT_LIMIT);
	overview.has_timeline = !own.without_timeline && (!own.is_tree || options.is_json);
	if (overview.has_timeline)
		collect_timeline(&overview, &timeline, &reading, &options);
	/* What matters about these is how many they are. */
	options.order = ORDER_BLOCKS;
	overview.n_temporary =
		torsh_options_choose(&options, &overview.temporary, reading.symbols, TEXT_LIMIT);
	if (own.is_tree && !options.is_json)
		torsh_tree_print(stdout, &overview);
	else if (options.is_json)
		torsh_overview_json(&overview);
	else
		torsh_overview_text(&overview);
	torsh_analysis_free(&overview.analysis);
	torsh_overview_devices_free(&overview.devices);
	if (overview.has_timeline)
		torsh_prepass_free(&timeline.prepass);
	torsh_leaks_free(&overview.leaks);
	torsh_sites_free(&overview.peak);
	torsh_sites_free(&overview.temporary);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
