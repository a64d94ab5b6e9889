/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/unfollowed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/input/process_info.h"
#include "tools/writer/output/rows/rows.h"

#define UNFOLLOWED_MAX 65536u /* per session; more are only counted */
#define SETTLE_NS UINT64_C(500000000) /* longer than an event stays in a ring */

static void destroy(struct unfollowed *unfollowed)
{
	if (unfollowed->pidfd >= 0)
		close(unfollowed->pidfd);
	if (unfollowed->stat_fd >= 0)
		close(unfollowed->stat_fd);
	free(unfollowed->text);
	free(unfollowed);
}

/*
 * Returns its pidfd, unless it is gone and another process has its pid. Pids of another namespace
 * cannot be used.
 */
static void open_process(struct unfollowed *unfollowed, const struct target *starter)
{
	if (starter->start.pid != (uint32_t)starter->pid)
		return;
	unfollowed->pidfd = torsh_process_open((pid_t)unfollowed->pid);
	unfollowed->stat_fd = torsh_process_open_stat((pid_t)unfollowed->pid);
	if (unfollowed->pidfd < 0 || torsh_process_parent(unfollowed->stat_fd) == starter->pid)
		return;
	close(unfollowed->pidfd);
	unfollowed->pidfd = -1;
}

/* On the session's clock. A child may have become another program before the event was sent. */
static uint64_t start_of(const struct unfollowed_list *unfollowed_list,
			 const struct target *starter, const struct folded_program *program)
{
	uint64_t sent_ns = torsh_clock_to_ns(&starter->state.clock, program->stamp);
	uint64_t begin_ns = program->begin_monotonic_ns > unfollowed_list->zero_ns
				    ? program->begin_monotonic_ns - unfollowed_list->zero_ns
				    : sent_ns;

	return begin_ns < sent_ns ? begin_ns : sent_ns;
}

static struct unfollowed *add_unfollowed(struct unfollowed_list *unfollowed_list,
					 const struct target *starter,
					 const struct folded_program *program)
{
	struct unfollowed *unfollowed = torsh_memory_new(1, sizeof(*unfollowed));
	struct channel_text text = {.offset = program->text, .length = program->length};

	*unfollowed = (struct unfollowed){
		.number = ++unfollowed_list->n_ever,
		.pid = program->child,
		.child = program->child,
		.starter = starter->number,
		.is_image = program->child == starter->start.pid,
		.problem = program->problem < N_PROGRAM_PROBLEMS
				   ? (enum program_problem)program->problem
				   : PROGRAM_STATIC,
		.start_ns = start_of(unfollowed_list, starter, program),
		.taken_monotonic_ns = torsh_clock_monotonic_ns(),
		.pidfd = -1,
		.stat_fd = -1,
		.wait_status = -1,
	};
	unfollowed->text = torsh_view_text(&starter->view, text, '\0', &unfollowed->n_text);
	unfollowed->parent_pid =
		unfollowed->is_image ? starter->parent_pid : (uint32_t)starter->pid;
	if (unfollowed->is_image)
		unfollowed->pid = (uint32_t)starter->pid;
	else
		open_process(unfollowed, starter);
	unfollowed_list->items =
		torsh_array_reserve(unfollowed_list->items, unfollowed_list->n,
				    &unfollowed_list->capacity, sizeof(*unfollowed_list->items));
	unfollowed_list->items[unfollowed_list->n++] = unfollowed;
	return unfollowed;
}

static void withdraw(struct unfollowed_list *unfollowed_list, const struct target *starter,
		     uint32_t child)
{
	for (uint32_t i = unfollowed_list->n; i-- > 0;) {
		struct unfollowed *unfollowed = unfollowed_list->items[i];

		if (unfollowed->starter != starter->number || unfollowed->child != child ||
		    unfollowed->is_withdrawn)
			continue;
		unfollowed->is_withdrawn = true;
		return;
	}
}

void torsh_unfollowed_take(struct unfollowed_list *unfollowed_list, struct target *target,
			   void (*watch)(void *context, struct unfollowed *), void *context)
{
	struct process_state *state = &target->state;

	for (uint32_t i = 0; i < state->n_programs; i++) {
		const struct folded_program *program = &state->programs[i];
		struct unfollowed *unfollowed;

		if (program->problem == PROGRAM_FINE) {
			withdraw(unfollowed_list, target, program->child);
			continue;
		}
		if (unfollowed_list->n_ever >= UNFOLLOWED_MAX) {
			state->losses[WRITER_LOSS_programs_unlisted]++;
			continue;
		}
		unfollowed = add_unfollowed(unfollowed_list, target, program);
		if (unfollowed->pidfd >= 0)
			watch(context, unfollowed);
		else if (!unfollowed->is_image)
			atomic_store_explicit(&unfollowed->fate, TARGET_DIED, memory_order_relaxed);
	}
	state->n_programs = 0;
}

void torsh_unfollowed_leave(struct unfollowed_list *unfollowed_list, const struct target *target)
{
	for (uint32_t i = 0; i < unfollowed_list->n; i++) {
		struct unfollowed *unfollowed = unfollowed_list->items[i];

		if (!unfollowed->is_image || unfollowed->starter != target->number)
			continue;
		unfollowed->end_monotonic_ns = target->end_monotonic_ns;
		unfollowed->wait_status = target->wait_status;
		atomic_store_explicit(&unfollowed->fate,
				      atomic_load_explicit(&target->fate, memory_order_relaxed),
				      memory_order_relaxed);
	}
}

/* No other process has its pid while it lives: an image that began in this time is its own. */
static void look_for_end(const struct unfollowed_list *unfollowed_list,
			 const struct fork_ancestry *ancestry, struct unfollowed *unfollowed)
{
	/* Pairs with the release in torsh_drain_set_unfollowed_fate. */
	bool has_ended =
		atomic_load_explicit(&unfollowed->fate, memory_order_acquire) != TARGET_LIVES;
	uint64_t end = has_ended ? unfollowed->end_monotonic_ns : 0;

	unfollowed->has_end_ns = end != 0;
	unfollowed->end_ns = end > unfollowed_list->zero_ns ? end - unfollowed_list->zero_ns : 0;
	if (!unfollowed->is_image && unfollowed->pidfd >= 0)
		unfollowed->has_executed = torsh_fork_ancestry_find_image(
			ancestry, unfollowed->pid, unfollowed->start_ns,
			end ? unfollowed->end_ns : UINT64_MAX, &unfollowed->end_ns);
	unfollowed->has_end_ns |= unfollowed->has_executed;
}

static void write_row(const struct unfollowed_list *unfollowed_list,
		      const struct fork_ancestry *ancestry, struct recording_file *file,
		      struct unfollowed *unfollowed)
{
	look_for_end(unfollowed_list, ancestry, unfollowed);
	unfollowed->is_written = true;
	if (!unfollowed->is_withdrawn)
		torsh_rows_unfollowed(file, unfollowed);
}

/* The event that its start failed may arrive after its end was seen. */
static bool is_recent(const struct unfollowed *unfollowed, bool has_ended)
{
	uint64_t since = unfollowed->taken_monotonic_ns;

	if (has_ended && unfollowed->end_monotonic_ns > since)
		since = unfollowed->end_monotonic_ns;
	return torsh_clock_monotonic_ns() < since + SETTLE_NS;
}

void torsh_unfollowed_write(struct unfollowed_list *unfollowed_list,
			    const struct fork_ancestry *ancestry, struct recording_file *file)
{
	for (uint32_t i = unfollowed_list->n; i-- > 0;) {
		struct unfollowed *unfollowed = unfollowed_list->items[i];
		/*
		 * Pairs with the release of the control thread: its results are visible, and it no
		 * longer uses the entry.
		 */
		bool has_ended = atomic_load_explicit(&unfollowed->fate, memory_order_acquire) !=
				 TARGET_LIVES;

		if (is_recent(unfollowed, has_ended) || (!has_ended && unfollowed->is_written))
			continue;
		write_row(unfollowed_list, ancestry, file, unfollowed);
		if (!has_ended)
			continue;
		destroy(unfollowed);
		unfollowed_list->items[i] = unfollowed_list->items[--unfollowed_list->n];
	}
}

void torsh_unfollowed_end(struct unfollowed_list *unfollowed_list,
			  const struct fork_ancestry *ancestry, struct recording_file *file)
{
	for (uint32_t i = 0; i < unfollowed_list->n; i++) {
		write_row(unfollowed_list, ancestry, file, unfollowed_list->items[i]);
		destroy(unfollowed_list->items[i]);
	}
	free(unfollowed_list->items);
	*unfollowed_list = (struct unfollowed_list){0};
}
