/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/ranks has the summaries of ranks, and what follows from many of them. Read this file first.
 *
 * A fold in memory: call paths with tables of what happened there, summed over all folded
 * processes, and a packed row for each process. Folds merge: the shared tables add up, and rows
 * stand side by side. The sum depends on the set of folds only, not on the order or the tree in
 * which they are merged; encoded (fold_file.h) it is the same to the byte.
 *
 * Memory grows with distinct call paths, steps' buckets and collectives, not with the number of
 * processes: their rows stay in files while many are merged.
 */
#ifndef TORSH_RANKS_FOLD_FOLD_H
#define TORSH_RANKS_FOLD_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/key_index.h"
#include "tools/ranks/fold/fold_tables.h"

/* Kinds of nodes; their numbers are part of the format. */
enum fold_node_kind {
	FOLD_FUNCTION, /* function, file, and the build-id of native code */
	FOLD_OPERATOR,
	FOLD_RANGE,
	FOLD_COLLECTIVE, /* function: its name, file: its group, build_id: its backend */
	FOLD_FINDING, /* function: the rule */
	N_FOLD_NODE_KINDS
};

/* The tables: FOLD_SPANS and so on. */
enum fold_table_id {
#define TABLE(NAME) FOLD_##NAME,
	FOLD_TABLES(TABLE)
#undef TABLE
		N_FOLD_TABLES
};

/* Their columns: FOLD_SPANS_count and so on, and how many there are: N_FOLD_SPANS. */
#define COLUMN(NAME, name, how) FOLD_##NAME##_##name,
#define TABLE(NAME) enum { FOLD_COLUMNS_OF_##NAME(COLUMN) N_FOLD_##NAME };
FOLD_TABLES(TABLE)
#undef TABLE
#undef COLUMN

enum fold_phase {
#define PHASE(name, of) FOLD_PHASE_##name,
#include "tools/ranks/fold/fold_phases.def"
#undef PHASE
	N_FOLD_PHASES
};

enum fold_total {
#define TOTAL(name, unit) FOLD_TOTAL_##name,
#include "tools/ranks/fold/fold_totals.def"
#undef TOTAL
	N_FOLD_TOTALS
};

enum fold_lead {
#define LEAD(name, text) FOLD_LEAD_##name,
#include "tools/ranks/fold/fold_leads.def"
#undef LEAD
	N_FOLD_LEADS
};

/* Of a sample; bits. */
enum fold_sample_flag {
	FOLD_SAMPLE_JOINS = 1, /* nobody leaves it before all have entered */
	FOLD_SAMPLE_ENDS = 2, /* its end was recorded: else its length is 0 */
	FOLD_SAMPLE_ON_DEVICE = 4, /* entered and left by its kernel's times */
};

#define FOLD_COLUMNS_MAX 7u
#define FOLD_STEP_BUCKETS 64u /* of one process, at most */

struct fold_node {
	uint32_t parent, kind;
	uint32_t function, file, build_id; /* texts */
	uint64_t hash; /* of the whole path: equal for equal paths of all folds */
};

struct fold_row {
	uint32_t node, sub;
	uint64_t values[FOLD_COLUMNS_MAX];
};

struct fold_table {
	struct fold_row *rows;
	size_t n, n_room;
	struct key_index index; /* by node and sub: index of rows */
};

struct fold {
	struct hash_map text_of; /* a text: its number */
	const char **texts; /* [0] is "" */
	size_t n_texts, texts_room;
	struct fold_node *nodes; /* [0] is the root; a parent comes before its children */
	size_t n_nodes, nodes_room;
	struct hash_map node_of;
	uint32_t shift; /* a step bucket is 2^shift steps */
	struct fold_table tables[N_FOLD_TABLES];
};

/* Returns the number of columns of a table. */
size_t torsh_fold_columns(enum fold_table_id table);

/* Returns an empty fold. */
struct fold *torsh_fold_create(void);

/* Free the fold. */
void torsh_fold_destroy(struct fold *fold);

/* Returns the number of a text; NULL is "". */
uint32_t torsh_fold_text(struct fold *fold, const char *text);

/* What identifies a node among its parent's children. */
struct fold_key {
	enum fold_node_kind kind;
	const char *function, *file, *build_id; /* NULL: none */
};

/* Returns the node of this key below a node. */
uint32_t torsh_fold_node(struct fold *fold, uint32_t parent, const struct fold_key *key);

/*
 * Add values of a table's columns to the row of a node and sub, each as its column is merged.
 * values has torsh_fold_columns items.
 */
void torsh_fold_add(struct fold *fold, enum fold_table_id table, uint32_t node, uint32_t sub,
		    const uint64_t *values);

/* Returns the sub of SPANS and MEMORY for a step by its index; SIZE_MAX: in none. */
uint32_t torsh_fold_step_sub(const struct fold *fold, size_t step);

/* Make step buckets so wide as at least 2^shift steps: sums of rows that become one. */
void torsh_fold_widen(struct fold *fold, uint32_t shift);

/* Add a fold's tables to another one's. */
void torsh_fold_merge(struct fold *to, const struct fold *from);

/* Bring texts, nodes and rows into the canonical order: FOLD.md. */
void torsh_fold_settle(struct fold *fold);

#endif
