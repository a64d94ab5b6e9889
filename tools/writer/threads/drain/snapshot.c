/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/drain/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int put_targets(struct recording_file *file, const struct snapshot *snapshot)
{
	int result = 0;

	if (snapshot->n_sites == SNAPSHOT_ALL)
		return torsh_rows_snapshot(file, snapshot->targets, snapshot->n_targets);
	for (uint32_t i = 0; i < snapshot->n_targets && !result; i++)
		result = torsh_rows_allocation_sites(file, snapshot->targets[i], snapshot->n_sites);
	return result;
}

int torsh_snapshot_make(const struct snapshot *snapshot)
{
	const struct recording_limits none = {0};
	struct rows_extents extents = {0};
	struct recording_file *file;
	int fd = memfd_create("torsh-snapshot", MFD_CLOEXEC), result;

	if (fd < 0)
		return -errno;
	file = torsh_recording_create(fd, &none, snapshot->session.start_realtime_ns);
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	torsh_rows_session(file, &snapshot->session);
	result = put_targets(file, snapshot);
	if (snapshot->session_heap)
		torsh_rows_session_peak(file, snapshot->session_heap, snapshot->session_clock,
					RECORDING_LAST, &extents);
	free(extents.items);
	if (!result && torsh_recording_stopped(file, RECORDING_LAST))
		result = -EIO;
	torsh_recording_finish(file);
	if (!result)
		return fd;
	close(fd);
	return result;
}
