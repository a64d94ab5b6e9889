/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Filters all text that goes to a terminal. Names of programs, files, functions, operators and
 * ranges come from others: escape sequences in them could recolour or retitle the reader's
 * terminal, or make it send input. After torsh_terminal_guard() every byte on stdout or stderr
 * passes through the filter, which replaces control sequences and invalid UTF-8 by '?'.
 */
#ifndef TORSH_TERMINAL_TERMINAL_H
#define TORSH_TERMINAL_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* Call once, before anything is printed. If memory runs out, the process ends with a message. */
void torsh_terminal_guard(void);

/* Replace the same characters by '?' in place, for text that another process prints. */
void torsh_terminal_clean(char *text);

/*
 * Returns true if text that is printed to out, stdout or stderr, reaches a terminal; false for
 * other files.
 */
bool torsh_terminal_is(FILE *out);

/* Returns true for stdout and stderr once they are guarded. */
bool torsh_terminal_is_guarded(FILE *out);

/* From now on pass the filtered bytes of stdout to this function: 0, or -1 if it refuses them. */
void torsh_terminal_pass(int (*pass)(const char *bytes, size_t n));

/* Write all bytes to fd. Returns 0, or -1 with errno. */
int torsh_terminal_write_all(int fd, const char *bytes, size_t n);

/* Print escape sequences of our own to out, in order with the other text. */
void torsh_terminal_control(FILE *out, const char *bytes);

/*
 * Returns a stream that owns fd. Text to a terminal is filtered; text to a file or a pipe is not.
 * If it cannot be created, the process ends with a message.
 */
FILE *torsh_terminal_open(int fd);

/*
 * Returns standard output for data that is not text: exports that no terminal reads, and a library
 * that draws. Flushes earlier output. Returns the same FILE each time; it stays open.
 */
FILE *torsh_terminal_raw_output(void);

#endif
