/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Ranks with planted patterns of call paths: what differs is found, and noise is not. */
#include "test/unit/fixtures/fold_fixture.h"

#include "tools/ranks/job/job.h"

#define PATHS 24u
#define TRIALS 20
#define STEPS 50u

static char path[] = "/tmp/torsh-outliers-test-XXXXXX";

enum planted { NOTHING, ANOTHER_OPERATOR, WITHOUT_ONE, SLOW_PATH, MORE_CALLS };

struct world {
	uint32_t n_ranks, rank, at; /* at: the path that differs */
	enum planted planted;
	bool is_slow; /* the rank is slower as a whole */
	bool is_crowded; /* it waits for a CPU half of its time */
	bool has_messages;
};

static uint32_t node_of(struct fold *fold, uint32_t i)
{
	char name[32];

	snprintf(name, sizeof(name), "aten::operator_%u", i);
	return torsh_fold_node(fold, 0,
			       &(struct fold_key){.kind = FOLD_OPERATOR, .function = name});
}

/* What the rank ran and waited for a CPU before its collective. */
static void add_cpu(Torsh__FoldRank *row, const struct world *world)
{
	row->n_cpu_ran_ns = row->n_cpu_waited_ns = row->n_group;
	row->cpu_ran_ns = calloc(row->n_group, sizeof(*row->cpu_ran_ns));
	row->cpu_waited_ns = calloc(row->n_group, sizeof(*row->cpu_waited_ns));
	row->cpu_ran_ns[0] = 1000000;
	if (world->is_crowded && row->rank == world->rank)
		row->cpu_waited_ns[0] = 1000000;
}

/* Paths have from 1 to 12 ms a step, with a tenth of noise. */
static void add_path(Torsh__FoldRank *row, struct fold *fold, const struct world *world, uint32_t i,
		     uint64_t *random)
{
	uint64_t ns = UINT64_C(1000000) * (1 + i % 12), calls = STEPS * (1 + i % 3);
	size_t n = row->n_path;
	bool is_it = row->rank == world->rank && i == world->at;

	if (i == PATHS && !(row->rank == world->rank && world->planted == ANOTHER_OPERATOR))
		return;
	if (is_it && world->planted == WITHOUT_ONE)
		return;
	ns = ns * 95 / 100 + random_below(random, ns / 10);
	if (world->is_slow && row->rank == world->rank)
		ns *= 2;
	if (i == PATHS)
		ns = 30000000;
	if (is_it && world->planted == SLOW_PATH)
		ns += 30000000;
	if (is_it && world->planted == MORE_CALLS)
		calls *= 2;
	row->path[n] = fold->nodes[node_of(fold, i)].hash;
	row->path_ns[n] = ns * STEPS;
	row->path_step_ns[n] = ns;
	row->path_calls[n] = calls;
	row->n_path = row->n_path_ns = row->n_path_calls = row->n_path_step_ns = n + 1;
}

static struct job *read_world(const struct world *world, uint64_t *random)
{
	const uint64_t one[FOLD_COLUMNS_MAX] = {1, 1, 1, 1, 1};
	struct fold *fold = torsh_fold_create();
	struct fold_writer *writer = torsh_fold_write(path);
	char error[256] = "";
	struct job *job;

	for (uint32_t i = 0; i <= PATHS; i++)
		torsh_fold_add(fold, FOLD_SPANS, node_of(fold, i), 0, one);
	for (uint32_t rank = 0; rank < world->n_ranks; rank++) {
		Torsh__FoldRank *row = fixture_row(rank, 1);

		if (world->has_messages) {
			free(row->texts[1]);
			row->texts[1] = strdup("send");
		}
		fixture_sample(row, 0, 1000, 10, NULL);
		fixture_settle(row);
		add_cpu(row, world);
		row->path = calloc(PATHS + 1, sizeof(*row->path));
		row->path_ns = calloc(PATHS + 1, sizeof(*row->path_ns));
		row->path_calls = calloc(PATHS + 1, sizeof(*row->path_calls));
		row->path_step_ns = calloc(PATHS + 1, sizeof(*row->path_step_ns));
		for (uint32_t i = 0; i <= PATHS; i++)
			add_path(row, fold, world, i, random);
		torsh_fold_write_rank(writer, row);
		torsh_rank_row_free(row);
	}
	torsh_fold_write_end(writer, fold);
	torsh_fold_destroy(fold);
	job = torsh_job_read(path, error, sizeof(error));
	assert_non_null(job);
	return job;
}

static struct world random_world(uint64_t *random, enum planted planted)
{
	struct world world = {.n_ranks = 3 + (uint32_t)random_below(random, 60),
			      .planted = planted};

	world.rank = (uint32_t)random_below(random, world.n_ranks);
	/* One with 7 ms or more a step: a tenth of the time is 16 ms. */
	world.at = 6 + (uint32_t)random_below(random, 6) + 12 * (uint32_t)random_below(random, 2);
	return world;
}

static void planted_patterns_are_found(void **state)
{
	uint64_t random = 3;

	(void)state;
	for (int i = 0; i < 4 * TRIALS; i++) {
		const struct world world = random_world(&random, 1 + i % 4);
		struct job *job = read_world(&world, &random);
		const struct job_difference *most;
		char expected[32];

		assert_int_equal(job->n_outliers, 1);
		assert_int_equal(job->ranks[job->outliers[0].rank].number, world.rank);
		assert_int_equal(job->outliers[0].n_differences, 1);
		most = &job->outliers[0].differences[0];
		snprintf(expected, sizeof(expected), "aten::operator_%u",
			 world.planted == ANOTHER_OPERATOR ? PATHS : world.at);
		assert_string_equal(job->fold->texts[job->fold->nodes[most->node].function],
				    expected);
		assert_int_equal(most->calls == 0, world.planted == WITHOUT_ONE);
		assert_int_equal(most->others_calls == 0, world.planted == ANOTHER_OPERATOR);
		assert_int_equal(most->calls == most->others_calls, world.planted == SLOW_PATH);
		torsh_job_free(job);
	}
}

static void equal_ranks_are_silent(void **state)
{
	uint64_t random = 5;

	(void)state;
	for (int i = 0; i < 4 * TRIALS; i++) {
		struct world world = random_world(&random, NOTHING);
		struct job *job;

		/* A rank on a slower CPU does the same. */
		world.is_slow = i % 2;
		job = read_world(&world, &random);
		assert_null(job->no_outliers);
		assert_int_equal(job->n_outliers, 0);
		torsh_job_free(job);
	}
}

/* 30 ms more in one path: less than what the rank waited for a CPU in a step of 156 ms. */
static void time_without_a_cpu_is_no_difference(void **state)
{
	uint64_t random = 9;

	(void)state;
	for (int i = 0; i < TRIALS; i++) {
		struct world world = random_world(&random, i % 2 ? SLOW_PATH : MORE_CALLS);
		struct job *job;

		world.is_crowded = true;
		job = read_world(&world, &random);
		assert_null(job->no_outliers);
		assert_int_equal(job->n_outliers, world.planted == MORE_CALLS);
		torsh_job_free(job);
	}
}

static void ranks_that_can_not_be_compared_are_not(void **state)
{
	uint64_t random = 7;
	struct world two = {.n_ranks = 2, .planted = ANOTHER_OPERATOR};
	struct world pipeline = {.n_ranks = 8, .planted = ANOTHER_OPERATOR, .has_messages = true};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct job *job = read_world(i ? &pipeline : &two, &random);

		assert_non_null(job->no_outliers);
		assert_int_equal(job->n_outliers, 0);
		torsh_job_free(job);
	}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planted_patterns_are_found),
		cmocka_unit_test(equal_ranks_are_silent),
		cmocka_unit_test(time_without_a_cpu_is_no_difference),
		cmocka_unit_test(ranks_that_can_not_be_compared_are_not),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
