/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a process's channel calls its addresses, modules and functions, as numbers of the table that
 * it shares (code_table.h). An entry is copied from the channel at the first reference. Equal
 * entries share a number: after a dlclose all are sent again.
 */
#ifndef TORSH_WRITER_FOLD_PROGRAM_PROCESS_CODE_H
#define TORSH_WRITER_FOLD_PROGRAM_PROCESS_CODE_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/writer/fold/program/code_table.h"

/* Where the process has a module of the table. */
struct code_placement {
	uint64_t bias;
	bool is_there; /* false: it is another process's */
};

struct process_code {
	const struct channel_view *view;
	struct code_table *table;
	uint32_t process; /* its number in the session */
	uint32_t *numbers; /* by the channel's id: number + 1; 0: not referenced yet */
	uint32_t n_ids; /* all that were referenced are below this */
	uint32_t *module_numbers; /* by the channel's index: number + 1 */
	uint32_t *function_numbers; /* likewise */
	struct code_placement *placements; /* by number of a module */
	uint32_t n_placements;
	uint32_t n_placed; /* how often one of them was set */
	size_t placement_capacity;
};

/* Create it for the process with that number; view and table must outlive it. */
void torsh_process_code_create(struct process_code *code, const struct channel_view *view,
			       struct code_table *table, uint32_t process);

/* Free it. */
void torsh_process_code_destroy(struct process_code *code);

/*
 * Returns the number + 1 of the function with the channel's label; 0: no label, or the channel has
 * no such label.
 */
uint32_t torsh_process_code_label(struct process_code *code, uint32_t label);

/* Set is_used for the addresses that the process referred to, by number. */
void torsh_process_code_mark(const struct process_code *code, bool *is_used);

/* Slow path of torsh_process_code_number. */
int64_t torsh_process_code_add(struct process_code *code, uint32_t id);

/* Returns the number of the channel's address id, or -ENOENT if the channel has no such address. */
static inline int64_t torsh_process_code_number(struct process_code *code, uint32_t id)
{
	if (__builtin_expect(id < code->view->n_addresses && code->numbers[id], 1))
		return code->numbers[id] - 1;
	return torsh_process_code_add(code, id);
}

#endif
