/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/snapshot.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

int torsh_snapshot_make(const struct rows_session *session, struct target *const *targets, uint32_t n_targets,
			uint32_t n_holders)
{
	const struct recording_limits none = {0};
	struct recording_file *file;
	int fd = memfd_create("torsh-snapshot", MFD_CLOEXEC), result = 0;

	if (fd < 0)
		return -errno;
	file = torsh_recording_create(fd, &none, session->start_realtime_ns);
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	torsh_rows_session(file, session);
	for (uint32_t i = 0; i < n_targets && !result; i++)
		result = n_holders == SNAPSHOT_ALL ? torsh_rows_target_aside(file, targets[i])
						   : torsh_rows_holders(file, targets[i], n_holders);
	if (!result && torsh_recording_stopped(file, RECORDING_LAST))
		result = -EIO;
	torsh_recording_finish(file);
	if (!result)
		return fd;
	close(fd);
	return result;
}
