/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where an export goes: standard output, a file under another name until it is whole, or something
 * that is no file.
 */
#ifndef TORSH_EXPORT_OUTPUT_H
#define TORSH_EXPORT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/base/private_file.h"

struct output {
	const char *path; /* NULL: standard output */
	/* it gets its name when it is whole; a device or a pipe can't be replaced */
	bool is_whole_only;
	struct private_file place;
	FILE *file;
};

/* Dies where it can't be written. The path stays the caller's until it is closed. */
void torsh_output_open(struct output *output, const char *path);

/*
 * rc: 0 or -errno, of writing. Dies with a sentence where the file isn't whole, which then isn't
 * there.
 */
void torsh_output_close(struct output *output, int rc);

#endif
