/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which blocks of a process could still be reached, by site and verdict. */
#include "tools/writer/output/rows/rows_parts.h"
#include "tools/writer/reachability/reachability.h"

static uint32_t n_sums_of(const struct judgement *judgement)
{
	return judgement ? judgement->n_sums : 0;
}

/* Returns the sum with that verdict of the site whose first sum this is; NULL: none. */
static const struct verdict_sum *find_sum(const struct judgement *judgement,
					  const struct verdict_sum *first, uint32_t verdict)
{
	const struct verdict_sum *sum = first;

	while (sum->verdict != verdict) {
		if (!sum->next)
			return NULL;
		sum = &judgement->sums[sum->next];
	}
	return sum;
}

static uint32_t count_rows(const struct judgement *judgement, uint32_t first)
{
	uint32_t n = 0;

	for (uint32_t i = first; i < n_sums_of(judgement) && n < ROWS_BATCH; i++) {
		const struct verdict_sum *sum = &judgement->sums[i];

		if (!sum->is_first)
			continue;
		for (n++; sum->next; n++)
			sum = &judgement->sums[sum->next];
	}
	return n;
}

static void put_head(Torsh__Verdicts *row, const struct target *target)
{
	struct reachability *reachability = target->reachability;
	const struct judgement *begin = torsh_reachability_begin(reachability),
			       *last = torsh_reachability_last(reachability);
	const struct judgement *latest = last ? last : begin;

	ROWS_SET(row, process, target->number);
	ROWS_SET(row, at_ns, latest ? latest->at_ns : 0);
	if (!last)
		row->reason = (char *)(uintptr_t)torsh_reachability_reason(reachability);
	ROWS_SET(row, stopped_ns, reachability->took_ns);
	ROWS_SET(row, read_bytes, (begin ? begin->read_bytes : 0) + (last ? last->read_bytes : 0));
	ROWS_SET(row, threads, latest ? latest->n_threads : 0);
	ROWS_SET(row, has_begin, begin != NULL);
	ROWS_SET(row, copies,
		 (uint32_t)(begin && begin->is_of_copy) + (uint32_t)(last && last->is_of_copy));
}

/* Put the sums from *next on, which moves past the last one. */
static void put_sums(Torsh__Verdicts *row, struct rows_memory *memory, const struct target *target,
		     uint32_t *next)
{
	const struct judgement *judgement = torsh_reachability_last(target->reachability);
	uint32_t n = count_rows(judgement, *next), i = 0;

	ROWS_COLUMN(memory, row, stack, n);
	ROWS_COLUMN(memory, row, verdict, n);
	ROWS_COLUMN(memory, row, blocks, n);
	ROWS_COLUMN(memory, row, bytes, n);
	for (; i < n; ++*next) {
		const struct verdict_sum *first = &judgement->sums[*next], *sum;

		for (uint32_t verdict = VERDICT_LOST; first->is_first && verdict < N_VERDICT_SUMS;
		     verdict++) {
			sum = find_sum(judgement, first, verdict);
			if (!sum)
				continue;
			row->stack[i] = target->state.heap.sites[sum->site].stack;
			row->verdict[i] = verdict;
			row->blocks[i] = sum->blocks;
			row->bytes[i++] = sum->bytes;
		}
	}
	while (*next < n_sums_of(judgement) && !judgement->sums[*next].is_first)
		++*next;
}

/* A module that ran before the first step was in step 0, if an optimizer ends that. */
static uint32_t known_step(const struct process_state *state, uint32_t step)
{
	if (step != STEP_PERHAPS_FIRST)
		return step;
	return state->steps.source == STEP_BY_OPTIMIZER;
}

static void put_use(Torsh__Holder *row, const struct process_state *state,
		    const struct holder_use *use)
{
	static char unknown[] = "?";
	uint64_t first = state->heap.first_stamp;
	char *name;

	ROWS_SET(row, has_reads, use->has_reads);
	ROWS_SET(row, step, known_step(state, use->step));
	if (!use->allocated)
		return;
	ROWS_SET(row, allocated_ns, torsh_clock_to_ns(&state->clock, first + use->allocated));
	ROWS_SET(row, allocated_step,
		 torsh_step_marks_name_at(&state->steps, first + use->allocated));
	if (!use->read)
		return;
	name = state->tables->code.functions[use->operator- 1].name;
	row->read_by = name ? name : unknown;
	ROWS_SET(row, read_ns, torsh_clock_to_ns(&state->clock, first + use->read));
	ROWS_SET(row, read_step, known_step(state, use->read_step));
}

static void put_holder(Torsh__Holder *row, struct rows_memory *memory, const struct target *target,
		       const struct holder *holder)
{
	static char none[] = "";
	const struct heap_site *sites = target->state.heap.sites;

	torsh__holder__init(row);
	ROWS_SET(row, stack, sites[holder->site].stack);
	ROWS_SET(row, root_kind, holder->root);
	row->path = holder->path;
	ROWS_SET(row, address, holder->address);
	if (holder->tid)
		ROWS_SET(row, tid, (uint32_t)holder->tid);
	ROWS_SET(row, of_tensor, sites[holder->site].is_of_tensors);
	put_use(row, &target->state, &holder->use);
	row->variable = holder->variable;
	row->function = holder->function;
	row->file = holder->file;
	if (holder->line)
		ROWS_SET(row, line, holder->line);
	ROWS_COLUMN(memory, row, block_stack, holder->n_blocks);
	ROWS_COLUMN(memory, row, block_bytes, holder->n_blocks);
	ROWS_COLUMN(memory, row, block_name, holder->n_blocks);
	ROWS_COLUMN(memory, row, block_type, holder->n_blocks);
	ROWS_COLUMN(memory, row, block_table_module, holder->n_blocks);
	ROWS_COLUMN(memory, row, block_table, holder->n_blocks);
	for (uint32_t i = 0; i < holder->n_blocks; i++) {
		row->block_name[i] = holder->names[i] ? holder->names[i] : none;
		row->block_type[i] = holder->types[i] ? holder->types[i] : none;
		row->block_table_module[i] = holder->table_paths[i] ? holder->table_paths[i] : none;
		row->block_table[i] = holder->tables[i];
		row->block_stack[i] = sites[holder->sites[i]].stack;
		row->block_bytes[i] = holder->bytes[i];
	}
	if (holder->n_left_out)
		ROWS_SET(row, left_out, holder->n_left_out);
}

static void put_holders(Torsh__Verdicts *row, struct rows_memory *memory,
			const struct target *target)
{
	const struct judgement *judgements[] = {torsh_reachability_begin(target->reachability),
						torsh_reachability_last(target->reachability)};
	uint32_t n = 0, at = 0;
	Torsh__Holder *rows;

	for (int k = 0; k < 2; k++)
		n += judgements[k] ? judgements[k]->holders.n : 0;
	rows = torsh_rows_memory(memory, n, sizeof(*rows));
	ROWS_COLUMN(memory, row, holder, n);
	for (int k = 0; k < 2; k++) {
		for (uint32_t i = 0; judgements[k] && i < judgements[k]->holders.n; i++, at++) {
			put_holder(&rows[at], memory, target, &judgements[k]->holders.items[i]);
			row->holder[at] = &rows[at];
		}
	}
}

static void put_types(Torsh__PythonHeap *row, struct rows_memory *memory,
		      const struct python_account *account)
{
	uint32_t n = account->n_types;

	ROWS_COLUMN(memory, row, type, n);
	ROWS_COLUMN(memory, row, type_objects, n);
	ROWS_COLUMN(memory, row, type_bytes, n);
	ROWS_COLUMN(memory, row, type_lost_objects, n);
	ROWS_COLUMN(memory, row, type_lost_bytes, n);
	for (uint32_t i = 0; i < n; i++) {
		row->type[i] = account->types[i].name;
		row->type_objects[i] = account->types[i].objects;
		row->type_bytes[i] = account->types[i].bytes;
		row->type_lost_objects[i] = account->types[i].lost_objects;
		row->type_lost_bytes[i] = account->types[i].lost_bytes;
	}
}

static void put_owners(Torsh__PythonHeap *row, struct rows_memory *memory,
		       const struct python_account *account)
{
	static char none[] = "";
	uint32_t n = account->n_owners;

	ROWS_COLUMN(memory, row, owner, n);
	ROWS_COLUMN(memory, row, owner_type, n);
	ROWS_COLUMN(memory, row, owner_file, n);
	ROWS_COLUMN(memory, row, owner_objects, n);
	ROWS_COLUMN(memory, row, owner_bytes, n);
	for (uint32_t i = 0; i < n; i++) {
		row->owner[i] = account->owners[i].name;
		row->owner_type[i] = account->owners[i].type;
		row->owner_file[i] = account->owners[i].file ? account->owners[i].file : none;
		row->owner_objects[i] = account->owners[i].objects;
		row->owner_bytes[i] = account->owners[i].bytes;
	}
}

static void put_python(Torsh__Verdicts *row, Torsh__PythonHeap *python, struct rows_memory *memory,
		       const struct target *target)
{
	const struct judgement *begin = torsh_reachability_begin(target->reachability),
			       *last = torsh_reachability_last(target->reachability);
	const struct python_account *account = begin ? &begin->python : last ? &last->python : NULL;

	if (!account || !account->is_there)
		return;
	torsh__python_heap__init(python);
	ROWS_SET(python, at_ns, account->at_ns);
	ROWS_SET(python, pool_bytes, account->pool_bytes);
	ROWS_SET(python, pool_used_bytes, account->pool_used_bytes);
	ROWS_SET(python, objects, account->objects);
	ROWS_SET(python, bytes, account->bytes);
	put_types(python, memory, account);
	put_owners(python, memory, account);
	row->python = python;
}

void torsh_rows_append_verdicts(struct recording_file *file, const struct target *target,
				enum recording_priority priority)
{
	uint32_t next = 0;

	if (!target->reachability)
		return;
	do {
		Torsh__Verdicts row = TORSH__VERDICTS__INIT, *rows = &row;
		Torsh__Chunk chunk = TORSH__CHUNK__INIT;
		Torsh__PythonHeap python;
		struct rows_memory memory = {0};

		put_head(&row, target);
		if (!next) {
			put_holders(&row, &memory, target);
			put_python(&row, &python, &memory, target);
		}
		put_sums(&row, &memory, target, &next);
		chunk.n_verdicts = 1;
		chunk.verdicts = &rows;
		torsh_recording_append(file, &chunk, priority);
		torsh_rows_free(&memory);
	} while (next < n_sums_of(torsh_reachability_last(target->reachability)));
}
