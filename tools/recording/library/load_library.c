/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loads calls of libraries. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/recording/load_parts.h"

void torsh_load_forget_library(struct recorded_library *library)
{
	for (size_t i = 0; i < library->n_names; i++)
		free(library->names[i]);
	free(library->names);
	free(library->calls);
	*library = (struct recorded_library){0};
}

static bool is_whole(const Torsh__LibraryCalls *row)
{
	const size_t n = row->n_name;

	return row->n_routine == n && row->n_library == n && row->n_type == n && row->n_m == n &&
	       row->n_n == n && row->n_k == n && row->n_batch == n && row->n_letters == n &&
	       row->n_is_rest == n && row->n_calls == n && row->n_total_ns == n &&
	       row->n_min_ns == n && row->n_max_ns == n &&
	       (!row->n_shape || (row->n_shape == n && row->n_details == n));
}

static const char *text_of(const struct recorded_library *library, uint32_t index)
{
	return index && index <= library->n_names ? library->names[index - 1] : NULL;
}

static void load_calls(struct recorded_library *library, const Torsh__LibraryCalls *row)
{
	library->names = torsh_need_items(NULL, 0, row->n_names, sizeof(*library->names));
	for (size_t i = 0; i < row->n_names; i++)
		library->names[library->n_names++] = torsh_need(strdup(row->names[i]));
	library->calls = torsh_need_items(NULL, 0, row->n_name, sizeof(*library->calls));
	for (size_t i = 0; i < row->n_name; i++)
		library->calls[library->n_calls++] = (struct recorded_library_call){
			.name = text_of(library, row->name[i]),
			.routine = text_of(library, row->routine[i]),
			.library = text_of(library, row->library[i]),
			.m = row->m[i],
			.n = row->n[i],
			.k = row->k[i],
			.batch = row->batch[i],
			.type = row->type[i],
			.letters = row->letters[i],
			.shape = row->n_shape ? text_of(library, row->shape[i]) : NULL,
			.details = row->n_shape ? text_of(library, row->details[i]) : NULL,
			.is_rest = row->is_rest[i],
			.calls = row->calls[i],
			.total_ns = row->total_ns[i],
			.min_ns = row->min_ns[i],
			.max_ns = row->max_ns[i],
		};
}

void torsh_load_library_calls(struct recording *recording, const Torsh__LibraryCalls *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);

	if (!process)
		return;
	if (!is_whole(row)) {
		recording->n_bad_rows++;
		return;
	}
	torsh_load_forget_library(&process->library);
	load_calls(&process->library, row);
}
