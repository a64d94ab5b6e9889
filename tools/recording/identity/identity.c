/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/recording/identity/identity.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"

static char *copy(const char *text)
{
	return text ? torsh_need_text("%s", text) : NULL;
}

void torsh_identity_free(struct recorded_identity *identity)
{
	free(identity->launcher);
	free(identity->role);
	free(identity->job);
	for (size_t i = 0; i < identity->n_labels; i++) {
		free(identity->label_names[i]);
		free(identity->label_values[i]);
	}
	free(identity->label_names);
	free(identity->label_values);
	*identity = (struct recorded_identity){0};
}

void torsh_identity_load(struct recorded_identity *identity, const Torsh__Identity *row)
{
	size_t n;

	if (!row)
		return;
	n = row->n_label_names < row->n_label_values ? row->n_label_names : row->n_label_values;
	torsh_identity_free(identity);
	*identity = (struct recorded_identity){
		.launcher = copy(row->launcher),
		.role = copy(row->role),
		.job = copy(row->job),
		.has_world_size = row->has_world_size,
		.world_size = row->world_size,
		.has_local_rank = row->has_local_rank,
		.local_rank = row->local_rank,
		.has_local_world_size = row->has_local_world_size,
		.local_world_size = row->local_world_size,
		.has_node_rank = row->has_node_rank,
		.node_rank = row->node_rank,
		.is_from_c10d = row->from_c10d,
		.label_names = torsh_need_items(NULL, 0, n, sizeof(char *)),
		.label_values = torsh_need_items(NULL, 0, n, sizeof(char *)),
		.n_labels = n,
	};
	for (size_t i = 0; i < n; i++) {
		identity->label_names[i] = copy(row->label_names[i]);
		identity->label_values[i] = copy(row->label_values[i]);
	}
}

char *torsh_identity_text(const char *rank, const struct recorded_identity *identity)
{
	char *text = rank && identity->has_world_size
			     ? torsh_need_text(", rank %s of %" PRIu32, rank, identity->world_size)
		     : rank ? torsh_need_text(", rank %s", rank)
			    : torsh_need_text("%s", "");

	for (size_t i = 0; i < identity->n_labels; i++) {
		char *longer = torsh_need_text("%s, %s=%s", text, identity->label_names[i],
					       identity->label_values[i]);

		free(text);
		text = longer;
	}
	return text;
}

void torsh_identity_put_json(struct json_writer *json, const struct recorded_identity *identity)
{
	torsh_json_put_known(json, "world_size", identity->has_world_size, identity->world_size);
	torsh_json_put_known(json, "local_rank", identity->has_local_rank, identity->local_rank);
	torsh_json_put_known(json, "local_world_size", identity->has_local_world_size,
			     identity->local_world_size);
	torsh_json_put_known(json, "node_rank", identity->has_node_rank, identity->node_rank);
	torsh_json_put_text(json, "launcher", identity->launcher);
	torsh_json_put_text(json, "role", identity->role);
	torsh_json_put_text(json, "job", identity->job);
	torsh_json_begin_object(json, "labels");
	for (size_t i = 0; i < identity->n_labels; i++)
		torsh_json_put_text(json, identity->label_names[i], identity->label_values[i]);
	torsh_json_end_object(json);
}
