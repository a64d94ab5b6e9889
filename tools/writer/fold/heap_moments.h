/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Moments: the usage of all sites of a heap at some times of the run, so that reports can show what
 * was live then and what grew in between. Each moment has only the sites that changed since the
 * one before it.
 *
 * At most MOMENTS_OF_KIND of each kind are stored: when a kind is full, every second of its moments
 * is removed and the interval doubles. The sites of a removed moment go to the next one, so that
 * the others stay exact. All lists of sites together are bounded too: MOMENTS_SITES and twice the
 * sites of the heap.
 *
 * Of the times at which most was resident only the latest one is stored.
 */
#ifndef TORSH_WRITER_FOLD_HEAP_MOMENTS_H
#define TORSH_WRITER_FOLD_HEAP_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/fold/tables/moment_sites.h"

#define MOMENTS_OF_KIND 64u
#define MOMENTS_SITES (1u << 18)

/* The numbers are part of the recording's format, but for the last: it has that of a time. */
enum moment_kind {
	MOMENT_BY_TIME,
	MOMENT_BY_STEP,
	MOMENT_BY_MARK,
	MOMENT_BY_RESIDENT,
	N_MOMENT_KINDS
};

struct moment {
	uint64_t stamp;
	uint64_t bytes, n; /* of the heap */
	uint32_t number; /* 1, 2, ...: rises with time, and stays the moment's */
	enum moment_kind kind;
	uint32_t name; /* by kind: 0, name of the step that ended, label of the mark */
	uint64_t n_steps; /* that had begun, at the end of a step; else 0 */
	uint64_t resident_bytes; /* of the process, as sampled: MOMENT_BY_RESIDENT; else 0 */
	uint64_t highest_bytes, highest_stamp; /* of the heap since the moment before */
	bool is_changed; /* since the last checkpoint */
	struct moment_sites sites;
};

struct moments {
	struct moment items[N_MOMENT_KINDS * MOMENTS_OF_KIND]; /* n of them, in time order */
	uint32_t n, n_taken;
	uint32_t n_of[N_MOMENT_KINDS];
	uint64_t strides[N_MOMENT_KINDS]; /* of time: in stamps, 0: none taken yet */
	uint64_t n_seen[N_MOMENT_KINDS]; /* also those that were not taken */
	uint64_t next_stamp; /* of the next moment by time */
	uint64_t n_sites; /* in the lists of all moments */
	uint64_t *touched; /* bits by site: changed since the latest moment */
	uint32_t n_touched; /* the number of bits */
	/*
	 * usage as of the latest moment, by site: 0: none; few blocks and bytes as they are, else
	 * the number of an item; see heap_moments.c
	 */
	uint32_t *latest_usages;
	size_t n_latest_usages;
	struct moment_site *latest;
	uint32_t n_latest;
	size_t latest_capacity;
	uint32_t free_latest; /* first unused item; its site is the number of the next; 0: none */
};

struct heap;

/* Free the moments. */
void torsh_moments_destroy(struct moments *moments);

/* A site changed for the first time since the latest moment. */
void torsh_moments_touch(struct moments *moments, uint32_t site);

/* The series of the process got a point: take a moment by time if one is due. */
void torsh_moments_point(struct heap *heap, uint64_t stamp, uint64_t interval);

/* Most was resident, resident_bytes: take a moment, in place of the one before of that kind. */
void torsh_moments_resident(struct heap *heap, uint64_t stamp, uint64_t resident_bytes);

/* What a moment is taken at. */
struct moment_event {
	enum moment_kind kind;
	uint32_t name;
	uint64_t n_steps;
	uint64_t resident_bytes;
};

/* A step ended, or the program set a mark: take a moment unless their interval skips this one. */
void torsh_moments_event(struct heap *heap, uint64_t stamp, const struct moment_event *event);

#endif
