/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/serve/serve_request.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/command/command.h"

static const struct {
	const char *path;
	enum serve_what what;
} places[] = {{"", SERVE_PAGE},
	      {"document", SERVE_DOCUMENT},
	      {"memory", SERVE_MEMORY},
	      {"time", SERVE_TIME},
	      {"window", SERVE_WINDOW}};

static const struct {
	const char *path, *name;
	int (*command)(int argc, char **argv);
} commands[] = {
#define COMMAND(name) {"json/" #name, #name, torsh_command_##name},
	SERVE_COMMANDS
#undef COMMAND
};

#define N_ITEMS(items) (sizeof(items) / sizeof(*(items)))

/* Read the number of "NAME=NUMBER" in a query with several parameters. */
static bool read_number(const char *query, const char *name, uint64_t *number)
{
	size_t n = strlen(name);
	char *end;

	for (; query; query = strchr(query, '&')) {
		query += *query == '&';
		if (strncmp(query, name, n) != 0 || query[n] != '=')
			continue;
		if (!isdigit((unsigned char)query[n + 1]))
			return false;
		errno = 0;
		*number = strtoull(query + n + 1, &end, 10);
		return !errno && (*end == '\0' || *end == '&');
	}
	return false;
}

static bool parse_window(struct serve_request *request, const char *query)
{
	uint64_t process;

	if (!read_number(query, "process", &process) ||
	    !read_number(query, "from", &request->from_ns) ||
	    !read_number(query, "to", &request->to_ns))
		return false;
	request->process = process;
	return request->from_ns < request->to_ns;
}

bool torsh_serve_parse(struct serve_request *request, const char *path, const char *query)
{
	*request = (struct serve_request){0};
	for (size_t i = 0; i < N_ITEMS(places); i++) {
		if (strcmp(path, places[i].path) != 0)
			continue;
		request->what = places[i].what;
		return request->what != SERVE_WINDOW || parse_window(request, query);
	}
	for (size_t i = 0; i < N_ITEMS(commands); i++) {
		if (strcmp(path, commands[i].path) != 0)
			continue;
		request->what = SERVE_COMMAND;
		request->command = commands[i].command;
		request->name = commands[i].name;
		request->has_limit = read_number(query, "limit", &request->limit);
		return true;
	}
	return false;
}
