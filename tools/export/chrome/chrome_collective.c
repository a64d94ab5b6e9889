/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Under the names that PyTorch's record_param_comms has in Kineto's traces. */
#include "tools/export/chrome/chrome_collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/json_writer.h"

/* c10::toString of a type. */
static const char *type_name(const struct input *tensor)
{
	static const struct {
		const char *torch, *name;
	} types[] = {
		{"float32", "Float"},
		{"float64", "Double"},
		{"float16", "Half"},
		{"bfloat16", "BFloat16"},
		{"int64", "Long"},
		{"int32", "Int"},
		{"int16", "Short"},
		{"int8", "Char"},
		{"uint8", "Byte"},
		{"bool", "Bool"},
		{"complex64", "ComplexFloat"},
		{"complex128", "ComplexDouble"},
	};

	for (size_t i = 0; tensor && i < sizeof(types) / sizeof(*types); i++) {
		if (strlen(types[i].torch) == tensor->n_type &&
		    !strncmp(types[i].torch, tensor->text, tensor->n_type))
			return types[i].name;
	}
	return NULL;
}

/* "0,1" as "[0, 1]"; the caller's. Whatever else the text has is left out. */
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
	const char *type = type_name(collective->tensor);
	char *ranks = list_ranks(group->ranks ? group->ranks : "");
	struct json_writer json;

	torsh_json_open_members(&json);
	torsh_json_put_text_n(&json, "Collective name", collective->name, collective->n_name);
	torsh_json_put_u64(&json, "In msg nelems", collective->in_elements);
	torsh_json_put_u64(&json, "Out msg nelems", collective->out_elements);
	if (type)
		torsh_json_put_escaped(&json, "dtype", type);
	torsh_json_put_u64(&json, "Group size", group->n_ranks);
	torsh_json_put_text(&json, "Process Group Name", group->name ? group->name : "");
	torsh_json_put_text(&json, "Process Group Description",
			    group->description ? group->description : "");
	torsh_json_put_escaped(&json, "Process Group Ranks", ranks);
	free(ranks);
	return torsh_json_close_memory(&json);
}
