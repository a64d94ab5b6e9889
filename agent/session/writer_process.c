/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/session/writer_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/process/text_buffer.h"
#include "shim/sys.h"

#define DESCRIPTORS 65536
#define SPACE_MIN (48u << 20) /* the writer's code and its first tables */
/* for itself, its first target, and files that it opens for a moment */
#define DESCRIPTORS_MIN 32

char **torsh_writer_process_environment(void)
{
	static const char *const dropped[] = {"LD_PRELOAD=", "LD_AUDIT=", "TORSH_PROFILER_",
					      "MALLOC_", "GLIBC_TUNABLES="};
	static const char kept_prefix[] = "TORSH_PROFILER_CLOCK_";
	size_t n = 0, n_kept = 0;
	char **kept;

	while (environ && environ[n])
		n++;
	kept = torsh_sys_pages((n + 1) * sizeof(*kept));
	for (size_t i = 0; kept && i < n; i++) {
		/* The writer's own: a key is in no list of arguments, which everybody can read. */
		size_t d = strncmp(environ[i], kept_prefix, sizeof(kept_prefix) - 1)
				   ? 0
				   : sizeof(dropped) / sizeof(dropped[0]);

		while (d < sizeof(dropped) / sizeof(dropped[0]) &&
		       strncmp(environ[i], dropped[d], strlen(dropped[d])))
			d++;
		if (d == sizeof(dropped) / sizeof(dropped[0]))
			kept[n_kept++] = environ[i];
	}
	return kept;
}

static void set_signal(int number, void (*handler)(int))
{
	/* The kernel's struct: handler, flags, restorer, mask. */
	uintptr_t action[4] = {(uintptr_t)handler};

	TORSH_SYS(SYS_rt_sigaction, number, action, 0, 8, 0, 0);
}

void torsh_writer_process_reset_signals(void)
{
	static const int ignored[] = {SIGINT, SIGHUP, SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ, SIGTTOU};
	uint64_t none = 0;

	for (int i = 1; i <= 64; i++)
		set_signal(i, SIG_DFL);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		set_signal(ignored[i], SIG_IGN);
	TORSH_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof(none), 0, 0);
}

/*
 * The target may have limited itself: raise the soft limits to the hard ones at least. Returns how
 * many descriptors the target could open.
 */
static uint64_t raise_limits(void)
{
	static const int limits[] = {RLIMIT_AS,	 RLIMIT_FSIZE, RLIMIT_DATA,
				     RLIMIT_CPU, RLIMIT_STACK, RLIMIT_NOFILE};
	uint64_t n_descriptors = DESCRIPTORS;
	struct rlimit limit;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		__rlimit_resource_t which = (__rlimit_resource_t)limits[i];
		rlim_t most = which == RLIMIT_NOFILE ? DESCRIPTORS : RLIM_INFINITY;

		if (getrlimit(which, &limit))
			continue;
		if (which == RLIMIT_NOFILE && limit.rlim_cur < n_descriptors)
			n_descriptors = limit.rlim_cur;
		if (!setrlimit(which, &(struct rlimit){most, most}))
			continue;
		limit.rlim_cur = limit.rlim_max;
		setrlimit(which, &limit);
	}
	return n_descriptors;
}

/*
 * Keep only stderr of the target's descriptors. Afterwards 0 to 2 are taken and all above are free.
 */
static int drop_descriptors(uint64_t n_descriptors)
{
	int null;

	if (TORSH_SYS(SYS_close_range, STDERR_FILENO + 1, UINT32_MAX, 0, 0, 0, 0) < 0)
		for (int fd = STDERR_FILENO + 1; fd < (int)n_descriptors; fd++)
			close(fd);
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	do
		null = open("/dev/null", O_RDWR);
	while (null >= 0 && null < STDERR_FILENO);
	if (null < 0)
		return -errno;
	if (null > STDERR_FILENO)
		close(null);
	return 0;
}

int torsh_writer_process_prepare(void)
{
	uint64_t n_descriptors = raise_limits();
	struct rlimit limit;
	int result = drop_descriptors(n_descriptors);

	if (result) {
		torsh_message("nothing is recorded: /dev/null: ", torsh_text_reason(result), NULL);
		return result;
	}
	if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur < SPACE_MIN) {
		torsh_message(
			"nothing is recorded: the limit on address space (RLIMIT_AS) leaves the writer too little",
			NULL);
		return -ENOMEM;
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= DESCRIPTORS_MIN)
		return 0;
	torsh_message(
		"nothing is recorded: the limit on open files (RLIMIT_NOFILE) leaves the writer too few",
		NULL);
	return -EMFILE;
}
