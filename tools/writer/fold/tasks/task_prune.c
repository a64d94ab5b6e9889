/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tasks/task_prune.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/fold/tasks/tasks.h"

/* A task by one of its weights. */
struct weighed {
	uint64_t weight;
	uint32_t item;
};

static uint64_t duration_of(const struct folded_task *task)
{
	return task->end_ns > task->begin_ns ? task->end_ns - task->begin_ns : 0;
}

static uint64_t bytes_of(const struct folded_task *task)
{
	return task->sum.alloc_bytes;
}

static uint64_t cpu_of(const struct folded_task *task)
{
	return task->sum.cpu_ns;
}

static int compare_weights(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return (x->item > y->item) - (x->item < y->item);
}

static void keep_most(const struct tasks *tasks, struct weighed *order, uint32_t n,
		      uint64_t (*weigh)(const struct folded_task *task), bool *is_kept)
{
	for (uint32_t i = 0; i < n; i++)
		order[i].weight = weigh(&tasks->items[order[i].item]);
	qsort(order, n, sizeof(*order), compare_weights);
	for (uint32_t i = 0; i < n && i < TASKS_KEPT_OF_EACH; i++)
		is_kept[order[i].item] = true;
}

static void remove_item(struct tasks *tasks, uint32_t i)
{
	struct folded_task *task = &tasks->items[i];
	size_t value;

	torsh_hash_map_remove(&tasks->by_number, &task->number, sizeof(task->number), &value);
	if (task->parent)
		tasks->items[task->parent - 1].n_children--;
	*task = (struct folded_task){0};
	tasks->free_items = torsh_array_reserve(tasks->free_items, tasks->n_free,
						&tasks->free_capacity, sizeof(*tasks->free_items));
	tasks->free_items[tasks->n_free++] = i;
	tasks->n_ended--;
	tasks->n_removed++;
}

void torsh_tasks_prune(struct tasks *tasks)
{
	struct weighed *order = torsh_memory_new(tasks->n, sizeof(*order));
	bool *is_kept = torsh_memory_new(tasks->n, sizeof(*is_kept));
	uint32_t n = 0;

	for (uint32_t i = 0; i < tasks->n; i++) {
		if (tasks->items[i].number && tasks->items[i].has_ended)
			order[n++].item = i;
	}
	keep_most(tasks, order, n, duration_of, is_kept);
	keep_most(tasks, order, n, bytes_of, is_kept);
	keep_most(tasks, order, n, cpu_of, is_kept);
	for (uint32_t i = 0; i < n; i++) {
		const struct folded_task *task = &tasks->items[order[i].item];

		if (!is_kept[order[i].item] && !task->live_blocks && !task->n_children &&
		    !task->n_threads)
			remove_item(tasks, order[i].item);
	}
	/* Where most have blocks it isn't tried again at each end. */
	tasks->next_prune = tasks->n_ended + tasks->n_ended / 4;
	free(is_kept);
	free(order);
}
