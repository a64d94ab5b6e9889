/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which single tasks are removed once there are many. */
#ifndef TORSH_WRITER_FOLD_TASKS_TASK_PRUNE_H
#define TORSH_WRITER_FOLD_TASKS_TASK_PRUNE_H

struct tasks;

/*
 * Remove the ended tasks without blocks, and without tasks in them, that are not among the
 * TASKS_KEPT_OF_EACH slowest, with most bytes or with most processor time. A thread that still
 * works for one keeps it.
 */
void torsh_tasks_prune(struct tasks *tasks);

#endif
