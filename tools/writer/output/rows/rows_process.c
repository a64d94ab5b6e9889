/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The row of a process: its identity, how it ended, and its counters. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tools/writer/output/rows/rows_parts.h"

static void put_counters(Torsh__Process *row, struct rows_memory *memory,
			 const struct channel_header *header)
{
	static const char *const names[] = {
#define COUNTER(name, kind, text) #name,
#include "agent/wire/counters.def"
#undef COUNTER
	};
	Torsh__Counter *counters = torsh_rows_memory(memory, N_COUNTERS, sizeof(*counters));

	ROWS_COLUMN(memory, row, counters, N_COUNTERS);
	for (int i = 0; i < N_COUNTERS; i++) {
		torsh__counter__init(&counters[i]);
		counters[i].name = (char *)(uintptr_t)names[i];
		ROWS_SET(&counters[i], value,
			 atomic_load_explicit(&header->counters[i], memory_order_relaxed));
		row->counters[i] = &counters[i];
	}
}

static char *text_of(struct rows_memory *memory, const struct target *target,
		     struct channel_text text, int separator, size_t *n)
{
	return torsh_rows_keep(memory, torsh_view_text(&target->view, text, separator, n));
}

/* The number of strings in n bytes, each with its NUL. */
static size_t count_strings(const char *bytes, size_t n)
{
	size_t n_strings = 0;

	for (size_t i = 0; i < n; i += strlen(bytes + i) + 1)
		n_strings++;
	return n_strings;
}

static void split_strings(char **strings, char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i += strlen(bytes + i) + 1)
		*strings++ = bytes + i;
}

static void put_texts(Torsh__Process *row, struct rows_memory *memory, const struct target *target)
{
	struct channel_text notes = {
		.length = atomic_load_explicit(&target->view.header->notes_length,
					       memory_order_acquire),
	};
	char *text;
	size_t n, n_notes;

	row->program = text_of(memory, target, target->start.program, -1, &n);
	row->allocator = text_of(memory, target, target->start.allocator, -1, &n);
	if (target->start.rank.length)
		row->rank = text_of(memory, target, target->start.rank, -1, &n);
	text = text_of(memory, target, target->start.arguments, '\0', &n);
	ROWS_COLUMN(memory, row, arguments, count_strings(text, n));
	split_strings(row->arguments, text, n);
	notes.length = notes.length < CHANNEL_NOTES_BYTES ? notes.length : CHANNEL_NOTES_BYTES;
	text = text_of(memory, target, notes, '\n', &n);
	n_notes = count_strings(text, n);
	/* The extra strings are for torsh_rows_put_lsan and put_passed. */
	ROWS_COLUMN(memory, row, notes, n_notes + PROCESS_STATE_NOTES_MAX + 2);
	split_strings(row->notes, text, n);
	row->n_notes = n_notes;
	for (uint32_t i = 0; i < target->state.n_notes; i++)
		row->notes[row->n_notes++] = target->state.notes[i];
}

bool torsh_rows_put_wait_status(Torsh__Process *row, int status)
{
	if (status < 0)
		return false;
	row->end = WIFSIGNALED(status) ? TORSH__PROCESS__END_KIND__SIGNALED
				       : TORSH__PROCESS__END_KIND__EXITED;
	ROWS_SET(row, end_code, WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return true;
}

/* How the process ended: from the kernel, else from its last events. */
static void put_end(Torsh__Process *row, const struct target *target)
{
	const struct process_state *state = &target->state;
	bool is_executing = torsh_process_state_is_executing(state);
	int fate = atomic_load_explicit(&target->fate, memory_order_relaxed);

	row->has_end = true;
	row->end = TORSH__PROCESS__END_KIND__RUNNING;
	/* A process that announced its exit may be written before it exits. */
	if ((!target->is_drained && !(target->end_ns && state->has_exited)) || fate == TARGET_LEFT)
		return;
	ROWS_SET(row, ran_exit_handlers, state->has_exited && state->exit_how == EXIT_BY_EXIT);
	/* After an exec, the end of the process is not that of this image. */
	ROWS_SET(row, end_ns,
		 is_executing ? torsh_clock_to_ns(&state->clock, state->exec_stamp)
			      : target->end_ns);
	if (fate == TARGET_EXECUTED || is_executing) {
		row->end = TORSH__PROCESS__END_KIND__EXECUTED;
	} else if (torsh_rows_put_wait_status(row, target->wait_status)) {
		return;
	} else if (state->has_exited && state->exit_how != EXIT_BY_ABORT) {
		row->end = TORSH__PROCESS__END_KIND__EXITED;
		ROWS_SET(row, end_code, state->exit_status & 0xff);
	} else {
		row->end = TORSH__PROCESS__END_KIND__VANISHED;
	}
}

static void put_memory(Torsh__Process *row, const struct target *target)
{
	static char watched[] =
		"VmHWM of /proc/PID/status, last read shortly before it ended: at least";
	static char at_exit[] = "VmHWM of /proc/PID/status, read when it exited";
	static char unread[] = "not known: /proc/PID/status could not be read while it ran";
	uint64_t last = atomic_load_explicit(&target->exit_peak_bytes, memory_order_relaxed);
	uint64_t peak_bytes = last > target->rss_peak_bytes ? last : target->rss_peak_bytes;

	row->rss_peak_source = last ? at_exit : peak_bytes ? watched : unread;
	if (peak_bytes)
		ROWS_SET(row, rss_peak_bytes, peak_bytes);
}

static void put_usage(Torsh__Process *row, struct rows_memory *memory, const struct target *target)
{
	const struct process_usage *usage = &target->usage;
	struct process_faults faults = torsh_process_usage_faults(usage);
	uint64_t wait_ns;

	if (!usage->is_sampled)
		return;
	row->usage = torsh_rows_memory(memory, 1, sizeof(*row->usage));
	torsh__usage__init(row->usage);
	ROWS_SET(row->usage, minor_faults, faults.minor);
	ROWS_SET(row->usage, major_faults, faults.major);
	ROWS_SET(row->usage, swap_peak_bytes, usage->swap_peak_bytes);
	ROWS_SET(row->usage, cpus, usage->n_cpus);
	ROWS_SET(row->usage, sampled_ns, usage->sampled_ns);
	ROWS_SET(row->usage, oversubscribed_ns, usage->oversubscribed_ns);
	ROWS_SET(row->usage, runnable_ns, usage->runnable_ns);
	if (torsh_process_usage_wait(usage, &wait_ns))
		ROWS_SET(row->usage, cpu_wait_ns, wait_ns);
	if (usage->supply.has_throttling) {
		ROWS_SET(row->usage, cpu_throttled_ns, usage->supply.throttling.ns);
		ROWS_SET(row->usage, cpu_throttled_periods, usage->supply.throttling.throttled);
		ROWS_SET(row->usage, cpu_periods, usage->supply.throttling.periods);
	}
	if (usage->supply.has_stolen)
		ROWS_SET(row->usage, cpu_stolen_ns, usage->supply.stolen_ns);
}

static void put_counts(Torsh__Process *row, const struct target *target)
{
	struct target_counts counts = torsh_target_counts(target);

	ROWS_SET(row, produced, counts.produced);
	ROWS_SET(row, delivered, counts.delivered);
	ROWS_SET(row, dropped, counts.dropped);
	ROWS_SET(row, uncommitted, counts.uncommitted);
	ROWS_SET(row, ring_bytes_read, counts.ring_bytes);
	ROWS_SET(row, waited_ns, counts.waited_ns);
}

/* A note of what a flight recorder let pass. */
static void put_passed(Torsh__Process *row, struct rows_memory *memory,
		       const struct timeline_passed *passed)
{
	char *note;

	if (!passed->n_events)
		return;
	if (asprintf(&note,
		     "a flight recorder: what it did before %.1f s has passed (%" PRIu64
		     " events of operators, ranges and devices); memory is that of the whole run",
		     (double)passed->from_ns / 1e9, passed->n_events) >= 0)
		row->notes[row->n_notes++] = torsh_rows_keep(memory, note);
}

void torsh_rows_put_process(Torsh__Process *row, struct rows_memory *memory,
			    const struct target *target)
{
	static char tsc[] = "tsc", monotonic[] = "monotonic";

	ROWS_SET(row, process, target->number);
	ROWS_SET(row, pid, (uint32_t)target->pid);
	ROWS_SET(row, parent_pid, target->parent_pid);
	ROWS_SET(row, forked_from, target->parent_number);
	ROWS_SET(row, executed_from, target->former_number);
	if (target->state.tables->owner != target->number &&
	    !(target->rows && target->rows->is_alone))
		ROWS_SET(row, tables_of, target->state.tables->owner);
	ROWS_SET(row, start_ns, target->state.clock.start_ns);
	row->clock = target->state.clock.rate ? tsc : monotonic;
	put_texts(row, memory, target);
	torsh_rows_put_identity(row, memory, target);
	torsh_rows_put_lsan(row, target);
	put_end(row, target);
	put_counters(row, memory, target->view.header);
	put_counts(row, target);
	torsh_rows_put_losses(row, memory, target);
	put_memory(row, target);
	put_usage(row, memory, target);
	put_passed(row, memory, &target->state.passed);
}
