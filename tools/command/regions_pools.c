/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/regions_pools.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/base/size.h"
#include "tools/terminal/table.h"

static void emit_left(struct json_writer *json, const struct pools *pools, size_t pool,
		      size_t n_max)
{
	torsh_json_begin_array(json, "left");
	for (size_t i = pools->items[pool].first_live; i < pools->n_regions && n_max; i++) {
		const struct pool_region *region = &pools->regions[i];

		if (!region->is_live || region->pool != pool)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", region->name);
		torsh_json_put_u64(json, "address", region->address);
		torsh_json_put_u64(json, "bytes", region->bytes);
		torsh_json_end_object(json);
		n_max--;
	}
	torsh_json_end_array(json);
}

void torsh_regions_emit_pools(struct json_writer *json, const struct pools *pools,
			      size_t n_left_max)
{
	torsh_json_begin_lines(json, "pools");
	for (size_t i = 0; i < pools->n; i++) {
		const struct memory_pool *pool = &pools->items[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "pid", pool->process->pid);
		torsh_json_put_text(json, "domain", pool->domain);
		torsh_json_put_text(json, "name", pool->name);
		torsh_json_put_u64(json, "address", pool->address);
		torsh_json_put_u64(json, "bytes", pool->bytes);
		torsh_json_put_u64(json, "registered", pool->n_registered);
		torsh_json_put_u64(json, "ended", pool->n_ended);
		torsh_json_put_u64(json, "total_bytes", pool->total_bytes);
		torsh_json_put_u64(json, "live_bytes", pool->live_bytes);
		torsh_json_put_u64(json, "peak_bytes", pool->peak_bytes);
		torsh_json_put_u64(json, "peak_ns", pool->peak_ns);
		torsh_json_put_bool(json, "is_ended", pool->is_ended);
		emit_left(json, pools, i, n_left_max);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "unknown_pools", pools->n_unknown);
}

void torsh_regions_print_pools(const struct pools *pools)
{
	static const struct table_column columns[] = {
		{"regions", TABLE_NUMBER, .drop = 0},	 {"left", TABLE_NUMBER, .drop = 0},
		{"bytes left", TABLE_NUMBER, .drop = 0}, {"at most", TABLE_NUMBER, .drop = 0},
		{"of", TABLE_NUMBER, .drop = 1},	 {"pool", TABLE_NAME, .cut = CUT_MIDDLE},
	};
	struct table *table;
	char text[SIZE_TEXT_BYTES];

	if (!pools->n && !pools->n_unknown)
		return;
	table = torsh_table_create(columns, sizeof(columns) / sizeof(*columns));
	for (size_t i = 0; i < pools->n; i++) {
		const struct memory_pool *pool = &pools->items[i];
		const char *domain = pool->domain ? pool->domain : "";

		torsh_table_count(table, pool->n_registered);
		torsh_table_count(table, pool->n_live);
		torsh_table_bytes(table, pool->live_bytes);
		torsh_table_bytes(table, pool->peak_bytes);
		torsh_table_cell(table, "%s",
				 pool->bytes ? torsh_size_human(pool->bytes, text) : "");
		torsh_table_cell(table, "%s%s%s", domain, *domain ? "/" : "",
				 pool->name	 ? pool->name
				 : pool->address ? "(no name)"
						 : "(no pool)");
	}
	printf("\nThe program's own pools, by NVTX:\n");
	torsh_table_print(table, stdout);
	if (pools->n_unknown)
		printf("changes of pools or regions that it had not registered: %" PRIu64 "\n",
		       pools->n_unknown);
}
