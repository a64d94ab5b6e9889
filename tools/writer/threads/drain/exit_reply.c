/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/drain/exit_reply.h"

#include <stdbool.h>
#include <stdio.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/writer/input/process_info.h"

#define FIRST_PID_NAMESPACE 0xeffffffcu /* PROC_PID_INIT_INO: the machine's initial namespace */

/*
 * When process 1 of a namespace ends, the kernel kills all others in it. Process 1 is often the
 * target, or ends right after it. If that cannot be determined it is assumed.
 */
static bool ends_with_its_namespace(void)
{
	struct stat status;

	return stat("/proc/self/ns/pid", &status) || status.st_ino != FIRST_PID_NAMESPACE;
}

uint32_t torsh_exit_reply_wishes(bool has_summary, bool has_exports)
{
	return (has_summary ? EXIT_SUMMARY : 0u) | (has_exports ? EXIT_EXPORTS : 0u) |
	       (ends_with_its_namespace() ? EXIT_WHOLE : 0u);
}

/* Store the answer and wake who waits for it. */
static void answer(_Atomic uint32_t *word)
{
	/* Pairs with the acquire in await_answer of agent/session/exit_wait.c. */
	atomic_store_explicit(word, EXIT_ANSWERED, memory_order_release);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Returns whether Yama lets only ancestors read a process, and those that it names. */
static bool must_be_named(void)
{
	static int scope = -1; /* of the machine; -1: not read yet */
	FILE *in;

	if (scope >= 0)
		return scope == 1;
	in = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	if (!in || fscanf(in, "%d", &scope) != 1)
		scope = 0;
	if (in)
		fclose(in);
	return scope == 1;
}

void torsh_exit_reply_promise(struct target *target, uint32_t wishes)
{
	if (wishes & EXIT_VERDICTS && must_be_named())
		wishes |= EXIT_NAMED;
	atomic_store_explicit(&target->view.header->exit_wishes, wishes, memory_order_relaxed);
}

bool torsh_exit_reply_is_awaited(const struct target *target)
{
	const struct channel_header *header = target->view.header;

	return atomic_load_explicit(&header->exit_waits, memory_order_acquire) &&
	       atomic_load_explicit(&header->exit_answer, memory_order_relaxed) != EXIT_ANSWERED;
}

/*
 * Returns true if the process has no seccomp filter that the writer lacks. Such a filter may forbid
 * write(); a filter that both have allows it.
 */
static bool may_print(const struct target *target)
{
	int own = torsh_process_open_status(getpid());
	uint64_t n_own = torsh_process_filters(own);

	if (own >= 0)
		close(own);
	return torsh_process_filters(target->status_fd) <= n_own;
}

void torsh_exit_reply_send(struct target *target, const char *text)
{
	struct channel_header *header = target->view.header;
	size_t n = may_print(target) ? strlen(text) : 0;

	n = n < CHANNEL_EXIT_TEXT_BYTES ? n : CHANNEL_EXIT_TEXT_BYTES;
	memcpy(header->exit_text, text, n);
	atomic_store_explicit(&header->exit_text_length, (uint32_t)n, memory_order_relaxed);
	answer(&header->exit_answer);
}

void torsh_exit_judged(struct target *target)
{
	atomic_store_explicit(&target->view.header->exit_judged, 1, memory_order_release);
}

bool torsh_exit_begin_is_awaited(const struct target *target)
{
	const struct channel_header *header = target->view.header;

	return atomic_load_explicit(&header->exit_begins, memory_order_acquire) &&
	       atomic_load_explicit(&header->exit_begin_answer, memory_order_relaxed) !=
		       EXIT_ANSWERED;
}

void torsh_exit_begin_reply(struct target *target)
{
	answer(&target->view.header->exit_begin_answer);
}
