/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The internals of the drain, shared by drain.c, drain_targets.c and drain_requests.c. All
 * functions here run on the drain thread.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_DRAIN_STATE_H
#define TORSH_WRITER_THREADS_DRAIN_DRAIN_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "tools/writer/budget/memory_limit.h"
#include "tools/writer/budget/shortage.h"
#include "tools/writer/clocks/clock_probes.h"
#include "tools/writer/fold/session_peak.h"
#include "tools/writer/input/fork_ancestry.h"
#include "tools/writer/input/pending_children.h"
#include "tools/writer/input/status_reader.h"
#include "tools/writer/output/checkpoints.h"
#include "tools/writer/output/symbol_book.h"
#include "tools/writer/census/census_watch.h"
#include "tools/writer/residency/residency.h"
#include "tools/writer/threads/drain/drain.h"
#include "tools/writer/threads/drain/file_calls.h"
#include "tools/writer/threads/drain/out_of_memory.h"
#include "tools/writer/threads/drain/pace.h"
#include "tools/writer/threads/drain/requests.h"
#include "tools/writer/threads/drain/session.h"
#include "tools/writer/threads/mailbox.h"

enum drain_stop { DRAIN_RUNS, DRAIN_STOPS, DRAIN_STOPS_COMPLETE };

struct drain {
	struct drain_options options;
	pthread_t thread;
	struct mailbox mailbox;
	struct status_reader *status_reader;
	struct requests requests; /* any thread may use its queue, only the drain thread the rest */
	struct pending_children pending_children;
	_Atomic uint64_t n_finished;
	_Atomic bool had_children; /* stored before n_finished moves */
	_Atomic bool is_keeping; /* a copy is being written */
	_Atomic bool is_memory_short; /* too little is left: the writer ends */
	_Atomic int stop; /* enum drain_stop */

	/* Used only by the drain thread. */
	struct session session;
	struct checkpoints checkpoints;
	struct symbol_book *book;
	struct fork_ancestry ancestry;
	struct session_peak session_peak;
	struct unfollowed_list unfollowed_list;
	struct out_of_memory out_of_memory;
	struct file_calls file_calls;
	struct keeps keeps;
	struct program_tables_set tables;
	struct target **targets;
	uint32_t n_targets;
	size_t target_capacity;
	struct memory_limit memory_limit;
	struct shortage shortage;
	struct clock_probes *clocks; /* NULL: not asked for */
	bool is_clock_trouble_said;
	struct pace pace;
	struct residency_pace residency_pace;
	struct census_pace census_pace;
	struct device_users *device_users; /* NULL: no driver was queried, or it failed to start */
	bool has_device_users; /* that was tried */
	struct traffic_meter *traffic; /* NULL: no process has counters, or it failed to start */
	bool has_traffic; /* that was tried */
	bool is_traffic_said; /* how it is counted is in the recording */
	uint64_t next_memory_check_ns;
	/* the number of the first process while it waits at its exit; 0: it does not */
	uint32_t exiting;
	bool has_replied_to_exit;
	/* waits until the blocks that it is about are judged; NULL: there is none */
	struct queued_request *to_judge;
	uint32_t judge_number; /* of the last one */
	/* a target's blocks are being judged, or its memory accounted for: as of the last pass */
	bool is_judging;
	struct summary summary;
};

/* Begin the targets that the control thread has handed over. */
void torsh_drain_take_targets(struct drain *drain);

/* Start to compare clocks with those of other hosts, if that is asked for: the session begins. */
void torsh_drain_begin_clocks(struct drain *drain);

/* A target's process may know the place at which clocks are compared. */
void torsh_drain_see_clocks(struct drain *drain, const struct target *target);

/* Write what was learned since the last time. */
void torsh_drain_write_clocks(struct drain *drain, bool is_last);

/* The target ends: note in its row why clocks were not compared. */
void torsh_drain_note_clocks(struct drain *drain, struct target *target);

/* Target number i is completely folded: write its final rows and destroy it. */
void torsh_drain_finish_target(struct drain *drain, uint32_t i);

/*
 * Returns true if the target's parent may still report the fork. Only for a limited time, because
 * the parent may be stopped.
 */
bool torsh_drain_waits_for_parent(const struct target *target, uint64_t now_ns);

/* Start the requests that can be started. */
void torsh_drain_take_requests(struct drain *drain);

/* Answer the request that is due. */
void torsh_drain_answer(struct drain *drain);

/* The target may wait where its exit begins: judge its blocks, and answer. */
void torsh_drain_check_exit_begin(struct drain *drain, struct target *target);

/* A request may wait for the verdicts on the target's blocks: judge them. */
void torsh_drain_check_judged(struct drain *drain, struct target *target);

/*
 * The target may wait at its exit: judge its blocks, and answer; queue an internal request if it is
 * the first process.
 */
void torsh_drain_check_exit_wait(struct drain *drain, struct target *target);

/* Have others look who uses the devices, if the target queried the driver. */
void torsh_drain_check_devices(struct drain *drain, struct target *target);

/* Write what they found. is_end: wait for the last look. */
void torsh_drain_write_devices(struct drain *drain, bool is_end);

/* Have the machine's memory controllers counted, if the target has counters: writer/traffic. */
void torsh_drain_check_traffic(struct drain *drain, struct target *target);

/* Write what they counted since the last time. is_end: count once more. */
void torsh_drain_write_traffic(struct drain *drain, bool is_end);

/* Account for the target's resident memory if that is due. */
void torsh_drain_check_residency(struct drain *drain, struct target *target, uint64_t now_ns);

/* Make the account of a target whose memory was looked at at its exit; it may have ended. */
void torsh_drain_account_exit(struct drain *drain, struct target *target);

/* Queue an internal request if the target waits for the answer to a call by torsh.h. */
void torsh_drain_check_call(struct drain *drain, struct target *target);

/* Let the exiting process continue if the control thread has passed the text that it prints. */
void torsh_drain_send_exit_reply(struct drain *drain);

/* An allocator of the target's framework ran out of memory: record what the target holds. */
void torsh_drain_keep_out_of_memory(struct drain *drain, struct target *target);

#endif
