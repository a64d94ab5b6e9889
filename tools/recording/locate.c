/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Finds the recording that a path stands for. */
#include "tools/recording/read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/base/regular.h"
#include "tools/store/recording_format.h"

static int is_recording_name(const struct dirent *entry)
{
	static const char ending[] = ".torsh";
	size_t n = strlen(entry->d_name);

	return n >= sizeof(ending) && strcmp(entry->d_name + n - (sizeof(ending) - 1), ending) == 0;
}

/* Returns the start of the session from the file's header; 0 if it has none yet. */
static uint64_t read_start(const char *path)
{
	struct recording_header header = {0};
	int fd = torsh_open_regular(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (!file && fd >= 0)
		close(fd);
	if (!file)
		return 0;
	if (fread(&header, sizeof(header), 1, file) != 1 || header.magic != RECORDING_MAGIC)
		header.start_realtime_ns = 0;
	fclose(file);
	return header.start_realtime_ns;
}

/* A recording without a header is a session that has just started: as new as its file. */
static uint64_t started_at(const char *path)
{
	uint64_t start_ns = read_start(path);
	struct stat status;

	if (start_ns || stat(path, &status) < 0)
		return start_ns;
	return (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
}

static char *choose_newest(const char *directory, struct dirent **entries, int n)
{
	char *newest = NULL;
	uint64_t newest_ns = 0;

	for (int i = 0; i < n; i++) {
		bool has_slash = *directory && directory[strlen(directory) - 1] == '/';
		char *path = torsh_need_text("%s%s%s", directory, has_slash ? "" : "/",
					     entries[i]->d_name);
		uint64_t start_ns = started_at(path);

		if (!newest || start_ns >= newest_ns) {
			free(newest);
			newest = path;
			newest_ns = start_ns;
		} else {
			free(path);
		}
	}
	if (n > 1)
		torsh_warn("%s has %d sessions; this is the newest, %s", directory, n,
			   strrchr(newest, '/') + 1);
	return newest;
}

char *torsh_recording_locate(const char *path, char *error, size_t n_error)
{
	struct dirent **entries = NULL;
	struct stat status;
	char *found = NULL;
	int n;

	if (stat(path, &status) < 0) {
		snprintf(error, n_error, "%s: %s", path, strerror(errno));
		return NULL;
	}
	if (!S_ISDIR(status.st_mode))
		return torsh_need(strdup(path));
	n = scandir(path, &entries, is_recording_name, alphasort);
	if (n < 0) {
		snprintf(error, n_error, "%s: %s", path, strerror(errno));
		return NULL;
	}
	if (n == 0)
		snprintf(error, n_error, "%s has no recording (*.torsh)", path);
	else
		found = choose_newest(path, entries, n);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return found;
}

/* Matches default directories of recordings, torsh-NAME-PID. */
static int is_default_name(const struct dirent *entry)
{
	return strncmp(entry->d_name, "torsh-", 6) == 0;
}

/* Returns the start of a directory's newest session; 0 if it has none. */
static uint64_t newest_start(const char *directory)
{
	struct dirent **entries = NULL;
	uint64_t newest_ns = 0;
	int n = scandir(directory, &entries, is_recording_name, NULL);

	for (int i = 0; i < n; i++) {
		char *path = torsh_need_text("%s/%s", directory, entries[i]->d_name);
		uint64_t start_ns = started_at(path);

		newest_ns = start_ns > newest_ns ? start_ns : newest_ns;
		free(path);
		free(entries[i]);
	}
	free(entries);
	return newest_ns;
}

char *torsh_recording_newest_here(void)
{
	struct dirent **entries = NULL;
	uint64_t newest_ns = 0;
	char *newest = NULL;
	int n = scandir(".", &entries, is_default_name, alphasort);

	for (int i = 0; i < n; i++) {
		uint64_t start_ns = newest_start(entries[i]->d_name);

		if (start_ns > newest_ns) {
			free(newest);
			newest = torsh_need(strdup(entries[i]->d_name));
			newest_ns = start_ns;
		}
		free(entries[i]);
	}
	free(entries);
	return newest;
}
