/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Requests and tasks: all rows in one chunk, which replaces the one before. */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/writer/output/rows/rows_parts.h"

enum { ROW_IS_SHARED = 1, ROW_HAS_ENDED = 2 };

/* ---- single ones ----------------------------------------------------------------------------- */

static void make_tasks(Torsh__Tasks *row, struct rows_memory *memory, uint32_t n)
{
	ROWS_COLUMN(memory, row, name, n);
	ROWS_COLUMN(memory, row, task, n);
	ROWS_COLUMN(memory, row, parent, n);
	ROWS_COLUMN(memory, row, trace_high, n);
	ROWS_COLUMN(memory, row, trace_low, n);
	ROWS_COLUMN(memory, row, span, n);
	ROWS_COLUMN(memory, row, flags, n);
	ROWS_COLUMN(memory, row, begin_ns, n);
	ROWS_COLUMN(memory, row, duration_ns, n);
	ROWS_COLUMN(memory, row, turns, n);
	ROWS_COLUMN(memory, row, run_ns, n);
	ROWS_COLUMN(memory, row, cpu_ns, n);
	ROWS_COLUMN(memory, row, waits, n);
	ROWS_COLUMN(memory, row, wait_ns, n);
	ROWS_COLUMN(memory, row, allocs, n);
	ROWS_COLUMN(memory, row, alloc_bytes, n);
	ROWS_COLUMN(memory, row, peak_bytes, n);
	ROWS_COLUMN(memory, row, end_blocks, n);
	ROWS_COLUMN(memory, row, end_bytes, n);
	ROWS_COLUMN(memory, row, live_blocks, n);
	ROWS_COLUMN(memory, row, live_bytes, n);
}

static void set_task(Torsh__Tasks *row, uint32_t i, const struct folded_task *task)
{
	row->name[i] = task->name;
	row->task[i] = task->task;
	row->trace_high[i] = task->trace_high;
	row->trace_low[i] = task->trace_low;
	row->span[i] = task->span;
	row->flags[i] = (task->flags & TASK_IS_SHARED ? ROW_IS_SHARED : 0) |
			(task->has_ended ? ROW_HAS_ENDED : 0);
	row->begin_ns[i] = task->begin_ns;
	row->duration_ns[i] = task->end_ns > task->begin_ns ? task->end_ns - task->begin_ns : 0;
	row->turns[i] = task->sum.turns;
	row->run_ns[i] = task->sum.run_ns;
	row->cpu_ns[i] = task->sum.cpu_ns;
	row->waits[i] = task->sum.waits;
	row->wait_ns[i] = task->sum.wait_ns;
	row->allocs[i] = task->sum.allocs;
	row->alloc_bytes[i] = task->sum.alloc_bytes;
	row->peak_bytes[i] = task->peak_bytes;
	row->end_blocks[i] = task->end_blocks;
	row->end_bytes[i] = task->end_bytes;
	row->live_blocks[i] = task->live_blocks;
	row->live_bytes[i] = task->live_bytes;
}

/* Items that are free have no rows. */
static void put_tasks(Torsh__Tasks *row, struct rows_memory *memory, const struct tasks *tasks)
{
	uint32_t *rows = torsh_rows_memory(memory, tasks->n, sizeof(*rows)), n = 0;

	for (uint32_t i = 0; i < tasks->n; i++)
		rows[i] = tasks->items[i].number ? ++n : 0;
	make_tasks(row, memory, n);
	for (uint32_t i = 0; i < tasks->n; i++) {
		const struct folded_task *task = &tasks->items[i];

		if (!rows[i])
			continue;
		set_task(row, rows[i] - 1, task);
		row->parent[rows[i] - 1] = task->parent ? rows[task->parent - 1] : 0;
	}
}

/* ---- blocks that were kept ------------------------------------------------------------------- */

/* Blocks of ended tasks of one name with one stack. */
struct kept {
	uint32_t name, stack;
	uint64_t blocks, bytes;
};

struct kept_blocks {
	struct hash_map by_key;
	struct kept *items;
	uint32_t n;
	size_t capacity;
};

static void add_kept(struct kept_blocks *kept, uint32_t name, uint32_t stack, uint64_t bytes)
{
	const uint32_t key[] = {name, stack};
	size_t i = torsh_hash_map_put(&kept->by_key, key, sizeof(key), kept->n)->value;

	if (i == kept->n) {
		kept->items = torsh_array_reserve(kept->items, kept->n, &kept->capacity,
						  sizeof(*kept->items));
		kept->items[kept->n++] = (struct kept){.name = name, .stack = stack};
	}
	kept->items[i].blocks++;
	kept->items[i].bytes += bytes;
}

/* Those of a task that goes on are no one's yet, but its ended ones' in it. */
static void collect_kept(struct kept_blocks *kept, const struct process_state *state)
{
	const struct tasks *tasks = &state->tasks;
	struct live_block block, live;
	uint64_t at = 0;

	while (tasks->has_blocks && torsh_live_next(&tasks->blocks, &at, &block)) {
		bool is_live = torsh_live_find(&state->heap.live, block.address, &live);
		uint32_t stack = is_live ? state->heap.sites[live.site].stack : 0;

		for (uint32_t i = block.site + 1; i; i = tasks->items[i - 1].parent) {
			if (tasks->items[i - 1].has_ended)
				add_kept(kept, tasks->items[i - 1].name, stack, block.size);
		}
	}
}

static int compare_kept(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

static void put_kept(Torsh__TaskNames *row, struct rows_memory *memory,
		     const struct process_state *state)
{
	struct kept_blocks kept = {0};

	collect_kept(&kept, state);
	if (kept.n)
		qsort(kept.items, kept.n, sizeof(*kept.items), compare_kept);
	ROWS_COLUMN(memory, row, n_kept, state->tasks.names.n);
	ROWS_COLUMN(memory, row, kept_stack, kept.n);
	ROWS_COLUMN(memory, row, kept_blocks, kept.n);
	ROWS_COLUMN(memory, row, kept_bytes, kept.n);
	for (uint32_t i = 0; i < kept.n; i++) {
		row->n_kept[kept.items[i].name]++;
		row->kept_stack[i] = kept.items[i].stack;
		row->kept_blocks[i] = kept.items[i].blocks;
		row->kept_bytes[i] = kept.items[i].bytes;
	}
	torsh_hash_map_free(&kept.by_key);
	free(kept.items);
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint32_t count_buckets(const struct task_name *name)
{
	uint32_t n = 0;

	for (uint32_t i = 0; name->buckets && i < TASK_BUCKETS; i++)
		n += name->buckets[i] != 0;
	return n;
}

static void put_buckets(Torsh__TaskNames *row, struct rows_memory *memory,
			const struct task_names *names)
{
	uint32_t n = 0;

	ROWS_COLUMN(memory, row, n_buckets, names->n);
	for (uint32_t i = 0; i < names->n; i++)
		n += row->n_buckets[i] = count_buckets(&names->items[i]);
	ROWS_COLUMN(memory, row, bucket, n);
	ROWS_COLUMN(memory, row, in_bucket, n);
	n = 0;
	for (uint32_t i = 0; i < names->n; i++) {
		const uint32_t *buckets = names->items[i].buckets;

		for (uint32_t bucket = 0; buckets && bucket < TASK_BUCKETS; bucket++) {
			if (!buckets[bucket])
				continue;
			row->bucket[n] = bucket;
			row->in_bucket[n++] = buckets[bucket];
		}
	}
}

static void put_names(Torsh__TaskNames *row, struct rows_memory *memory,
		      const struct task_names *names)
{
	ROWS_COLUMN(memory, row, kind, names->n);
	ROWS_COLUMN(memory, row, name, names->n);
	ROWS_COLUMN(memory, row, begun, names->n);
	ROWS_COLUMN(memory, row, ended, names->n);
	ROWS_COLUMN(memory, row, shared, names->n);
	ROWS_COLUMN(memory, row, total_ns, names->n);
	ROWS_COLUMN(memory, row, min_ns, names->n);
	ROWS_COLUMN(memory, row, max_ns, names->n);
	ROWS_COLUMN(memory, row, turns, names->n);
	ROWS_COLUMN(memory, row, run_ns, names->n);
	ROWS_COLUMN(memory, row, cpu_ns, names->n);
	ROWS_COLUMN(memory, row, waits, names->n);
	ROWS_COLUMN(memory, row, wait_ns, names->n);
	ROWS_COLUMN(memory, row, allocs, names->n);
	ROWS_COLUMN(memory, row, alloc_bytes, names->n);
	for (uint32_t i = 0; i < names->n; i++) {
		const struct task_name *name = &names->items[i];

		row->kind[i] = name->kind;
		row->name[i] = name->name;
		row->begun[i] = name->n_begun;
		row->ended[i] = name->n_ended;
		row->shared[i] = name->n_shared;
		row->total_ns[i] = name->total_ns;
		row->min_ns[i] = name->n_ended ? name->min_ns : 0;
		row->max_ns[i] = name->max_ns;
		row->turns[i] = name->sum.turns;
		row->run_ns[i] = name->sum.run_ns;
		row->cpu_ns[i] = name->sum.cpu_ns;
		row->waits[i] = name->sum.waits;
		row->wait_ns[i] = name->sum.wait_ns;
		row->allocs[i] = name->sum.allocs;
		row->alloc_bytes[i] = name->sum.alloc_bytes;
	}
}

/* ---- the chunk ------------------------------------------------------------------------------- */

void torsh_rows_append_tasks(struct recording_file *file, struct target *target,
			     enum recording_priority priority, bool is_all)
{
	const struct tasks *tasks = &target->state.tasks;
	struct rows_state *state = target->rows;
	Torsh__Tasks row = TORSH__TASKS__INIT, *rows = &row;
	Torsh__TaskNames names = TORSH__TASK_NAMES__INIT, *names_rows = &names;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct rows_memory memory = {0};
	struct extent former = state->tasks_extent;

	if (!tasks->n_taken || (!is_all && tasks->n_taken == state->n_tasks_written))
		return;
	ROWS_SET(&row, process, target->number);
	ROWS_SET(&row, is_sampled, target->state.heap.sampling.rate != 0);
	ROWS_SET(&row, unkept, tasks->n_removed);
	ROWS_SET(&names, process, target->number);
	put_tasks(&row, &memory, tasks);
	put_names(&names, &memory, &tasks->names);
	put_buckets(&names, &memory, &tasks->names);
	put_kept(&names, &memory, &target->state);
	chunk.n_tasks = chunk.n_task_names = 1;
	chunk.tasks = &rows;
	chunk.task_names = &names_rows;
	if (is_all) {
		if (torsh_recording_append(file, &chunk, priority))
			state->has_missed = true;
	} else if (torsh_recording_put(file, &chunk, priority, &state->tasks_extent)) {
		state->tasks_extent = former;
	} else {
		torsh_recording_free_extent(file, former);
		state->n_tasks_written = tasks->n_taken;
	}
	torsh_rows_free(&memory);
}
