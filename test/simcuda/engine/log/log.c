/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The ground truth's file. Every process writes its own; a child that was forked writes none. */
#include "test/simcuda/engine/log/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/config.h"

enum { BUFFER_BYTES = 1 << 16, MAX_LINE = 20 << 10, MAX_QUOTED = 16 << 10, N_QUOTED = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the buffer */
static char buffer[BUFFER_BYTES];
static size_t n_buffered;
static int fd = -1;
static bool is_on;

static void write_all(const char *bytes, size_t n)
{
	while (n) {
		ssize_t written = write(fd, bytes, n);

		if (written <= 0)
			return;
		bytes += written;
		n -= (size_t)written;
	}
}

static void flush_locked(void)
{
	if (fd >= 0)
		write_all(buffer, n_buffered);
	n_buffered = 0;
}

static void append_line(const char *format, va_list arguments)
{
	if (n_buffered + MAX_LINE > BUFFER_BYTES)
		flush_locked();
	int n = vsnprintf(buffer + n_buffered, MAX_LINE - 1, format, arguments);
	if (n < 0 || n >= MAX_LINE - 1)
		return;
	n_buffered += (size_t)n;
	buffer[n_buffered++] = '\n';
}

static void forget_in_child(void)
{
	is_on = false;
	if (fd >= 0)
		close(fd);
	fd = -1;
}

/* The name with the first %p replaced by the number of this process. */
static void open_log(const char *name)
{
	char path[4096];
	const char *mark = strstr(name, "%p");

	if (mark)
		snprintf(path, sizeof(path), "%.*s%d%s", (int)(mark - name), name, getpid(),
			 mark + 2);
	else
		snprintf(path, sizeof(path), "%s", name);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0) {
		fprintf(stderr, "simcuda: %s can't be written\n", path);
		_exit(2);
	}
	is_on = true;
	pthread_atfork(NULL, NULL, forget_in_child);
}

static void begin(void)
{
	const struct sim_config *config = sim_config();

	if (!config->log)
		return;
	open_log(config->log);
	sim_log("{\"kind\":\"begin\",\"pid\":%d,\"clock\":\"%s\",\"wall_offset_ns\":%ld,\"devices\":%d,"
		"\"device_bytes\":%zu}",
		getpid(), config->is_virtual_clock ? "virtual" : "real", (long)sim_wall_offset(),
		config->n_devices, config->device_bytes);
}

__attribute__((destructor)) static void end(void)
{
	sim_log_flush();
}

bool sim_log_is_on(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, begin);
	return is_on;
}

void sim_log(const char *format, ...)
{
	va_list arguments;

	/* Not sim_log_is_on: the first line is written by its pthread_once. */
	if (fd < 0)
		return;
	pthread_mutex_lock(&lock);
	va_start(arguments, format);
	append_line(format, arguments);
	va_end(arguments);
	if (sim_config()->logs_at_once)
		flush_locked();
	pthread_mutex_unlock(&lock);
}

void sim_log_flush(void)
{
	pthread_mutex_lock(&lock);
	flush_locked();
	pthread_mutex_unlock(&lock);
}

const char *sim_log_quoted(const char *text)
{
	static _Thread_local char texts[N_QUOTED][MAX_QUOTED];
	static _Thread_local int next;
	char *quoted = texts[next++ % N_QUOTED], *at = quoted;

	*at++ = '"';
	for (const char *c = text ? text : ""; *c && at < quoted + MAX_QUOTED - 8; c++) {
		if ((unsigned char)*c < ' ')
			at += sprintf(at, "\\u%04x", *c);
		else {
			if (*c == '"' || *c == '\\')
				*at++ = '\\';
			*at++ = *c;
		}
	}
	memcpy(at, "\"", 2);
	return quoted;
}

void sim_violation(const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "simcuda: %s\n", text);
	if (sim_log_is_on())
		sim_log("{\"kind\":\"violation\",\"text\":%s}", sim_log_quoted(text));
	if (!sim_config()->is_strict)
		return;
	sim_log_flush();
	abort();
}
