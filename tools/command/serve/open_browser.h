/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Opens a web browser. The address is secret, and other users can read the arguments of processes:
 * the browser gets the name of a private file that redirects to it.
 */
#ifndef TORSH_COMMAND_OPEN_BROWSER_H
#define TORSH_COMMAND_OPEN_BROWSER_H

/*
 * Open an address with xdg-open; prints a message on stderr if there is no display or no browser.
 */
void torsh_browser_open(const char *address);

/* Remove the file. */
void torsh_browser_close(void);

#endif
