/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/live/stacks/native_stacks.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOP_NS 100000000 /* that a thread may take to stop */
#define STEP_NS 50000

/* Nothing is searched for beside the modules themselves, above all not on the network. */
static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			     const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc;
	(void)found;
	return -1;
}

Dwfl *torsh_native_open(uint32_t pid, const char **reason)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
						 .find_debuginfo = find_no_debuginfo};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	*reason = "its modules can't be read";
	if (!dwfl)
		return NULL;
	if (!dwfl_linux_proc_report(dwfl, (pid_t)pid) && !dwfl_report_end(dwfl, NULL, NULL) &&
	    !dwfl_linux_proc_attach(dwfl, (pid_t)pid, true))
		return dwfl;
	dwfl_end(dwfl);
	return NULL;
}

static const char *reason_of(int error)
{
	return error == EPERM
		       ? "the system forbids ptrace here (kernel.yama.ptrace_scope, or a debugger has the process)"
	       : error == ESRCH ? "the thread has ended"
				: "the thread can't be stopped";
}

/* Returns a status of waitpid, or a negative value. */
static int await_stop(pid_t tid)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	int status;

	for (int i = 0; i < STOP_NS / STEP_NS; i++) {
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

		if (got == tid)
			return WIFSTOPPED(status) ? status : -1;
		if (got < 0 && errno != EINTR)
			return -1;
		nanosleep(&step, NULL);
	}
	return -1;
}

struct walk {
	struct native_frame *frames;
	size_t n;
};

static int take_frame(Dwfl_Frame *state, void *context)
{
	struct walk *walk = context;
	bool is_activation;
	Dwarf_Addr pc;

	if (walk->n == NATIVE_FRAMES_MAX || !dwfl_frame_pc(state, &pc, &is_activation))
		return DWARF_CB_ABORT;
	/* A return address may lie behind the function that called. */
	walk->frames[walk->n++].address = pc - !is_activation;
	return DWARF_CB_OK;
}

static uint64_t thread_pointer_of(pid_t tid)
{
#if defined(__x86_64__)
	struct user_regs_struct registers;

	return ptrace(PTRACE_GETREGS, tid, NULL, &registers) ? 0 : registers.fs_base;
#else
	(void)tid;
	return 0;
#endif
}

size_t torsh_native_take(Dwfl *dwfl, uint32_t tid, struct native_frame frames[NATIVE_FRAMES_MAX],
			 native_look *look, void *context, const char **reason)
{
	struct walk walk = {.frames = frames};
	int status;

	*reason = NULL;
	if (ptrace(PTRACE_SEIZE, (pid_t)tid, NULL, NULL)) {
		*reason = reason_of(errno);
		return 0;
	}
	ptrace(PTRACE_INTERRUPT, (pid_t)tid, NULL, NULL);
	status = await_stop((pid_t)tid);
	if (status < 0) {
		/* The kernel lets it go on when this process ends. */
		*reason = "the thread did not stop: it is in a system call that nothing interrupts";
		return 0;
	}
	if (dwfl_getthread_frames(dwfl, (pid_t)tid, take_frame, &walk))
		*reason = walk.n == NATIVE_FRAMES_MAX ? "it is deeper"
						      : "further frames have no unwind information";
	look(context, tid, thread_pointer_of((pid_t)tid));
	/* A signal that it was about to get is delivered when it goes on. */
	ptrace(PTRACE_DETACH, (pid_t)tid, NULL,
	       (void *)(intptr_t)(status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status)));
	return walk.n;
}
