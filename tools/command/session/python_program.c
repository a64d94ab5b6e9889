/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/session/python_program.h"

#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/command/session/executable_report.h"

#define FIRST_LINE_BYTES 256

static bool is_named_py(const char *name)
{
	size_t n = strlen(name);

	return n > 3 && strcmp(name + n - 3, ".py") == 0;
}

/* Read the first line of a regular file, "" if it can't be read. */
static void read_first_line(const char *path, char line[FIRST_LINE_BYTES])
{
	struct stat status;
	FILE *file = stat(path, &status) == 0 && S_ISREG(status.st_mode) ? fopen(path, "re") : NULL;

	if (!file || !fgets(line, FIRST_LINE_BYTES, file))
		*line = '\0';
	if (file)
		fclose(file);
}

bool torsh_is_python_script(const char *name)
{
	char line[FIRST_LINE_BYTES];
	bool is_executable = access(name, X_OK) == 0;

	if (access(name, R_OK) < 0)
		return false;
	read_first_line(name, line);
	if (is_named_py(name))
		return !is_executable || !strchr(name, '/') || strncmp(line, "#!", 2) != 0;
	return !is_executable && strncmp(line, "#!", 2) == 0 && strstr(line, "python");
}

char *torsh_own_directory(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		return NULL;
	path[n] = '\0';
	return torsh_need(strdup(dirname(path)));
}

/* Returns the virtual environment's Python; NULL: torsh is in none. */
static char *python_of_environment(void)
{
	char *directory = torsh_own_directory(), *mark, *python = NULL;

	if (!directory)
		return NULL;
	mark = torsh_need_text("%s/../pyvenv.cfg", directory);
	if (access(mark, F_OK) == 0)
		python = torsh_need_text("%s/python3", directory);
	if (python && access(python, X_OK) < 0) {
		free(python);
		python = NULL;
	}
	free(mark);
	free(directory);
	return python;
}

static char *need_python(const char *program)
{
	char *python = python_of_environment();

	if (!python)
		python = torsh_program_find("python3");
	if (!python)
		torsh_die(
			"%s needs Python, and there is no python3 in PATH or with torsh. Install Python, "
			"or name the interpreter: torsh run -- /path/to/python3 ...",
			program);
	return python;
}

char **torsh_python_command(const char *module, char **command)
{
	size_t n = 0, n_before = module ? 3 : 1;
	char **whole;

	while (command[n])
		n++;
	whole = torsh_need_items(NULL, 0, n_before + n + 1, sizeof(*whole));
	whole[0] = need_python(module ? module : command[0]);
	if (module) {
		whole[1] = "-m";
		whole[2] = (char *)(uintptr_t)module;
	}
	memcpy(whole + n_before, command, n * sizeof(*whole));
	return whole;
}
