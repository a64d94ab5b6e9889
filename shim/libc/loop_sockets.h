/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server on uvloop receives and sends: its libuv speaks to sockets by read, write and
 * writev, which the agent doesn't export. The references of uvloop's own objects to them are
 * redirected to wrappers.
 */
#ifndef TORSH_SHIM_LIBC_LOOP_SOCKETS_H
#define TORSH_SHIM_LIBC_LOOP_SOCKETS_H

#include <stdbool.h>

extern bool torsh_loop_sockets_on;

/*
 * From now on redirect them, in objects that are loaded and that will be. As
 * torsh_waits_objects_start.
 */
void torsh_loop_sockets_start(void);

/* Look at objects that were opened since. Takes the loader's lock. */
void torsh_loop_sockets_recheck(void);

#endif
