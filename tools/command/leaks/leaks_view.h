/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The data of `torsh leaks`, and its two renderings. */
#ifndef TORSH_COMMAND_LEAKS_LEAKS_VIEW_H
#define TORSH_COMMAND_LEAKS_LEAKS_VIEW_H

#include "tools/base/json_writer.h"
#include "tools/command/reading.h"
#include "tools/memory/leaks/leaks.h"

struct leaks_view {
	const struct read_options *options;
	const struct reading *reading;
	struct leaks leaks;
	size_t n_shown; /* allocation sites printed */
	size_t n_held_shown; /* likewise, of large ones that were held to the end */
	size_t n_undecided_shown; /* likewise, of those that may be in the window */
	bool shows_kept;
};

/*
 * Returns why it is not known which of the blocks are lost, or NULL if it is. The caller frees it.
 */
char *torsh_leaks_why_unjudged(const struct leaks_view *view);

/* Print the leaks on stdout as text. */
void torsh_leaks_text(const struct leaks_view *view);

/* Print them on stdout as JSON: tools/schema/leaks.json. */
void torsh_leaks_json(const struct leaks_view *view);

/* Print the variables of Python that held most to the end, and with --kept objects by type. */
void torsh_leaks_python_text(const struct leaks_view *view);

/* Emit what is known of CPython's objects: an array "python", an item for each process with some. */
void torsh_leaks_python_json(struct json_writer *json, const struct leaks_view *view);

/*
 * Print the shortest way from a root to a block of a leak: of the one of that number in the table,
 * from 1 on, where what was held to the end follows the leaks.
 */
void torsh_leaks_why(const struct leaks_view *view, size_t number);

/* Print it for a block of the site. */
void torsh_leaks_why_of(const struct read_options *options, const struct reading *reading,
			const struct allocation_site *site);

#endif
