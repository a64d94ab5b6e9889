/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The place of a process in a distributed run, as its launcher or torch.distributed gave it, and
 * the user's labels of the run.
 */
#ifndef TORSH_RECORDING_IDENTITY_IDENTITY_H
#define TORSH_RECORDING_IDENTITY_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/base/json_writer.h"
#include "tools/store/recording.pb-c.h"

/* Texts are owned; NULL: unknown. The rank is recorded_process.rank. */
struct recorded_identity {
	char *launcher, *role, *job;
	bool has_world_size, has_local_rank, has_local_world_size, has_node_rank;
	uint32_t world_size, local_rank, local_world_size, node_rank;
	bool is_from_c10d; /* rank and world size are torch.distributed's or MPI's */
	char **label_names, **label_values;
	size_t n_labels;
};

/* Replace the identity by the row's; NULL keeps it. */
void torsh_identity_load(struct recorded_identity *identity, const Torsh__Identity *row);

/*
 * Returns ", rank 5 of 8, model=llama" for a line about a process, "" if there is nothing; the
 * caller frees it. rank: recorded_process.rank.
 */
char *torsh_identity_text(const char *rank, const struct recorded_identity *identity);

/* Free its texts. */
void torsh_identity_free(struct recorded_identity *identity);

/*
 * Put the members world_size, local_rank, local_world_size, node_rank, launcher, role, job (null:
 * unknown) and labels, an object.
 */
void torsh_identity_put_json(struct json_writer *json, const struct recorded_identity *identity);

#endif
