/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The place of this process in a distributed run, by its launcher's environment variables, and the
 * user's labels of the run.
 */
#ifndef TORSH_AGENT_LAUNCH_LAUNCHER_H
#define TORSH_AGENT_LAUNCH_LAUNCHER_H

#include "agent/process/text_buffer.h"

#define LAUNCHER_BYTES 8192u /* enough for what torsh_launcher_put appends */
#define LABELS_MAX_BYTES 4096u /* of TORSH_PROFILER_LABELS */

/* The rank of this process, as text in the environment; NULL without a launcher. */
const char *torsh_launcher_rank(void);

/*
 * Append "name=value" texts, each ended by a NUL: launcher, world_size, local_rank,
 * local_world_size, node_rank, role, job, master_addr and master_port, as far as they are set, then
 * "label.NAME=VALUE" for each label. labels: TORSH_PROFILER_LABELS, checked; NULL: none.
 */
void torsh_launcher_put(struct text *text, const char *labels);

/*
 * Whether these are labels: "name=value,name=value", with names of letters, digits, '_', '-' and
 * '.', each once, and values that are not empty and have no control characters.
 */
bool torsh_launcher_are_labels(const char *labels);

#endif
