/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One process image that sent its hello: its channel, the ring consumers of its slots, how it lives
 * and ends, and the process state that its events are folded into. Created by the control thread;
 * owned by the drain thread from torsh_drain_add on, except for `fate`. target_parts.h lists the
 * files.
 */
#ifndef TORSH_WRITER_INPUT_TARGET_H
#define TORSH_WRITER_INPUT_TARGET_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/store/free_extents.h"
#include "tools/writer/fold/memory_windows.h"
#include "tools/writer/fold/process_state.h"
#include "tools/writer/input/channel_view.h"
#include "tools/writer/input/ring_consumer.h"
#include "tools/writer/usage/process_usage.h"

enum target_fate {
	TARGET_LIVES,
	TARGET_DIED, /* its pidfd became readable */
	TARGET_EXECUTED, /* another image of the same process has sent its hello */
	/* the writer has to end: takes what is in the rings and waits for nothing more */
	TARGET_LEFT,
};

struct process_status;
struct reachability;
struct residency;
struct census_watch;

/* Exact counts where blocks are sampled, from struct heap_counts. */
struct target_heap_counts {
	uint64_t allocs, alloc_bytes, frees;
	uint64_t size_blocks[CHANNEL_SIZE_CLASSES], size_bytes[CHANNEL_SIZE_CLASSES];
};

struct target_slot {
	const uint8_t *ring, *large; /* mapped at the first use */
	uint64_t consumed; /* over all uses */
	/* of the slot's heap_counts, when its former uses had ended */
	uint64_t former_allocs, former_alloc_bytes, former_frees;
	struct ring_consumer *consumer; /* NULL: not in use */
};

struct target_counts {
	uint64_t produced, delivered, dropped, uncommitted;
	uint64_t damaged; /* part of dropped: were on rings but invalid */
	uint64_t ring_bytes, waited_ns;
};

/* What a forked process inherited at its start. */
struct inheritance {
	bool is_fork;
	bool is_settled; /* nothing more can become known; also set without a fork */
	bool has_blocks, has_bytes; /* the values below are known; else they are 0 */
	uint64_t blocks, bytes;
};

#define TARGET_SPARE 32u

/*
 * The leak suppressions in the program's own file, once that is among its modules; see rows_lsan.c.
 */
struct target_lsan {
	bool is_known, is_unread;
	char *suppressions; /* NULL: none */
};

struct target {
	struct channel_view view;
	struct channel_header start; /* as it was at the hello */
	pid_t pid; /* in the writer's namespace, from the kernel */
	/* each may be -1: the process was gone when it was opened */
	int pidfd, status_fd, stat_fd;
	/*
	 * enum target_fate: stored by the control thread, which does not use the target afterwards
	 */
	_Atomic int fate;

	/*
	 * its clock differs from the writer's, e.g. in a time namespace: order.h's bounds do not
	 * apply
	 */
	bool is_clock_foreign;
	uint32_t number; /* of the process image in the session: 1, 2, ... in the order of hellos */
	uint32_t parent_number; /* of the process that it was forked from; 0: unknown */
	uint32_t former_number; /* of the image that it was before an exec; 0: unknown */
	/*
	 * parent's pid at the fork, in the writer's namespace; later adoption is ignored; 0:
	 * unknown
	 */
	uint32_t parent_pid;
	struct inheritance inheritance;
	struct target_slot *slots;
	struct ring_consumer **consumers; /* in use, in any order */
	uint32_t n_consumers;
	struct ring_consumer *spare[TARGET_SPARE]; /* of slots that ended */
	uint32_t n_spare;
	uint32_t n_closed; /* closed ring consumers in the last pass */
	uint32_t n_seen; /* all slots that were ever used are below this */
	struct process_state state;
	struct target_counts ended; /* counts of finished uses */
	uint64_t limit; /* bound of threads that did not exist yet in the last pass */
	uint64_t rss_peak_bytes; /* 0: never read */
	/* read by the status reader while the target waited at its exit; 0: not read */
	_Atomic uint64_t exit_peak_bytes;
	uint64_t last_rss_ns, watch_every_ns;
	struct process_usage usage;
	uint32_t n_leaving; /* passes since TARGET_LEFT */
	/* rings are not emptied: threads with a full ring wait until the writer has ended */
	bool is_frozen;
	/* events after this stamp are not folded: torsh_target_hold; ORDER_NO_BOUND: not held */
	uint64_t fold_until;
	uint64_t account_until; /* likewise: torsh_target_hold_account */
	bool is_drained; /* it has ended, and everything is folded */
	int wait_status; /* as of wait(), once is_drained; -1: unknown */
	uint64_t end_monotonic_ns; /* when the control thread saw its end: stored before fate */
	uint64_t end_ns; /* the same on the session's clock */
	struct rows_state *rows;
	struct target_lsan *lsan;
	struct memory_windows windows; /* that the program opens by torsh.h */
	uint32_t n_calls_taken; /* of the header's calls */
	bool is_calling; /* the last one taken is not answered yet */
	uint32_t n_switch_signals, n_keep_signals; /* of the header's, as last seen */
	struct reachability *reachability; /* verdicts on its blocks; NULL: not judged yet */
	struct census_watch *census; /* of its small objects of Python; NULL: not looked at yet */
	struct extent library_calls; /* of the rows of calls of BLAS, in the file */
	struct residency *residency; /* who owns its resident memory; NULL: not looked at yet */
	uint64_t n_written; /* number of events that were folded at the last checkpoint */
};

/*
 * Attach to the channel behind fd. On success the target owns fd and pidfd. pid is the sender's;
 * pidfd may be -1 if the process is already gone: the contents of its channel are still there.
 * Returns 0 or -errno; -EPROTO if the channel was refused.
 */
int torsh_target_create(struct target **target, int fd, pid_t pid, int pidfd);

/* Free the target and close its descriptors. */
void torsh_target_destroy(struct target *target);

/*
 * Begin its process state, with the tables of its program in the set, or its own if that is NULL.
 * Called once, by the drain thread.
 */
void torsh_target_begin(struct target *target, const struct clock_conversion *clock,
			struct program_tables_set *set);

struct target_pass {
	uint64_t n_copied; /* bytes */
	uint64_t n_folded; /* events */
	uint32_t n_ended; /* slots that were returned */
	uint32_t fill_percent; /* of the fullest ring, when it was read */
};

/* Take the rings' contents and fold what order allows, about `budget` events at most. */
struct target_pass torsh_target_drain(struct target *target, uint64_t now_ns, uint64_t budget);

/*
 * Returns the stamp up to which all events are folded: no other event arrives below it, except
 * those in Heap.late_events.
 */
uint64_t torsh_target_bound(const struct target *target);

/*
 * Fold events up to the moment and no further, while rings are still emptied. Each hold needs a
 * torsh_target_release, because a held target does not end.
 */
void torsh_target_hold(struct target *target, const struct clock_instant *moment);

/* End the hold. */
void torsh_target_release(struct target *target);

/*
 * A hold of its own, apart from the others: until events up to the moment are folded, at which its
 * memory was looked at.
 */
void torsh_target_hold_account(struct target *target, const struct clock_instant *moment);
void torsh_target_release_account(struct target *target);
bool torsh_target_is_at_account(const struct target *target);

/* Returns true if everything that was stamped up to the moment of the hold is folded. */
bool torsh_target_is_at_hold(const struct target *target);

/*
 * Returns true if any ring has bytes, or a call waits. Called right before a sleep, after a full
 * fence.
 */
bool torsh_target_has_work(struct target *target);

/* Returns true if any ring is a quarter full, or a call waits. Called likewise. */
bool torsh_target_is_filling(struct target *target);

/*
 * Read the target's memory, and whether it has installed more seccomp filters, if the last read was
 * long ago. Returns the time of the next read.
 */
uint64_t torsh_target_watch(struct target *target, uint64_t now_ns);

/*
 * Set a flag in the header if status shows a filter that was not found harmless. harmless_filters
 * is the header's value from before the status was read; if it has changed meanwhile nothing is
 * done, because the two cannot be compared.
 */
void torsh_target_count_filters(const struct target *target, const struct process_status *status,
				uint64_t harmless_filters);

/*
 * Counts of all slots, including those in use: for a running target a snapshot in which produced is
 * what was seen. Events that the agent lost before they were in a ring count as produced and
 * dropped: produced = delivered + dropped.
 */
struct target_counts torsh_target_counts(const struct target *target);

/* Set *counts to the sum of all slots' heap_counts; all 0 where every block is sent. */
void torsh_target_count_heap(const struct target *target, struct target_heap_counts *counts);

/* Where blocks are sampled, set the ring consumer's counts of blocks to the exact ones. */
void torsh_target_count_thread(const struct target *target, struct ring_consumer *consumer);

/* Returns true if the agent or the writer lost anything. */
bool torsh_target_is_lossy(const struct target *target);

/* Set losses[] to the writer's losses so far, by kind. */
void torsh_target_losses(const struct target *target, uint64_t losses[N_WRITER_LOSSES]);

#endif
