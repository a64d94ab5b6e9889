/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Names of functions for processes that run: the writer looks for them when a process has ended,
 * and no sooner.
 */
#ifndef TORSH_LIVE_NAMES_H
#define TORSH_LIVE_NAMES_H

#include "tools/recording/recording.h"
#include "tools/store/recording_write.h"

/*
 * Append the names of all native addresses of the profile's running processes, as their modules'
 * files have them. Returns 0 or -errno.
 */
int torsh_live_append_names(struct recording_file *file, const struct recording *recording);

#endif
