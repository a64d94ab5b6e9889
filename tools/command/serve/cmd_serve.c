/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh serve: the page of torsh html, which fetches its data on request. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/serve/open_browser.h"
#include "tools/command/serve/server.h"

#define PORT_MAX 65535

static const char doc[] =
	"Show a recording in a web browser on this machine: the page of torsh html, of any size of recording.\v"
	"The address of the page is printed as one line. It has a token that is made anew each time; without it, and "
	"from other machines, nothing is served. Windows of the timeline, all rows of tables and all stacks are read "
	"from the recording when they are requested. A recording that is still being written shows more when the page "
	"is loaded again. ADDRESS/json/ops?limit=0 is the whole JSON of torsh ops; so it is for report, leaks, peak, "
	"steps, modules, kernels, tensors and regions. Ctrl-C ends it, with status 0.";

enum { KEY_PORT = 0x2000, KEY_BROWSER, KEY_NO_BROWSER };

static const struct argp_option own_options[] = {
	{"port", KEY_PORT, "N", 0, "on this port; 0 (default): on one that is free", 0},
	{"browser", KEY_BROWSER, NULL, 0, "open the page with xdg-open, if there is a display", 0},
	{"no-browser", KEY_NO_BROWSER, NULL, 0, "only print its address (default)", 0},
	{0},
};

struct serve_options {
	uint16_t port;
	bool opens_browser;
};

static error_t parse_serve(int key, char *argument, struct argp_state *state)
{
	struct serve_options *options = state->input;
	uint64_t port;

	switch (key) {
	case KEY_PORT:
		port = torsh_argument_number(state, "port", argument);
		if (port > PORT_MAX)
			argp_error(state, "--port takes a number up to %d, not \"%s\"", PORT_MAX,
				   argument);
		options->port = (uint16_t)port;
		return 0;
	case KEY_BROWSER:
		options->opens_browser = true;
		return 0;
	case KEY_NO_BROWSER:
		options->opens_browser = false;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int torsh_command_serve(int argc, char **argv)
{
	struct serve_options options = {0};
	struct serve_data data = {0};
	struct server *server;

	torsh_options_parse_page(argc, argv, doc, own_options, parse_serve, &options,
				 &data.options);
	torsh_serve_open(&data);
	server = torsh_server_create(&data, options.port);
	puts(torsh_server_address(server));
	fflush(stdout);
	torsh_warn("serving %s; Ctrl-C ends it", torsh_serve_path(&data));
	if (options.opens_browser)
		torsh_browser_open(torsh_server_address(server));
	torsh_server_run(server);
	torsh_browser_close();
	torsh_server_destroy(server);
	torsh_serve_close(&data);
	return TORSH_EXIT_DONE;
}
