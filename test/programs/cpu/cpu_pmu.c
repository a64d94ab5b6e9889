/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * cpu_pmu ERROR|pmu|uncore COMMAND...: runs the command where perf_event_open answers that error,
 * or where there seems to be a PMU: for each counter of the processor it gives the descriptor of a
 * file whose page is as the kernel's, and which the command has as descriptors 600 to 605, in the
 * order of cpu_counters.def, to count in. With uncore it gives for each event of the type
 * UNCORE_TYPE a file of readings, which has 2^14 counts more with each of event 1, and half as many
 * with each of another. A filter of system calls notifies this process, which answers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/wire/event.h"

#define FIRST 600
#define UNCORE_TYPE 4321
#define UNCORE_READINGS 8192
#define CACHE_MISSES(cache)                                               \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_MISS << 16)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)

static const struct {
	uint32_t type;
	uint64_t config;
} known[] = {
#define HARDWARE(NAME, name, type, config) {type, config},
#define SOFTWARE(NAME, name)
#include "agent/wire/cpu_counters.def"
#undef HARDWARE
#undef SOFTWARE
};

static int files[N_CPU_HARDWARE_COUNTERS];

static void fail(const char *what)
{
	perror(what);
	_exit(125);
}

static void make_files(void)
{
	for (int i = 0; i < (int)N_CPU_HARDWARE_COUNTERS; i++) {
		int fd = memfd_create("pmu", 0);
		struct perf_event_mmap_page *page;

		if (fd < 0 || ftruncate(fd, 4096) || dup2(fd, FIRST + i) < 0)
			fail("memfd");
		close(fd);
		files[i] = FIRST + i;
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, files[i], 0);
		if (page == MAP_FAILED)
			fail("mmap");
		page->cap_user_rdpmc = 1;
		munmap(page, 4096);
	}
}

/* The filter's descriptor for notifications; -1: it returns the error itself. */
static int install(int error)
{
	uint32_t answer = error ? SECCOMP_RET_ERRNO | (unsigned)error : SECCOMP_RET_USER_NOTIF;
	struct sock_filter ops[] = {
		LOAD(nr),
		IS(SYS_perf_event_open, 3, 0),
		IS(SYS_ioctl, 0, 3),
		LOAD(args[1]),
		IS((uint32_t)PERF_EVENT_IOC_ID, 0, 1),
		ANSWER(answer),
		ANSWER(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(ops) / sizeof(*ops), ops};
	long fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("prctl");
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     error ? 0 : SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (fd < 0)
		fail("seccomp");
	return error ? -1 : (int)fd;
}

static bool is_uncore;

/* Readings of value, time enabled and time running: the file's offset is shared with who reads. */
static int uncore_file(uint64_t config)
{
	static uint64_t readings[UNCORE_READINGS][3];
	int fd = memfd_create("uncore", 0);

	for (uint64_t i = 0; i < UNCORE_READINGS; i++) {
		readings[i][0] = i << (config == 1 ? 14 : 13);
		readings[i][1] = readings[i][2] = i * 1000;
	}
	if (fd < 0 || pwrite(fd, readings, sizeof(readings), 0) != sizeof(readings))
		fail("uncore");
	return fd;
}

/* The descriptor for such an event; -1: the kernel answers. */
static int file_of(pid_t pid, uint64_t address)
{
	struct perf_event_attr attributes;
	struct iovec to = {&attributes, PERF_ATTR_SIZE_VER0},
		     from = {(void *)address, PERF_ATTR_SIZE_VER0};

	if (process_vm_readv(pid, &to, 1, &from, 1, 0) != (ssize_t)PERF_ATTR_SIZE_VER0)
		return -1;
	if (is_uncore)
		return attributes.type == UNCORE_TYPE ? uncore_file(attributes.config) : -1;
	for (int i = 0; i < (int)N_CPU_HARDWARE_COUNTERS; i++)
		if (known[i].type == attributes.type && known[i].config == attributes.config)
			return files[i];
	return -1;
}

static void give(int listener, const struct seccomp_notif *asked, int file,
		 struct seccomp_notif_resp *answer)
{
	struct seccomp_notif_addfd added = {.id = asked->id, .srcfd = (uint32_t)file};
	int fd = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &added);

	answer->error = fd < 0 ? -errno : 0;
	answer->val = fd;
}

/* One of these files has a number, too. */
static void identify(const struct seccomp_notif *asked, struct seccomp_notif_resp *answer)
{
	uint64_t id = asked->data.args[0] + 7;
	struct iovec from = {&id, sizeof(id)}, to = {(void *)asked->data.args[2], sizeof(id)};
	char path[64], target[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)asked->pid, (int)asked->data.args[0]);
	if (readlink(path, target, sizeof(target) - 1) < 0 || !strstr(target, "memfd:pmu"))
		answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (process_vm_writev((pid_t)asked->pid, &from, 1, &to, 1, 0) < 0)
		answer->error = -EFAULT;
}

static void answer_one(int listener)
{
	struct seccomp_notif asked = {0};
	struct seccomp_notif_resp answer = {0};

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
		return;
	answer.id = asked.id;
	if (asked.data.nr == SYS_perf_event_open) {
		int file = file_of((pid_t)asked.pid, asked.data.args[0]);

		if (file < 0)
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		else
			give(listener, &asked, file, &answer);
		if (is_uncore && file >= 0)
			close(file);
	} else {
		identify(&asked, &answer);
	}
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static void send_descriptor(int to, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = room,
				 .msg_controllen = sizeof(room)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	if (sendmsg(to, &message, 0) < 0)
		fail("sendmsg");
}

static int receive_descriptor(int from)
{
	char room[CMSG_SPACE(sizeof(int))], byte;
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = room,
				 .msg_controllen = sizeof(room)};
	int fd;

	if (recvmsg(from, &message, 0) <= 0 || !CMSG_FIRSTHDR(&message))
		fail("recvmsg");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static int answer_all(int listener, pid_t child)
{
	struct pollfd ready = {.fd = listener, .events = POLLIN};
	int status;

	/* The listener hangs up when no process has the filter any more. */
	while (poll(&ready, 1, -1) > 0 && ready.revents & POLLIN)
		answer_one(listener);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	int error = argc > 2 ? atoi(argv[1]) : 0, pair[2];
	pid_t child;

	is_uncore = argc > 2 && !strcmp(argv[1], "uncore");
	if (argc < 3 || (!error && !is_uncore && strcmp(argv[1], "pmu")))
		return 2;
	if (error) {
		install(error);
		execvp(argv[2], argv + 2);
		fail(argv[2]);
	}
	make_files();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		fail("socketpair");
	child = fork();
	if (!child) {
		int listener = install(0);

		send_descriptor(pair[1], listener);
		close(listener);
		execvp(argv[2], argv + 2);
		fail(argv[2]);
	}
	close(pair[1]);
	return answer_all(receive_descriptor(pair[0]), child);
}
