/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tasks/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/writer/fold/tasks/task_prune.h"

#define DEPTH_MAX 16u /* tasks in tasks; what is deeper counts for the inner ones */

void torsh_tasks_destroy(struct tasks *tasks)
{
	free(tasks->items);
	free(tasks->free_items);
	torsh_hash_map_free(&tasks->by_number);
	torsh_task_names_free(&tasks->names);
	if (tasks->has_blocks)
		torsh_live_destroy(&tasks->blocks);
	*tasks = (struct tasks){0};
}

/* ---- charges --------------------------------------------------------------------------------- */

static void add(struct task_sum *sum, const struct task_sum *more)
{
	sum->turns += more->turns;
	sum->run_ns += more->run_ns;
	sum->cpu_ns += more->cpu_ns;
	sum->waits += more->waits;
	sum->wait_ns += more->wait_ns;
	sum->allocs += more->allocs;
	sum->alloc_bytes += more->alloc_bytes;
}

/* Add to a task and those around it; once for each name. current: item number and 1. */
static void charge(struct tasks *tasks, uint32_t current, const struct task_sum *more)
{
	uint32_t seen[DEPTH_MAX], n = 0, i;

	tasks->n_taken++;
	for (; current && n < DEPTH_MAX; current = tasks->items[current - 1].parent) {
		struct folded_task *task = &tasks->items[current - 1];

		add(&task->sum, more);
		for (i = 0; i < n && seen[i] != task->name; i++)
			;
		if (i == n)
			add(&tasks->names.items[task->name].sum, more);
		seen[n++] = task->name;
	}
}

/* Blocks come to a task and those around it, or leave them. */
static void change_live(struct tasks *tasks, uint32_t current, int64_t blocks, int64_t bytes)
{
	tasks->n_taken++;
	for (uint32_t n = 0; current && n < DEPTH_MAX;
	     current = tasks->items[current - 1].parent, n++) {
		struct folded_task *task = &tasks->items[current - 1];

		task->live_blocks += (uint64_t)blocks;
		task->live_bytes += (uint64_t)bytes;
		if (!task->has_ended && task->live_bytes > task->peak_bytes)
			task->peak_bytes = task->live_bytes;
	}
}

/* A server's thread goes on with something else once the response is sent. */
static uint32_t charged(const struct tasks *tasks, const struct task_thread *thread)
{
	const struct folded_task *task =
		thread->current ? &tasks->items[thread->current - 1] : NULL;

	return task && task->kind == TASK_HTTP && task->has_ended ? 0 : thread->current;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static uint32_t find(const struct tasks *tasks, uint64_t number)
{
	const struct hash_entry *entry =
		number ? torsh_hash_map_find(&tasks->by_number, &number, sizeof(number)) : NULL;

	return entry ? (uint32_t)entry->value + 1 : 0;
}

static uint32_t new_item(struct tasks *tasks)
{
	if (tasks->n_free)
		return tasks->free_items[--tasks->n_free];
	tasks->items = torsh_array_reserve(tasks->items, tasks->n, &tasks->capacity,
					   sizeof(*tasks->items));
	return tasks->n++;
}

static void learn(struct tasks *tasks, struct folded_task *task, const struct event_task *event)
{
	struct task_name *name = &tasks->names.items[task->name];

	name->n_shared += (event->flags & TASK_IS_SHARED) && !(task->flags & TASK_IS_SHARED);
	task->flags |= event->flags;
	task->task = event->task ? event->task : task->task;
	if (!event->trace_high && !event->trace_low)
		return;
	task->trace_high = event->trace_high;
	task->trace_low = event->trace_low;
	task->span = event->span;
}

void torsh_tasks_begin(struct tasks *tasks, const struct event_task *event, uint64_t at_ns)
{
	uint32_t known = find(tasks, event->number), i;

	if (!event->number || event->kind >= N_TASK_KINDS)
		return;
	tasks->n_taken++;
	if (!known) {
		i = new_item(tasks);
		tasks->items[i] = (struct folded_task){
			.number = event->number,
			.kind = event->kind,
			.name = torsh_task_names_find(&tasks->names, event->kind, event->name),
			.parent = find(tasks, event->parent),
			.begin_ns = at_ns,
		};
		tasks->names.items[tasks->items[i].name].n_begun++;
		torsh_hash_map_put(&tasks->by_number, &event->number, sizeof(event->number), i);
		if (tasks->items[i].parent)
			tasks->items[tasks->items[i].parent - 1].n_children++;
		known = i + 1;
	}
	learn(tasks, &tasks->items[known - 1], event);
}

/* The task that *place refers to, which stays until then. */
static void turn_to(struct tasks *tasks, uint32_t *place, uint32_t next)
{
	if (*place)
		tasks->items[*place - 1].n_threads--;
	if (next)
		tasks->items[next - 1].n_threads++;
	*place = next;
}

void torsh_tasks_turn(struct tasks *tasks, struct task_thread *thread,
		      const struct event_task_turn *event, uint64_t at_ns)
{
	uint32_t next = find(tasks, event->number), current = charged(tasks, thread);

	if (current)
		charge(tasks, current,
		       &(struct task_sum){
			       .turns = 1,
			       .run_ns = at_ns > thread->begin_ns ? at_ns - thread->begin_ns : 0,
			       .cpu_ns = event->cpu_ns > thread->cpu_ns
						 ? event->cpu_ns - thread->cpu_ns
						 : 0,
		       });
	tasks->n_unknown += event->number && !next;
	turn_to(tasks, &thread->current, next);
	thread->begin_ns = at_ns;
	thread->cpu_ns = event->cpu_ns;
	if (next && !tasks->has_blocks) {
		torsh_live_create(&tasks->blocks);
		tasks->has_blocks = true;
	}
}

void torsh_tasks_end(struct tasks *tasks, uint64_t number, uint64_t at_ns)
{
	uint32_t known = find(tasks, number);
	struct folded_task *task = known ? &tasks->items[known - 1] : NULL;

	if (!task)
		return;
	tasks->n_taken++;
	task->end_ns = at_ns;
	task->end_blocks = task->live_blocks;
	task->end_bytes = task->live_bytes;
	if (task->has_ended)
		return;
	task->has_ended = true;
	torsh_task_name_add(&tasks->names.items[task->name],
			    at_ns > task->begin_ns ? at_ns - task->begin_ns : 0);
	if (++tasks->n_ended > TASKS_KEPT_MAX && tasks->n_ended >= tasks->next_prune)
		torsh_tasks_prune(tasks);
}

void torsh_tasks_wait(struct tasks *tasks, const struct task_thread *thread, uint64_t duration_ns)
{
	uint32_t current = charged(tasks, thread);

	if (current)
		charge(tasks, current, &(struct task_sum){.waits = 1, .wait_ns = duration_ns});
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void end_block(struct tasks *tasks, const struct live_block *block)
{
	change_live(tasks, block->site + 1, -1, -(int64_t)block->size);
}

void torsh_tasks_free(struct tasks *tasks, uint64_t address)
{
	struct live_block block;

	if (torsh_live_take(&tasks->blocks, address, &block))
		end_block(tasks, &block);
}

void torsh_tasks_alloc(struct tasks *tasks, struct task_thread *thread, uint64_t address,
		       uint64_t bytes)
{
	struct live_block block = {.address = address, .size = bytes}, before;
	uint32_t current = charged(tasks, thread);

	torsh_tasks_free(tasks, address);
	/* As in the heap, the sum changes once, from the old block to the new one. */
	if (thread->old_task)
		change_live(tasks, thread->old_task, -1, -(int64_t)thread->old_bytes);
	turn_to(tasks, &thread->old_task, 0);
	if (!current)
		return;
	block.site = current - 1;
	torsh_live_put(&tasks->blocks, &block, &before);
	charge(tasks, current, &(struct task_sum){.allocs = 1, .alloc_bytes = bytes});
	change_live(tasks, current, 1, (int64_t)bytes);
}

void torsh_tasks_resize(struct tasks *tasks, struct task_thread *thread, uint64_t address)
{
	struct live_block block;

	torsh_tasks_not_resized(tasks, thread, true);
	if (!torsh_live_take(&tasks->blocks, address, &block))
		return;
	turn_to(tasks, &thread->old_task, block.site + 1);
	thread->old_address = address;
	thread->old_bytes = block.size;
}

void torsh_tasks_not_resized(struct tasks *tasks, struct task_thread *thread, bool is_there)
{
	struct live_block block = {.address = thread->old_address,
				   .size = thread->old_bytes,
				   .site = thread->old_task - 1},
			  before;

	if (!thread->old_task)
		return;
	turn_to(tasks, &thread->old_task, 0);
	if (!is_there || torsh_live_find(&tasks->blocks, block.address, &before))
		end_block(tasks, &block);
	else
		torsh_live_put(&tasks->blocks, &block, &before);
}

void torsh_tasks_end_thread(struct tasks *tasks, struct task_thread *thread)
{
	torsh_tasks_not_resized(tasks, thread, true);
	turn_to(tasks, &thread->current, 0);
}
