/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/output/copy_path.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/private_file.h"

char *torsh_copy_path(const char *recording, const char *kind, uint32_t n)
{
	static const char ending[] = ".torsh";
	size_t n_name = strlen(recording), n_ending = sizeof(ending) - 1;
	char *path;
	bool is_there;

	if (n_name > n_ending && !strcmp(recording + n_name - n_ending, ending))
		n_name -= n_ending;
	if (asprintf(&path, "%.*s.%s", (int)n_name, recording, kind) < 0)
		return NULL;
	is_there = !torsh_private_directory(path);
	free(path);
	if (!is_there)
		return NULL;
	return asprintf(&path, "%.*s.%s/%" PRIu32 "%s", (int)n_name, recording, kind, n, ending) < 0
		       ? NULL
		       : path;
}
