/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runs commands of torsh in children of a unit test, and looks at what they print. cmocka.h comes before it. */
#ifndef TORSH_TEST_COMMAND_FIXTURE_H
#define TORSH_TEST_COMMAND_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema_check.h"
#include "tools/command/command.h"

static char *output; /* of the last command */

typedef int (*command_main)(int argc, char **argv);

/* Run a command in a child, as it may exit; what it writes to either stream goes to output. Returns its status. */
static inline int run_command(command_main command, const char *const *arguments, bool with_errors)
{
	char *argv[16] = {"torsh test"};
	int argc = 1, pipe_ends[2], status;
	FILE *file;
	size_t n_room = 0;
	pid_t child;

	for (; *arguments; arguments++)
		argv[argc++] = (char *)*arguments;
	assert_int_equal(pipe(pipe_ends), 0);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(pipe_ends[1], STDOUT_FILENO);
		dup2(with_errors ? pipe_ends[1] : null, STDERR_FILENO);
		close(pipe_ends[0]);
		close(pipe_ends[1]);
		exit(command(argc, argv));
	}
	close(pipe_ends[1]);
	file = fdopen(pipe_ends[0], "r");
	free(output);
	output = NULL;
	if (getdelim(&output, &n_room, '\0', file) < 0)
		output[0] = '\0';
	fclose(file);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define RUN(name, ...) run_command(torsh_command_##name, (const char *const[]){__VA_ARGS__, NULL}, false)
#define RUN_WITH_ERRORS(name, ...) run_command(torsh_command_##name, (const char *const[]){__VA_ARGS__, NULL}, true)

static inline void assert_schema(const char *name)
{
	struct schema_check check;
	char path[64];

	snprintf(path, sizeof(path), "tools/schema/%s.json", name);
	if (!schema_check_text(&check, path, output))
		fail_msg("%s: %s", name, check.problem);
}

static inline cJSON *parse_output(void)
{
	cJSON *json = cJSON_Parse(output);

	assert_non_null(json);
	return json;
}

static inline double number_of(const cJSON *object, const char *name)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);

	assert_true(cJSON_IsNumber(value));
	return value->valuedouble;
}

static inline const cJSON *item_of(const cJSON *object, const char *name, int i)
{
	const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(object, name), i);

	assert_non_null(item);
	return item;
}

static inline const char *text_of(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	assert_non_null(text);
	return text;
}

#endif
