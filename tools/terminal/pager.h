/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The process that shows what is longer than the screen. */
#ifndef TORSH_TERMINAL_PAGER_H
#define TORSH_TERMINAL_PAGER_H

/*
 * Start the user's pager. Returns the descriptor to write to, or -1 if the user wants none or it
 * can't be started. SIGPIPE is ignored from then on; a signal that ends this process first lets the
 * pager end.
 */
int torsh_pager_start(void);

/* Close its input and wait until it has ended. Its exit status doesn't matter. */
void torsh_pager_end(void);

#endif
