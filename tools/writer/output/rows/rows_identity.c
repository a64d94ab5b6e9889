/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The place of a process in a distributed run: by torch.distributed, else by its launcher. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/writer/output/rows/rows_parts.h"

#define LABEL "label."
#define NUMBER_BYTES 12u

/* Set the number if the text is one: launchers' variables may be anything. */
static void put_number(const char *value, protobuf_c_boolean *is_known, uint32_t *number)
{
	unsigned long long n;
	char *end;

	n = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || n > UINT32_MAX)
		return;
	*is_known = true;
	*number = (uint32_t)n;
}

static void put_pair(Torsh__Identity *row, char *name, char *value)
{
	const struct {
		const char *name;
		protobuf_c_boolean *is_known;
		uint32_t *number;
	} numbers[] = {
		{"world_size", &row->has_world_size, &row->world_size},
		{"local_rank", &row->has_local_rank, &row->local_rank},
		{"local_world_size", &row->has_local_world_size, &row->local_world_size},
		{"node_rank", &row->has_node_rank, &row->node_rank},
	};
	const struct {
		const char *name;
		char **text;
	} texts[] = {{"launcher", &row->launcher}, {"role", &row->role}, {"job", &row->job}};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!strcmp(name, numbers[i].name))
			put_number(value, numbers[i].is_known, numbers[i].number);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!strcmp(name, texts[i].name))
			*texts[i].text = value;
	if (strncmp(name, LABEL, sizeof(LABEL) - 1))
		return;
	row->label_names[row->n_label_names++] = name + sizeof(LABEL) - 1;
	row->label_values[row->n_label_values++] = value;
}

/* pairs: n bytes of "name=value" texts, each with its NUL. */
static void put_pairs(Torsh__Identity *row, struct rows_memory *memory, char *pairs, size_t n)
{
	size_t n_pairs = 0, i;

	for (i = 0; i < n; i += strlen(pairs + i) + 1)
		n_pairs++;
	ROWS_COLUMN(memory, row, label_names, n_pairs);
	ROWS_COLUMN(memory, row, label_values, n_pairs);
	row->n_label_names = row->n_label_values = 0;
	while (n) {
		size_t length = strlen(pairs) + 1;
		char *equals = strchr(pairs, '=');

		if (equals) {
			*equals = '\0';
			put_pair(row, pairs, equals + 1);
		}
		pairs += length;
		n -= length;
	}
}

/* The default group, once it is made, is what the program itself uses. */
static void put_group(Torsh__Process *row, struct rows_memory *memory,
		      const struct process_state *state)
{
	char *rank;

	if (!state->world_rank)
		return;
	rank = torsh_rows_memory(memory, NUMBER_BYTES, 1);
	snprintf(rank, NUMBER_BYTES, "%" PRIu32, state->world_rank - 1);
	row->rank = rank;
	ROWS_SET(row->identity, world_size, state->world_size);
	ROWS_SET(row->identity, from_c10d, true);
}

void torsh_rows_put_identity(Torsh__Process *row, struct rows_memory *memory,
			     const struct target *target)
{
	size_t n = 0;
	char *pairs;

	if (!target->start.identity.length && !target->state.world_rank)
		return;
	row->identity = torsh_rows_memory(memory, 1, sizeof(*row->identity));
	torsh__identity__init(row->identity);
	pairs = torsh_rows_keep(memory,
				torsh_view_text(&target->view, target->start.identity, '\0', &n));
	put_pairs(row->identity, memory, pairs, n);
	put_group(row, memory, &target->state);
}
