/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh cpu: what threads waited for. */
#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/command/cpu/cpu_off.h"

enum { KEY_OFF = 0x2000, KEY_GIL };

static const char doc[] =
	"Show what the threads of a recorded program waited for in the C library: locks, descriptors, "
	"time, children and Python's global lock, with --off; or that lock alone, with --gil.\v"
	"Waits are recorded where TORSH_PROFILER_ACTIVITIES names waits: each of 50 us or more with its "
	"stack, shorter calls by their number. Steps are shown with what they consist of: operators, "
	"what is between them, waits, and Python's garbage collector, moment by moment on the thread "
	"that runs most operators, so that the parts of a step add up to its time. --steps and --skip-warmup "
	"choose steps; the waits are those of the whole run.";

static const struct argp_option own_options[] = {
	{"off", KEY_OFF, NULL, 0, "what threads waited for", 0},
	{"gil", KEY_GIL, NULL, 0, "only waits for Python's global lock", 0},
	{0},
};

struct cpu_options {
	struct read_options read;
	bool is_off, is_gil;
};

static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	struct cpu_options *options = state->input;

	(void)argument;
	switch (key) {
	case KEY_OFF:
		options->is_off = true;
		return 0;
	case KEY_GIL:
		options->is_gil = true;
		return 0;
	case ARGP_KEY_SUCCESS:
		if (!options->is_off && !options->is_gil)
			argp_error(state, "--off or --gil is needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int torsh_command_cpu(int argc, char **argv)
{
	struct cpu_options options = {.read.without = READING_WITHOUT_HEAP};
	struct reading reading;

	torsh_options_parse_steps(argc, argv, doc, own_options, parse_own, &options, &options.read);
	torsh_reading_open(&reading, &options.read);
	torsh_cpu_off(&reading, &options.read, options.is_gil);
	torsh_reading_close(&reading, &options.read);
	return TORSH_EXIT_DONE;
}
