/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which threads believe that they have blocked the sampler's signal. They have not: it would stay
 * pending, and a thread that waits for any signal would get it. A program that names the signal
 * itself, not with all others, gets it: the sampler moves to another one.
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/producer/producer.h"
#include "collectors/cpu/cpu_sampler.h"
#include "collectors/cpu/cpu_timers.h"
#include "shim/hooks.h"
#include "shim/libc/next.h"

bool torsh_cpu_masks_is_blocked(void)
{
	return torsh_cpu_seems_blocked;
}

void torsh_cpu_thread_starts(bool is_blocked)
{
	/* The thread's producer begins its samples. */
	struct producer *producer = torsh_producer_enter();

	if (producer)
		torsh_producer_leave(producer);
	torsh_cpu_seems_blocked = is_blocked;
}

/* Whether a set that has the signal has so many others that it stands for all. */
static bool is_of_all(const sigset_t *set)
{
	int n = 0, n_all = 0;

	for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++, n_all++)
		n += sigismember(set, signal) == 1;
	return n >= n_all / 2;
}

/* Whether the set has the sampler's signal, which it keeps. */
static bool has_ours(const sigset_t *set)
{
	int signal = torsh_cpu_timers_signal();

	if (!signal || !set || sigismember(set, signal) != 1)
		return false;
	if (is_of_all(set))
		return true;
	torsh_cpu_sampler_give_way();
	return false;
}

/* Copy the set without the signal. */
static void leave_out(const sigset_t *set, sigset_t *changed)
{
	*changed = *set;
	sigdelset(changed, torsh_cpu_timers_signal());
}

bool torsh_cpu_masking(struct cpu_masking *masking, int how, const sigset_t *set, sigset_t *changed)
{
	bool has;

	if (!torsh_cpu_timers_signal())
		return false;
	has = how == SIG_UNBLOCK ? set && sigismember(set, torsh_cpu_timers_signal()) == 1
				 : has_ours(set);
	*masking = (struct cpu_masking){.was_blocked = torsh_cpu_seems_blocked,
					.is_blocked = torsh_cpu_seems_blocked,
					.is_changed = has && how != SIG_UNBLOCK};
	if (set && how == SIG_SETMASK)
		masking->is_blocked = has;
	else if (has)
		masking->is_blocked = how == SIG_BLOCK;
	if (masking->is_changed)
		leave_out(set, changed);
	return true;
}

void torsh_cpu_masked(const struct cpu_masking *masking, sigset_t *old)
{
	torsh_cpu_seems_blocked = masking->is_blocked;
	if (old && masking->was_blocked && torsh_cpu_timers_signal())
		sigaddset(old, torsh_cpu_timers_signal());
}

const sigset_t *torsh_cpu_waiting(const sigset_t *set, sigset_t *changed)
{
	if (!has_ours(set))
		return set;
	leave_out(set, changed);
	return changed;
}

void torsh_cpu_pending(sigset_t *set)
{
	if (torsh_cpu_timers_signal())
		sigdelset(set, torsh_cpu_timers_signal());
}

void torsh_cpu_masks_for_child(bool begins)
{
	sigset_t ours;

	if (!torsh_cpu_seems_blocked || !torsh_cpu_timers_signal())
		return;
	sigemptyset(&ours);
	sigaddset(&ours, torsh_cpu_timers_signal());
	torsh_next.pthread_sigmask(begins ? SIG_BLOCK : SIG_UNBLOCK, &ours, NULL);
}
