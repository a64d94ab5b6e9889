/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The results of system call filters for the agent's calls, on programs as sandboxes write them. */
#include "shim/libc/filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)
#define HARMS(...)                                                             \
	({                                                                     \
		struct sock_filter ops[] = {__VA_ARGS__};                      \
		struct sock_fprog program = {sizeof(ops) / sizeof(*ops), ops}; \
		torsh_filter_harms(&program);                                  \
	})

static void a_filter_that_allows_or_refuses_harms_nobody(void **state)
{
	(void)state;
	assert_false(HARMS(RETURN(SECCOMP_RET_ALLOW)));
	assert_false(HARMS(RETURN(SECCOMP_RET_ERRNO | 1)));
	assert_false(HARMS(LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_reboot, 0, 1),
			   RETURN(SECCOMP_RET_KILL_PROCESS), RETURN(SECCOMP_RET_ALLOW)));
}

static void one_that_kills_for_what_is_needed_harms(void **state)
{
	(void)state;
	assert_true(HARMS(RETURN(SECCOMP_RET_KILL_PROCESS)));
	assert_true(HARMS(RETURN(SECCOMP_RET_TRAP)));
	assert_true(HARMS(LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
			  RETURN(SECCOMP_RET_KILL_THREAD), RETURN(SECCOMP_RET_ALLOW)));
	/* That is made before an exec, to look at the program. */
	assert_true(HARMS(LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fgetxattr, 0, 1),
			  RETURN(SECCOMP_RET_KILL_PROCESS), RETURN(SECCOMP_RET_ALLOW)));
	/* By an answer that was computed. */
	assert_true(HARMS(BPF_STMT(BPF_LD | BPF_IMM, 1), BPF_STMT(BPF_MISC | BPF_TAX, 0),
			  BPF_STMT(BPF_LD | BPF_IMM, SECCOMP_RET_ALLOW - 1), BPF_STMT(BPF_ST, 3),
			  BPF_STMT(BPF_LD | BPF_MEM, 3), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0),
			  BPF_STMT(BPF_RET | BPF_A, 0)));
}

static void arguments_are_looked_at(void **state)
{
	(void)state;
	/* Sockets but those of AF_UNIX. */
	assert_false(HARMS(LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
			   LOAD(args[0]), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 1, 0),
			   RETURN(SECCOMP_RET_KILL_PROCESS), RETURN(SECCOMP_RET_ALLOW)));
	assert_true(HARMS(LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
			  LOAD(args[0]), BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 1, 0, 1),
			  RETURN(SECCOMP_RET_KILL_PROCESS), RETURN(SECCOMP_RET_ALLOW)));
}

static void a_program_that_makes_no_sense_is_believed_to_harm(void **state)
{
	(void)state;
	assert_true(HARMS(LOAD(nr)));
	assert_true(HARMS(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4000), RETURN(SECCOMP_RET_ALLOW)));
	assert_true(HARMS(BPF_STMT(BPF_ST, 400), RETURN(SECCOMP_RET_ALLOW)));
	assert_true(HARMS(BPF_STMT(BPF_JMP | BPF_JA, 400), RETURN(SECCOMP_RET_ALLOW)));
	assert_true(HARMS(BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), RETURN(SECCOMP_RET_ALLOW)));
	assert_true(HARMS(BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), RETURN(SECCOMP_RET_ALLOW)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_filter_that_allows_or_refuses_harms_nobody),
		cmocka_unit_test(one_that_kills_for_what_is_needed_harms),
		cmocka_unit_test(arguments_are_looked_at),
		cmocka_unit_test(a_program_that_makes_no_sense_is_believed_to_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
