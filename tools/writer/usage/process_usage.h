/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a process takes of the machine, sampled from /proc by the drain thread: page faults, swap,
 * and threads that want to run where it has fewer CPUs. The process does nothing for it.
 */
#ifndef TORSH_WRITER_USAGE_PROCESS_USAGE_H
#define TORSH_WRITER_USAGE_PROCESS_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/writer/usage/cpu_supply.h"
#include "tools/writer/usage/sum_points.h"

struct process_status;

/* Since the process was started. */
struct process_faults {
	uint64_t minor, major;
};

/*
 * What the threads of a process ran, and waited for a CPU, since the first point: those of a thread
 * that ended since the point before are not in.
 */
struct cpu_points {
	struct sum_points points; /* sums: ran_ns, waited_ns */
	uint64_t last_ran_ns, last_waited_ns; /* sums of the threads then */
	uint64_t ran_ns, waited_ns;
};

struct process_usage {
	struct process_faults before; /* of the program that ran in the process before an exec */
	/* the last sample; read at the exit, by the status reader; 0: not read */
	struct process_faults faults;
	_Atomic uint64_t exit_minor, exit_major;
	uint64_t swap_peak_bytes;
	uint32_t n_cpus; /* that the process may use; 0: unknown */
	uint64_t cpus_ns; /* when they were counted */
	struct cpu_supply supply;
	uint64_t next_supply_ns; /* when that is sampled again */
	struct sum_points supply_points; /* sums: throttled, stolen */
	/*
	 * that its threads waited for a CPU, and 1: at the start, at the last sample, at the exit;
	 * 0: unknown
	 */
	uint64_t wait_before, wait_ns;
	_Atomic uint64_t exit_wait;
	uint64_t next_wait_ns; /* when that is read again */
	struct cpu_points cpu;
	uint64_t last_ns;
	uint64_t sampled_ns;
	/* in which more threads wanted to run than there are CPUs; these threads' time */
	uint64_t oversubscribed_ns, runnable_ns;
	bool is_sampled;
};

/* Begin with a process's counts as they are. stat_fd may be -1. */
void torsh_process_usage_start(struct process_usage *usage, pid_t pid, int stat_fd);

/*
 * Take a sample at that time of the monotonic clock, and of the target's (stamp). Reads a file per
 * thread only where the process has more threads than CPUs, and rarely if they are many.
 */
void torsh_process_usage_sample(struct process_usage *usage, pid_t pid, int stat_fd,
				const struct process_status *status, uint64_t now_ns,
				uint64_t stamp);

/* Read the counts of a process that is about to end; called by the status reader's thread. */
void torsh_process_usage_exit(struct process_usage *usage, pid_t pid, int stat_fd);

/* Take the last sample of what outlives the process; called by the drain thread. */
void torsh_process_usage_end(struct process_usage *usage);

/* Free what the samples hold. */
void torsh_process_usage_free(struct process_usage *usage);

/* Whether it is known for how long its threads waited for a CPU since then, and how long, in ns. */
bool torsh_process_usage_wait(const struct process_usage *usage, uint64_t *ns);

/* The process's page faults since torsh_process_usage_start. */
struct process_faults torsh_process_usage_faults(const struct process_usage *usage);

#endif
