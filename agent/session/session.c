/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Files and sockets are made in a child with a descriptor table of its own, so that they never take
 * the target's descriptors. The child is made by clone without a signal: there is no SIGCHLD, and
 * no wait() of the target returns it.
 */
#include "agent/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/process/config.h"
#include "agent/process/text_buffer.h"
#include "agent/session/output_path.h"
#include "agent/session/writer_process.h"
#include "agent/wire/channel.h"
#include "shim/sys.h"

#define SOCKET_FD 3
#define RECORDING_FD 4
#define N_WAITING_MAX 1024 /* connections that no writer has accepted yet */
#define EXEC_STEP_NS UINT64_C(1000000)
#define EXEC_STEPS 50

struct plan {
	struct output output; /* has the target's pid; used in a child */
	_Atomic uint32_t *writer_pid;
	char writer[PATH_MAX]; /* path of torsh-writer */
	char socket_path[SESSION_SOCKET_MAX];
};

char torsh_session_socket[SESSION_SOCKET_MAX];

/* In a directory that only this user can enter, created here and nowhere else. */
static int plan_socket(struct plan *plan)
{
	const char *bases[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp", "/dev/shm",
			       "/var/tmp"};
	const char *first = NULL;
	int error = -ENOENT;

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		struct text text = TEXT_IN(plan->socket_path);

		if (!bases[i] || *bases[i] != '/')
			continue;
		torsh_text_put(&text, bases[i]);
		torsh_text_put(&text, "/torsh-");
		torsh_text_put_number(&text, (uint64_t)getuid());
		torsh_text_put(&text, "-");
		torsh_text_put_number(&text, (uint64_t)torsh_sys_getpid());
		torsh_text_put(&text, "-");
		torsh_text_put_number(&text, torsh_cpu_ticks() & 0xffffffff);
		if (text.length + sizeof("/socket") > sizeof(plan->socket_path))
			continue;
		if (!mkdir(plan->socket_path, 0700)) {
			torsh_text_put(&text, "/socket");
			return 0;
		}
		error = first ? error : -errno;
		first = first ? first : bases[i];
	}
	torsh_message("nothing is recorded: no directory for the writer's socket can be made in ",
		      first ? first : "/tmp", " (", torsh_text_reason(error),
		      "), nor in any other place for temporary files", NULL);
	return error;
}

/* The directory is named torsh-UID-PID-NUMBER, as in plan_socket. */
bool torsh_session_is_own(const char *socket_path, int pid)
{
	const char *end = strrchr(socket_path, '/'), *at = end;
	char digits[24] = "";
	struct text text = TEXT_IN(digits);

	for (int dashes = 0; at && at > socket_path && dashes < 2; dashes += *at == '-')
		at--;
	torsh_text_put_number(&text, (uint64_t)pid);
	return at && !strncmp(at + 1, digits, text.length) && at[1 + text.length] == '-';
}

bool torsh_session_has_begun_by(const struct channel_header *header)
{
	return !header->forked_from && torsh_session_is_own(torsh_session_socket, (int)header->pid);
}

void torsh_session_remove(const char *socket_path)
{
	char directory[SESSION_SOCKET_MAX];
	struct text text = TEXT_IN(directory);

	torsh_text_put_bytes(&text, socket_path, (size_t)(strrchr(socket_path, '/') - socket_path));
	TORSH_SYS(SYS_unlinkat, AT_FDCWD, socket_path, 0, 0, 0, 0);
	TORSH_SYS(SYS_unlinkat, AT_FDCWD, directory, AT_REMOVEDIR, 0, 0, 0);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	strcpy(address.sun_path, path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, N_WAITING_MAX)) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

static void put_option_number(struct text *text, uint64_t number)
{
	text->bytes[0] = '\0';
	torsh_text_put_number(text, number);
}

/* Values of the writer's options. */
struct option_texts {
	char max_size[24], reserve[24], target[24], checkpoint[24], record[40], keep[48];
};

static void put_options(struct option_texts *texts, const struct plan *plan)
{
	struct text max_size = TEXT_IN(texts->max_size), reserve = TEXT_IN(texts->reserve),
		    target = TEXT_IN(texts->target), checkpoint = TEXT_IN(texts->checkpoint),
		    record = TEXT_IN(texts->record), keep = TEXT_IN(texts->keep);

	put_option_number(&max_size, torsh_config.max_size_bytes);
	put_option_number(&reserve, torsh_config.reserve_bytes);
	put_option_number(&target, plan->output.pid);
	put_option_number(&checkpoint, torsh_config.checkpoint_ns);
	torsh_config_put_record(&torsh_config.record, &record);
	torsh_config_put_keep(&torsh_config.keep, &keep);
}

/*
 * A reader of a pipe to its end would wait for the writer too: the target prints its message at
 * exit instead.
 */
static bool is_read_to_its_end(int fd)
{
	struct stat status;

	return !torsh_sys_fstat(fd, &status) &&
	       (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

__attribute__((noreturn)) static void become_writer(const struct plan *plan)
{
	static struct option_texts texts; /* not on the stack: this process is the writer soon */
	const char *arguments[] = {
		"torsh-writer",
		"--socket",
		plan->socket_path,
		"--recording",
		plan->output.recording,
		"--record",
		texts.record,
		"--keep",
		texts.keep,
		"--keep-with",
		torsh_config.keep_with ? torsh_config.keep_with : "",
		"--max-size",
		texts.max_size,
		"--reserve",
		texts.reserve,
		"--summary",
		torsh_config.summary ? "1" : "0",
		"--target",
		texts.target,
		"--flops",
		torsh_config.with_flops ? "1" : "0",
		"--export",
		torsh_config.export_formats ? torsh_config.export_formats : "",
		"--export-to",
		plan->output.export,
		"--checkpoint",
		texts.checkpoint,
		NULL,
	};
	char **environment = torsh_writer_process_environment();
	int stderr_fd;
	long result;

	put_options(&texts, plan);
	torsh_writer_process_reset_signals();
	if (chdir("/"))
		torsh_message("the writer stays in the target's directory", NULL);
	/* A client gets the pid of the process that called listen last. */
	if (listen(SOCKET_FD, N_WAITING_MAX))
		torsh_message("its end won't be noticed: the writer's socket: ",
			      torsh_text_reason(-errno), NULL);
	stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, RECORDING_FD + 1);
	if (!torsh_config.summary || is_read_to_its_end(STDERR_FILENO))
		dup2(STDIN_FILENO, STDERR_FILENO);
	result = TORSH_SYS(SYS_execve, plan->writer, arguments, environment, 0, 0, 0);
	dup2(stderr_fd, STDERR_FILENO);
	torsh_message("nothing is recorded: can't start ", plan->writer, ": ",
		      torsh_text_reason((int)result), NULL);
	for (;;)
		TORSH_SYS(SYS_exit_group, 127, 0, 0, 0, 0, 0);
}

/* Returns in the parent once the child has listened: at the child's exec or exit. */
static long fork_until_exec(void)
{
	return TORSH_SYS(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0, 0);
}

/*
 * Put the descriptors where the writer expects them, open across its exec. Neither has the other's
 * number.
 */
static int move_descriptor(int fd, int place)
{
	if (fd == place)
		return fcntl(fd, F_SETFD, 0) < 0 ? -errno : 0;
	if (dup2(fd, place) < 0)
		return -errno;
	close(fd);
	return 0;
}

/* The recording and the socket, at the writer's numbers. */
static int open_descriptors(struct plan *plan)
{
	int fd = torsh_output_make(&plan->output), result;

	if (fd < 0)
		return fd;
	result = move_descriptor(fd, RECORDING_FD);
	if (!result) {
		fd = listen_at(plan->socket_path);
		result = fd < 0 ? fd : move_descriptor(fd, SOCKET_FD);
	}
	if (result)
		torsh_message("nothing is recorded: ", plan->socket_path, ": ",
			      torsh_text_reason(result), NULL);
	return result;
}

/* The child between the target and the writer; its exit status is an errno. */
static int start_writer(struct plan *plan)
{
	long pid;
	int result;

	TORSH_SYS(SYS_setsid, 0, 0, 0, 0, 0, 0);
	result = torsh_writer_process_prepare();
	if (!result)
		result = open_descriptors(plan);
	if (result)
		return -result;
	pid = fork_until_exec();
	if (pid == 0)
		become_writer(plan);
	if (pid < 0) {
		torsh_message("nothing is recorded: can't start the writer: ",
			      torsh_text_reason((int)pid), NULL);
		return (int)-pid;
	}
	atomic_store_explicit(plan->writer_pid, (uint32_t)pid, memory_order_relaxed);
	return 0;
}

/* Put the path of a writer in the directory of path into the plan; returns whether it exists. */
static int find_adjacent_writer(struct plan *plan, const char *path)
{
	struct text text = TEXT_IN(plan->writer);

	torsh_text_put_bytes(&text, path, (size_t)(strrchr(path, '/') - path));
	torsh_text_put(&text, "/torsh-writer");
	return !torsh_sys_access(plan->writer, X_OK);
}

/* The absolute path of the file at path, with links followed. */
static int follow_links(const char *path, char resolved[PATH_MAX])
{
	char descriptor[32] = "";
	struct text text = TEXT_IN(descriptor);
	long fd = TORSH_SYS(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0, 0, 0), n;

	if (fd < 0)
		return (int)fd;
	torsh_text_put(&text, "/proc/self/fd/");
	torsh_text_put_number(&text, (uint64_t)fd);
	n = TORSH_SYS(SYS_readlinkat, AT_FDCWD, descriptor, resolved, PATH_MAX - 1, 0, 0);
	TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
	if (n < 0)
		return (int)n;
	resolved[n] = '\0';
	return *resolved == '/' ? 0 : -ENOENT;
}

/* In the agent's directory, or in that of the file that a link to the agent points to. */
static int plan_writer(struct plan *plan, const char *agent_path)
{
	char file[PATH_MAX];

	if (find_adjacent_writer(plan, agent_path) ||
	    (!follow_links(agent_path, file) && find_adjacent_writer(plan, file)))
		return 0;
	torsh_message("nothing is recorded: ", plan->writer, " is missing or not executable", NULL);
	return -ENOENT;
}

/*
 * The child that starts the writer. A CPU emulator supports only children that end with SIGCHLD
 * (clone returns EINVAL): that signal is then blocked in the target until the child is waited for,
 * and consumed.
 */
struct starter {
	long pid;
	bool is_announced;
	uint64_t mask, pending; /* of the thread to which it is sent */
};

static const uint64_t of_children = UINT64_C(1) << (SIGCHLD - 1);

/* Returns twice, as fork does. */
static void make_starter(struct starter *starter)
{
	starter->pid = TORSH_SYS(SYS_clone, 0, 0, 0, 0, 0, 0);
	starter->is_announced = starter->pid == -EINVAL;
	if (!starter->is_announced)
		return;
	TORSH_SYS(SYS_rt_sigprocmask, SIG_BLOCK, &of_children, &starter->mask, sizeof(of_children),
		  0, 0);
	TORSH_SYS(SYS_rt_sigpending, &starter->pending, sizeof(starter->pending), 0, 0, 0, 0);
	starter->pid = TORSH_SYS(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
	if (starter->pid < 0)
		TORSH_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &starter->mask, 0, sizeof(starter->mask),
			  0, 0);
}

/* Returns 0, or the error that kept the writer from starting. */
static int await_starter(const struct starter *starter, const _Atomic uint32_t *writer_pid)
{
	const struct timespec at_once = {0};
	int status = 0;
	long waited;

	do
		waited = TORSH_SYS(SYS_wait4, starter->pid, &status, __WALL, 0, 0, 0);
	while (waited == -EINTR);
	if (starter->is_announced) {
		if (!(starter->pending & of_children))
			TORSH_SYS(SYS_rt_sigtimedwait, &of_children, 0, &at_once,
				  sizeof(of_children), 0, 0);
		TORSH_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &starter->mask, 0, sizeof(starter->mask),
			  0, 0);
		/* If the target ignores SIGCHLD no child can be waited for. */
		if (waited == -ECHILD && atomic_load_explicit(writer_pid, memory_order_relaxed))
			return 0;
	}
	return waited == starter->pid && WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

int torsh_session_begin(const char *program, const char *agent_path, _Atomic uint32_t *writer_pid,
			char socket_path[SESSION_SOCKET_MAX])
{
	/* Large and used once: kept off the target's stack. */
	struct plan *plan = torsh_sys_pages(sizeof(*plan));
	struct starter starter;
	int result;

	if (!plan)
		return -ENOMEM;
	plan->writer_pid = writer_pid;
	torsh_output_plan(&plan->output, program, (uint64_t)torsh_sys_getpid());
	result = plan_writer(plan, agent_path);
	if (!result)
		result = plan_socket(plan);
	if (result)
		goto free;
	make_starter(&starter);
	if (starter.pid == 0)
		TORSH_SYS(SYS_exit_group, start_writer(plan), 0, 0, 0, 0, 0);
	if (starter.pid < 0) {
		torsh_message("nothing is recorded: can't start the writer: ",
			      torsh_text_reason((int)starter.pid), NULL);
		result = (int)starter.pid;
		goto remove;
	}
	result = await_starter(&starter, writer_pid);
	if (!result)
		strcpy(socket_path, plan->socket_path);
remove:
	if (result)
		torsh_session_remove(plan->socket_path);
free:
	torsh_sys_munmap(plan, sizeof(*plan));
	return result;
}

/* Returns the connection or -errno. */
static int connect_to(const char *socket_path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval backpressure = {.tv_sec = 2};
	int s, error;

	if (strlen(socket_path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, socket_path);
	s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s < 0)
		return -errno;
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &backpressure, sizeof(backpressure));
	if (!connect(s, (struct sockaddr *)&address, sizeof(address)))
		return s;
	error = errno;
	TORSH_SYS(SYS_close, s, 0, 0, 0, 0, 0);
	return -error;
}

/* During its exec the kernel denies access to a process, too; later the writer makes no exec. */
static bool is_gone_for_good(uint32_t pid)
{
	const uint32_t nobody_wakes = 0;

	for (int i = 0; i < EXEC_STEPS && torsh_sys_is_gone(pid); i++)
		torsh_sys_futex_wait(&nobody_wakes, 0, EXEC_STEP_NS);
	return torsh_sys_is_gone(pid);
}

/*
 * An emulator doesn't keep the order in which the starter and the writer listen: the pid may be
 * that of a process that has ended.
 */
static void store_writer_pid(int s, _Atomic uint32_t *writer_pid)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (!getsockopt(s, SOL_SOCKET, SO_PEERCRED, &peer, &n) && peer.pid > 0 &&
	    !is_gone_for_good((uint32_t)peer.pid))
		atomic_store_explicit(writer_pid, (uint32_t)peer.pid, memory_order_relaxed);
}

int torsh_session_join(const char *socket_path, int fd, _Atomic uint32_t *writer_pid)
{
	struct channel_hello hello = {
		.magic = CHANNEL_MAGIC, .version = CHANNEL_VERSION, .pid = (uint32_t)getpid()};
	struct iovec data = {.iov_base = &hello, .iov_len = sizeof(hello)};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int s = connect_to(socket_path), result = 0;

	if (s < 0)
		return s;
	store_writer_pid(s, writer_pid);
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	if (sendmsg(s, &message, MSG_NOSIGNAL) < 0)
		result = -errno;
	TORSH_SYS(SYS_close, s, 0, 0, 0, 0, 0);
	return result;
}
