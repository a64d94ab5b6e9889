/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The served recording. It is read once, when the server starts. A process that answers a request
 * inherits it, and reads the recording again if the file has changed since, as during a run.
 */
#ifndef TORSH_COMMAND_SERVE_DATA_H
#define TORSH_COMMAND_SERVE_DATA_H

#include <sys/stat.h>

#include "tools/command/reading.h"
#include "tools/command/serve/serve_request.h"
#include "tools/export/trace.h"

/* Identifies the state of the file. */
struct serve_stamp {
	dev_t device;
	ino_t file;
	off_t bytes;
	struct timespec changed;
};

struct serve_data {
	struct read_options options;
	struct reading reading;
	struct prepass prepass;
	struct trace trace;
	struct serve_stamp stamp;
};

/* Read the recording that data->options selects; ends the program on failure. */
void torsh_serve_open(struct serve_data *data);
void torsh_serve_close(struct serve_data *data);

/* Returns the path of the file. */
const char *torsh_serve_path(const struct serve_data *data);

/* Get the current state of the file. Returns false if it is gone. */
bool torsh_serve_stamp(const struct serve_data *data, struct serve_stamp *stamp);
bool torsh_serve_is_same(const struct serve_stamp *a, const struct serve_stamp *b);

/*
 * Write the answer to standard output, in a process of its own. Returns its exit status; ends the
 * process with a message on stderr if the recording cannot be read.
 */
int torsh_serve_write(struct serve_data *data, const struct serve_request *request);

#endif
