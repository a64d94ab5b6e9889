/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/unfollowed.h"

#include <stdlib.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/writer/input/process_info.h"
#include "tools/writer/output/rows/rows.h"

#define STRANGERS_MAX 65536u /* in a session; more are counted */
#define SETTLE_NS UINT64_C(500000000) /* longer than what is on a ring stays there */

static void destroy(struct stranger *stranger)
{
	if (stranger->pidfd >= 0)
		close(stranger->pidfd);
	if (stranger->stat_fd >= 0)
		close(stranger->stat_fd);
	free(stranger->text);
	free(stranger);
}

/* Its pidfd, unless it is gone and another process has its pid. In another namespace pids mean nothing to us. */
static void open_process(struct stranger *stranger, const struct target *starter)
{
	if (starter->start.pid != (uint32_t)starter->pid)
		return;
	stranger->pidfd = torsh_process_open((pid_t)stranger->pid);
	stranger->stat_fd = torsh_process_open_stat((pid_t)stranger->pid);
	if (stranger->pidfd < 0 || torsh_process_parent(stranger->stat_fd) == starter->pid)
		return;
	close(stranger->pidfd);
	stranger->pidfd = -1;
}

static struct stranger *add_stranger(struct strangers *strangers, const struct target *starter,
				     const struct tally_program *program)
{
	struct stranger *stranger = torsh_memory_new(1, sizeof(*stranger));
	struct channel_text text = {.offset = program->text, .length = program->length};

	*stranger = (struct stranger){
		.number = ++strangers->n_ever,
		.pid = program->child,
		.child = program->child,
		.starter = starter->number,
		.is_image = program->child == starter->start.pid,
		.problem =
			program->problem < N_PROGRAM_PROBLEMS ? (enum program_problem)program->problem : PROGRAM_STATIC,
		.start_ns = torsh_ticks_to_ns(&starter->tally.clock, program->stamp),
		.taken_monotonic_ns = torsh_ticks_monotonic_ns(),
		.pidfd = -1,
		.stat_fd = -1,
		.wait_status = -1,
	};
	stranger->text = torsh_view_text(&starter->view, text, '\0', &stranger->n_text);
	stranger->parent_pid = stranger->is_image ? starter->parent_pid : (uint32_t)starter->pid;
	if (stranger->is_image)
		stranger->pid = (uint32_t)starter->pid;
	else
		open_process(stranger, starter);
	strangers->items =
		torsh_memory_grow(strangers->items, &strangers->capacity, strangers->n, sizeof(*strangers->items));
	strangers->items[strangers->n++] = stranger;
	return stranger;
}

static void withdraw(struct strangers *strangers, const struct target *starter, uint32_t child)
{
	for (uint32_t i = strangers->n; i-- > 0;) {
		struct stranger *stranger = strangers->items[i];

		if (stranger->starter != starter->number || stranger->child != child || stranger->is_withdrawn)
			continue;
		stranger->is_withdrawn = 1;
		return;
	}
}

void torsh_strangers_take(struct strangers *strangers, struct target *target,
			  void (*watch)(void *context, struct stranger *), void *context)
{
	struct tally *tally = &target->tally;

	for (uint32_t i = 0; i < tally->n_programs; i++) {
		const struct tally_program *program = &tally->programs[i];
		struct stranger *stranger;

		if (program->problem == PROGRAM_FINE) {
			withdraw(strangers, target, program->child);
			continue;
		}
		if (strangers->n_ever >= STRANGERS_MAX) {
			tally->losses[WRITER_LOSS_programs_unlisted]++;
			continue;
		}
		stranger = add_stranger(strangers, target, program);
		if (stranger->pidfd >= 0)
			watch(context, stranger);
		else if (!stranger->is_image)
			atomic_store_explicit(&stranger->fate, TARGET_DIED, memory_order_relaxed);
	}
	tally->n_programs = 0;
}

void torsh_strangers_leave(struct strangers *strangers, const struct target *target)
{
	for (uint32_t i = 0; i < strangers->n; i++) {
		struct stranger *stranger = strangers->items[i];

		if (!stranger->is_image || stranger->starter != target->number)
			continue;
		stranger->end_monotonic_ns = target->end_monotonic_ns;
		stranger->wait_status = target->wait_status;
		atomic_store_explicit(&stranger->fate, atomic_load_explicit(&target->fate, memory_order_relaxed),
				      memory_order_relaxed);
	}
}

/* While a process lives no other one has its pid: an image that began in this time is its own. */
static void look_for_end(const struct strangers *strangers, const struct lineage *lineage, struct stranger *stranger)
{
	/* Pairs with the release of who watched it. */
	int has_ended = atomic_load_explicit(&stranger->fate, memory_order_acquire) != TARGET_LIVES;
	uint64_t end = has_ended ? stranger->end_monotonic_ns : 0;

	stranger->has_end_ns = end != 0;
	stranger->end_ns = end > strangers->zero_ns ? end - strangers->zero_ns : 0;
	if (!stranger->is_image && stranger->pidfd >= 0)
		stranger->has_executed =
			torsh_lineage_find_image(lineage, stranger->pid, stranger->start_ns,
						 end ? stranger->end_ns : UINT64_MAX, &stranger->end_ns);
	stranger->has_end_ns |= stranger->has_executed;
}

static void write_row(const struct strangers *strangers, const struct lineage *lineage, struct recording_file *file,
		      struct stranger *stranger)
{
	look_for_end(strangers, lineage, stranger);
	stranger->is_written = 1;
	if (!stranger->is_withdrawn)
		torsh_rows_stranger(file, stranger);
}

/* That its start failed may be told after its end was seen. */
static int is_recent(const struct stranger *stranger, int has_ended)
{
	uint64_t since = stranger->taken_monotonic_ns;

	if (has_ended && stranger->end_monotonic_ns > since)
		since = stranger->end_monotonic_ns;
	return torsh_ticks_monotonic_ns() < since + SETTLE_NS;
}

void torsh_strangers_write(struct strangers *strangers, const struct lineage *lineage, struct recording_file *file)
{
	for (uint32_t i = strangers->n; i-- > 0;) {
		struct stranger *stranger = strangers->items[i];
		/* Pairs with the release of the control thread: it has let go, and what it found out is there. */
		int has_ended = atomic_load_explicit(&stranger->fate, memory_order_acquire) != TARGET_LIVES;

		if (is_recent(stranger, has_ended) || (!has_ended && stranger->is_written))
			continue;
		write_row(strangers, lineage, file, stranger);
		if (!has_ended)
			continue;
		destroy(stranger);
		strangers->items[i] = strangers->items[--strangers->n];
	}
}

void torsh_strangers_end(struct strangers *strangers, const struct lineage *lineage, struct recording_file *file)
{
	for (uint32_t i = 0; i < strangers->n; i++) {
		write_row(strangers, lineage, file, strangers->items[i]);
		destroy(strangers->items[i]);
	}
	free(strangers->items);
	*strangers = (struct strangers){0};
}
