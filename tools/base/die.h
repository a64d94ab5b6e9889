/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Fatal errors of a command: a sentence on stderr and exit status 2. Running out of memory is
 * fatal, so functions that build tables do not return it.
 */
#ifndef TORSH_BASE_DIE_H
#define TORSH_BASE_DIE_H

#include <stddef.h>

enum { TORSH_EXIT_DONE = 0, TORSH_EXIT_FAILED = 1, TORSH_EXIT_UNREADABLE = 2 };

/* Print "torsh: " and the sentence, exit with TORSH_EXIT_UNREADABLE. */
_Noreturn void torsh_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print "torsh: " and the sentence. */
void torsh_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns pointer; ends the program if it is NULL. */
void *torsh_need(void *pointer);

/*
 * Resize the array to exactly n_new items from n_old; new ones are zero. For arrays that grow
 * gradually see array.h.
 */
void *torsh_need_items(void *items, size_t n_old, size_t n_new, size_t item_bytes);

/* Returns the formatted text, which the caller frees. */
char *torsh_need_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
