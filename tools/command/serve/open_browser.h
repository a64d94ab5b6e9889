/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Opens a web browser. Other users can read the arguments of processes: the browser gets the name
 * of a private file that leads to the address, not the address.
 */
#ifndef TORSH_COMMAND_OPEN_BROWSER_H
#define TORSH_COMMAND_OPEN_BROWSER_H

/* Open an address with xdg-open; a sentence on stderr if there is no display or no browser. */
void torsh_browser_open(const char *address);

/* Remove the file. */
void torsh_browser_close(void);

#endif
