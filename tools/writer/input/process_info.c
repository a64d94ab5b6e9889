/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/process_info.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

/* From linux/pidfd.h of Linux 6.15, for older headers. */
struct pidfd_information {
	uint64_t mask;
	uint64_t cgroupid;
	uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
	int32_t exit_code;
};

_Static_assert(sizeof(struct pidfd_information) == 64,
	       "the first published size of struct pidfd_info");

#define PIDFD_INFORMATION _IOWR(0xff, 11, struct pidfd_information)
#define PIDFD_INFORMATION_EXIT (UINT64_C(1) << 3)

int torsh_process_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

int torsh_process_of_peer(int socket_fd, pid_t pid)
{
	int fd = -1;
	socklen_t n = sizeof(fd);

	return getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &n) ? torsh_process_open(pid)
									: fd;
}

bool torsh_process_has_ended(int pidfd)
{
	struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};

	return pidfd < 0 || poll(&poll_fd, 1, 0) > 0;
}

/* PIDFS_MAGIC: since Linux 6.9 each process has its own inode there */
#define PIDFD_SYSTEM 0x50494446

int torsh_process_is_same(int pidfd, int other)
{
	struct statfs system;
	struct stat one, two;

	if (pidfd < 0 || other < 0 || fstatfs(pidfd, &system) || system.f_type != PIDFD_SYSTEM ||
	    fstat(pidfd, &one) || fstat(other, &two))
		return -ENODATA;
	return one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

static int open_proc(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int torsh_process_open_status(pid_t pid)
{
	return open_proc(pid, "status");
}

int torsh_process_open_stat(pid_t pid)
{
	return open_proc(pid, "stat");
}

void torsh_process_thread_name(pid_t pid, pid_t tid, char *name, size_t n)
{
	char file[32];
	ssize_t n_read;
	int fd;

	name[0] = '\0';
	snprintf(file, sizeof(file), "task/%d/comm", (int)tid);
	fd = open_proc(pid, file);
	if (fd < 0)
		return;
	n_read = read(fd, name, n - 1);
	close(fd);
	name[n_read > 0 ? n_read : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
}

static int read_number(const char *text, const char *name, uint64_t *number)
{
	const char *line = strstr(text, name);

	if (!line)
		return -ENODATA;
	*number = strtoull(line + strlen(name), NULL, 10);
	return 0;
}

/*
 * Reads a status of any length, because a user's groups come first in it. Returns a text that the
 * caller frees; NULL with *error, -errno.
 */
static char *read_whole(int fd, int *error)
{
	size_t capacity = 4096, n = 0;
	char *bytes = torsh_memory_alloc(capacity);
	ssize_t n_read;

	while ((n_read = pread(fd, bytes + n, capacity - n, (off_t)n)) > 0) {
		n += (uint32_t)n_read;
		bytes = torsh_array_reserve(bytes, n, &capacity, 1);
	}
	if (n_read < 0) {
		*error = -errno;
		free(bytes);
		return NULL;
	}
	bytes[n] = '\0';
	return bytes;
}

/* The bits of a mask: "ff,ffffffff". */
static uint32_t count_bits(const char *mask)
{
	uint32_t n = 0;

	for (; mask && (isxdigit((unsigned char)*mask) || *mask == ','); mask++) {
		char digit[2] = {*mask};

		n += *mask == ',' ? 0 : (uint32_t)__builtin_popcountl(strtoul(digit, NULL, 16));
	}
	return n;
}

static void read_optional(const char *text, struct process_status *status)
{
	static const char cpus[] = "\nCpus_allowed:\t";
	const char *mask = strstr(text, cpus);
	uint64_t swap_kib = 0, table_kib = 0, hugetlb_kib = 0;

	read_number(text, "\nSeccomp_filters:", &status->n_filters);
	read_number(text, "\nVmSwap:", &swap_kib);
	read_number(text, "\nVmPTE:", &table_kib);
	read_number(text, "\nHugetlbPages:", &hugetlb_kib);
	status->swap_bytes = swap_kib << 10;
	status->page_table_bytes = table_kib << 10;
	status->hugetlb_bytes = hugetlb_kib << 10;
	status->n_cpus = mask ? count_bits(mask + sizeof(cpus) - 1) : 0;
}

int torsh_process_read_status(int status_fd, struct process_status *status)
{
	uint64_t rss_kib, peak_kib;
	int result = 0;
	char *text = read_whole(status_fd, &result);

	if (!text)
		return result;
	if (read_number(text, "\nVmHWM:", &peak_kib) || read_number(text, "\nVmRSS:", &rss_kib)) {
		result = -ENODATA;
	} else {
		*status = (struct process_status){.rss_bytes = rss_kib << 10,
						  .rss_peak_bytes = peak_kib << 10};
		read_optional(text, status);
	}
	free(text);
	return result;
}

static char *copy_text(const char *text, size_t n)
{
	char *copy = torsh_memory_alloc(n + 1);

	memcpy(copy, text, n);
	copy[n] = '\0';
	return copy;
}

/* Returns a copy of the path in the line of that address, or NULL. */
static char *find_path(const char *maps, uint64_t address)
{
	for (const char *line = maps; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		uint64_t start, end;
		int n = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*x %*s %*u %n", &start, &end, &n) !=
			    2 ||
		    address < start || address >= end)
			continue;
		/* The line of anonymous memory ends there. */
		if (n && line[n] == '/' && !memchr(line, '\n', (size_t)n))
			return copy_text(line + n, strcspn(line + n, "\n"));
		return NULL;
	}
	return NULL;
}

char *torsh_process_mapped_path(pid_t pid, int status_fd, uint64_t address)
{
	struct process_status status;
	int error, fd = open_proc(pid, "maps");
	char *maps, *path;

	if (fd < 0)
		return NULL;
	maps = read_whole(fd, &error);
	close(fd);
	path = maps ? find_path(maps, address) : NULL;
	free(maps);
	/* The pid was this process's all the time. */
	if (!path || !torsh_process_read_status(status_fd, &status))
		return path;
	free(path);
	return NULL;
}

uint64_t torsh_process_filters(int status_fd)
{
	uint64_t n = 0;
	int error;
	char *text = status_fd < 0 ? NULL : read_whole(status_fd, &error);

	if (!text)
		return 0;
	read_number(text, "\nSeccomp_filters:", &n);
	free(text);
	return n;
}

static int read_pidfd_status(int pidfd, int *status)
{
	struct pidfd_information information = {.mask = PIDFD_INFORMATION_EXIT};

	if (ioctl(pidfd, PIDFD_INFORMATION, &information) ||
	    !(information.mask & PIDFD_INFORMATION_EXIT))
		return -ENODATA;
	*status = information.exit_code;
	return 0;
}

/*
 * Returns the text after the program's name, which is in parentheses and may contain anything: " S
 * 1234 ..."; or NULL.
 */
static char *read_stat(int stat_fd, char *stat, size_t n_stat)
{
	ssize_t n = stat_fd < 0 ? -1 : pread(stat_fd, stat, n_stat - 1, 0);
	char *name_end;

	if (n <= 0)
		return NULL;
	stat[n] = '\0';
	name_end = strrchr(stat, ')');
	return name_end ? name_end + 1 : NULL;
}

pid_t torsh_process_parent(int stat_fd)
{
	char stat[2048];
	const char *state = read_stat(stat_fd, stat, sizeof(stat));

	return state && strlen(state) > 3 ? (pid_t)atoi(state + 3) : -ENODATA;
}

int torsh_process_read_counts(int stat_fd, struct process_counts *counts)
{
	char stat[2048];
	const char *state = read_stat(stat_fd, stat, sizeof(stat));

	/* proc_pid_stat(5): fields 3, then 10, 12 and 20. */
	*counts = (struct process_counts){0};
	return state && sscanf(state,
			       " %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64
			       " %*u %*u %*u %*d %*d %*d %*d %" SCNu32,
			       &counts->minor_faults, &counts->major_faults,
			       &counts->n_threads) == 3
		       ? 0
		       : -ENODATA;
}

static bool is_runnable(pid_t pid, const char *tid)
{
	char file[40], stat[2048];
	const char *state = NULL;
	int fd;

	snprintf(file, sizeof(file), "task/%.20s/stat", tid);
	fd = open_proc(pid, file);
	if (fd < 0)
		return false;
	state = read_stat(fd, stat, sizeof(stat));
	close(fd);
	return state && strncmp(state, " R", 2) == 0;
}

int torsh_process_read_memory(pid_t pid, struct process_memory *memory)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), resident, data;
	char path[64];
	FILE *in;
	int n;

	*memory = (struct process_memory){0};
	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	in = fopen(path, "re");
	if (!in)
		return -errno;
	n = fscanf(in, "%*u %" SCNu64 " %*u %*u %*u %" SCNu64, &resident, &data);
	fclose(in);
	if (n != 2)
		return -ENODATA;
	memory->resident_bytes = resident * page_bytes;
	memory->data_bytes = data * page_bytes;
	return 0;
}

uint32_t torsh_process_runnable(pid_t pid)
{
	char path[64];
	struct dirent *entry;
	uint32_t n = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		n += entry->d_name[0] != '.' && is_runnable(pid, entry->d_name);
	if (tasks)
		closedir(tasks);
	return n;
}

struct process_cpu torsh_process_cpu(pid_t pid)
{
	struct process_cpu cpu = {0};
	char path[64];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		unsigned long long ran_ns, waited_ns;
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/schedstat", (int)pid,
			 entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fscanf(file, "%llu %llu", &ran_ns, &waited_ns) == 2) {
			cpu.n_threads++;
			cpu.ran_ns += ran_ns;
			cpu.waited_ns += waited_ns;
		}
		fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return cpu;
}

/* Returns the last number in a zombie's stat. */
static int read_zombie_status(int stat_fd, int *status)
{
	char stat[2048];
	const char *state = read_stat(stat_fd, stat, sizeof(stat)),
		   *last = state ? strrchr(state, ' ') : NULL;

	if (!last || strncmp(state, " Z", 2))
		return -ENODATA;
	*status = atoi(last);
	return 0;
}

int torsh_process_wait_status(int pidfd, int stat_fd, int *status)
{
	if (!read_pidfd_status(pidfd, status) || !read_zombie_status(stat_fd, status))
		return 0;
	return read_pidfd_status(pidfd, status);
}
