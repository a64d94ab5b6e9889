/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/perf/perf_event.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "shim/sys.h"

#define FIRST_DESCRIPTOR 512 /* lower ones are the program's */
#define DESCRIPTORS_MAX 1024u
#define DESCRIPTORS_SHARE 4u

/* As read returns them with the format below. */
struct group_read {
	uint64_t n, enabled_ns, running_ns;
	struct {
		uint64_t value, id;
	} items[PERF_GROUP_MAX];
};

static void close_number(long fd)
{
	TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
}

static bool is_counter(int fd, uint64_t id)
{
	uint64_t found = 0;

	return fd >= 0 && !TORSH_SYS(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &found, 0, 0, 0) &&
	       found == id;
}

int torsh_perf_open(struct perf_counter *counter, uint32_t type, uint64_t config,
		    const struct perf_counter *leader)
{
	struct perf_event_attr attributes = {
		.type = type,
		.size = sizeof(attributes),
		.config = config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			       PERF_FORMAT_ID | PERF_FORMAT_GROUP,
		/* What the kernel counts happens in it: without that right it would be 0. */
		.exclude_kernel = type != PERF_TYPE_SOFTWARE,
		.exclude_hv = 1,
	};
	long low, fd;
	uint64_t id;

	low = TORSH_SYS(SYS_perf_event_open, &attributes, 0, -1, leader ? leader->fd : -1,
			PERF_FLAG_FD_CLOEXEC, 0);
	if (torsh_sys_failed(low))
		return (int)low;
	fd = TORSH_SYS(SYS_fcntl, low, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR, 0, 0, 0);
	close_number(low);
	if (torsh_sys_failed(fd))
		return (int)fd;
	low = TORSH_SYS(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &id, 0, 0, 0);
	if (low) {
		close_number(fd);
		return (int)low;
	}
	*counter = (struct perf_counter){.fd = (int)fd, .id = id};
	return 0;
}

int torsh_perf_map(struct perf_counter *counter)
{
	void *page = torsh_sys_mmap(NULL, PERF_PAGE_BYTES, PROT_READ, MAP_SHARED, counter->fd, 0);

	if (torsh_sys_failed((long)page))
		return (int)(long)page;
	counter->page = page;
	return 0;
}

void torsh_perf_close_inherited(int fd, uint64_t id)
{
	if (is_counter(fd, id))
		close_number(fd);
}

void torsh_perf_close_descriptor(struct perf_counter *counter)
{
	torsh_perf_close_inherited(counter->fd, counter->id);
	counter->fd = -1;
}

void torsh_perf_close(struct perf_counter *counter)
{
	torsh_perf_close_descriptor(counter);
	if (counter->page)
		torsh_sys_munmap((void *)counter->page, PERF_PAGE_BYTES);
	counter->page = NULL;
}

bool torsh_perf_read(const struct perf_counter *leader, size_t n, struct perf_group *group)
{
	struct group_read read;
	long n_bytes;

	if (!is_counter(leader->fd, leader->id))
		return false;
	n_bytes = TORSH_SYS(SYS_read, leader->fd, &read, sizeof(read), 0, 0, 0);
	if (n_bytes < (long)offsetof(struct group_read, items[n]) || read.n != n)
		return false;
	group->enabled_ns = read.enabled_ns;
	group->running_ns = read.running_ns;
	for (size_t i = 0; i < n; i++)
		group->values[i] = read.items[i].value;
	return true;
}

int32_t torsh_perf_paranoid(void)
{
	char text[16] = {0};
	long fd = TORSH_SYS(SYS_openat, AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid",
			    O_RDONLY | O_CLOEXEC, 0, 0, 0),
	     n;
	int32_t level = 0;
	bool is_negative;

	if (torsh_sys_failed(fd))
		return INT32_MIN;
	n = TORSH_SYS(SYS_read, fd, text, sizeof(text) - 1, 0, 0, 0);
	close_number(fd);
	is_negative = text[0] == '-';
	if (n <= is_negative)
		return INT32_MIN;
	for (const char *digit = text + is_negative; *digit >= '0' && *digit <= '9'; digit++)
		level = level * 10 + (*digit - '0');
	return is_negative ? -level : level;
}

uint32_t torsh_perf_descriptors_max(void)
{
	struct rlimit limit;
	uint64_t n;

	if (TORSH_SYS(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit, 0, 0) ||
	    limit.rlim_cur <= FIRST_DESCRIPTOR)
		return 0;
	n = (limit.rlim_cur - FIRST_DESCRIPTOR) / DESCRIPTORS_SHARE;
	return n < DESCRIPTORS_MAX ? (uint32_t)n : DESCRIPTORS_MAX;
}
