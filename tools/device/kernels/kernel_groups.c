/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/kernels/kernel_groups.h"

#include <string.h>

#include "tools/base/die.h"

static void add_row(struct kernel_group *group, const struct kernel_row *row)
{
	group->n++;
	group->calls += row->calls;
	group->bytes += row->bytes;
	group->timed += row->timed;
	group->total_ns += row->total_ns;
	group->min_ns = row->min_ns < group->min_ns ? row->min_ns : group->min_ns;
	group->max_ns = row->max_ns > group->max_ns ? row->max_ns : group->max_ns;
}

uint64_t torsh_kernel_group_average(const struct kernel_group *group)
{
	return group->timed ? group->total_ns / group->timed : 0;
}

/* Rows with one name are adjacent. */
struct kernel_group *torsh_kernel_groups_make(const struct kernels *kernels, size_t *n)
{
	struct kernel_group *groups =
		torsh_need_items(NULL, 0, kernels->n ? kernels->n : 1, sizeof(*groups));

	*n = 0;
	for (size_t i = 0; i < kernels->n; i++) {
		const struct kernel_row *row = &kernels->rows[i], *before = i ? row - 1 : NULL;

		if (!before || before->what != row->what || strcmp(before->name, row->name) != 0)
			groups[(*n)++] = (struct kernel_group){.rows = row, .min_ns = UINT64_MAX};
		add_row(&groups[*n - 1], row);
	}
	return groups;
}
