/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a recording lacks: the sum by cause, and how every reading command reports it. */
#include <stdbool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/fixtures/command_fixture.h"
#include "test/unit/fixtures/recording_fixture.h"
#include "tools/recording/losses.h"

static char directory[] = "/tmp/torsh-losses-XXXXXX";
static char recording[256];

static Torsh__Loss losses[2];
static Torsh__Loss *rows[2] = {&losses[0], &losses[1]};

static void set_loss(int i, const char *cause, uint64_t count, bool is_of_events, const char *text)
{
	torsh__loss__init(&losses[i]);
	losses[i].cause = (char *)(uintptr_t)cause;
	losses[i].text = (char *)(uintptr_t)text;
	losses[i].has_count = losses[i].has_of_events = 1;
	losses[i].count = count;
	losses[i].of_events = is_of_events;
}

static void set_events(Torsh__Process *process, uint64_t produced, uint64_t delivered,
		       uint64_t dropped)
{
	process->has_produced = process->has_delivered = process->has_dropped = 1;
	process->produced = produced;
	process->delivered = delivered;
	process->dropped = dropped;
}

static void write_with(size_t n_losses, uint64_t produced, uint64_t delivered, uint64_t dropped)
{
	static struct fixture fixture;

	fixture_start(&fixture, 1, 100);
	set_events(&fixture.process, produced, delivered, dropped);
	fixture.process.n_losses = n_losses;
	fixture.process.losses = rows;
	fixture_write(recording, &fixture, 1, 1000);
	fixture_free(&fixture);
}

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(recording, sizeof(recording), "%s/one.torsh", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	free(output);
	unlink(recording);
	return rmdir(directory);
}

static int begins_with(const char *text)
{
	return !strncmp(output, text, strlen(text));
}

/* The command's report begins so, and its JSON marks the recording as incomplete. */
#define EXPECT_INCOMPLETE(command, sentence)                                                       \
	do {                                                                                       \
		cJSON *json;                                                                       \
		assert_int_equal(RUN(command, recording), 0);                                      \
		assert_true(begins_with(sentence));                                                \
		assert_int_equal(RUN(command, recording, "--json"), 0);                            \
		assert_schema(#command);                                                           \
		json = parse_output();                                                             \
		assert_true(cJSON_IsFalse(                                                         \
			cJSON_GetObjectItem(cJSON_GetObjectItem(json, "recording"), "complete"))); \
		cJSON_Delete(json);                                                                \
	} while (0)

static void every_report_begins_with_what_was_lost(void **state)
{
	static const char sentence[] =
		"Incomplete: 15 of 130 events were lost (15 events that found no room); "
		"7 names of things. What follows is of the rest.\n";

	(void)state;
	set_loss(0, "names", 7, false, "names of things");
	set_loss(1, "ring_full", 15, true, "events that found no room");
	write_with(2, 130, 115, 15);
	EXPECT_INCOMPLETE(leaks, sentence);
	EXPECT_INCOMPLETE(peak, sentence);
	EXPECT_INCOMPLETE(report, sentence);
	EXPECT_INCOMPLETE(ops, sentence);
	EXPECT_INCOMPLETE(steps, sentence);
	EXPECT_INCOMPLETE(modules, sentence);
	EXPECT_INCOMPLETE(tensors, sentence);
	EXPECT_INCOMPLETE(regions, sentence);
	EXPECT_INCOMPLETE(kernels, sentence);
	assert_int_equal(RUN(leaks, recording, "--growth"), 0);
	assert_true(begins_with(sentence));
	assert_int_equal(RUN(report, recording, "--tree"), 0);
	assert_true(begins_with(sentence));
	assert_int_equal(RUN_WITH_ERRORS(export, recording, "--format", "folded"), 0);
	assert_non_null(strstr(output, sentence));
}

static void a_check_fails_unless_losses_are_allowed(void **state)
{
	cJSON *json;

	(void)state;
	set_loss(0, "ring_full", 15, true, "events that found no room");
	write_with(1, 130, 115, 15);
	assert_int_equal(RUN(check, recording, "--max-leak", "1G"), 1);
	assert_true(begins_with("BROKEN Incomplete: 15 of 130 events were lost"));
	assert_int_equal(RUN(check, recording, "--max-leak", "1G", "--json"), 1);
	assert_schema("check");
	json = parse_output();
	assert_true(cJSON_IsFalse(cJSON_GetObjectItem(json, "passed")));
	assert_true(cJSON_IsFalse(cJSON_GetObjectItem(json, "complete")));
	cJSON_Delete(json);
	assert_int_equal(RUN(check, recording, "--max-leak", "1G", "--allow-loss"), 0);
	assert_true(begins_with("Incomplete: 15 of 130 events were lost"));
	/* Events that were dropped have their own budget. */
	assert_int_equal(RUN(check, recording, "--max-leak", "1G", "--max-dropped", "15"), 0);
	assert_int_equal(RUN(check, recording, "--max-leak", "1G", "--max-dropped", "14"), 1);
}

static void what_is_no_event_has_no_budget(void **state)
{
	(void)state;
	set_loss(0, "names", 7, false, "names of things");
	write_with(1, 130, 130, 0);
	assert_int_equal(RUN(check, recording, "--max-leak", "1G", "--max-dropped", "100"), 1);
	assert_int_equal(RUN(check, recording, "--max-leak", "1G", "--allow-loss"), 0);
}

static void a_complete_recording_reports_no_loss(void **state)
{
	cJSON *json;

	(void)state;
	write_with(0, 130, 130, 0);
	assert_int_equal(RUN(leaks, recording), 0);
	assert_null(strstr(output, "Incomplete"));
	assert_int_equal(RUN(leaks, recording, "--json"), 0);
	json = parse_output();
	assert_true(cJSON_IsTrue(
		cJSON_GetObjectItem(cJSON_GetObjectItem(json, "recording"), "complete")));
	cJSON_Delete(json);
	assert_int_equal(RUN(check, recording, "--max-leak", "1G"), 0);
}

/* Numbers that contradict each other are nobody's excuse. */
static void what_does_not_add_up_is_lost(void **state)
{
	(void)state;
	write_with(0, 131, 130, 0);
	assert_int_equal(RUN(leaks, recording), 0);
	assert_true(begins_with("Incomplete: 1 event that are neither delivered nor dropped"));
	set_loss(0, "ring_full", 3, true, "events that found no room");
	write_with(1, 140, 130, 10);
	assert_int_equal(RUN(leaks, recording), 0);
	assert_true(begins_with(
		"Incomplete: 10 of 140 events were lost (7 events that were lost without a cause, "
		"3 events that found no room)"));
}

/*
 * Before format 2 had causes, these were in a counter, and neither among those produced nor among
 * those dropped.
 */
static void events_that_old_recordings_did_not_count_are_counted(void **state)
{
	static struct fixture fixture;
	Torsh__Counter counter = TORSH__COUNTER__INIT, *counters = &counter;
	static char name[] = "interrupts_lost";
	cJSON *json, *events;

	(void)state;
	fixture_start(&fixture, 1, 100);
	set_events(&fixture.process, 100, 98, 2);
	counter.name = name;
	counter.has_value = 1;
	counter.value = 5;
	fixture.process.n_counters = 1;
	fixture.process.counters = &counters;
	fixture_write(recording, &fixture, 1, 1000);
	fixture_free(&fixture);
	assert_int_equal(RUN(leaks, recording, "--json"), 0);
	json = parse_output();
	events = cJSON_GetObjectItem(json, "events");
	assert_int_equal(number_of(events, "produced"), 105);
	assert_int_equal(number_of(events, "delivered"), 98);
	assert_int_equal(number_of(events, "dropped"), 7);
	cJSON_Delete(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_report_begins_with_what_was_lost),
		cmocka_unit_test(a_check_fails_unless_losses_are_allowed),
		cmocka_unit_test(what_is_no_event_has_no_budget),
		cmocka_unit_test(a_complete_recording_reports_no_loss),
		cmocka_unit_test(what_does_not_add_up_is_lost),
		cmocka_unit_test(events_that_old_recordings_did_not_count_are_counted),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
