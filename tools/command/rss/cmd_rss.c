/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh rss: who owned the resident memory of a process, at its peak and at its end. */
#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/rss/rss_view.h"

static const char doc[] =
	"Print who owned the resident memory of a process, at its peak or at its end.\v"
	"Every resident page has an owner, and the sum of all is the resident set to the page: live blocks by the line that "
	"allocated them, what allocators retain (free, but resident: no leak), stacks, code and data of each library, files, shared "
	"memory, and for forked processes the pages that a write has copied. Accounts are taken from outside of the process, by "
	"/proc/PID/smaps and pagemap: when the resident set has grown, at most for a hundredth of the time, and while the process "
	"waits at its exit. Of several processes the one with most is shown; --pid picks another one.";

#define SHOWN_OF_KIND 8

enum { KEY_AT = 0x2000 };

static const struct argp_option own_options[] = {
	{"at", KEY_AT, "WHEN", 0, "peak (default) or end", 0},
	{0},
};

static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	static const char *const names[] = {"peak", "end"};
	struct rss_view *view = state->input;

	if (key != KEY_AT)
		return ARGP_ERR_UNKNOWN;
	view->moment = torsh_argument_choice(state, "at", names, 2, argument) ? RESIDENT_AT_END
									      : RESIDENT_AT_PEAK;
	return 0;
}

const char *torsh_rss_problem(const struct recorded_process *process)
{
	if (torsh_resident_account(process, RESIDENT_AT_END))
		return NULL;
	return process->account_problem ? process->account_problem
					: "it ended before an account was due";
}

int torsh_command_rss(int argc, char **argv)
{
	struct read_options options = {.without = READING_WITHOUT_HEAP};
	struct reading reading;
	struct rss_view view = {.reading = &reading};
	const struct recorded_process *process;

	torsh_options_parse_timeline(argc, argv, doc, own_options, parse_own, &view, &options);
	torsh_reading_open(&reading, &options);
	view.n_shown = torsh_options_limit(&options, SIZE_MAX, SHOWN_OF_KIND);
	process = torsh_resident_largest(reading.processes, reading.n_processes, view.moment);
	torsh_resident_make(&view.resident, process, view.moment, reading.symbols,
			    (struct resident_limits){.n_named = SIZE_MAX, .n_most = view.n_shown});
	if (options.is_json)
		torsh_rss_json(&view);
	else
		torsh_rss_text(&view);
	torsh_resident_free(&view.resident);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
