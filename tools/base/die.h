/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The end of a command that can't go on: a sentence on stderr and exit status 2. Running out of
 * memory is such an end, so that the code that builds tables needn't return it up the stack.
 */
#ifndef TORSH_BASE_DIE_H
#define TORSH_BASE_DIE_H

#include <stddef.h>

enum { TORSH_EXIT_DONE = 0, TORSH_EXIT_FAILED = 1, TORSH_EXIT_UNREADABLE = 2 };

/* Print "torsh: " and the sentence, exit with TORSH_EXIT_UNREADABLE. */
_Noreturn void torsh_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print "torsh: " and the sentence. */
void torsh_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* pointer, or the end of the program when it is NULL. */
void *torsh_need(void *pointer);

/*
 * Make the array hold just n_new items instead of n_old; new ones are zero. For one that grows step
 * by step see array.h.
 */
void *torsh_need_items(void *items, size_t n_old, size_t n_new, size_t item_bytes);

/* printf into memory that the caller frees. */
char *torsh_need_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
