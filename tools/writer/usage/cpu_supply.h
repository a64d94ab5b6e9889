/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the host withholds from a process's threads: how long the kernel throttled its control group
 * for a quota of CPU time, and how long a hypervisor ran others in place of its CPUs. Read by the
 * drain thread from cpu.stat of the group and its ancestors, and from /proc/stat.
 */
#ifndef TORSH_WRITER_USAGE_CPU_SUPPLY_H
#define TORSH_WRITER_USAGE_CPU_SUPPLY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/writer/budget/control_groups.h"

/* Of a group, of all its CPUs together. */
struct cpu_throttling {
	uint64_t ns;
	uint64_t periods; /* of the quota, in which something ran */
	uint64_t throttled; /* of these, the quota was used up in */
};

struct cpu_supply {
	struct control_groups groups;
	char path[256]; /* the begin of /proc/PID/cgroup: it changes with the groups */
	/* of each group, when it became the process's */
	struct cpu_throttling before[CONTROL_GROUPS_MAX];
	struct cpu_throttling left; /* of the groups that the process has left */
	struct cpu_throttling throttling; /* since the first sample */
	bool has_throttling; /* false: no group has a count of it */
	cpu_set_t cpus; /* to which stolen_before belongs */
	uint64_t stolen_before, stolen_ns; /* of a CPU, on average */
	bool has_stolen, has_stolen_before;
};

/*
 * Read the counts. cpus are those that the process may use. root is the folder that contains /proc
 * and the paths in it: "" outside tests. The first sample is the zero of all counts.
 */
void torsh_cpu_supply_sample(struct cpu_supply *supply, const char *root, pid_t pid,
			     const cpu_set_t *cpus);

/* Read the counts of a process that has ended, as far as its groups still exist. */
void torsh_cpu_supply_end(struct cpu_supply *supply, const char *root);

/* Returns the CPUs that quotas leave to the process, rounded up; 0: no limit, or unknown. */
uint32_t torsh_cpu_supply_quota(const struct cpu_supply *supply);

/* Free what the samples hold. */
void torsh_cpu_supply_free(struct cpu_supply *supply);

#endif
