/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/serve/serve_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/export/html/html_parts.h"
#include "tools/recording/read.h"
#include "tools/terminal/terminal.h"

const char *torsh_serve_path(const struct serve_data *data)
{
	return data->reading.recording->path;
}

static bool stamp_of(const char *path, struct serve_stamp *stamp)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return false;
	*stamp = (struct serve_stamp){.device = status.st_dev,
				      .file = status.st_ino,
				      .bytes = status.st_size,
				      .changed = status.st_mtim};
	return true;
}

bool torsh_serve_stamp(const struct serve_data *data, struct serve_stamp *stamp)
{
	return stamp_of(torsh_serve_path(data), stamp);
}

bool torsh_serve_is_same(const struct serve_stamp *a, const struct serve_stamp *b)
{
	return a->device == b->device && a->file == b->file && a->bytes == b->bytes &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

void torsh_serve_open(struct serve_data *data)
{
	struct reading *reading = &data->reading;
	char error[512], *path = torsh_recording_locate(data->options.path, error, sizeof(error));

	if (!path)
		torsh_die("%s", error);
	/* Before the file is read, so that later writes change the stamp. */
	if (!stamp_of(path, &data->stamp))
		torsh_die("%s is gone", path);
	data->options.path = path;
	torsh_reading_open(reading, &data->options);
	torsh_prepass_make(&data->prepass, reading->recording, reading->processes,
			   reading->n_processes);
	data->trace = (struct trace){
		.recording = reading->recording,
		.processes = reading->processes,
		.n_processes = reading->n_processes,
		.symbols = reading->symbols,
		.suppress = reading->suppress,
		.prepass = &data->prepass,
		.to_ns = UINT64_MAX,
	};
}

void torsh_serve_close(struct serve_data *data)
{
	torsh_prepass_free(&data->prepass);
	torsh_reading_close(&data->reading, &data->options);
	free((char *)data->options.path);
}

/* Run the command's --json, for the same processes. */
static int run_command(const struct serve_data *data, const struct serve_request *request)
{
	const struct read_options *options = &data->options;
	char *arguments[10];
	int n = 0;

	arguments[n++] = torsh_need_text("torsh %s", request->name);
	arguments[n++] = torsh_need_text("--json");
	if (request->has_limit)
		arguments[n++] = torsh_need_text("--limit=%" PRIu64, request->limit);
	if (options->has_pid)
		arguments[n++] = torsh_need_text("--pid=%" PRIu32, options->pid);
	if (options->has_rank)
		arguments[n++] = torsh_need_text("--rank=%" PRIu32, options->rank);
	if (options->without_lines)
		arguments[n++] = torsh_need_text("--no-lines");
	arguments[n++] = torsh_need_text("--");
	arguments[n++] = torsh_need_text("%s", torsh_serve_path(data));
	arguments[n] = NULL;
	return request->command(n, arguments);
}

static char *make_document(struct serve_data *data, const struct serve_request *request)
{
	switch (request->what) {
	case SERVE_MEMORY:
		return torsh_html_memory(&data->trace);
	case SERVE_TIME:
		return torsh_html_time(&data->trace);
	case SERVE_WINDOW:
		if (request->process >= data->reading.n_processes)
			torsh_die("%s has no such process", torsh_serve_path(data));
		return torsh_html_window(&data->trace, request->process, request->from_ns,
					 request->to_ns);
	default:
		return torsh_html_document(&data->trace);
	}
}

int torsh_serve_write(struct serve_data *data, const struct serve_request *request)
{
	struct serve_stamp now;
	char *document;
	int rc;

	if (!torsh_serve_stamp(data, &now))
		torsh_die("%s was removed", torsh_serve_path(data));
	if (request->what == SERVE_COMMAND)
		return run_command(data, request);
	if (!torsh_serve_is_same(&now, &data->stamp))
		torsh_serve_open(data);
	document = make_document(data, request);
	rc = torsh_terminal_write_all(STDOUT_FILENO, document, strlen(document));
	free(document);
	return rc < 0 ? TORSH_EXIT_UNREADABLE : TORSH_EXIT_DONE;
}
