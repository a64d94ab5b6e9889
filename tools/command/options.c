/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Parses the common options: each group is an argp, and each kind of command has its children. */
#include "tools/command/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/terminal/page.h"
#include "tools/terminal/terminal_options.h"

enum {
	KEY_JSON = 0x1000,
	KEY_LIMIT,
	KEY_SORT,
	KEY_PID,
	KEY_RANK,
	KEY_MIN_BYTES,
	KEY_DEPTH,
	KEY_SUPPRESS,
	KEY_NO_LINES,
	KEY_STACKS,
	KEY_NO_DEFAULTS,
	KEY_STEPS,
	KEY_SKIP_WARMUP,
	KEY_FROM,
	KEY_TO,
	KEY_REGION,
	KEY_SINCE,
	KEY_OLDER_THAN,
	KEY_VERBOSE = 'v'
};

/* For all commands that read a recording. */
static const struct argp_option options_selection[] = {
	{"pid", KEY_PID, "PID", 0, "only this process", 1},
	{"rank", KEY_RANK, "N", 0, "only processes of this rank of a distributed run", 1},
	{"no-lines", KEY_NO_LINES, NULL, 0, "don't read DWARF: functions without files and lines",
	 1},
	{0},
};

/* For those that print a report of it. */
static const struct argp_option options_reading[] = {
	{"json", KEY_JSON, NULL, 0, "print JSON", 1},
	{"limit", KEY_LIMIT, "N", 0, "print at most N entries; 0: all (1000 in JSON)", 1},
	{"stacks", KEY_STACKS, "WHICH", 0,
	 "merged (default): Python instead of the interpreter's frames; python or native: only these",
	 1},
	{0},
};

/* For those that show allocation sites. */
static const struct argp_option options_sites[] = {
	{"sort", KEY_SORT, "KEY", 0, "bytes (default), blocks, usable, first or last", 1},
	{"min-bytes", KEY_MIN_BYTES, "SIZE", 0, "leave out entries with less; 10K, 5M, 1G", 1},
	{"depth", KEY_DEPTH, "N", 0,
	 "only the N innermost frames count; stacks that are alike then are one; 0: all stacks, with "
	 "all frames",
	 1},
	{"verbose", KEY_VERBOSE, NULL, 0, "also show processes, events and what is left out", 1},
	{0},
};

/* For those that report leaks. */
static const struct argp_option options_leaks[] = {
	{"suppress", KEY_SUPPRESS, "FILE", 0, "leaks not to report: lines leak:PATTERN", 1},
	{"no-default-suppressions", KEY_NO_DEFAULTS, NULL, 0,
	 "also report what CPython, numpy and PyTorch keep on purpose", 1},
	{0},
};

/* For those that can be restricted to steps. */
static const struct argp_option options_steps[] = {
	{"steps", KEY_STEPS, "A[-B]", 0, "only what began in these steps", 1},
	{"skip-warmup", KEY_SKIP_WARMUP, "N", 0,
	 "leave out the first N steps, and what is in no step", 1},
	{0},
};

/* For those that can be restricted to a window of the timeline, and have --steps already. */
static const struct argp_option options_span_window[] = {
	{"from", KEY_FROM, "TIME", 0,
	 "only what began from here on: 1.5s, 200ms, 30us since the recording began", 1},
	{"to", KEY_TO, "TIME", 0, "only what began before", 1},
	{"region", KEY_REGION, "NAME", 0,
	 "only what began, on any thread, while a region of this name was open", 1},
	{"since", KEY_SINCE, "MARK", 0,
	 "only what began since the program set this mark, for the first time", 1},
	{0},
};

/* For those that can be restricted to a window of time. */
static const struct argp_option options_window[] = {
	{"from", KEY_FROM, "TIME", 0,
	 "only what was allocated from here on: 1.5s, 200ms, 30us since the recording began", 1},
	{"to", KEY_TO, "TIME", 0, "only what was allocated before", 1},
	{"steps", KEY_STEPS, "A[-B]", 0, "only what was allocated in these steps", 1},
	{"region", KEY_REGION, "NAME", 0,
	 "only what was allocated, by any thread, while a region of this name was open", 1},
	{"since", KEY_SINCE, "MARK", 0,
	 "only what was allocated since the program set this mark, for the first time", 1},
	{"older-than", KEY_OLDER_THAN, "AGE", 0,
	 "only what was that old when the process ended: 10s, or 3steps: from before the last 3",
	 1},
	{0},
};

static const char *const order_names[] = {
	[ORDER_BYTES] = "bytes", [ORDER_BLOCKS] = "blocks", [ORDER_USABLE] = "usable",
	[ORDER_FIRST] = "first", [ORDER_LAST] = "last",
};

static const char *const view_names[] = {[STACK_VIEW_MERGED] = "merged",
					 [STACK_VIEW_PYTHON] = "python",
					 [STACK_VIEW_NATIVE] = "native"};

#define N_NAMES(names) (sizeof(names) / sizeof(*(names)))

/* Returns true, or false after a message on stderr. */
static bool read_suppressions(struct suppress *suppress, const char *path)
{
	unsigned line;
	int rc = torsh_suppress_read(suppress, path, &line);

	if (rc == -EINVAL)
		torsh_warn("%s:%u: not a line of the form leak:PATTERN", path, line);
	else if (rc < 0)
		torsh_warn("%s: %s", path, strerror(-rc));
	return rc == 0;
}

static error_t parse_selection(int key, char *argument, struct argp_state *state)
{
	struct read_options *options = state->input;

	switch (key) {
	case KEY_PID:
		options->pid = (uint32_t)torsh_argument_number(state, "pid", argument);
		options->has_pid = true;
		return 0;
	case KEY_RANK:
		options->rank = (uint32_t)torsh_argument_number(state, "rank", argument);
		options->has_rank = true;
		return 0;
	case KEY_NO_LINES:
		options->without_lines = true;
		return 0;
	default:
		return torsh_argument_path(key, argument, state, &options->path);
	}
}

static error_t parse_sites(int key, char *argument, struct argp_state *state)
{
	struct read_options *options = state->input;

	switch (key) {
	case KEY_SORT:
		options->order = (enum sites_order)torsh_argument_choice(
			state, "sort", order_names, N_NAMES(order_names), argument);
		options->has_order = true;
		return 0;
	case KEY_MIN_BYTES:
		options->min_bytes = torsh_argument_size(state, "min-bytes", argument);
		return 0;
	case KEY_DEPTH:
		options->depth = torsh_argument_number(state, "depth", argument);
		options->has_depth = true;
		return 0;
	case KEY_VERBOSE:
		options->is_verbose = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_leaks(int key, char *argument, struct argp_state *state)
{
	struct read_options *options = state->input;

	switch (key) {
	case KEY_SUPPRESS:
		if (!read_suppressions(&options->suppress, argument))
			exit(TORSH_EXIT_UNREADABLE);
		return 0;
	case KEY_NO_DEFAULTS:
		options->without_defaults = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Give each child parser the same input. */
static void share_input(const struct argp_child *children, struct argp_state *state, void *input)
{
	for (size_t i = 0; children[i].argp; i++)
		state->child_inputs[i] = input;
}

static const struct argp selection_argp = {.options = options_selection, .parser = parse_selection};
static const struct argp_child reading_children[] = {{.argp = &selection_argp}, {0}};

static error_t parse_reading(int key, char *argument, struct argp_state *state)
{
	struct read_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		share_input(reading_children, state, options);
		return 0;
	case KEY_JSON:
		options->is_json = true;
		return 0;
	case KEY_LIMIT:
		options->limit = torsh_argument_number(state, "limit", argument);
		options->has_limit = true;
		return 0;
	case KEY_STACKS:
		options->view = (enum stack_view)torsh_argument_choice(
			state, "stacks", view_names, N_NAMES(view_names), argument);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp reading_argp = {
	.options = options_reading, .parser = parse_reading, .children = reading_children};
static const struct argp sites_argp = {.options = options_sites, .parser = parse_sites};
static const struct argp leaks_argp = {.options = options_leaks, .parser = parse_leaks};
static const struct argp_child read_children[] = {
	{.argp = &reading_argp}, {.argp = &sites_argp}, {.argp = &leaks_argp}, {0}};

/* A parser that only gives its children its input. */
static error_t share_at_start(int key, struct argp_state *state, const struct argp_child *children)
{
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	share_input(children, state, state->input);
	return 0;
}

static error_t parse_read(int key, char *argument, struct argp_state *state)
{
	(void)argument;
	return share_at_start(key, state, read_children);
}

static const struct argp_child page_children[] = {
	{.argp = &selection_argp}, {.argp = &leaks_argp}, {0}};

static error_t parse_page(int key, char *argument, struct argp_state *state)
{
	(void)argument;
	return share_at_start(key, state, page_children);
}

static const struct argp page_argp = {.parser = parse_page, .children = page_children};

static const struct argp_child several_children[] = {
	{.argp = &reading_argp}, {.argp = &leaks_argp}, {0}};

static error_t parse_several(int key, char *argument, struct argp_state *state)
{
	(void)argument;
	return share_at_start(key, state, several_children);
}

static const struct argp several_argp = {.parser = parse_several, .children = several_children};

const struct argp torsh_read_argp = {.parser = parse_read, .children = read_children};

static error_t parse_steps(int key, char *argument, struct argp_state *state)
{
	struct steps_choice *steps = &((struct read_options *)state->input)->steps;

	switch (key) {
	case ARGP_KEY_INIT:
		steps->last = UINT64_MAX;
		return 0;
	case KEY_STEPS:
		torsh_argument_steps(state, argument, &steps->first, &steps->last);
		steps->is_some = true;
		return 0;
	case KEY_SKIP_WARMUP:
		steps->n_skipped = torsh_argument_number(state, "skip-warmup", argument);
		steps->is_some = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_window(int key, char *argument, struct argp_state *state)
{
	struct window_request *window = &((struct read_options *)state->input)->window;

	switch (key) {
	case KEY_FROM:
		window->from_ns = torsh_argument_moment(state, "from", argument);
		break;
	case KEY_TO:
		window->to_ns = torsh_argument_moment(state, "to", argument);
		if (!window->to_ns)
			argp_error(state, "--to takes a time after the recording's begin");
		break;
	case KEY_STEPS:
		torsh_argument_steps(state, argument, &window->steps.first, &window->steps.last);
		window->steps.is_some = true;
		break;
	case KEY_REGION:
		window->region = argument;
		break;
	case KEY_SINCE:
		window->since = argument;
		break;
	case KEY_OLDER_THAN:
		torsh_argument_age(state, "older-than", argument, &window->older.ns,
				   &window->older.n_steps);
		window->has_older = true;
		break;
	case ARGP_KEY_END:
		if (window->to_ns && window->from_ns >= window->to_ns)
			argp_error(state, "--from has to be before --to");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	window->is_some = true;
	return 0;
}

static const struct argp window_argp = {.options = options_window, .parser = parse_window};
static const struct argp span_window_argp = {.options = options_span_window,
					     .parser = parse_window};
static const struct argp steps_argp = {.options = options_steps, .parser = parse_steps};
static const struct argp_child spans_children[] = {
	{.argp = &steps_argp}, {.argp = &span_window_argp}, {0}};

static error_t parse_spans(int key, char *argument, struct argp_state *state)
{
	(void)argument;
	return share_at_start(key, state, spans_children);
}

static const struct argp spans_argp = {.parser = parse_spans, .children = spans_children};

struct own_input {
	argp_parser_t parse;
	void *own;
	struct read_options *options;
};

/* Calls the command's parser, and passes its input to the children. */
static error_t parse_own_option(int key, char *argument, struct argp_state *state)
{
	struct own_input *input = state->input;
	error_t rc = ARGP_ERR_UNKNOWN;

	if (key == ARGP_KEY_INIT) {
		share_input(state->root_argp->children, state, input->options);
		return 0;
	}
	if (input->parse) {
		state->input = input->own;
		rc = input->parse(key, argument, state);
		state->input = input;
	}
	return rc;
}

/* Parse the command line; argp has the texts, input the command's parser. */
static void parse_all(int argc, char **argv, struct argp argp, const struct argp_child *children,
		      unsigned flags, struct own_input input)
{
	argp.parser = parse_own_option;
	argp.children = children;
	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&argp, argc, argv, flags, NULL, &input);
}

static void parse_options(int argc, char **argv, const char *doc,
			  const struct argp_option *own_options, argp_parser_t parse_own, void *own,
			  const struct argp *common, const struct argp *more,
			  struct read_options *options)
{
	const struct argp_child children[] = {{.argp = common},
					      {.argp = more ? more : &torsh_terminal_argp},
					      {.argp = more ? &torsh_terminal_argp : NULL},
					      {0}};

	parse_all(argc, argv,
		  (struct argp){.options = own_options, .args_doc = "[DIR|FILE]", .doc = doc},
		  children, 0,
		  (struct own_input){.parse = parse_own, .own = own, .options = options});
	torsh_page_begin(!options->is_json);
}

void torsh_options_parse_timeline(int argc, char **argv, const char *doc,
				  const struct argp_option *own_options, argp_parser_t parse_own,
				  void *own, struct read_options *options)
{
	parse_options(argc, argv, doc, own_options, parse_own, own, &reading_argp, NULL, options);
}

void torsh_options_parse_steps(int argc, char **argv, const char *doc,
			       const struct argp_option *own_options, argp_parser_t parse_own,
			       void *own, struct read_options *options)
{
	parse_options(argc, argv, doc, own_options, parse_own, own, &reading_argp, &spans_argp,
		      options);
}

/* Add the rules of the environment and the built-in ones. */
static void add_suppressions(struct read_options *options)
{
	const char *file = getenv("TORSH_PROFILER_SUPPRESS");

	if (file && *file && !read_suppressions(&options->suppress, file))
		exit(TORSH_EXIT_UNREADABLE);
	/* After the user's: a site that two rules match counts for the first. */
	if (!options->without_defaults)
		torsh_suppress_add_built_in(&options->suppress);
}

void torsh_options_parse(int argc, char **argv, const char *doc,
			 const struct argp_option *own_options, argp_parser_t parse_own, void *own,
			 struct read_options *options)
{
	parse_options(argc, argv, doc, own_options, parse_own, own, &torsh_read_argp, NULL,
		      options);
	add_suppressions(options);
}

void torsh_options_parse_window(int argc, char **argv, const char *doc,
				const struct argp_option *own_options, argp_parser_t parse_own,
				void *own, struct read_options *options)
{
	parse_options(argc, argv, doc, own_options, parse_own, own, &torsh_read_argp, &window_argp,
		      options);
	add_suppressions(options);
}

void torsh_options_parse_several(int argc, char **argv, const char *args_doc, const char *doc,
				 const struct argp_option *own_options, argp_parser_t parse_own,
				 void *own, struct read_options *options)
{
	const struct argp_child children[] = {{.argp = &several_argp},
					      {.argp = &steps_argp},
					      {.argp = &torsh_terminal_argp},
					      {0}};

	parse_all(argc, argv,
		  (struct argp){.options = own_options, .args_doc = args_doc, .doc = doc}, children,
		  ARGP_IN_ORDER,
		  (struct own_input){.parse = parse_own, .own = own, .options = options});
	add_suppressions(options);
	torsh_page_begin(!options->is_json);
}

void torsh_options_parse_summary(int argc, char **argv, const char *doc,
				 struct read_options *options)
{
	parse_options(argc, argv, doc, NULL, NULL, NULL, &page_argp, NULL, options);
	add_suppressions(options);
}

void torsh_options_parse_page(int argc, char **argv, const char *doc,
			      const struct argp_option *own_options, argp_parser_t parse_own,
			      void *own, struct read_options *options)
{
	const struct argp_child children[] = {{.argp = &page_argp}, {0}};

	parse_all(argc, argv,
		  (struct argp){.options = own_options, .args_doc = "[DIR|FILE]", .doc = doc},
		  children, 0,
		  (struct own_input){.parse = parse_own, .own = own, .options = options});
	add_suppressions(options);
}

size_t torsh_options_limit(const struct read_options *options, size_t n, size_t text_limit)
{
	size_t limit = options->has_limit ? options->limit
		       : options->is_json ? READ_LIMIT_JSON
					  : text_limit;

	return limit && limit < n ? limit : n;
}
