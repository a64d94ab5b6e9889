/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The options that all reading commands share. A command's own argp has torsh_read_argp as a child
 * and a struct read_options as that child's input. reading.h opens the recording that they select.
 */
#ifndef TORSH_COMMAND_OPTIONS_H
#define TORSH_COMMAND_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/memory/allocation_sites.h"
#include "tools/memory/leaks/rules/suppress.h"
#include "tools/timeline/window.h"

#define READ_LIMIT_JSON 1000
#define READ_WAIT_S 60

struct read_options {
	const char *path;
	/* tables that the command doesn't use: enum recording_table, ored; 0: it may use all */
	unsigned without;
	bool is_json, without_lines, without_defaults;
	bool has_limit, has_pid, has_rank;
	size_t limit; /* 0: all */
	uint32_t pid, rank;
	uint64_t min_bytes;
	size_t depth; /* 0: all frames */
	bool has_depth, is_verbose;
	enum sites_order order;
	bool has_order; /* it was given */
	enum stack_view view;
	struct suppress suppress;
	struct steps_choice steps;
	struct window_request window;
};

extern const struct argp torsh_read_argp;

/*
 * Parse a command's arguments: its own options (a NULL key ends them; may be NULL) and the shared
 * ones, with one PATH. own is state->input of parse. Invalid ones end the command with a usage
 * message.
 */
void torsh_options_parse(int argc, char **argv, const char *doc,
			 const struct argp_option *own_options, argp_parser_t parse_own, void *own,
			 struct read_options *options);

/* Likewise for commands that read the timeline: without --sort and the options about memory. */
void torsh_options_parse_timeline(int argc, char **argv, const char *doc,
				  const struct argp_option *own_options, argp_parser_t parse_own,
				  void *own, struct read_options *options);

/* Likewise for commands that can be restricted to steps and to a window of time. */
void torsh_options_parse_steps(int argc, char **argv, const char *doc,
			       const struct argp_option *own_options, argp_parser_t parse_own,
			       void *own, struct read_options *options);

/* As torsh_options_parse, for commands that can be restricted to a window of time. */
void torsh_options_parse_window(int argc, char **argv, const char *doc,
				const struct argp_option *own_options, argp_parser_t parse_own,
				void *own, struct read_options *options);

/*
 * Likewise for commands that make a page for a browser: only the options that select processes and
 * suppress leaks, without the terminal's.
 */
void torsh_options_parse_page(int argc, char **argv, const char *doc,
			      const struct argp_option *own_options, argp_parser_t parse_own,
			      void *own, struct read_options *options);

/* Likewise for commands without tables, which print for a terminal. */
void torsh_options_parse_summary(int argc, char **argv, const char *doc,
				 struct read_options *options);

/*
 * Likewise for commands that read several recordings, without --sort, --min-bytes and --depth.
 * parse_own gets each argument, in order, with "--" between sets (state->quoted), and sets
 * options->path to one of them.
 */
void torsh_options_parse_several(int argc, char **argv, const char *args_doc, const char *doc,
				 const struct argp_option *own_options, argp_parser_t parse_own,
				 void *own, struct read_options *options);

/*
 * Returns the number of n entries to print: --limit, else READ_LIMIT_JSON for JSON and text_limit
 * for text.
 */
size_t torsh_options_limit(const struct read_options *options, size_t n, size_t text_limit);

#endif
