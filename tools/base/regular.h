/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Files whose paths come from a recording or from a directory that others may write. */
#ifndef TORSH_BASE_REGULAR_H
#define TORSH_BASE_REGULAR_H

/*
 * Open a regular file to read it: the path of a pipe or a device, which may have no end or wait for
 * ever, is refused. Returns a descriptor that the caller closes, -EINVAL for what is no regular
 * file, or -errno.
 */
int torsh_open_regular(const char *path);

#endif
