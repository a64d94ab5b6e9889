/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/session/exit_wait.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/channel.h"
#include "agent/session/exit_copy.h"
#include "agent/session/exit_quiet.h"
#include "shim/libc/thread.h"

#define EXPORT_NOTICE_AFTER_NS UINT64_C(1000000000)
#define SAVED_BYTES 256u /* below a frame's pointer, where it saves its caller's registers */
#define STEP_NS UINT64_C(50000000)
/* time without progress after which the writer counts as stopped or dead */
#define SILENT_MAX_NS UINT64_C(5000000000)
#define SUMMARY_AT_MOST_NS UINT64_C(5000000000)
#define WAIT_MAX_NS UINT64_C(600000000000) /* in any case */
#define QUIET_MAX_NS UINT64_C(10000000000) /* that handlers of signals are put off */

struct exit_wait {
	uint64_t begin_ns, at_ns;
	uint64_t moved_ns; /* time of the last change of the heartbeat */
	uint32_t heartbeat;
	bool has_printed;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Bits of channel_exit_wish that are still awaited; 0: none. */
static uint32_t wishes_of(struct channel_header *header, bool may_be_first)
{
	uint32_t state = atomic_load_explicit(&header->writer_state, memory_order_acquire);

	if (state == CHANNEL_WRITER_NONE)
		return (may_be_first ? EXIT_SUMMARY : 0u) |
		       (header->wants_verdicts ? (uint32_t)EXIT_VERDICTS : 0u);
	return state == CHANNEL_WRITER_ATTACHED
		       ? atomic_load_explicit(&header->exit_wishes, memory_order_relaxed)
		       : 0;
}

/* Whether to go on waiting: the writer makes progress, and the time limit has not passed. */
static bool is_worth_it(struct exit_wait *wait, uint32_t heartbeat, uint32_t wishes)
{
	wait->at_ns = now_ns();
	if (heartbeat != wait->heartbeat)
		wait->moved_ns = wait->at_ns;
	wait->heartbeat = heartbeat;
	return wait->at_ns - wait->moved_ns < SILENT_MAX_NS &&
	       wait->at_ns - wait->begin_ns <
		       (wishes == EXIT_SUMMARY ? SUMMARY_AT_MOST_NS : WAIT_MAX_NS);
}

static void print_export_notice(struct exit_wait *wait, uint32_t wishes)
{
	const uint32_t both = EXIT_EXPORTS | EXIT_SUMMARY;

	if (torsh_agent_is_sandboxed() || wait->has_printed || (wishes & both) != both ||
	    wait->at_ns - wait->begin_ns < EXPORT_NOTICE_AFTER_NS)
		return;
	wait->has_printed = true;
	torsh_message("the exports are being written; an interrupt leaves that to the background",
		      NULL);
}

/* Whether other calls than futexes can be made: a filter of the process may forbid them. */
static bool may_call(const struct channel_header *header)
{
	return !header->n_filters && !torsh_agent_is_sandboxed() &&
	       !atomic_load_explicit(&header->harmless_filters, memory_order_relaxed);
}

/* The writer's answer, a futex word, and the copy that it may request before. */
struct expected {
	_Atomic uint32_t *answer;
	struct channel_copy *copy;
	_Atomic uint32_t
		*judged; /* 1: its memory is not looked at any more; NULL: until the answer */
};

static void copy_process(struct channel_header *header, const struct expected *expected)
{
	uint32_t wanted = EXIT_COPY_WANTED;
	uint32_t wishes = atomic_load_explicit(&header->exit_wishes, memory_order_relaxed);
	int pid = may_call(header)
			  ? torsh_exit_copy_make(header, expected->copy, wishes & EXIT_NAMED)
			  : -EPERM;

	/* The writer may have stopped waiting for the copy, and answered. */
	atomic_compare_exchange_strong_explicit(expected->answer, &wanted, EXIT_NO_ANSWER,
						memory_order_relaxed, memory_order_relaxed);
	/* Pairs with the acquire in torsh_process_copy_await of the writer. */
	atomic_store_explicit(&expected->copy->pid, pid, memory_order_release);
	torsh_sys_futex_wake(&expected->copy->pid, 1);
}

/* Whether the writer may still look at the memory. */
static bool is_looked_at(const struct exit_wait *wait, const struct expected *expected,
			 uint32_t wishes)
{
	return wishes & EXIT_VERDICTS && wait->at_ns - wait->begin_ns < QUIET_MAX_NS &&
	       !(expected->judged && atomic_load_explicit(expected->judged, memory_order_relaxed));
}

/* A handler ran. Returns whether to go on waiting. */
static bool bears_handlers(struct channel_header *header, uint32_t wishes, bool is_looked_at)
{
	/* Pairs with the check in is_disturbed of the writer: the memory may have changed. */
	atomic_fetch_add_explicit(&header->wait_disturbed, 1, memory_order_seq_cst);
	return wishes & EXIT_WHOLE || is_looked_at;
}

/* Returns whether the answer came. */
static bool await_in(struct exit_wait *wait, struct channel_header *header,
		     const struct expected *expected, bool may_be_first)
{
	uint32_t answer;

	while ((answer = atomic_load_explicit(expected->answer, memory_order_acquire)) !=
	       EXIT_ANSWERED) {
		uint32_t wishes = wishes_of(header, may_be_first);
		bool is_read;
		long result;

		if (answer == EXIT_COPY_WANTED) {
			copy_process(header, expected);
			continue;
		}
		if (!wishes ||
		    !is_worth_it(wait,
				 atomic_load_explicit(&header->heartbeat, memory_order_relaxed),
				 wishes))
			return false;
		is_read = is_looked_at(wait, expected, wishes);
		if (!is_read) /* signals are handled again at once */
			torsh_exit_quiet_end();
		print_export_notice(wait, wishes);
		result = torsh_sys_futex_wait(expected->answer, EXIT_NO_ANSWER, STEP_NS);
		if ((result == -EINTR && !bears_handlers(header, wishes, is_read)) ||
		    (result == -ETIMEDOUT && torsh_agent_is_abandoned()))
			return false;
	}
	return true;
}

/* Returns whether the answer came. */
static bool await_answer(struct channel_header *header, const struct expected *expected,
			 bool may_be_first)
{
	struct exit_wait wait = {.begin_ns = now_ns()};
	bool has_answer;

	wait.moved_ns = wait.begin_ns;
	if (may_call(header) && wishes_of(header, may_be_first) & EXIT_VERDICTS)
		torsh_exit_quiet_begin();
	has_answer = await_in(&wait, header, expected, may_be_first);
	/* Pairs with the check in has_gone_on of the writer: from here on the memory changes. */
	atomic_store_explicit(&header->waiting_at, 0, memory_order_seq_cst);
	torsh_exit_quiet_end();
	return has_answer;
}

/*
 * The writer will read this process's memory: show where its stack is in use, with the program's
 * registers in the frame. EXIT_NAMED: Yama forbids reading to all but ancestors and who is named.
 * No filter of the process was evaluated for that call, so it is made without filters only.
 */
static void prepare_reading(struct channel_header *header, uint32_t wishes, void *frame)
{
	uint32_t writer = atomic_load_explicit(&header->writer_pid, memory_order_relaxed);
	uint32_t tid = may_call(header) ? (uint32_t)torsh_thread_tid() : 0;

	atomic_store_explicit(&header->waiting_tid, tid, memory_order_relaxed);
	atomic_store_explicit(&header->waiting_at, (uintptr_t)frame - SAVED_BYTES,
			      memory_order_relaxed);
	if (wishes & EXIT_NAMED && writer && tid)
		TORSH_SYS(SYS_prctl, PR_SET_PTRACER, writer, 0, 0, 0, 0);
}

void torsh_exit_begin_wait(struct channel_header *header)
{
	uint32_t wishes = wishes_of(header, false);

	__builtin_unwind_init();
	if (!(wishes & EXIT_VERDICTS) ||
	    atomic_load_explicit(&header->exit_begins, memory_order_relaxed))
		return;
	prepare_reading(header, wishes, __builtin_frame_address(0));
	if (atomic_exchange_explicit(&header->exit_begins, 1, memory_order_seq_cst))
		return;
	torsh_channel_ring_doorbell(header);
	await_answer(header,
		     &(struct expected){&header->exit_begin_answer, &header->exit_begin_copy, NULL},
		     false);
}

void torsh_exit_wait(struct channel_header *header, bool may_be_first)
{
	uint32_t n, wishes = wishes_of(header, may_be_first);
	bool has_answer;

	__builtin_unwind_init();
	if (!wishes)
		return;
	if (wishes & EXIT_VERDICTS)
		prepare_reading(header, wishes, __builtin_frame_address(0));
	/*
	 * Pairs with the acquire in torsh_exit_reply_is_awaited: what the exit stored before is
	 * visible.
	 */
	atomic_store_explicit(&header->exit_waits, 1, memory_order_seq_cst);
	torsh_channel_ring_doorbell(header);
	has_answer = await_answer(
		header,
		&(struct expected){&header->exit_answer, &header->exit_copy, &header->exit_judged},
		may_be_first);
	if (!has_answer)
		return;
	n = atomic_load_explicit(&header->exit_text_length, memory_order_relaxed);
	if (n && n <= CHANNEL_EXIT_TEXT_BYTES && !torsh_agent_is_sandboxed())
		torsh_message_write(header->exit_text, n);
}
