/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/terminal/short_path.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/die.h"

/* The part of path after the last `folder` in it; NULL: it has none. */
static const char *after_last(const char *path, const char *folder)
{
	const char *found = NULL, *at = path;

	while ((at = strstr(at, folder)) != NULL) {
		at += strlen(folder);
		found = at;
	}
	return found && *found ? found : NULL;
}

/* The part after the working directory, NULL where it isn't below that. */
static const char *below_here(const char *path)
{
	static char *here;
	size_t n;

	if (!here) {
		char *own = getcwd(NULL, 0);

		here = own ? own : torsh_need(strdup(""));
	}
	n = strlen(here);
	if (n < 2 || strncmp(path, here, n) != 0 || path[n] != '/')
		return NULL;
	return path[n + 1] ? path + n + 1 : NULL;
}

const char *torsh_short_path(const char *path)
{
	const char *shown = after_last(path, "/site-packages/");

	if (*path != '/')
		return path;
	if (!shown)
		shown = after_last(path, "/dist-packages/");
	if (!shown)
		shown = below_here(path);
	if (!shown) {
		shown = strstr(path, "/lib/python");
		shown = shown ? shown + strlen("/lib/") : NULL;
	}
	return shown ? shown : path;
}
