/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Function names for running processes: the writer resolves them only after a process has ended. */
#ifndef TORSH_LIVE_NAMES_H
#define TORSH_LIVE_NAMES_H

#include "tools/recording/recording.h"
#include "tools/store/recording_write.h"

/*
 * Add names for all native addresses of the recording's running processes, from their modules'
 * files. Returns 0 or -errno.
 */
int torsh_live_append_names(struct recording_file *file, const struct recording *recording);

#endif
