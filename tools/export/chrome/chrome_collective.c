/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Collectives under the names that PyTorch's record_param_comms has in Kineto's traces. */
#include "tools/export/chrome/chrome_collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/json_writer.h"
#include "tools/export/chrome/chrome_inputs.h"

/* Returns "[0, 1]" for "0,1"; the caller frees it. Other characters are left out. */
static char *list_ranks(const char *ranks)
{
	char *text = NULL;
	size_t n;
	FILE *out = torsh_need(open_memstream(&text, &n));

	putc('[', out);
	for (; *ranks; ranks++) {
		if (strchr("0123456789.", *ranks))
			putc(*ranks, out);
		else if (*ranks == ',')
			fputs(", ", out);
	}
	putc(']', out);
	if (fclose(out))
		torsh_die("out of memory");
	return text;
}

char *torsh_chrome_collective(const struct collective *collective)
{
	const struct process_group *group = collective->group;
	const struct chrome_type *type =
		collective->tensor ? torsh_chrome_type(collective->tensor) : NULL;
	char *ranks = list_ranks(group->ranks ? group->ranks : "");
	struct json_writer json;

	torsh_json_open_members(&json);
	torsh_json_put_text_n(&json, "Collective name", collective->name, collective->n_name);
	torsh_json_put_u64(&json, "In msg nelems", collective->in_elements);
	torsh_json_put_u64(&json, "Out msg nelems", collective->out_elements);
	if (type)
		torsh_json_put_escaped(&json, "dtype", type->c10);
	torsh_json_put_u64(&json, "Group size", group->n_ranks);
	torsh_json_put_text(&json, "Process Group Name", group->name ? group->name : "");
	torsh_json_put_text(&json, "Process Group Description",
			    group->description ? group->description : "");
	torsh_json_put_escaped(&json, "Process Group Ranks", ranks);
	free(ranks);
	return torsh_json_close_memory(&json);
}
