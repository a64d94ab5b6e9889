/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh html: a recording as one page for a web browser. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/command.h"
#include "tools/command/export/export_timeline.h"
#include "tools/command/reading.h"

static const char doc[] =
	"Write a recording as one HTML file that a web browser opens without a network.\v"
	"The page has an overview, flame graphs and tables of memory, leaks and growth, and what is known "
	"of time and devices. It holds sums, whatever the length of the run: what is too small is "
	"shown as others, with its total, and the file has 20 MiB at most. Without -o it is NAME.html in the "
	"working directory, for a recording NAME.torsh; -o - is standard output.";

static const struct argp_option own_options[] = {
	{"output", 'o', "FILE", 0, "write there", 0},
	{0},
};

static error_t parse_html(int key, char *argument, struct argp_state *state)
{
	const char **output = state->input;

	if (key != 'o')
		return ARGP_ERR_UNKNOWN;
	*output = argument;
	return 0;
}

char *torsh_page_name(const char *recording)
{
	const char *slash = strrchr(recording, '/'), *name = slash ? slash + 1 : recording;
	const char *ending = strstr(name, ".torsh");
	int n = (int)(ending ? (size_t)(ending - name) : strlen(name));

	return torsh_need_text("%.*s.html", n, name);
}

static void report_file(const char *path)
{
	struct stat status;
	char size[SIZE_TEXT_BYTES];

	if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
		torsh_warn("wrote %s, %s: open it in a web browser", path,
			   torsh_size_human((uint64_t)status.st_size, size));
}

int torsh_command_html(int argc, char **argv)
{
	struct read_options options = {0};
	struct trace_window window = {.to_ns = UINT64_MAX};
	struct reading reading;
	const char *output = NULL;
	char *path;

	torsh_options_parse_page(argc, argv, doc, own_options, parse_html, &output, &options);
	torsh_reading_open(&reading, &options);
	path = output ? torsh_need(strdup(output)) : torsh_page_name(reading.recording->path);
	if (strcmp(path, "-") == 0) {
		torsh_timeline_export(torsh_trace_format("html"), &window, NULL, &reading);
	} else {
		torsh_timeline_export(torsh_trace_format("html"), &window, path, &reading);
		report_file(path);
	}
	free(path);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
