/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Jobs whose truth is known, for tests of tools/ranks/job: each rank has a clock of its own. */
#ifndef TORSH_TEST_UNIT_RANKS_JOB_WORLD_H
#define TORSH_TEST_UNIT_RANKS_JOB_WORLD_H

#include "test/unit/fixtures/fold_fixture.h"
#include "tools/ranks/job/job.h"
#include "tools/ranks/make/rank_cpu.h"

#define STEP_NS 100000000
#define TRANSFER_NS 200000

static char path[] = "/tmp/torsh-job-test-XXXXXX";

struct world {
	uint32_t n_ranks, n_steps;
	int64_t offset_ns[64]; /* what a rank's clock shows more than the true time */
	double drift[64]; /* ns a ns */
	uint64_t jitter_ns; /* entering, leaving */
	uint32_t late_rank;
	uint64_t late_ns;
	enum fold_lead late_by;
	/* Counts of all ranks, and that of the late one; 0: none */
	struct {
		enum fold_total total;
		uint64_t all, late;
	} counts[2];
	uint64_t more_operators; /* of the late rank, in each step */
	enum fold_total more_of; /* what the late rank has more of, in the whole run */
	uint64_t total, late_total; /* others', its own; 0: not recorded */
	struct rank_cpu cpu, late_cpu; /* between two collectives */
};

static int64_t shown(const struct world *world, uint32_t rank, int64_t true_ns)
{
	return true_ns + world->offset_ns[rank] + (int64_t)(world->drift[rank] * (double)true_ns);
}

static void add_step(const struct world *world, Torsh__FoldRank **rows, uint32_t step,
		     uint64_t *random)
{
	int64_t entered[64], last = 0;

	for (uint32_t i = 0; i < world->n_ranks; i++) {
		entered[i] = STEP_NS * (int64_t)(step + 1) +
			     (int64_t)random_below(random, world->jitter_ns + 1);
		if (world->late_ns && i == world->late_rank)
			entered[i] += (int64_t)world->late_ns;
		last = entered[i] > last ? entered[i] : last;
	}
	for (uint32_t i = 0; i < world->n_ranks; i++) {
		int64_t left =
			last + TRANSFER_NS + (int64_t)random_below(random, world->jitter_ns + 1);
		uint64_t leads[N_FOLD_LEADS] = {
			[FOLD_LEAD_compute_ns] = STEP_NS / 2, [FOLD_LEAD_operators] = 100};

		if (world->late_ns && i == world->late_rank)
			leads[world->late_by] += world->late_ns;
		if (world->late_ns && i == world->late_rank)
			leads[FOLD_LEAD_operators] += world->more_operators;
		fixture_sample(rows[i], step, shown(world, i, entered[i]),
			       (uint64_t)(shown(world, i, left) - shown(world, i, entered[i])),
			       leads);
	}
}

static void put_counts(const struct world *world, Torsh__FoldRank *row, uint32_t rank)
{
	for (size_t i = 0; i < 2; i++) {
		uint64_t late = rank == world->late_rank ? world->counts[i].late : 0;

		if (world->counts[i].late)
			row->totals[world->counts[i].total] = 1 + world->counts[i].all + late;
	}
}

static void put_column(uint64_t **column, size_t *n, size_t n_samples, uint64_t value)
{
	*n = n_samples;
	*column = calloc(n_samples, sizeof(**column));
	for (size_t i = 0; i < n_samples; i++)
		(*column)[i] = value;
}

static void put_cpu(const struct world *world, Torsh__FoldRank *row, uint32_t rank)
{
	const struct rank_cpu *cpu = rank == world->late_rank ? &world->late_cpu : &world->cpu;
	size_t n = row->n_group;

	if (world->cpu.has_time) {
		put_column(&row->cpu_ran_ns, &row->n_cpu_ran_ns, n, cpu->ran_ns);
		put_column(&row->cpu_waited_ns, &row->n_cpu_waited_ns, n, cpu->waited_ns);
	}
	if (world->cpu.has_throttled)
		put_column(&row->cpu_throttled_ns, &row->n_cpu_throttled_ns, n, cpu->throttled_ns);
	if (world->cpu.has_stolen)
		put_column(&row->cpu_stolen_ns, &row->n_cpu_stolen_ns, n, cpu->stolen_ns);
}

static struct job *read_world(const struct world *world, uint64_t *random)
{
	struct fold *fold = torsh_fold_create();
	struct fold_writer *writer = torsh_fold_write(path);
	Torsh__FoldRank *rows[64];
	struct job *job;
	char error[256] = "";

	for (uint32_t i = 0; i < world->n_ranks; i++)
		rows[i] = fixture_row(i, world->offset_ns[i] || world->drift[i] ? i + 2 : 1);
	for (uint32_t step = 0; step < world->n_steps; step++)
		add_step(world, rows, step, random);
	for (uint32_t i = 0; i < world->n_ranks; i++) {
		fixture_settle(rows[i]);
		put_counts(world, rows[i], i);
		put_cpu(world, rows[i], i);
		if (world->total)
			rows[i]->totals[world->more_of] =
				1 + (i == world->late_rank ? world->late_total : world->total);
		torsh_fold_write_rank(writer, rows[i]);
		torsh_rank_row_free(rows[i]);
	}
	torsh_fold_write_end(writer, fold);
	torsh_fold_destroy(fold);
	job = torsh_job_read(path, error, sizeof(error));
	assert_non_null(job);
	return job;
}

/* The job's one straggler is rank 2, for one cause; evidence: its words, or NULL. Frees the job. */
static void expect_one_cause(struct job *job, enum job_cause_kind kind, const char *evidence)
{
	const struct job_straggler *straggler = job->stragglers;

	assert_int_equal(job->n_stragglers, 1);
	assert_int_equal(job->ranks[straggler->rank].number, 2);
	assert_int_equal(straggler->n_causes, 1);
	assert_int_equal(straggler->causes[0].kind, kind);
	if (evidence)
		assert_string_equal(straggler->causes[0].evidence, evidence);
	torsh_job_free(job);
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	close(fd);
	return fd < 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

#endif
