/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The agent's life in a process: from the first hook, which comes before any constructor of ours,
 * to exit and fork.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/modules/module_registry.h"
#include "agent/process/agent.h"
#include "agent/process/callbacks.h"
#include "agent/process/channel_header.h"
#include "agent/process/config.h"
#include "agent/process/environment.h"
#include "agent/process/injection.h"
#include "agent/process/paths.h"
#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/counter.h"
#include "agent/producer/lifecycle.h"
#include "agent/session/dormant.h"
#include "agent/session/output_path.h"
#include "agent/session/session.h"
#include "agent/session/start_wait.h"
#include "agent/session/status_request.h"
#include "agent/session/user_signals.h"
#include "shim/libc/next.h"
#include "shim/libc/thread.h"
#include "shim/loader/unloading.h"
#include "shim/pause.h"

#define PRELOAD_SEPARATORS " :" /* as ld.so has them */

static const _Atomic uint32_t paused_for_good = PAUSE_FOR_GOOD;
static int last_pid;

/* Report on stderr why nothing is recorded; returns error. */
static int report_not_recorded(const char *what, int error)
{
	if (error == -EFBIG || error == -ENOMEM)
		torsh_message(
			"nothing is recorded: the limits on this process (RLIMIT_FSIZE, RLIMIT_AS) leave no room",
			NULL);
	else
		torsh_message("nothing is recorded: ", what, ": ", torsh_text_reason(error), NULL);
	return error;
}

/* Begin a session for this process and its children, which no writer serves yet. */
static int begin_session(struct channel_header *header, int fd)
{
	int result = torsh_session_begin(torsh_program_name(), torsh_agent_path(),
					 &header->writer_pid, torsh_session_socket);

	if (result)
		return result;
	result = torsh_session_join(torsh_session_socket, fd, &header->writer_pid);
	if (!result)
		return 0;
	torsh_session_remove(torsh_session_socket);
	*torsh_session_socket = '\0';
	return report_not_recorded("the writer can't be reached", result);
}

/*
 * Where Yama lets processes trace only their descendants, a flight recorder's writer may read the
 * stacks of a process that hangs.
 */
static void name_tracer(const struct channel_header *header)
{
	uint32_t writer = atomic_load_explicit(&header->writer_pid, memory_order_relaxed);

	if (torsh_config.record.mode >= RECORD_LAST_NS && torsh_config.keep.hang_ns && writer)
		TORSH_SYS(SYS_prctl, PR_SET_PTRACER, writer, 0, 0, 0, 0);
}

/* Hooks read the channel's words from now on. */
static void use_channel(struct channel_header *header)
{
	name_tracer(header);
	torsh_counters = header->counters;
	torsh_stamp_use(&header->clock_lift, &header->clock_reference,
			torsh_producer_clock_is_monotonic);
	/* Other threads are in hooks already: whichever word they read has the state. */
	atomic_store_explicit(&torsh_pause,
			      torsh_config.activities & ACTIVITY_HEAP ? &header->is_paused
								      : &header->heap_is_off,
			      memory_order_relaxed);
	atomic_store_explicit(&torsh_recording_pause, &header->is_paused, memory_order_relaxed);
	for (int i = 0; i < N_COUNTERS; i++)
		torsh_count_many((enum channel_counter)i,
				 atomic_exchange(&torsh_spare_counters[i], 0));
}

int torsh_agent_open_channel(const struct channel *parent)
{
	struct process *process = torsh_process;
	int fd, result = torsh_channel_create(&process->channel, torsh_config.ring_bytes,
					      torsh_config.heap_rate, parent, &fd);

	if (result)
		return parent ? result
			      : report_not_recorded("there is no memory to share with a writer",
						    result);
	torsh_channel_header_fill(process->channel.header);
	if (!parent)
		torsh_channel_header_describe(&process->channel);
	/* A child of a process that rests begins a recording of its own. */
	if (parent && !torsh_agent_is_on()) {
		process->channel.header->forked_from = 0;
		process->channel.header->forked_from_ticks = 0;
		torsh_channel_header_note(&process->channel);
	}
	atomic_store_explicit(&process->channel.header->state, CHANNEL_RUNNING,
			      memory_order_relaxed);
	if (*torsh_session_socket)
		result = torsh_session_join(torsh_session_socket, fd,
					    &process->channel.header->writer_pid);
	/* A dormant program's session has ended: what it started is dormant, too. */
	if (!*torsh_session_socket || (result && !parent && !torsh_config.is_dormant))
		result = begin_session(process->channel.header, fd);
	TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
	if (result) {
		torsh_channel_unmap(&process->channel);
		return result;
	}
	torsh_lifecycle_reserve();
	process->pid = torsh_sys_getpid();
	use_channel(process->channel.header);
	torsh_last_channel = process->channel;
	last_pid = process->pid;
	if (process->pid == 1 && !parent)
		torsh_start_wait(process->channel.header);
	return 0;
}

int torsh_agent_reopen_channel(void)
{
	struct channel *channel = &torsh_process->channel;
	int result = -EBADF;

	if (!torsh_channel_is_kept(channel))
		return report_not_recorded("the program closed a descriptor of the agent's",
					   result);
	torsh_channel_header_reuse(channel);
	torsh_channel_header_fill(channel->header);
	torsh_channel_header_note(channel);
	atomic_store_explicit(&channel->header->state, CHANNEL_RUNNING, memory_order_relaxed);
	if (*torsh_session_socket)
		result = torsh_session_join(torsh_session_socket, channel->fd,
					    &channel->header->writer_pid);
	if (result)
		result = begin_session(channel->header, channel->fd);
	if (!result)
		use_channel(channel->header);
	return result;
}

static int make_process(void)
{
	/* In a forked child pid is 0, whichever call made it. */
	torsh_process = torsh_sys_own_pages(sizeof(*torsh_process));
	if (!torsh_process)
		return report_not_recorded("there is no memory", -ENOMEM);
	torsh_pause_pid = &torsh_process->pid;
	return 0;
}

static void start_stack_checks(void)
{
	if (torsh_config.check_stacks && torsh_stack_check_every(torsh_config.check_stacks))
		torsh_message("stacks are not compared: libunwind.so.8 can't be opened", NULL);
}

/* Set the environment of this process and of the programs that it starts. */
static void prepare_environment(const char *session)
{
#define INJECTION(source, activity, variable)     \
	if (torsh_config.activities & (activity)) \
		torsh_environment_inject(variable, torsh_agent_path());
	TORSH_INJECTIONS
#undef INJECTION
	if (torsh_config.activities & ACTIVITY_CUDA)
		torsh_environment_inject(TORSH_CUDA_INJECTION, torsh_agent_path());
	if (torsh_config.activities & ACTIVITY_NCCL)
		torsh_environment_inject(TORSH_NCCL_INJECTION, torsh_agent_path());
	torsh_environment_start(torsh_agent_path(), session);
}

/* A relative LD_PRELOAD may lead to such a path; children then inherit it unchanged. */
static bool is_path_unfit(void)
{
	return strpbrk(torsh_agent_path(), PRELOAD_SEPARATORS) != NULL;
}

/* Record from now on: threads that are in hooks meanwhile are not recorded. */
static int start_recording(void)
{
	int result = make_process();

	if (result)
		return result;
	torsh_stack_start();
	return torsh_agent_open_channel(NULL);
}

/* Returns -EINPROGRESS, or an error after a message on stderr. */
static int become_dormant(void)
{
	int result;

	if (!is_path_unfit())
		prepare_environment("");
	result = torsh_dormant_begin();
	if (result)
		return report_not_recorded("there is no place for the page that arms it", result);
	return -EINPROGRESS;
}

/*
 * Returns 0, -ECANCELED when recording was turned off by the user, -EINPROGRESS when it waits to be
 * armed, or another error after a message on stderr.
 */
static int start(void)
{
	int result;
	bool is_first;

	torsh_message_keep_to_stderr();
	torsh_config_read(torsh_environment_own(environ));
	is_first = !torsh_config.session;
	torsh_paths_find_program();
	if (!torsh_config.enabled || getauxval(AT_SECURE) || (!torsh_config.follow && !is_first))
		return -ECANCELED;
	result = torsh_paths_find_agent();
	if (result)
		return report_not_recorded("the agent doesn't find its own path", result);
	if (!torsh_config_matches(torsh_program_name())) {
		/* Its children may still be recorded. */
		prepare_environment(torsh_config.session);
		return -ECANCELED;
	}
	torsh_channel_header_choose_clock();
	result = torsh_lifecycle_start();
	if (result)
		return report_not_recorded("threads can't be followed", result);
	if (torsh_config.is_dormant && is_first)
		return become_dormant();
	if (!is_first && strlen(torsh_config.session) < sizeof(torsh_session_socket))
		strcpy(torsh_session_socket, torsh_config.session);
	result = start_recording();
	if (result && torsh_config.is_dormant)
		result = become_dormant();
	if (result)
		return result;
	if (is_path_unfit())
		torsh_channel_note(
			&torsh_process->channel,
			"programs that this one starts are not followed, and neither NVTX nor ITT is recorded: the "
			"agent's path has a blank or a colon, which LD_PRELOAD can't hold");
	else
		prepare_environment(torsh_session_socket);
	return 0;
}

void torsh_agent_turn_off(void)
{
	torsh_config.activities = 0;
	atomic_store_explicit(&torsh_pause, &paused_for_good, memory_order_relaxed);
	torsh_config.heap_rate = 0;
	atomic_store_explicit(&torsh_agent_state, AGENT_OFF, memory_order_release);
}

/* Start in this thread, which is in no hook then, if the process is in that state. */
static void start_from(int expected, int (*begin)(void))
{
	int result;

	if (!atomic_compare_exchange_strong(&torsh_agent_state, &expected, AGENT_STARTING))
		return;
	torsh_producer_self = &torsh_producer_quiet;
	result = begin();
	if (!result) {
		torsh_agent_has_begun = true;
		start_stack_checks();
		if (torsh_config.activities & ACTIVITY_HEAP)
			torsh_callbacks.heap_starts();
		if (torsh_config.activities & ACTIVITY_MPI)
			torsh_callbacks.mpi_starts();
		if (torsh_config.activities & ACTIVITY_NCCL)
			torsh_callbacks.nccl_starts();
		if (torsh_config.activities & ACTIVITY_BLAS)
			torsh_callbacks.blas_starts();
		if (torsh_config.activities & ACTIVITY_WAITS)
			torsh_callbacks.waits_start();
		if (torsh_config.requests)
			torsh_callbacks.requests_start();
	}
	torsh_producer_self = &torsh_producer_not_created;
	if (result == -EINPROGRESS)
		atomic_store_explicit(&torsh_agent_state, AGENT_DORMANT, memory_order_release);
	else if (result)
		torsh_agent_turn_off();
	else
		atomic_store_explicit(&torsh_agent_state, AGENT_ON, memory_order_release);
}

bool torsh_agent_rest(void)
{
	torsh_counters = torsh_spare_counters;
	*torsh_session_socket = '\0';
	torsh_environment_set_session("");
	if (torsh_dormant_rest()) {
		torsh_agent_turn_off();
		return false;
	}
	atomic_store_explicit(&torsh_agent_state, AGENT_DORMANT, memory_order_release);
	return true;
}

void torsh_agent_start(void)
{
	int saved = errno;

	/*
	 * The C library allocates its message about a missing definition, before 2.34 by malloc: no
	 * wrapper can be called yet.
	 */
	if (!torsh_next_resolve())
		return;
	start_from(AGENT_UNSTARTED, start);
	errno = saved;
}

int torsh_agent_begin_armed(int (*begin)(void))
{
	const char *session = torsh_dormant_session();
	int result;

	torsh_config.began_late = true;
	torsh_dormant_starts();
	if (session && strlen(session) < sizeof(torsh_session_socket))
		strcpy(torsh_session_socket, session);
	result = torsh_agent_is_sandboxed() ? -EACCES : begin();
	if (!result) {
		torsh_channel_note(&torsh_process->channel,
				   "it was dormant until it was armed: what came before is not "
				   "recorded, and blocks from then are of unknown origin");
		torsh_environment_set_session(torsh_session_socket);
	}
	torsh_dormant_started(result ? NULL : torsh_session_socket);
	return result;
}

static int start_armed(void)
{
	return torsh_agent_begin_armed(start_recording);
}

void torsh_agent_arm(void)
{
	int saved = errno;

	if (torsh_dormant_is_armed()) {
		start_from(AGENT_DORMANT, start_armed);
		if (atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON)
			torsh_callbacks.armed();
	}
	errno = saved;
}

/* Another thread of the parent was about to rest, or to begin again, which nobody does here. */
static bool is_forked_between(void)
{
	return torsh_agent_has_begun && torsh_config.is_dormant &&
	       atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_STARTING;
}

void torsh_agent_created(void)
{
	bool is_between = is_forked_between();

	if (!is_between && !torsh_agent_is_dormant())
		return;
	torsh_unloading_forked();
	torsh_thread_forked();
	if (is_between && torsh_config.follow)
		torsh_agent_rest();
	else if (torsh_config.follow)
		torsh_dormant_forked();
	else
		torsh_agent_turn_off();
}

/* in the parent, before the last fork that the agent saw; 0: none */
static _Thread_local uint32_t fork_request;

/* Whether the child rests: the session that it was forked in has been stopped since. */
static bool rests_in_child(const struct channel *parent, int error)
{
	bool has_ended = error == -ENOENT ||
			 atomic_load_explicit(&parent->header->is_paused, memory_order_relaxed) ==
				 CHANNEL_ENDED;

	return has_ended && torsh_config.follow && torsh_config.is_dormant &&
	       !torsh_agent_is_sandboxed() && torsh_agent_rest();
}

void torsh_agent_restart_in_child(void)
{
	struct channel parent = torsh_last_channel;
	int result = -ECANCELED;
	bool is_sandboxed;

	torsh_producer_self = &torsh_producer_quiet;
	if (torsh_config.follow && parent.header && !torsh_agent_is_sandboxed())
		torsh_status_await(parent.header, fork_request);
	fork_request = 0;
	is_sandboxed = torsh_agent_is_sandboxed();
	torsh_unloading_forked();
	torsh_thread_forked();
	torsh_counters = torsh_spare_counters;
	torsh_stamp_use(NULL, NULL, torsh_producer_clock_is_monotonic);
	atomic_store_explicit(&torsh_pause, &torsh_never_paused, memory_order_relaxed);
	atomic_store_explicit(&torsh_recording_pause, &torsh_never_paused, memory_order_relaxed);
	if (torsh_config.follow)
		result = is_sandboxed ? -EACCES : torsh_agent_open_channel(&parent);
	/* It keeps its parent's channel, whose tables it copies once it is armed. */
	if (result && rests_in_child(&parent, result)) {
		torsh_producer_self = &torsh_producer_not_created;
		return;
	}
	/* To be armed for itself after a stop. */
	if (!result)
		torsh_dormant_forked();
	if (result) {
		torsh_agent_turn_off();
		torsh_last_channel = (struct channel){.fd = -1};
	}
	/* It has no report of its own: its parent's has the reason. */
	if (result && result != -ECANCELED)
		atomic_fetch_add_explicit(&parent.header->counters[COUNTER_children_lost], 1,
					  memory_order_relaxed);
	if (result && result != -ECANCELED && !is_sandboxed)
		torsh_message("a forked child is not recorded: ", torsh_text_reason(result), NULL);
	/* A filter may forbid closing the parent's descriptor: it stays open then. */
	if (is_sandboxed)
		torsh_agent_forbid_start();
	else
		torsh_channel_unmap(&parent);
	torsh_producer_self = &torsh_producer_not_created;
}

void torsh_agent_forking(void)
{
	if (torsh_config.follow && !torsh_agent_is_sandboxed() &&
	    atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON &&
	    torsh_process->pid)
		fork_request = torsh_status_request(torsh_process->channel.header);
}

/* Registered before the program's own handlers and the loader's, so it runs after all of them. */
static void at_exit(int status, void *unused)
{
	(void)unused;
	torsh_agent_exiting(status, EXIT_BY_EXIT);
}

/* By the linker: the ends of the library's data in its file, and of all. */
extern char _edata[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));

/*
 * Make the library's data that are not in its file an area of their own. The kernel joins them with
 * what the loader maps right behind, the first thread's storage, where the program's pointers are.
 */
static void set_data_apart(void)
{
	uintptr_t page = getauxval(AT_PAGESZ);
	uintptr_t begin = ((uintptr_t)_edata + page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)_end + page - 1) & ~(page - 1);

	if (begin < end)
		torsh_sys_mark((void *)begin, end - begin);
}

__attribute__((constructor)) static void construct(void)
{
	struct producer *self;

	(void)torsh_next_resolve();
	/*
	 * Opened by NVTX or ITT in a program without the preload: its wrappers interpose nothing
	 * there.
	 */
	if (!torsh_next_is_preloaded())
		atomic_store_explicit(&torsh_agent_state, AGENT_OFF, memory_order_release);
	torsh_agent_start();
	if (atomic_load_explicit(&torsh_agent_state, memory_order_relaxed) != AGENT_ON &&
	    !torsh_agent_is_dormant())
		return;
	set_data_apart();
	self = torsh_producer_self;
	torsh_producer_self = &torsh_producer_quiet;
	on_exit(at_exit, NULL);
	torsh_user_signals_start();
	torsh_producer_self = self;
	/*
	 * The first thread's producer takes system calls: open it before the program may forbid
	 * them.
	 */
	self = torsh_producer_enter();
	if (self)
		torsh_producer_leave(self);
}
