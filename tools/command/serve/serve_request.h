/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The requests of torsh serve: the part of the address after the token. Anything else is refused;
 * no part of an address is ever used as a file name.
 */
#ifndef TORSH_COMMAND_SERVE_REQUEST_H
#define TORSH_COMMAND_SERVE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* COMMAND(name): "json/NAME?limit=N" returns the output of torsh NAME --json --limit N */
#define SERVE_COMMANDS   \
	COMMAND(report)  \
	COMMAND(leaks)   \
	COMMAND(peak)    \
	COMMAND(ops)     \
	COMMAND(steps)   \
	COMMAND(modules) \
	COMMAND(kernels) \
	COMMAND(tensors) \
	COMMAND(regions)

enum serve_what {
	SERVE_PAGE, /* "": the page without data */
	SERVE_DOCUMENT, /* "document": its data, limited as in the file of torsh html */
	SERVE_MEMORY, /* "memory", "time": parts of it with all rows */
	SERVE_TIME,
	SERVE_WINDOW, /* "window?process=N&from=NS&to=NS": the spans of a process in that time */
	SERVE_COMMAND
};

struct serve_request {
	enum serve_what what;
	size_t process; /* of SERVE_WINDOW: its index */
	uint64_t from_ns, to_ns;
	int (*command)(int argc, char **argv); /* of SERVE_COMMAND, with its name */
	const char *name;
	bool has_limit;
	uint64_t limit;
};

/* Parse path and query (NULL: none), both NUL-terminated. Returns false for an invalid request. */
bool torsh_serve_parse(struct serve_request *request, const char *path, const char *query);

#endif
