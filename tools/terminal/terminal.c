/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/terminal/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/base/utf8.h"

#define PIECE_BYTES 4096
#define BUFFER_BYTES (64 << 10) /* the capacity of a pipe */

/* The filter of a stream: stdout, stderr, or one that was opened to a terminal. */
struct guard {
	FILE *file; /* the filtered stdout or stderr */
	int fd;
	bool is_trusted; /* the output is the command's own escape sequences */
	bool is_terminal;
	int (*pass)(const char *bytes, size_t n); /* receives the output; NULL: fd does */
	char cut[4]; /* the start of an incomplete character */
	size_t n_cut;
};

static struct guard output = {.fd = STDOUT_FILENO}, errors = {.fd = STDERR_FILENO};

int torsh_terminal_write_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t n_written = write(fd, bytes, n);

		if (n_written < 0 && errno == EINTR)
			continue;
		if (n_written < 0)
			return -1;
		bytes += n_written;
		n -= (size_t)n_written;
	}
	return 0;
}

static int put(const struct guard *guard, const char *bytes, size_t n)
{
	return guard->pass ? guard->pass(bytes, n) : torsh_terminal_write_all(guard->fd, bytes, n);
}

/*
 * Copy the character at text, cleaned, to `to`. Returns the number of bytes used, 0 if the
 * character is incomplete.
 */
static size_t clean_one(const char *text, size_t n, char *to, size_t *n_to)
{
	size_t n_bytes = *text >= ' ' && *text < 0x7f ? 1 : torsh_utf8_bytes(text, n);

	if (n_bytes && !torsh_utf8_is_obeyed(torsh_utf8_character(text, n_bytes))) {
		memmove(to, text, n_bytes);
		*n_to = n_bytes;
		return n_bytes;
	}
	if (!n_bytes && torsh_utf8_is_cut(text, n))
		return 0;
	*to = '?';
	*n_to = 1;
	return n_bytes ? n_bytes : 1;
}

void torsh_terminal_clean(char *text)
{
	size_t left = strlen(text), n_one;
	char *to = text;

	while (left) {
		/* An incomplete character at the end is invalid, too. */
		size_t n_taken = clean_one(text, left, to, &n_one);

		if (!n_taken) {
			*to = '?';
			n_taken = n_one = 1;
		}
		text += n_taken;
		left -= n_taken;
		to += n_one;
	}
	*to = '\0';
}

static int write_clean(struct guard *guard, const char *text, size_t n)
{
	char clean[PIECE_BYTES];
	size_t n_clean = 0, n_one;

	while (n) {
		size_t n_taken = clean_one(text, n, clean + n_clean, &n_one);

		if (!n_taken) {
			memcpy(guard->cut, text, n);
			guard->n_cut = n;
			break;
		}
		text += n_taken;
		n -= n_taken;
		n_clean += n_one;
		if (n_clean <= sizeof(clean) - sizeof(guard->cut))
			continue;
		if (put(guard, clean, n_clean))
			return -1;
		n_clean = 0;
	}
	return put(guard, clean, n_clean);
}

/*
 * Continue an incomplete character byte by byte, until it is complete or invalid. Returns the
 * number of bytes used.
 */
static size_t finish_cut(struct guard *guard, const char *text, size_t n, int *failed)
{
	size_t n_taken = 0;

	while (guard->n_cut && n_taken < n) {
		char joined[sizeof(guard->cut) + 1];
		size_t n_joined = guard->n_cut;

		memcpy(joined, guard->cut, n_joined);
		joined[n_joined++] = text[n_taken++];
		guard->n_cut = 0;
		*failed |= write_clean(guard, joined, n_joined);
	}
	return n_taken;
}

static ssize_t write_guarded(void *cookie, const char *text, size_t n)
{
	struct guard *guard = cookie;
	int failed = 0;
	size_t n_taken;

	if (guard->is_trusted)
		return put(guard, text, n) ? 0 : (ssize_t)n;
	n_taken = finish_cut(guard, text, n, &failed);
	if (failed || write_clean(guard, text + n_taken, n - n_taken))
		return 0;
	return (ssize_t)n;
}

static FILE *open_guarded(struct guard *guard, int mode)
{
	guard->is_terminal = isatty(guard->fd);
	guard->file = fopencookie(guard, "w", (cookie_io_functions_t){.write = write_guarded});
	if (!guard->file)
		torsh_die("out of memory");
	setvbuf(guard->file, NULL, mode, mode == _IONBF ? 0 : BUFFER_BYTES);
	return guard->file;
}

void torsh_terminal_guard(void)
{
	stdout = open_guarded(&output, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
	stderr = open_guarded(&errors, _IOLBF);
}

static struct guard *guard_of(FILE *out)
{
	return out == output.file ? &output : out == errors.file ? &errors : NULL;
}

bool torsh_terminal_is(FILE *out)
{
	struct guard *guard = out ? guard_of(out) : NULL;

	return guard && guard->is_terminal;
}

bool torsh_terminal_is_guarded(FILE *out)
{
	return out && guard_of(out);
}

void torsh_terminal_pass(int (*pass)(const char *bytes, size_t n))
{
	fflush(stdout);
	output.pass = pass;
}

void torsh_terminal_control(FILE *out, const char *bytes)
{
	struct guard *guard = guard_of(out);

	if (!guard)
		return;
	fflush(out);
	guard->is_trusted = true;
	fputs(bytes, out);
	fflush(out);
	guard->is_trusted = false;
}

static int close_guarded(void *cookie)
{
	struct guard *guard = cookie;
	int failed = close(guard->fd);

	free(guard);
	return failed;
}

FILE *torsh_terminal_open(int fd)
{
	struct guard *guard;

	if (!isatty(fd))
		return torsh_need(fdopen(fd, "wb"));
	guard = torsh_need(calloc(1, sizeof(*guard)));
	guard->fd = fd;
	guard->file = fopencookie(
		guard, "w",
		(cookie_io_functions_t){.write = write_guarded, .close = close_guarded});
	return torsh_need(guard->file);
}

FILE *torsh_terminal_raw_output(void)
{
	static FILE *raw;

	fflush(stdout);
	if (!raw)
		raw = torsh_need(fdopen(STDOUT_FILENO, "wb"));
	return raw;
}
