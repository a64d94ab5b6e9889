/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Opens files at paths that come from a recording or from a directory that others can write to. */
#ifndef TORSH_BASE_REGULAR_H
#define TORSH_BASE_REGULAR_H

/*
 * Open a regular file for reading. Pipes and devices are refused, because they may block or have no
 * end. Returns a descriptor that the caller closes, -EINVAL if it is not a regular file, or -errno.
 */
int torsh_open_regular(const char *path);

#endif
