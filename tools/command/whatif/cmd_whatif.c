/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh whatif: what a run would have reserved with another allocator, batch or device. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/whatif/whatif_view.h"

static const char doc[] =
	"Predict what a run would have reserved and allocated on its devices.\v"
	"The tensors of the recording are allocated and freed in their order by a model of PyTorch's caching allocator: once as "
	"recorded, which must give the peaks that PyTorch reported, and once with the changes. A replay that is more than 1 % "
	"off is not reliable, and the report says so. Without an option only the recorded run is replayed. What a prediction "
	"assumes is listed with it. Sizes take a unit: 512M, 24G.";

#define BATCH_FACTOR_MAX 1024

enum { KEY_BATCH = 0x2000, KEY_ALLOCATOR, KEY_CHECKPOINT, KEY_CAPACITY };

static const struct argp_option own_options[] = {
	{"batch", KEY_BATCH, "FACTOR", 0, "a batch so many times as large: 2x, 0.5x", 0},
	{"allocator", KEY_ALLOCATOR, "SETTINGS", 0,
	 "native, expandable_segments or max_split_size_mb:N, or a list of settings as PYTORCH_ALLOC_CONF has it",
	 0},
	{"checkpoint", KEY_CHECKPOINT, "MODULE", 0,
	 "modules of that class or path compute their activations again for the backward pass", 0},
	{"capacity", KEY_CAPACITY, "SIZE", 0,
	 "whether a device with so much memory has enough, and where it hasn't", 0},
	{0},
};

struct arguments {
	struct whatif_view *view;
	struct allocator_settings settings;
};

static void parse_allocator(struct arguments *arguments, struct argp_state *state, const char *text)
{
	struct allocator_settings *settings = &arguments->settings;
	const char *at;

	torsh_allocator_settings_default(settings);
	settings->is_expandable = strcmp(text, "expandable_segments") == 0;
	if (!settings->is_expandable && strcmp(text, "native") != 0 &&
	    torsh_allocator_settings_parse(settings, text, &at) < 0)
		argp_error(state,
			   "--allocator %s: expected native, expandable_segments, "
			   "max_split_size_mb:N with N from 20 on, or a list of PyTorch's settings",
			   text);
	if (!settings->is_native)
		argp_error(state, "--allocator %s: only PyTorch's native allocator can be modelled",
			   text);
	arguments->view->request.allocator = text;
	arguments->view->question.settings = settings;
}

static void parse_batch(struct whatif_view *view, struct argp_state *state, const char *text)
{
	char *end = NULL;
	double factor = isdigit((unsigned char)*text) || *text == '.' ? strtod(text, &end) : 0;

	if (!(factor >= 1.0 / BATCH_FACTOR_MAX && factor <= BATCH_FACTOR_MAX) ||
	    strcmp(end, "x") != 0)
		argp_error(state, "--batch %s: expected a factor such as 2x or 0.5x, up to %dx",
			   text, BATCH_FACTOR_MAX);
	view->question.batch_factor = factor;
	view->request.batch = text;
}

static void parse_capacity(struct whatif_view *view, struct argp_state *state, const char *text)
{
	view->question.capacity_bytes = torsh_argument_size(state, "capacity", text);
	if (!view->question.capacity_bytes)
		argp_error(state, "--capacity %s: a device has more than 0 bytes", text);
	view->request.capacity = text;
}

static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	if (key == KEY_BATCH)
		parse_batch(arguments->view, state, argument);
	else if (key == KEY_ALLOCATOR)
		parse_allocator(arguments, state, argument);
	else if (key == KEY_CHECKPOINT)
		arguments->view->question.checkpoint = argument;
	else if (key == KEY_CAPACITY)
		parse_capacity(arguments->view, state, argument);
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

int torsh_command_whatif(int argc, char **argv)
{
	struct read_options options = {.without = READING_WITHOUT_HEAP};
	struct reading reading;
	struct prepass prepass;
	struct whatif_view view = {.reading = &reading};
	struct arguments arguments = {.view = &view};

	torsh_options_parse_timeline(argc, argv, doc, own_options, parse_own, &arguments, &options);
	torsh_reading_open(&reading, &options);
	torsh_prepass_make(&prepass, reading.recording, reading.processes, reading.n_processes);
	torsh_whatif_answer(&view.whatif, &view.question, reading.recording, reading.processes,
			    reading.n_processes, &prepass);
	if (options.is_json)
		torsh_whatif_json(&view);
	else
		torsh_whatif_text(&view);
	torsh_whatif_free(&view.whatif);
	torsh_prepass_free(&prepass);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
