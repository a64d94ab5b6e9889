/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One process image that sent its hello: its channel, its slots' ring consumers, how it lives and
 * ends, and the process state that all is folded into. Made by the control thread; from
 * torsh_drain_add on the drain thread's, but for `fate`.
 */
#ifndef TORSH_WRITER_INPUT_TARGET_H
#define TORSH_WRITER_INPUT_TARGET_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/writer/fold/attributed_frame.h"
#include "tools/writer/fold/process_state.h"
#include "tools/writer/input/channel_view.h"
#include "tools/writer/input/ring_consumer.h"

enum target_fate {
	TARGET_LIVES,
	TARGET_DIED, /* its pidfd became readable */
	TARGET_EXECUTED, /* another image of the same process sent its hello */
	/* the writer has to end: what is on the rings is taken, nothing more is waited for */
	TARGET_LEFT,
};

struct process_status;

struct target_slot {
	const uint8_t *ring, *large; /* mapped at their first use */
	uint64_t consumed; /* over all uses */
	struct ring_consumer *consumer; /* NULL: not in use */
};

struct target_counts {
	uint64_t produced, delivered, dropped, uncommitted;
	uint64_t damaged; /* of those dropped: they were on rings, and made no sense */
	uint64_t ring_bytes, waited_ns;
};

/* What a fork had of its parent's at its start. */
struct inheritance {
	bool is_fork;
	bool is_settled; /* nothing more can become known; set for a process that is no fork, too */
	bool has_blocks, has_bytes; /* these are known: else they are 0 */
	uint64_t blocks, bytes;
};

#define TARGET_SPARE 32u

/*
 * The leak suppressions in the program's own file, once that is among its modules:
 * tools/writer/output/rows/rows_lsan.c.
 */
struct target_lsan {
	bool is_known, is_unread;
	char *suppressions; /* NULL: none */
};

struct target {
	struct channel_view view;
	struct channel_header start; /* as it was at hello */
	pid_t pid; /* in our namespace, from the kernel */
	/* each may be -1: the process was gone when it was opened */
	int pidfd, status_fd, stat_fd;
	/* enum target_fate: stored by the control thread, which then forgets the target */
	_Atomic int fate;

	/* its clock is not ours, e.g. in a time namespace: order.h's bounds mean nothing */
	bool is_clock_foreign;
	uint32_t number; /* of the process image in the session: 1, 2, ... in the order of hellos */
	uint32_t parent_number; /* of the process that it is a fork of, 0: none */
	uint32_t former_number; /* of the image that it was before an exec, 0: none */
	/*
	 * when it was forked: what adopted it later doesn't count. In our namespace; 0: not known
	 */
	uint32_t parent_pid;
	struct inheritance inheritance;
	struct target_slot *slots;
	struct ring_consumer **consumers; /* those in use, in no order */
	uint32_t n_consumers;
	struct ring_consumer *spare[TARGET_SPARE]; /* of slots that ended */
	uint32_t n_spare;
	uint32_t n_closed; /* of the ring consumers, in the last pass */
	uint32_t n_seen; /* slots that were ever taken are below this */
	struct process_state state;
	struct target_counts ended; /* of slots' uses that are over */
	uint64_t limit; /* bound of threads that weren't there yet in the last pass */
	uint64_t rss_peak_bytes; /* 0: never read */
	/* as it waited at its exit: stored by the status reader; 0: not read */
	_Atomic uint64_t exit_peak_bytes;
	uint64_t last_rss_ns, watch_every_ns;
	uint32_t n_leaving; /* passes since TARGET_LEFT */
	/* rings are left as they are: threads that fill theirs wait until the writer has ended */
	bool is_frozen;
	/* nothing younger is folded: torsh_target_hold; ORDER_NO_BOUND: not held */
	uint64_t fold_until;
	bool is_drained; /* it has ended, and all was folded */
	int wait_status; /* as of wait(), once is_drained; -1: not known */
	uint64_t end_monotonic_ns; /* when the control thread saw its end: stored before fate */
	uint64_t end_ns; /* the same on the session's clock */
	struct rows_state *rows;
	struct target_lsan *lsan;
	struct attributed_frames attributed; /* of its stacks, once a client has requested them */
	uint64_t n_written; /* events that were folded at the last checkpoint */
};

/*
 * Attach to the channel behind fd, which becomes the target's as pidfd does, unless this fails. pid
 * is the sender's; pidfd may be -1: it is gone already, but what it left in the channel is there.
 * Returns 0 or -errno; -EPROTO when the channel was refused.
 */
int torsh_target_create(struct target **target, int fd, pid_t pid, int pidfd);

/* Free the target and close its descriptors. */
void torsh_target_destroy(struct target *target);

/* Begin its process state; called once, by the drain thread. */
void torsh_target_begin(struct target *target, const struct clock_conversion *clock);

struct target_pass {
	uint64_t n_copied; /* bytes */
	uint64_t n_folded; /* events */
	uint32_t n_ended; /* slots that were given back */
	uint32_t fill_percent; /* of the fullest ring, when it was looked at */
};

/* Take what the rings have and fold what order allows, about `budget` events at most. */
struct target_pass torsh_target_drain(struct target *target, uint64_t now_ns, uint64_t budget);

/*
 * Up to where its events were folded: no other comes with a stamp below this, but for those of
 * Heap.late_events.
 */
uint64_t torsh_target_bound(const struct target *target);

/*
 * Let it be folded up to the moment and no further, though rings are emptied: until
 * torsh_target_release, which every hold needs, as a target that is held doesn't end.
 */
void torsh_target_hold(struct target *target, const struct clock_instant *moment);

/* End the hold: all is folded again. */
void torsh_target_release(struct target *target);

/* Is everything folded that was stamped up to the moment of the hold? */
bool torsh_target_is_at_hold(const struct target *target);

/* Is anything on the rings? For the moment before a deep sleep. */
bool torsh_target_has_bytes(struct target *target);

/*
 * Read the target's memory, and whether it has put itself under more filters, if that was long ago.
 * Returns when that is to be done again.
 */
uint64_t torsh_target_watch(struct target *target, uint64_t now_ns);

/*
 * Set a flag in the header where status has a filter that it didn't find harmless.
 * harmless_filters: what the header had before the status was read; where that has changed
 * meanwhile nothing is done, as the two can't be compared.
 */
void torsh_target_count_filters(const struct target *target, const struct process_status *status,
				uint64_t harmless_filters);

/*
 * All slots, the ones in use included: of a running target an instant's view in which produced is
 * what was seen. What the agent lost before any ring had it is produced and dropped, too: produced
 * = delivered + dropped.
 */
struct target_counts torsh_target_counts(const struct target *target);

/* Was anything lost, an event or something else, by the agent or the writer? */
bool torsh_target_is_lossy(const struct target *target);

/* Set losses[] to the number of losses of each kind of the writer's so far. */
void torsh_target_losses(const struct target *target, uint64_t losses[N_WRITER_LOSSES]);

#endif
