/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/site_reader.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

#define BLOCKS_MOST ((UINT32_C(1) << 31) - 1) /* that a row has room for */

struct site_reader torsh_site_reader_of(const struct allocation_site *sites, size_t n)
{
	return (struct site_reader){.n = n, .sites = sites};
}

struct site_reader torsh_site_reader_of_rows(const struct recorded_process *process,
					     const struct site_row_kind *kind, size_t n_rows)
{
	struct site_reader reader = {.process = process, .kind = kind};
	size_t room = 0;

	for (size_t i = 0; i < n_rows; i++) {
		struct allocation_site site = kind->site(process, i);

		if (!site.blocks && !site.bytes)
			continue;
		reader.rows =
			torsh_array_reserve(reader.rows, reader.n, &room, sizeof(*reader.rows));
		reader.rows[reader.n++] = (struct site_row){
			.row = (uint32_t)i,
			.few_blocks =
				site.blocks < BLOCKS_MOST ? (uint32_t)site.blocks : BLOCKS_MOST,
			.has_steps = site.first_step || site.last_step,
		};
	}
	return reader;
}

static uint32_t stack_of_total(const struct recorded_process *process, size_t row)
{
	return torsh_totals_count(&process->totals, row).stack;
}

struct site_reader torsh_site_reader_at_peak(const struct recorded_process *process)
{
	static const struct site_row_kind at_peak = {.site = torsh_sites_peak_of,
						     .stack = stack_of_total};

	return torsh_site_reader_of_rows(process, &at_peak, process->totals.n);
}

void torsh_site_reader_end(struct site_reader *reader)
{
	free(reader->rows);
	*reader = (struct site_reader){0};
}

struct allocation_site torsh_site_reader_at(const struct site_reader *reader, size_t i)
{
	return reader->sites ? reader->sites[i]
			     : reader->kind->site(reader->process, reader->rows[i].row);
}

uint64_t torsh_site_reader_few_blocks(const struct site_reader *reader, size_t i)
{
	return reader->sites ? reader->sites[i].blocks : reader->rows[i].few_blocks;
}

bool torsh_site_reader_has_steps(const struct site_reader *reader, size_t i)
{
	return reader->sites || reader->rows[i].has_steps;
}

uint32_t torsh_site_reader_stack(const struct site_reader *reader, size_t i)
{
	return reader->sites ? reader->sites[i].stack
			     : reader->kind->stack(reader->process, reader->rows[i].row);
}
