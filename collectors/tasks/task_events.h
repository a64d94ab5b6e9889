/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TORSH_COLLECTORS_TASKS_TASK_EVENTS_H
#define TORSH_COLLECTORS_TASKS_TASK_EVENTS_H

/*
 * Have asyncio's tasks and greenlets recorded, where that was requested and not done yet. As
 * torsh_gc_watch.
 */
void torsh_tasks_watch(void);

#endif
