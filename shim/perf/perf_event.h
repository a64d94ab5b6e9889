/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counters of the calling thread by perf_event_open: of the processor's performance monitoring unit
 * (PMU) in user space, and of the kernel. linux/perf_event.h documents the interface; what is read
 * without a system call is in perf_page.h.
 *
 * A counter has a descriptor above the numbers that programs use, or none where its page is enough:
 * the mapping keeps the counter alive. A program may close such a descriptor and open another file
 * under its number, so each use compares the kernel's id of the counter first.
 */
#ifndef TORSH_SHIM_PERF_PERF_EVENT_H
#define TORSH_SHIM_PERF_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_PAGE_BYTES 4096u
#define PERF_GROUP_MAX 3u

struct perf_counter {
	int fd; /* -1: none */
	uint64_t id; /* the kernel's */
	const struct perf_event_mmap_page *page; /* NULL: not mapped */
};

#define PERF_COUNTER_NONE ((struct perf_counter){.fd = -1})

/* What the counters of a group show. */
struct perf_group {
	uint64_t enabled_ns, running_ns; /* of the group; apart where the PMU is shared */
	uint64_t values[PERF_GROUP_MAX];
};

/*
 * Count from now on for the calling thread, in user space. leader: the first counter of the group,
 * with a descriptor; NULL: this is it. Returns 0, or -errno and leaves *counter as it was.
 */
int torsh_perf_open(struct perf_counter *counter, uint32_t type, uint64_t config,
		    const struct perf_counter *leader);

/* Map the counter's page. Returns 0 or -errno. */
int torsh_perf_map(struct perf_counter *counter);

/* Close the descriptor, if it is still the counter's. */
void torsh_perf_close_descriptor(struct perf_counter *counter);

/* End the counter. */
void torsh_perf_close(struct perf_counter *counter);

/*
 * Read the group of n counters by its leader's descriptor. Returns false if that is not the
 * leader's any more.
 */
bool torsh_perf_read(const struct perf_counter *leader, size_t n, struct perf_group *group);

/* Close a descriptor that this process inherited, if it is the counter's with this id. */
void torsh_perf_close_inherited(int fd, uint64_t id);

/* kernel.perf_event_paranoid; INT32_MIN: it can't be read. */
int32_t torsh_perf_paranoid(void);

/* How many descriptors the agent may keep open: a quarter of those above the program's. */
uint32_t torsh_perf_descriptors_max(void);

#endif
