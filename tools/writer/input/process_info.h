/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the kernel reports about a target: its memory while it lives, and how it ended. */
#ifndef TORSH_WRITER_INPUT_PROCESS_INFO_H
#define TORSH_WRITER_INPUT_PROCESS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns a descriptor that becomes readable when the process ends, or -errno. */
int torsh_process_open(pid_t pid);

/*
 * Returns a pidfd of the process at the other end of a socket. Uses SO_PEERPIDFD if the kernel has
 * it: that also works for a process that has ended, and never returns a process that reuses its
 * pid. Negative if there is none.
 */
int torsh_process_of_peer(int socket_fd, pid_t pid);

/* Returns true if the process behind the pidfd has ended, or the pidfd is negative. */
bool torsh_process_has_ended(int pidfd);

/*
 * Compare two pidfds, also of ended processes. Returns 1 if they refer to one process, 0 if not, or
 * negative if the kernel cannot compare them.
 */
int torsh_process_is_same(int pidfd, int other);

/* Open /proc/PID/status. Returns a descriptor, or -errno. */
int torsh_process_open_status(pid_t pid);

/* Open /proc/PID/stat. Returns a descriptor, or -errno. */
int torsh_process_open_stat(pid_t pid);

/*
 * Get a thread's name (comm), cut at n - 1 bytes; "" if the thread is gone. pid and tid are in the
 * writer's namespace.
 */
void torsh_process_thread_name(pid_t pid, pid_t tid, char *name, size_t n);

/* Read the parent's pid from the stat file; -ENODATA if it cannot be read. */
pid_t torsh_process_parent(int stat_fd);

/* Values that change while the process runs. */
struct process_status {
	uint64_t rss_bytes, rss_peak_bytes;
	/* in system calls; 0 before Linux 5.9 */
	uint64_t n_filters;
	uint64_t swap_bytes;
	uint64_t page_table_bytes, hugetlb_bytes; /* neither is in rss_bytes */
	uint32_t n_cpus; /* that its first thread may run on; 0: unknown */
};

/* Returns 0, or -errno if the process has no memory (any more). */
int torsh_process_read_status(int status_fd, struct process_status *status);

/* Of a process's address space. */
struct process_memory {
	uint64_t resident_bytes;
	uint64_t data_bytes; /* private writable areas and stacks, resident or not */
};

/* Returns 0, or -errno: all is 0 then. */
int torsh_process_read_memory(pid_t pid, struct process_memory *memory);

/* What the stat file counts since the process was started. */
struct process_counts {
	uint64_t minor_faults, major_faults;
	uint32_t n_threads;
};

/* Returns 0, or -ENODATA if the file cannot be read. */
int torsh_process_read_counts(int stat_fd, struct process_counts *counts);

/* Number of its threads that run or wait for a CPU; 0 if they cannot be read. */
uint32_t torsh_process_runnable(pid_t pid);

/* Sums over the threads of a process that are alive, of their lives until now. */
struct process_cpu {
	uint32_t n_threads; /* that were read; 0: unknown */
	uint64_t ran_ns, waited_ns; /* they ran; they were runnable and did not run */
};

/* Returns it by /proc/PID/task/TID/schedstat. */
struct process_cpu torsh_process_cpu(pid_t pid);

/* Number of seccomp filters of the process with that status file; 0 if it cannot be read. */
uint64_t torsh_process_filters(int status_fd);

/*
 * Get how a process that is not a child ended, as wait() reports it. Reads its stat file until its
 * parent has waited for it, afterwards (since Linux 6.15) its pidfd. Returns 0 with *status, or
 * -ENODATA.
 */
int torsh_process_wait_status(int pidfd, int stat_fd, int *status);

/*
 * Returns the path of the file that the process has mapped at an address, as /proc/PID/maps shows
 * it, which the caller frees. NULL: none, or the process whose status is open there is gone.
 */
char *torsh_process_mapped_path(pid_t pid, int status_fd, uint64_t address);

#endif
