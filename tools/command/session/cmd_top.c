/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh top: the memory of running sessions, updated continuously. */
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/command/arguments.h"
#include "tools/command/options.h"
#include "tools/live/top/screen.h"
#include "tools/terminal/terminal_options.h"
#include "tools/terminal/width.h"

#define INTERVAL_MS 1000
#define INTERVAL_MAX_MS 3600000
#define ONCE_SITES 20

static const char doc[] =
	"Show what running sessions hold, again every second: their processes with live bytes and blocks, peak, events a "
	"second and drops; and the lines of Python or of other source that hold most.\v"
	"PID is that of any process of a session, or of its writer; without it all sessions of yours are shown together. "
	"Keys: q quits, s sorts by live bytes, peak, rate or pid, p holds the view. Nothing is stopped for it.";

enum { KEY_ONCE = 1, KEY_INTERVAL };

static const struct argp_option options_top[] = {
	{"once", KEY_ONCE, NULL, 0, "print one frame as text and end; needs no terminal", 0},
	{"interval", KEY_INTERVAL, "MS", 0, "milliseconds between two looks (1000)", 0},
	{0},
};

struct options {
	uint32_t pid;
	bool is_once;
	uint64_t interval_ms;
};

static error_t parse_top(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case KEY_ONCE:
		options->is_once = true;
		return 0;
	case KEY_INTERVAL:
		options->interval_ms = torsh_argument_number(state, "interval", argument);
		if (!options->interval_ms || options->interval_ms > INTERVAL_MAX_MS)
			argp_error(state, "--interval takes 1 to %d milliseconds", INTERVAL_MAX_MS);
		return 0;
	case ARGP_KEY_ARG:
		return torsh_argument_process(key, argument, state, &options->pid);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Samples twice, because a rate needs that. A session that ends in between is printed, too. */
static void print_once(struct top *top, uint64_t interval_ms)
{
	const struct timespec pause = {
		.tv_sec = (time_t)(interval_ms / 1000),
		.tv_nsec = (long)(interval_ms % 1000) * 1000000,
	};
	struct top_frame frame;

	nanosleep(&pause, NULL);
	torsh_top_look(top);
	torsh_top_frame(&frame, top, 0, ONCE_SITES, torsh_width_limit());
	for (size_t i = 0; i < frame.n; i++)
		puts(frame.lines[i].text);
	torsh_top_frame_free(&frame);
}

int torsh_command_top(int argc, char **argv)
{
	const struct argp argp = {.options = options_top,
				  .parser = parse_top,
				  .args_doc = "[PID]",
				  .doc = doc,
				  .children = torsh_terminal_children};
	struct options options = {.interval_ms = INTERVAL_MS};
	struct top top = {0};

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	if (!options.is_once && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
		torsh_die("there is no terminal to draw on; --once prints one frame");
	top.symbols = torsh_symbols_create(true);
	if (options.pid && !torsh_top_choose(&top, options.pid))
		torsh_live_no_process(options.pid);
	torsh_top_look(&top);
	if (options.is_once)
		print_once(&top, options.interval_ms);
	else if (!torsh_top_show(&top, (int)options.interval_ms))
		printf("the session of process %" PRIu32 " has ended\n", options.pid);
	torsh_top_free(&top);
	return TORSH_EXIT_DONE;
}
