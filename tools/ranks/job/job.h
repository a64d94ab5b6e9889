/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/ranks/job answers questions about all ranks of a job from their folds. Read this file
 * first.
 *
 * Collectives of ranks are matched by group and sequence, without a clock. Times of two recordings
 * are compared by the offsets of their clocks. Those of one kernel are known. Others follow from
 * exchanges of times that writers made during the run (job_probes.c) or, without any, from matched
 * collectives: nobody leaves an all-reduce before the last rank has entered it. What collectives
 * contradict is not used. What lies within an offset's error is not judged.
 */
#ifndef TORSH_RANKS_JOB_JOB_H
#define TORSH_RANKS_JOB_JOB_H

#include "fold.pb-c.h"
#include "tools/ranks/fold/fold.h"

/* By what a clock's offset is known. */
enum job_clock_source {
	CLOCK_IS_UNKNOWN, /* nothing connects it with clock 0 */
	CLOCK_BY_KERNEL, /* clock 0, or of the same kernel */
	CLOCK_BY_PROBES,
	CLOCK_BY_COLLECTIVES
};

/* NULL: unknown. */
extern const char *const torsh_job_clock_sources[];

/* Of a line from this point to the next one. */
struct job_clock_point {
	int64_t at_ns; /* of the clock, since the job's origin */
	int64_t offset_ns;
	uint64_t error_ns;
};

#define JOB_CLOCK_POINTS 33u

/* A clock: that of one recording. Offsets are added to its times, to get those of clock 0. */
struct job_clock {
	const char *host;
	uint64_t start_ns;
	enum job_clock_source source;
	int64_t offset_ns; /* at the time origin_ns of the job */
	double drift; /* ns per ns since then */
	bool has_drift; /* by collectives: one was needed to explain them */
	uint64_t error_ns; /* the largest of the times that are compared */
	struct job_clock_point *points; /* JOB_CLOCK_POINTS; NULL: offset_ns and drift hold */
};

struct job_rank {
	Torsh__FoldRank *row;
	uint32_t number;
	uint32_t clock; /* index */
};

/* One rank in a collective. Times are its own clock's, since the job's origin. */
struct job_entry {
	uint32_t rank; /* index */
	uint32_t sample; /* in its row */
	int64_t issued_ns, entered_ns, left_ns; /* left_ns: valid with FOLD_SAMPLE_ENDS */
	uint32_t flags;
};

/* A collective that several ranks had. */
struct job_call {
	uint32_t group, name; /* texts of the job */
	uint64_t sequence, bytes;
	uint32_t step; /* number and 1; 0: in none */
	size_t first, n; /* entries, by rank */
	bool joins; /* nobody leaves before all have entered */
	bool all_end; /* all entries have their ends */
};

/* The verdict on a call that joins. */
struct job_verdict {
	size_t call;
	uint32_t last; /* rank's index */
	bool is_judged; /* false: the difference to the second last is within the clocks' error */
	int64_t entered_ns; /* by the last one, on clock 0 */
	int64_t median_ns; /* when the others entered: the lower median */
	uint64_t cost_ns; /* by which the job was later for the last one */
	uint64_t waited_ns; /* by all others together */
	int64_t before_ns; /* what the verdict before it has as entered_ns */
	uint64_t transfer_ns; /* from there until the first one left; 0: unknown */
};

enum job_cause_kind {
	CAUSE_DATA_LOADING,
	CAUSE_GC,
	CAUSE_MORE_COMPUTE,
	CAUSE_SLOW_COMPUTE,
	CAUSE_PYTHON,
	CAUSE_DEVICE,
	CAUSE_ALLOCATION,
	CAUSE_PAGE_FAULTS,
	CAUSE_CPU_WAIT, /* others ran on its CPUs, or its cgroup's quota was used up */
	CAUSE_CPU_THROTTLED,
	CAUSE_CPU_STOLEN,
	N_JOB_CAUSES
};

extern const char *const torsh_job_cause_names[N_JOB_CAUSES];
extern const char *const torsh_job_cause_texts[N_JOB_CAUSES];

struct job_cause {
	enum job_cause_kind kind;
	double share; /* of what made it late */
	uint64_t ns;
	char *evidence;
};

struct job_straggler {
	uint32_t rank; /* index */
	uint64_t times_last, compared; /* of the compared calls of its groups */
	uint64_t cost_ns, waited_ns;
	double share; /* cost_ns of the compared time */
	double certainty; /* standard errors by which its cost is above that of the others */
	struct job_cause causes[N_JOB_CAUSES]; /* the largest first */
	size_t n_causes;
};

struct job_bandwidth {
	uint32_t group, name, size_class;
	uint64_t calls, bytes, transfer_ns; /* bytes: as they go over the bus */
	double best; /* bytes per s */
};

/* What a rank was last for, on the way through all compared calls. */
struct job_path_rank {
	uint32_t rank;
	uint64_t ns, calls;
};

/* A call path that a rank has otherwise than the other ranks. Values of others are medians. */
struct job_difference {
	uint32_t node; /* of the fold */
	uint64_t calls, others_calls;
	uint64_t step_ns, others_step_ns; /* a step bucket's, by the speed of the rank */
	double share; /* of a rank's time in paths, by which it differs */
};

#define JOB_DIFFERENCES 8u

struct job_outlier {
	uint32_t rank; /* index */
	double share; /* of all that differs */
	struct job_difference differences[JOB_DIFFERENCES]; /* the largest first */
	size_t n_differences;
};

struct job {
	struct fold *fold; /* the shared tables */
	struct hash_map text_of;
	const char **texts;
	size_t n_texts, texts_room;
	struct job_rank *ranks; /* by number */
	size_t n_ranks, n_twins; /* twins: further processes of a rank, left out */
	uint32_t world_size; /* 0: unknown */
	struct job_clock *clocks;
	size_t n_clocks;
	uint64_t origin_ns; /* times of entries count from here */
	uint32_t shift, n_buckets; /* of steps, common to all ranks */
	struct job_call *calls; /* by group and sequence */
	size_t n_calls;
	struct job_entry *entries;
	size_t n_entries;
	uint64_t n_collectives; /* that the ranks had, whether they were kept or not */
	struct job_verdict *verdicts; /* in the order of time */
	size_t n_verdicts;
	uint64_t compared_ns; /* from verdict to verdict */
	uint64_t n_ties; /* not judged */
	size_t n_contradicted; /* clocks whose exchanges of times collectives contradict */
	uint64_t communicated_ns; /* of the critical path */
	struct job_path_rank *path; /* the longest first */
	size_t n_path;
	struct job_straggler *stragglers; /* the costliest first */
	size_t n_stragglers;
	struct job_outlier *outliers; /* the most different first */
	size_t n_outliers;
	const char *no_outliers; /* why ranks' paths are not compared; NULL: they are */
	struct job_bandwidth *bandwidths;
	size_t n_bandwidths;
};

/*
 * Read a fold and find all of this out. Returns the job, or NULL with a sentence in error. The
 * caller frees it.
 */
struct job *torsh_job_read(const char *path, char *error, size_t n_error);

/* Free the job. */
void torsh_job_free(struct job *job);

/* ---- steps of torsh_job_read, in this order -------------------------------------------------- */

/* Match the samples of the rows. */
void torsh_job_match(struct job *job);
/* Bound the clocks' offsets by collectives. */
void torsh_job_align(struct job *job);
/* Replace these where kernels and exchanges of times tell more, and nothing contradicts. */
void torsh_job_use_probes(struct job *job);
/* Judge who was last. */
void torsh_job_judge(struct job *job);
/* Find the stragglers among the ranks. */
void torsh_job_find_stragglers(struct job *job);
/* Find the causes of one. */
void torsh_job_find_causes(const struct job *job, struct job_straggler *straggler);
/* Find the ranks whose paths differ from those of the others. */
void torsh_job_find_outliers(struct job *job);
/* Sum up bytes on the bus. */
void torsh_job_measure_bandwidth(struct job *job);

/* ---- queries --------------------------------------------------------------------------------- */

/* Returns a time of a rank, on clock 0. */
int64_t torsh_job_time(const struct job *job, uint32_t rank, int64_t at_ns);

/* Returns the error of that time; UINT64_MAX: nothing connects the clocks. */
uint64_t torsh_job_time_error(const struct job *job, uint32_t rank, int64_t at_ns);

/* Returns the error of the difference of the times at which two ranks entered a collective. */
uint64_t torsh_job_error(const struct job *job, const struct job_entry *a,
			 const struct job_entry *b);

/* Returns whether a total was recorded, and it. */
bool torsh_job_total(const struct job *job, uint32_t rank, enum fold_total total, uint64_t *value);

/* Returns a phase's sum in a bucket of steps of the job; the largest value of bytes. */
uint64_t torsh_job_phase(const struct job *job, uint32_t rank, enum fold_phase phase,
			 uint32_t bucket);

/* Returns a phase's sum over all steps. */
uint64_t torsh_job_phase_sum(const struct job *job, uint32_t rank, enum fold_phase phase);

/* Returns (max - mean) / max of a phase over the ranks; -1: nobody was in it. */
double torsh_job_imbalance(const struct job *job, enum fold_phase phase);

/* What a rank's memory does. */
struct job_memory {
	bool has_capacity, has_growth;
	uint64_t peak_bytes; /* of its device if that is known, else resident, else of the heap */
	const char *of; /* "device", "rss", "heap", or NULL: not recorded */
	uint64_t capacity_bytes;
	double growth; /* bytes a step, over the second half of the steps */
	double steps_left; /* until the capacity; valid if both are known and it grows */
};

/* Get the memory of a rank. */
void torsh_job_memory(const struct job *job, uint32_t rank, struct job_memory *memory);

#endif
