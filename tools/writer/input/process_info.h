/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the kernel reports of a target: its memory while it lives, and how it ended. */
#ifndef TORSH_WRITER_INPUT_PROCESS_INFO_H
#define TORSH_WRITER_INPUT_PROCESS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor that becomes readable when the process ends; -errno when it can't be had. */
int torsh_process_open(pid_t pid);

/*
 * A pidfd of the process at the other end of a socket, by the socket where the kernel has that:
 * also of one that has ended, and never of another that got its pid. Negative when there is none.
 */
int torsh_process_of_peer(int socket_fd, pid_t pid);

/* Has the process behind the pidfd ended? True for a pidfd below 0. */
bool torsh_process_has_ended(int pidfd);

/*
 * Are both pidfds of one process, also of one that is gone? Returns 1, 0, or negative where the
 * kernel has no way to compare.
 */
int torsh_process_is_same(int pidfd, int other);

/* Open /proc/PID/status. Returns a descriptor, or -errno. */
int torsh_process_open_status(pid_t pid);

/* Open /proc/PID/stat. Returns a descriptor, or -errno. */
int torsh_process_open_stat(pid_t pid);

/*
 * What ps shows a thread as, cut at n - 1 bytes; "" when it is gone. pid and tid as in our
 * namespace.
 */
void torsh_process_thread_name(pid_t pid, pid_t tid, char *name, size_t n);

/* The pid of the parent, from the stat file; -ENODATA when it can't be read. */
pid_t torsh_process_parent(int stat_fd);

/* What changes while it runs. */
struct process_status {
	uint64_t rss_bytes, rss_peak_bytes;
	/* of system calls; 0 where the kernel doesn't have it (before Linux 5.9) */
	uint64_t n_filters;
};

/* Returns 0, or -errno when there is no memory (any more). */
int torsh_process_read_status(int status_fd, struct process_status *status);

/* Number of seccomp filters of the process whose status file that is; 0 where it can't be read. */
uint64_t torsh_process_filters(int status_fd);

/*
 * How a process ended that is not our child, in the form of wait(). Read from its stat file until
 * its parent has waited for it, afterwards (from Linux 6.15 on) from its pidfd. Returns 0 with
 * *status, or -ENODATA.
 */
int torsh_process_wait_status(int pidfd, int stat_fd, int *status);

#endif
