/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/brief/source_line.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/base/regular.h"

#define FILE_BYTES_MAX (16 << 20) /* a larger one is no source file */

/* Returns the line, which the caller frees; NULL: the file is shorter. */
static char *read_line(FILE *file, int line)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t n = 0;

	for (int i = 0; i < line && n >= 0; i++)
		n = getline(&text, &room, file);
	if (n >= 0)
		return text;
	free(text);
	return NULL;
}

static char *cut(const char *text)
{
	size_t n;

	text += strspn(text, " \t");
	n = strcspn(text, "\r\n");
	if (n <= SOURCE_LINE_MAX)
		return torsh_need(strndup(text, n));
	return torsh_need_text("%.*s...", (int)SOURCE_LINE_MAX - 3, text);
}

static bool is_newer(const struct stat *status, uint64_t until_ns)
{
	uint64_t ns =
		(uint64_t)status->st_mtim.tv_sec * 1000000000u + (uint64_t)status->st_mtim.tv_nsec;

	return status->st_mtim.tv_sec > 0 && ns > until_ns;
}

char *torsh_source_line(const char *path, int line, uint64_t until_ns, const char **reason)
{
	int fd = torsh_open_regular(path);
	struct stat status;
	char *text = NULL, *found;
	FILE *file;

	*reason = "its file is not on this machine";
	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) < 0 || status.st_size > FILE_BYTES_MAX ||
	    is_newer(&status, until_ns)) {
		*reason = "its file has changed since";
		close(fd);
		return NULL;
	}
	file = torsh_need(fdopen(fd, "r"));
	found = read_line(file, line);
	fclose(file);
	*reason = "its file has no such line";
	if (found && *(found + strspn(found, " \t\r\n")))
		text = cut(found);
	free(found);
	if (text)
		*reason = NULL;
	return text;
}
