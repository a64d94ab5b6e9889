/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A report on the terminal: lines are folded at words to the width, and output longer than the
 * screen goes to a pager (TORSH_PAGER, else PAGER, else "less -FRX"), as with git. If standard
 * output is no terminal, only --width has an effect.
 */
#ifndef TORSH_TERMINAL_PAGE_H
#define TORSH_TERMINAL_PAGE_H

#include <stdbool.h>

/* Set by --no-pager. */
void torsh_page_without_pager(void);

/*
 * Begin the report of a command, before anything is printed; is_prose: its lines may fold. A second
 * call changes only that. The report ends with the process, which waits for the pager.
 */
void torsh_page_begin(bool is_prose);

#endif
