/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "shim/perf/perf_sampling.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include "shim/perf/perf_event.h"
#include "shim/sys.h"

#define FIRST_DESCRIPTOR 512 /* lower ones are the program's; a signal has the number */

static long open_clock(int tid, uint64_t period_ns)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.wakeup_events = 1,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	long low = TORSH_SYS(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC,
			     0),
	     fd;

	if (torsh_sys_failed(low))
		return low;
	fd = TORSH_SYS(SYS_fcntl, low, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR, 0, 0, 0);
	TORSH_SYS(SYS_close, low, 0, 0, 0, 0, 0);
	return fd;
}

static long aim(long fd, int tid, int signal)
{
	const struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = tid};
	long result = TORSH_SYS(SYS_fcntl, fd, F_SETOWN_EX, &owner, 0, 0, 0);

	if (!result)
		result = TORSH_SYS(SYS_fcntl, fd, F_SETSIG, signal, 0, 0, 0);
	if (!result)
		result = TORSH_SYS(SYS_fcntl, fd, F_SETFL, O_ASYNC, 0, 0, 0);
	return result;
}

void *torsh_perf_sampling_start(int tid, int signal, uint64_t period_ns, int *error)
{
	long fd = open_clock(tid, period_ns), result;
	void *page = NULL;

	*error = (int)fd;
	if (torsh_sys_failed(fd))
		return NULL;
	result = aim(fd, tid, signal);
	if (!result) {
		page = torsh_sys_mmap(NULL, PERF_PAGE_BYTES, PROT_READ, MAP_SHARED, (int)fd, 0);
		result = torsh_sys_failed((long)page) ? (long)page : 0;
	}
	if (!result)
		result = TORSH_SYS(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0, 0, 0, 0);
	TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
	*error = (int)result;
	if (!result)
		return page;
	if (page && !torsh_sys_failed((long)page))
		torsh_perf_sampling_end(page);
	return NULL;
}

void torsh_perf_sampling_end(void *page)
{
	torsh_sys_munmap(page, PERF_PAGE_BYTES);
}

bool torsh_perf_sampling_is_it(const siginfo_t *info)
{
	return info->si_code == POLL_IN && info->si_fd >= FIRST_DESCRIPTOR;
}
