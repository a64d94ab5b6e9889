/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh open: the commands that apply to a recording. */
#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/command/report/overview_reading.h"
#include "tools/report/screen/report_screen.h"

#define LEAKS_NAMED 20

static const char doc[] =
	"Show what leaked in a recording, in a line, and the three commands that show most of what it has: of leaks, devices, "
	"operators, steps, the program's own ranges and the peak those that it has, and the page for a browser.";

int torsh_command_open(int argc, char **argv)
{
	struct read_options options = {0};
	struct overview_reading of;

	torsh_options_parse_summary(argc, argv, doc, &options);
	torsh_overview_read(&of, &options, LEAKS_NAMED);
	torsh_overview_read_timeline(&of, &options, false);
	torsh_screen_open(&of.overview, torsh_overview_prepass(&of));
	torsh_overview_close(&of, &options);
	return TORSH_EXIT_DONE;
}
