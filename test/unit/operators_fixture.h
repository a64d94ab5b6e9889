/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A timeline that a test writes, and what torsh ops makes of it. Behind cmocka.h; one test program includes it. */
#ifndef TORSH_TEST_OPERATORS_FIXTURE_H
#define TORSH_TEST_OPERATORS_FIXTURE_H

#include "recording_fixture.h"
#include "tools/profile/operators.h"

#define NONE OP_NO_SEQUENCE

static char path[] = "/tmp/torsh-operators-XXXXXX";
static struct fixture fixture;
static struct profile *profile;
static struct survey survey;
static struct operators operators;

static inline int begin_timeline(void **state)
{
	(void)state;
	fixture_start(&fixture, 1, 100);
	fixture_thread(&fixture, 100, "main");
	fixture_thread(&fixture, 101, "autograd");
	return 0;
}

static inline void collect(enum operator_group group, uint32_t tid)
{
	const struct operators_wish wish = {.group = group, .has_thread = tid, .tid = tid};

	if (!profile) {
		fixture_write(path, &fixture, 1, 1000);
		profile = torsh_profile_create(path);
		assert_int_equal(fixture_give(&fixture, fixture_take_profile, profile), 0);
		torsh_survey_make(&survey, profile, profile->processes, profile->n_processes);
	}
	torsh_operators_free(&operators);
	torsh_operators_collect(&operators, &wish, profile, profile->processes, profile->n_processes, &survey);
}

static inline int end_timeline(void **state)
{
	(void)state;
	torsh_operators_free(&operators);
	operators = (struct operators){0};
	torsh_survey_free(&survey);
	torsh_profile_destroy(profile);
	profile = NULL;
	fixture_free(&fixture);
	return 0;
}

static inline const struct operator_total *find(const char *name)
{
	for (size_t i = 0; i < operators.n; i++) {
		if (strcmp(operators.items[i].name ? operators.items[i].name : "-", name) == 0)
			return &operators.items[i];
	}
	fail_msg("there is no %s", name);
	return NULL;
}

/* Two steps: forward in a module, a loss, backward on another thread, the optimizer. */
static inline void put_step(uint64_t at, uint32_t record, uint64_t sequence)
{
	fixture_push(&fixture, at, 0, "net:Linear", NULL, RANGE_BY_MODULE);
	fixture_op(&fixture, at + 1, 0, record, "aten::addmm", "float32[32];float32[4,64];float32[64,32];1;1", 0,
		   sequence);
	fixture_op_end(&fixture, at + 11, 0, record);
	fixture_pop(&fixture, at + 12, 0, NULL, RANGE_BY_MODULE);
	fixture_push(&fixture, at + 12, 0, ":MSELoss", NULL, RANGE_BY_MODULE);
	fixture_op(&fixture, at + 13, 0, record + 1, "aten::mse_loss", "float32[4,32];float32[4,32];1", 0,
		   sequence + 1);
	fixture_op_end(&fixture, at + 15, 0, record + 1);
	fixture_pop(&fixture, at + 16, 0, NULL, RANGE_BY_MODULE);
	fixture_op(&fixture, at + 20, 1, record + 2, "AddmmBackward0", NULL, OP_BACKWARD, sequence);
	fixture_op(&fixture, at + 21, 1, record + 3, "aten::mm", "float32[64,4];float32[4,32]", 0, NONE);
	fixture_op_end(&fixture, at + 31, 1, record + 3);
	fixture_op_end(&fixture, at + 35, 1, record + 2);
	fixture_op(&fixture, at + 40, 0, record + 4, "Optimizer.step#SGD.step", NULL, OP_USER, NONE);
	fixture_op(&fixture, at + 41, 0, record + 5, "aten::add_", "float32[64,32];float32[64,32];0.1", 0, NONE);
	fixture_op_end(&fixture, at + 45, 0, record + 5);
	fixture_op_end(&fixture, at + 50, 0, record + 4);
}

static inline int make_path(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 || close(fd);
}

static inline int remove_path(void **state)
{
	(void)state;
	return unlink(path);
}

#define ON_A_TIMELINE(name) cmocka_unit_test_setup_teardown(name, begin_timeline, end_timeline)

#endif
