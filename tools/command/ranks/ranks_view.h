/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What torsh ranks prints. */
#ifndef TORSH_COMMAND_RANKS_RANKS_VIEW_H
#define TORSH_COMMAND_RANKS_RANKS_VIEW_H

#include "tools/base/json_writer.h"
#include "tools/ranks/job/job.h"
#include "tools/ranks/kineto/kineto_ranks.h"

struct ranks_view {
	const struct job *job;
	size_t limit; /* rows of a table; 0: all */
	const struct kineto_ranks *traces; /* of which the job was made; NULL: of recordings */
};

/* Print the report as text. */
void torsh_ranks_text(const struct ranks_view *view);

/* Print it as JSON. */
void torsh_ranks_json(const struct ranks_view *view);

/* Put the report's object, for the page too. */
void torsh_ranks_put_json(struct json_writer *json, const struct ranks_view *view);

/* Write the page for a browser to a file, "-": to stdout. */
void torsh_ranks_html(const struct ranks_view *view, const char *path);

/* Print the breakdown of traces. */
void torsh_ranks_breakdown_text(const struct ranks_view *view);

/* Put it. */
void torsh_ranks_breakdown_json(struct json_writer *json, const struct ranks_view *view);

extern const char *const torsh_kernel_type_names[N_KERNEL_TYPES];
extern const char *const torsh_idle_kind_names[N_IDLE_KINDS];

/* Returns (most - mean) / most over the ranks of the us at an offset of struct breakdown; or -1. */
double torsh_ranks_breakdown_imbalance(const struct kineto_ranks *traces, size_t offset);

/* A part of the ranks' time that is compared between them. */
struct breakdown_part {
	const char *name;
	size_t offset; /* of the double in struct breakdown */
};

extern const struct breakdown_part torsh_breakdown_parts[];
extern const size_t torsh_breakdown_n_parts;

/* Returns the number of rows that are shown of n. */
size_t torsh_ranks_shown(const struct ranks_view *view, size_t n);

/* Returns ns of a step of a bucket in which a rank did not communicate exposed; 0: it had none. */
uint64_t torsh_ranks_own_ns(const struct job *job, uint32_t rank, uint32_t bucket);

/* Collectives of one name, group and size class, with the row of bandwidth or NULL. */
struct ranks_collective {
	const struct fold_node *node;
	const struct fold_row *row;
	const struct job_bandwidth *bandwidth;
};

/* Get them, those with most exposed time first; the caller frees *items. Returns their number. */
size_t torsh_ranks_collectives(const struct job *job, struct ranks_collective **items);

/* Returns the index of the rank that runs out of memory first; SIZE_MAX with why it isn't known. */
size_t torsh_ranks_first_out(const struct job *job, const char **reason);

/* Returns the index of the rank with most memory, or SIZE_MAX. */
size_t torsh_ranks_largest(const struct job *job);

/* A phase that is compared between ranks. */
struct ranks_phase {
	enum fold_phase phase;
	const char *name;
};

extern const struct ranks_phase torsh_ranks_phases[];
extern const size_t torsh_ranks_n_phases;

/* Print the ranks that do something else than the others: ranks_outliers.c. */
void torsh_ranks_outliers_json(struct json_writer *json, const struct ranks_view *view);
void torsh_ranks_outliers_text(const struct ranks_view *view);

#endif
