/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The destination of an export: standard output, a file that gets its name once it is complete, or
 * an existing device or pipe.
 */
#ifndef TORSH_EXPORT_OUTPUT_H
#define TORSH_EXPORT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/base/private_file.h"

struct output {
	const char *path; /* NULL: standard output */
	/* the file gets its name once it is complete; devices and pipes can't be replaced */
	bool is_whole_only;
	struct private_file place;
	FILE *file;
};

/*
 * Open the output. Ends the program if it can't be written. The path stays the caller's, and must
 * be valid until the close.
 */
void torsh_output_open(struct output *output, const char *path);

/*
 * Close the output. rc: 0 or -errno of writing. On failure the incomplete file is removed, and the
 * program ends with a message.
 */
void torsh_output_close(struct output *output, int rc);

#endif
