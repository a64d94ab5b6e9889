/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/process/text_buffer.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/sys.h"

#define MESSAGE_BYTES 1024

static char no_room[1];
static struct stat own_stderr;
static bool has_stderr;

struct text torsh_text_map(size_t capacity)
{
	char *pages = torsh_sys_pages(capacity);

	return pages ? (struct text){.bytes = pages, .capacity = capacity}
		     : (struct text){.bytes = no_room, .capacity = sizeof(no_room)};
}

void torsh_text_unmap(const struct text *text)
{
	if (text->bytes != no_room)
		torsh_sys_munmap(text->bytes, text->capacity);
}

void torsh_text_put_bytes(struct text *text, const char *bytes, size_t n)
{
	size_t room = text->capacity - 1 - text->length;

	if (n > room) {
		n = room;
		text->is_cut = true;
	}
	memcpy(text->bytes + text->length, bytes, n);
	text->length += n;
	text->bytes[text->length] = '\0';
}

void torsh_text_put(struct text *text, const char *string)
{
	torsh_text_put_bytes(text, string, strlen(string));
}

void torsh_text_put_number(struct text *text, uint64_t number)
{
	char digits[20], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	torsh_text_put_bytes(text, at, (size_t)(digits + sizeof(digits) - at));
}

/*
 * The C library's static texts: strerror translates and allocates. No header declares them any
 * more.
 */
extern const char *const _sys_errlist[];
extern const int _sys_nerr;

const char *torsh_text_reason(int error)
{
	unsigned number = (unsigned)(error < 0 ? -error : error);
	const char *text = number < (unsigned)_sys_nerr ? _sys_errlist[number] : NULL;

	return text ? text : "unknown error";
}

static long stat_stderr(struct stat *status)
{
	return torsh_sys_fstat(STDERR_FILENO, status);
}

void torsh_message_keep_to_stderr(void)
{
	/* A closed descriptor is all zeros, as no file is. */
	stat_stderr(&own_stderr);
	has_stderr = true;
}

static bool is_stderr_our_own(void)
{
	struct stat status = {0};

	return !has_stderr || (!stat_stderr(&status) && status.st_dev == own_stderr.st_dev &&
			       status.st_ino == own_stderr.st_ino);
}

/*
 * Bytes at `at` of one character that controls a terminal (C0, C1) or the direction of text; 0: an
 * ordinary character.
 */
static size_t count_control_bytes(const uint8_t *at, size_t n)
{
	if (at[0] < ' ' || at[0] == 0x7f)
		return 1;
	if (n >= 2 && at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
		return 2;
	if (n >= 3 && at[0] == 0xe2 && at[1] == 0x80)
		return at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae) ? 3 : 0;
	return n >= 3 && at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9 ? 3 : 0;
}

/* Names may contain control characters: '?' replaces them. */
static void replace_controls(char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		memset(bytes + i, '?', count_control_bytes((const uint8_t *)bytes + i, n - i));
}

void torsh_message(const char *first, ...)
{
	static char spare[MESSAGE_BYTES]; /* shared by all callers without memory */
	struct text mapped = torsh_text_map(MESSAGE_BYTES), text = mapped;
	va_list rest;

	if (text.bytes == no_room)
		text = (struct text)TEXT_IN(spare);
	torsh_text_put(&text, "torsh: ");
	va_start(rest, first);
	for (const char *part = first; part; part = va_arg(rest, const char *))
		torsh_text_put(&text, part);
	va_end(rest);
	replace_controls(text.bytes, text.length);
	text.bytes[text.length] = '\n';
	if (is_stderr_our_own())
		TORSH_SYS(SYS_write, STDERR_FILENO, text.bytes, text.length + 1, 0, 0, 0);
	torsh_text_unmap(&mapped);
}

void torsh_message_write(const char *bytes, size_t n)
{
	if (is_stderr_our_own())
		TORSH_SYS(SYS_write, STDERR_FILENO, bytes, n, 0, 0, 0);
}
