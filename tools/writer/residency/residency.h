/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When a target's resident memory is accounted for: when the set has grown, when it has changed
 * since, and at its exit. Owned by the drain thread. Accounts in the run take at most a hundredth
 * of the time, and at first some milliseconds more, in which short programs end.
 */
#ifndef TORSH_WRITER_RESIDENCY_RESIDENCY_H
#define TORSH_WRITER_RESIDENCY_RESIDENCY_H

#include "tools/store/free_extents.h"
#include "tools/writer/residency/account_take.h"
#include "tools/writer/residency/breaks/page_breaks.h"

/* The last one, and the highest one before it. */
enum { ACCOUNT_LAST, ACCOUNT_FORMER, N_ACCOUNTS };

/* Of one target. */
struct residency {
	struct account accounts[N_ACCOUNTS];
	bool is_there[N_ACCOUNTS], is_changed[N_ACCOUNTS]; /* since it was written */
	bool has_end; /* accounted for at the exit, or that was tried */
	struct extent extents[N_ACCOUNTS]; /* of what was written; owned by rows_residency.c */
	bool is_error_written;
	int error; /* why the last account was not taken; 0: it was */
	const char *problem; /* likewise; NULL: see error */
	uint64_t last_ns; /* of the last look; monotonic */
	/* a look in the run, which becomes an account when its moment is folded */
	bool is_looking;
	bool is_at_exit, is_exit_held; /* likewise at the exit */
	struct account_taking *taking; /* of the next; NULL: what is live was not collected */
	struct account taken;
	struct memory_look look;
	struct account begun; /* what was known then */
	struct page_runs inherited;
	bool has_inherited; /* it was read */
	struct page_breaks breaks; /* of what it inherited */
	/* its part of another process's sums, when that was read, and what it took */
	uint64_t rollup_rss_bytes, rollup_pss_bytes, rollup_ns, rollup_cost_ns;
};

/* What accounts may take, of all targets. */
struct residency_pace {
	uint64_t next_ns; /* no account in the run before that; monotonic */
	uint64_t begin_ns; /* when the first one was due; 0: none was */
	uint64_t cpu_ns; /* that those in the run took */
	uint64_t once_cpu_ns; /* what those at exits, and looks at forks, took */
};

/* Where an account is taken from, and when. */
struct residency_moment {
	struct target *target;
	bool is_first; /* the session began with it */
	struct target *const *targets; /* all that are being recorded */
	uint32_t n_targets;
	uint64_t at_ns, now_ns; /* session time, and monotonic */
	uint64_t left_bytes;
};

/* Returns whether an account is due in the run, or being taken. */
bool torsh_residency_is_due(const struct target *target, const struct residency_pace *pace,
			    uint64_t now_ns);

/*
 * Take an account in the run, in several calls: one looks at the process, and a later one knows
 * what was live then. Returns true if there has to be a further one soon.
 */
bool torsh_residency_watch(struct residency_pace *pace, const struct residency_moment *moment);

/* Give up the account that is being taken in the run; that of the exit stays. */
void torsh_residency_drop(struct target *target);

/*
 * The target waits at its exit: look at it for its last account, unless there is one from there.
 * is_held: its threads are stopped, and its events folded.
 */
void torsh_residency_exit_look(struct residency_pace *pace, const struct residency_moment *moment,
			       bool is_held);

/*
 * Collect for that account what is live, if there was such a look. The target may have gone on, but
 * none of its events may be folded in between.
 */
void torsh_residency_exit_collect(const struct residency_moment *moment);

/* Make it of what was, or is now, collected. The target may have ended. */
void torsh_residency_exit_end(struct residency_pace *pace, const struct residency_moment *moment);

/* The target begins: read what it inherited if it is a fork. */
void torsh_residency_begin(struct residency_pace *pace, struct target *target, uint64_t now_ns);

/* Count what was sampled of a fork; costs nothing if that is nothing. */
void torsh_residency_sample(struct target *target);

/* Free it; NULL is ignored. */
void torsh_residency_destroy(struct residency *residency);

#endif
