/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * All text to a terminal passes here. Names of programs, files, functions, operators and ranges are
 * whatever their makers chose: escape sequences would recolour, retitle or answer in the reader's
 * terminal. After torsh_terminal_guard() every byte that goes to stdout or stderr passes here, and
 * '?' stands for what a terminal would obey or what is no UTF-8.
 */
#ifndef TORSH_BASE_TERMINAL_H
#define TORSH_BASE_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Once, before anything is printed. Where it can't be had for want of memory, the process ends with
 * a sentence.
 */
void torsh_terminal_guard(void);

/* Replace the same by '?' in place, for text that another process prints. */
void torsh_terminal_clean(char *text);

/* Does what is printed to out, stdout or stderr, reach a terminal? False for other files. */
bool torsh_terminal_is(FILE *out);

/* Bytes of our own that a terminal is to obey, in their place in what is printed to out. */
void torsh_terminal_control(FILE *out, const char *bytes);

/*
 * A stream that owns fd. All that is printed to it passes the guard where a terminal reads it, and
 * is written as it is where a file or a pipe does. Where it can't be had the process ends with a
 * sentence.
 */
FILE *torsh_terminal_open(int fd);

/*
 * Standard output for what is no text: exports that no terminal reads, and a library that draws.
 * What was printed before is written first. The same FILE each time; it stays open.
 */
FILE *torsh_terminal_raw_output(void);

#endif
