/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The fields of /proc for a process of a user in many groups: these come before all others. */
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/writer/input/process_info.h"

#define N_GROUPS 2000u

enum { IS_READ, MAY_NOT, HAS_NO_MEMORY, HAS_NO_FILTER };

static int put_under_a_filter(void)
{
	struct sock_filter allow = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
	struct sock_fprog program = {.len = 1, .filter = &allow};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int look_in_many_groups(void)
{
	gid_t groups[N_GROUPS];
	struct process_status status;
	uint64_t n_filters;
	int fd;

	for (uint32_t i = 0; i < N_GROUPS; i++)
		groups[i] = 100000 + i;
	if (setgroups(N_GROUPS, groups))
		return MAY_NOT;
	fd = torsh_process_open_status(getpid());
	n_filters = torsh_process_filters(fd);
	if (put_under_a_filter())
		return MAY_NOT;
	if (torsh_process_read_status(fd, &status) || !status.rss_bytes ||
	    status.rss_peak_bytes < status.rss_bytes)
		return HAS_NO_MEMORY;
	return torsh_process_filters(fd) == n_filters + 1 && status.n_filters == n_filters + 1
		       ? IS_READ
		       : HAS_NO_FILTER;
}

static void a_status_of_any_length_is_read(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (!child)
		_exit(look_in_many_groups());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == MAY_NOT)
		skip();
	assert_int_equal(WEXITSTATUS(status), IS_READ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_status_of_any_length_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
