/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/reachability.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/writer/input/process_info.h"
#include "tools/writer/input/target.h"

/* What the verdicts take, about: for a block, and for its bytes that may be pointers. */
#define BLOCK_BYTES 88u
#define HEAP_SHARE 64u
/* A thread that was stopped while it allocates is let go on, and stopped again. */
#define HOLD_NS UINT64_C(5000000) /* without progress */
#define RETRY_NS UINT64_C(2000000)
#define N_TRIES 100u
#define LONG_TRY 10u /* for how many one counts that takes 100 ms */
#define WORD_PLACES 4096u /* in a page, where the channel's header begins */
#define SMALL_BYTES (UINT64_C(4) << 20) /* is read in less time than it is copied */
#define COPY_MAX_NS UINT64_C(60000000000) /* that a process takes to copy itself */

static void give_reason(struct reachability *reachability, const char *reason, int error)
{
	snprintf(reachability->reason, sizeof(reachability->reason), "%s%s%s", reason,
		 error ? ": " : "", error ? strerror(error) : "");
}

/* ---- whether its blocks are known ------------------------------------------------------------ */

/* Returns why its live blocks are not all known, or too many for the memory; NULL: they are. */
static const char *why_not(const struct target *target, uint64_t left_bytes)
{
	const struct heap *heap = &target->state.heap;
	uint64_t n_blocks = heap->live.n_blocks;

	if (heap->sampling.rate)
		return "blocks are sampled";
	if (torsh_target_is_lossy(target))
		return "events were lost";
	if (heap->small_site)
		return "memory was short, and small blocks were counted only";
	if (heap->was_paused)
		return "recording was paused: blocks from then are not known";
	if (n_blocks >= BLOCKS_MAX)
		return "there are too many blocks";
	if (n_blocks * BLOCK_BYTES + heap->tracker.bytes / HEAP_SHARE > left_bytes / 2)
		return "memory is short";
	return NULL;
}

/* Returns how many blocks of CPython's allocator there is memory for, beside its other blocks. */
static uint32_t python_max(const struct target *target, uint64_t left_bytes)
{
	uint64_t n_blocks = target->state.heap.live.n_blocks, n = left_bytes / 2 / BLOCK_BYTES;

	n = n < BLOCKS_MAX ? n : BLOCKS_MAX;
	return n > n_blocks ? (uint32_t)(n - n_blocks) : 0;
}

static bool is_reallocating(const struct target *target)
{
	for (uint32_t i = 0; i < target->n_consumers; i++) {
		if (target->consumers[i]->heap.is_reallocating ||
		    target->consumers[i]->heap.is_reallocating_unknown)
			return true;
	}
	return false;
}

/* ---- holding it ------------------------------------------------------------------------------ */

static uint64_t waits_at(const struct target *target)
{
	return atomic_load_explicit(&target->view.header->waiting_at, memory_order_seq_cst);
}

static uint32_t disturbed(const struct target *target)
{
	return atomic_load_explicit(&target->view.header->wait_disturbed, memory_order_seq_cst);
}

/* Number of the thread that waits; 0: not known here. */
static pid_t waiting_thread(const struct target *target)
{
	return target->start.pid == (uint32_t)target->pid
		       ? (pid_t)atomic_load_explicit(&target->view.header->waiting_tid,
						     memory_order_relaxed)
		       : 0;
}

/*
 * Returns whether a thread that was not stopped, because it waited, has gone on meanwhile: a signal
 * or its time limit ended the wait.
 */
static bool has_gone_on(const struct target *target)
{
	return torsh_threads_wait(&target->reachability->threads) &&
	       waits_at(target) != target->reachability->waiting_at;
}

/*
 * Likewise whether a handler of a signal ran in its wait: what was taken of its memory before and
 * after may not fit.
 */
static bool is_disturbed(const struct target *target)
{
	const struct reachability *reachability = target->reachability;

	return reachability->threads.has_let_go || (torsh_threads_wait(&reachability->threads) &&
						    disturbed(target) != reachability->disturbed);
}

/* Returns whether it has filters of system calls that this process lacks. */
static bool has_filters(const struct target *target)
{
	int own = torsh_process_open_status(getpid());
	uint64_t n_own = torsh_process_filters(own);

	if (own >= 0)
		close(own);
	return torsh_process_filters(target->status_fd) > n_own;
}

/* To be tried again soon, unless there were many tries; weight: for how many this one counts. */
static enum judging put_off(struct reachability *reachability, uint32_t weight, const char *reason)
{
	reachability->retry_ns = torsh_clock_monotonic_ns() + RETRY_NS;
	reachability->n_tries += weight;
	if (reachability->n_tries < N_TRIES)
		return JUDGING_WAITS;
	reachability->n_tries = 0;
	give_reason(reachability, reason, 0);
	return JUDGING_IS_DONE;
}

static int stop(struct target *target)
{
	const struct reachability *reachability = target->reachability;
	const struct waiting_thread waiting = {
		.tid = waiting_thread(target),
		.stack_pointer = reachability->waiting_at,
		.words = {offsetof(struct channel_header, exit_answer) % WORD_PLACES,
			  offsetof(struct channel_header, exit_begin_answer) % WORD_PLACES},
	};

	return torsh_threads_stop(&target->reachability->threads, target->pid, &waiting,
				  !reachability->has_filters);
}

/* Stop the threads and hold the fold there. */
static enum judging hold(struct target *target)
{
	struct reachability *reachability = target->reachability;
	struct clock_instant moment;
	int result;

	reachability->stopped_ns = torsh_clock_monotonic_ns();
	reachability->waiting_at = waits_at(target);
	reachability->has_filters = has_filters(target);
	result = stop(target);
	/* What ran in its wait before does not count. */
	reachability->disturbed = disturbed(target);
	if (result == -EAGAIN)
		return put_off(reachability, 1, "it handled signals whenever it was to be stopped");
	if (result == -ETIMEDOUT) /* on a busy machine */
		return put_off(reachability, LONG_TRY, "its threads can't be stopped in time");
	if (result == -EACCES) {
		give_reason(reachability, "a filter of its system calls may not let it be stopped",
			    0);
		return JUDGING_IS_DONE;
	}
	if (result) {
		give_reason(reachability, "its threads can't be stopped", -result);
		return JUDGING_IS_DONE;
	}
	moment = torsh_clock_instant();
	torsh_target_hold(target, &moment);
	reachability->phase = JUDGING_FOLDS;
	return JUDGING_WAITS;
}

static void let_go(struct target *target)
{
	struct reachability *reachability = target->reachability;

	torsh_threads_continue(&reachability->threads);
	torsh_target_release(target);
	reachability->phase = JUDGING_BEGINS;
	reachability->took_ns += torsh_clock_monotonic_ns() - reachability->stopped_ns;
}

/* Returns whether events from before the stop are still being folded. */
static bool goes_on(struct target *target, uint64_t now_ns)
{
	struct reachability *reachability = target->reachability;
	uint64_t bound = torsh_target_bound(target);

	if (bound != reachability->bound || reachability->bound_ns < reachability->stopped_ns)
		reachability->bound_ns = now_ns;
	reachability->bound = bound;
	return now_ns - reachability->bound_ns < HOLD_NS;
}

/* A thread was stopped within a call of its allocator: let it go on for a moment. */
static enum judging try_again(struct target *target)
{
	let_go(target);
	return put_off(target->reachability, 1,
		       "its threads were allocating whenever they were stopped");
}

/* ---- one moment ------------------------------------------------------------------------------ */

static void beat(void *context)
{
	struct target *target = context;

	atomic_fetch_add_explicit(&target->view.header->heartbeat, 1, memory_order_relaxed);
	torsh_threads_settle();
}

/* Its threads are stopped, and everything is folded. */
static struct judge_job *take_moment(struct target *target, const struct judging_request *request)
{
	struct reachability *reachability = target->reachability;
	struct judge_job *job = torsh_memory_new(1, sizeof(*job));

	if (request->held)
		request->held(request->context, target);
	for (uint32_t i = 0; i < target->n_consumers; i++)
		torsh_ring_consumer_release(target->consumers[i]);
	job->is_begin = request->when == JUDGE_AT_EXIT_BEGIN;
	job->before = job->is_begin ? NULL : reachability->begin;
	job->wake_word = request->wake_word;
	torsh_judged_moment_take(&job->moment, target, &reachability->threads,
				 reachability->exit_stamp);
	job->moment.n_python_max = reachability->n_python_max;
	if (job->is_begin)
		reachability->exit_stamp = job->moment.stamp;
	return job;
}

static void drop_job(struct judge_job *job)
{
	torsh_judged_moment_free(&job->moment);
	torsh_judge_job_destroy(job);
}

/* The process goes on: the job has what it needs, or has been done. */
static enum judging keep_job(struct target *target)
{
	struct reachability *reachability = target->reachability;
	struct judge_job *job = reachability->next;

	reachability->next = NULL;
	reachability->n_tries = 0;
	if (job->is_begin) {
		reachability->begin = job;
	} else {
		torsh_judge_job_destroy(reachability->last);
		reachability->last = job;
	}
	*reachability->reason = '\0';
	let_go(target);
	return JUDGING_IS_DONE;
}

static enum judging give_up(struct target *target, const char *reason)
{
	struct reachability *reachability = target->reachability;

	drop_job(reachability->next);
	reachability->next = NULL;
	let_go(target);
	give_reason(reachability, reason, 0);
	return JUDGING_IS_DONE;
}

/* Read the process's own memory, while it waits. */
static enum judging judge_in_place(struct target *target)
{
	struct reachability *reachability = target->reachability;

	reachability->phase = JUDGING_READS;
	if (!torsh_judge_job_is_done(reachability->begin))
		return JUDGING_WAITS;
	torsh_judge_job_run(reachability->next, beat, target);
	if (has_gone_on(target))
		return give_up(target, "it went on while its memory was read");
	return is_disturbed(target)
		       ? give_up(target, "a signal was handled while its memory was read")
		       : keep_job(target);
}

static struct channel_copy *copy_of(const struct target *target, enum judge_when when)
{
	struct channel_header *header = target->view.header;

	return when == JUDGE_AT_EXIT_BEGIN ? &header->exit_begin_copy : &header->exit_copy;
}

static _Atomic uint32_t *answer_of(const struct target *target, enum judge_when when)
{
	struct channel_header *header = target->view.header;

	return when == JUDGE_AT_EXIT_BEGIN ? &header->exit_begin_answer : &header->exit_answer;
}

/* It need not copy itself, if it has not begun. */
static void refuse_copy(struct target *target, enum judge_when when)
{
	uint32_t wanted = EXIT_COPY_WANTED;

	atomic_compare_exchange_strong_explicit(answer_of(target, when), &wanted, EXIT_NO_ANSWER,
						memory_order_relaxed, memory_order_relaxed);
	torsh_process_copy_refuse(copy_of(target, when), &target->reachability->next->copy);
}

static bool is_large(const struct target *target)
{
	struct process_memory memory;

	return !torsh_process_read_memory(target->pid, &memory) &&
	       memory.resident_bytes >= SMALL_BYTES;
}

/* Returns whether it waits where it can copy itself, and that is worth it. */
static bool can_copy(const struct target *target, const struct judging_request *request)
{
	return request->when != JUDGE_IN_RUN && waiting_thread(target) &&
	       torsh_threads_wait(&target->reachability->threads) &&
	       !target->reachability->has_filters && is_large(target);
}

static enum judging await_copy(struct target *target, const struct judging_request *request)
{
	struct reachability *reachability = target->reachability;
	struct judge_job *job = reachability->next;
	uint64_t waited_ns = torsh_clock_monotonic_ns() - reachability->copy_ns;
	int result =
		torsh_process_copy_await(&job->copy, copy_of(target, request->when), target->pid);

	if (has_gone_on(target) || torsh_process_has_ended(target->pidfd)) {
		refuse_copy(target, request->when);
		return give_up(target, "it went on while it was copied");
	}
	if (result == -EAGAIN && waited_ns < COPY_MAX_NS &&
	    !torsh_threads_hold_signal(&reachability->threads))
		return JUDGING_WAITS;
	if (is_disturbed(target)) {
		refuse_copy(target, request->when);
		return give_up(target, "a signal was handled while it was copied");
	}
	if (!result) {
		job->moment.pid = job->copy.pid;
		if (!torsh_judge_job_start(job))
			return keep_job(target);
		job->moment.pid = target->pid;
	}
	refuse_copy(target, request->when);
	return judge_in_place(target);
}

static enum judging judge_now(struct target *target, const struct judging_request *request)
{
	struct reachability *reachability = target->reachability;

	reachability->next = take_moment(target, request);
	if (!can_copy(target, request))
		return judge_in_place(target);
	reachability->phase = JUDGING_COPIES;
	reachability->copy_ns = torsh_clock_monotonic_ns();
	torsh_process_copy_request(answer_of(target, request->when));
	return await_copy(target, request);
}

static enum judging begin(struct target *target, const struct judging_request *request)
{
	struct reachability *reachability = target->reachability;
	const char *reason = why_not(target, request->left_bytes);

	if (reason) {
		give_reason(reachability, reason, 0);
		return JUDGING_IS_DONE;
	}
	reachability->n_python_max = python_max(target, request->left_bytes);
	if (torsh_clock_monotonic_ns() < reachability->retry_ns ||
	    (request->when != JUDGE_IN_RUN && !torsh_judge_jobs_have_room() && is_large(target)))
		return JUDGING_WAITS;
	return hold(target);
}

enum judging torsh_reachability_judge(struct target *target, const struct judging_request *request)
{
	struct reachability *reachability = target->reachability;

	if (!reachability)
		reachability = target->reachability = torsh_memory_new(1, sizeof(*reachability));
	/* One for its exit may come while one of a client is not answered. */
	if (reachability->phase != JUDGING_BEGINS && request->when != reachability->when)
		return JUDGING_WAITS;
	reachability->when = request->when;
	switch (reachability->phase) {
	case JUDGING_COPIES:
		return await_copy(target, request);
	case JUDGING_READS:
		return judge_in_place(target);
	case JUDGING_FOLDS:
		break;
	default:
		return begin(target, request);
	}
	if (!torsh_target_is_at_hold(target))
		return goes_on(target, torsh_clock_monotonic_ns()) ? JUDGING_WAITS
								   : try_again(target);
	return is_reallocating(target) ? try_again(target) : judge_now(target, request);
}

/* ---- results --------------------------------------------------------------------------------- */

bool torsh_reachability_is_busy(const struct reachability *reachability)
{
	return reachability && !(torsh_judge_job_is_done(reachability->begin) &&
				 torsh_judge_job_is_done(reachability->last));
}

static const struct judgement *result_of(const struct judge_job *job)
{
	return job && torsh_judge_job_is_done(job) && !job->judgement.error ? &job->judgement
									    : NULL;
}

const struct judgement *torsh_reachability_begin(const struct reachability *reachability)
{
	return result_of(reachability->begin);
}

const struct judgement *torsh_reachability_last(const struct reachability *reachability)
{
	return *reachability->reason ? NULL : result_of(reachability->last);
}

/* The error of a job that is done; 0: there is none. */
static int error_of(const struct judge_job *job)
{
	return job && torsh_judge_job_is_done(job) ? job->judgement.error : 0;
}

const char *torsh_reachability_reason(struct reachability *reachability)
{
	int error = error_of(reachability->last ? reachability->last : reachability->begin);

	if (error && !*reachability->reason)
		give_reason(reachability, "its memory can't be read", error);
	return reachability->reason;
}

void torsh_reachability_end(struct reachability *reachability)
{
	if (reachability && reachability->begin)
		torsh_judgement_free_blocks(&reachability->begin->judgement);
}

void torsh_reachability_destroy(struct reachability *reachability)
{
	if (!reachability)
		return;
	torsh_threads_continue(&reachability->threads);
	if (reachability->next)
		drop_job(reachability->next);
	/* The last one waits for the first. */
	torsh_judge_job_destroy(reachability->last);
	torsh_judge_job_destroy(reachability->begin);
	free(reachability);
}
