/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/control_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/writer/input/process_info.h"

void torsh_control_set_fate(struct control *control, struct watch *watch, enum target_fate fate)
{
	struct target *target = watch->target;

	control->last_change_ns = torsh_clock_monotonic_ns();
	torsh_control_drop(control, &control->targets, watch);
	torsh_drain_set_fate(control->drain, target, fate);
}

void torsh_control_set_unfollowed_fate(struct control *control, struct watch *watch,
				       enum target_fate fate)
{
	struct unfollowed *unfollowed = watch->unfollowed;

	torsh_control_drop(control, &control->unfollowed_list, watch);
	torsh_drain_set_unfollowed_fate(control->drain, unfollowed, fate);
}

void torsh_control_take_unfollowed(struct control *control)
{
	struct unfollowed *unfollowed;

	while ((unfollowed = torsh_drain_take_unfollowed(control->drain))) {
		struct watch *watch = torsh_memory_new(1, sizeof(*watch));

		*watch = (struct watch){.kind = WATCH_UNFOLLOWED,
					.fd = unfollowed->pidfd,
					.unfollowed = unfollowed};
		watch->next = control->unfollowed_list;
		control->unfollowed_list = watch;
		if (torsh_control_watch(control, watch))
			torsh_control_set_unfollowed_fate(control, watch, TARGET_LEFT);
	}
}

static bool is_executing(const struct target *target)
{
	return atomic_load_explicit(&target->view.header->state, memory_order_relaxed) ==
	       CHANNEL_EXECUTING;
}

/*
 * A pid is reused only after its process has ended; a process that called exec may have ended by
 * now too. If the kernel cannot distinguish them, the former image's state decides.
 */
static bool is_image_of(const struct target *target, const struct target *former)
{
	int same;

	if (!torsh_process_has_ended(former->pidfd))
		return true;
	same = torsh_process_is_same(former->pidfd, target->pidfd);
	if (same >= 0)
		return same > 0;
	return is_executing(former);
}

/*
 * A process that sends a second hello has become another image with the same parent; if it ended,
 * another process has its pid. Two waiting hellos may be received in reverse order: then this hello
 * is of the earlier image.
 */
static void end_former_image(struct control *control, struct target *target)
{
	struct watch *next;

	for (struct watch *watch = control->targets; watch; watch = next) {
		enum target_fate fate = TARGET_DIED;

		next = watch->next;
		if (watch->target->pid != target->pid ||
		    (is_executing(target) && !is_executing(watch->target)))
			continue;
		if (is_image_of(target, watch->target)) {
			fate = TARGET_EXECUTED;
			target->former_number = watch->target->number;
		}
		torsh_control_set_fate(control, watch, fate);
	}
}

void torsh_control_attach(struct control *control, int fd, pid_t pid, int pidfd)
{
	struct watch *watch;
	struct target *target;
	int result = torsh_target_create(&target, fd, pid, pidfd);

	if (result) {
		fprintf(stderr, "torsh: the channel of process %d was refused: %s\n", (int)pid,
			result == -EPROTO ? "another version's layout" : strerror(-result));
		if (pidfd >= 0)
			close(pidfd);
		return;
	}
	target->number = (uint32_t)++control->n_targets;
	end_former_image(control, target);
	watch = torsh_memory_new(1, sizeof(*watch));
	*watch = (struct watch){.kind = WATCH_TARGET, .fd = target->pidfd, .target = target};
	watch->next = control->targets;
	control->targets = watch;
	control->last_change_ns = torsh_clock_monotonic_ns();
	torsh_drain_add(control->drain, target);
	if (pidfd < 0)
		torsh_control_set_fate(control, watch, TARGET_DIED);
	else if (torsh_control_watch(control, watch))
		torsh_control_set_fate(control, watch, TARGET_LEFT);
}

int torsh_control_let_rest(struct control *control)
{
	for (const struct watch *watch = control->targets; watch; watch = watch->next) {
		if (!atomic_load_explicit(&watch->target->view.header->may_rest,
					  memory_order_relaxed))
			return -EOPNOTSUPP;
	}
	for (const struct watch *watch = control->targets; watch; watch = watch->next)
		torsh_view_let_rest(&watch->target->view);
	return 0;
}

void torsh_control_publish_cpu_time(const struct control *control)
{
	uint64_t cpu_ns = torsh_drain_cpu_ns(control->drain);

	for (const struct watch *watch = control->targets; watch; watch = watch->next)
		atomic_store_explicit(&watch->target->view.header->writer_cpu_ns, cpu_ns,
				      memory_order_relaxed);
}
