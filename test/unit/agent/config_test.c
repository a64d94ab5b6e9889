/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/process/config.h"
#include "agent/wire/event.h"

#include <stdbool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/launch/launcher.h"
#include "agent/process/text_buffer.h"

static char printed[16384];

/* Reads the variables with stderr redirected into `printed`. */
static void read_config(char *const *environment)
{
	FILE *file = tmpfile();
	int saved = dup(2);
	long n;

	assert_non_null(file);
	dup2(fileno(file), 2);
	torsh_config_read(environment);
	dup2(saved, 2);
	close(saved);
	rewind(file);
	n = (long)fread(printed, 1, sizeof(printed) - 1, file);
	printed[n] = '\0';
	fclose(file);
}

static int restore_defaults(void **state)
{
	static struct config defaults;
	static bool is_known;

	(void)state;
	if (!is_known)
		defaults = torsh_config;
	is_known = true;
	torsh_config = defaults;
	return 0;
}

static void nothing_set_is_the_documented_default(void **state)
{
	char *none[] = {"PATH=/bin", NULL};

	(void)state;
	read_config(none);
	assert_string_equal(printed, "");
	assert_int_equal(torsh_config.enabled, 1);
	assert_int_equal(torsh_config.follow, 1);
	assert_int_equal(torsh_config.summary, 1);
	assert_int_equal(torsh_config.record.mode, RECORD_FOLDED);
	assert_int_equal(torsh_config.keep.slow_percent, 200);
	assert_true(torsh_config.keep.on_memory);
	assert_true(torsh_config.keep.hang_ns == UINT64_C(300000000000));
	assert_int_equal(torsh_config.ring_bytes, 1 << 20);
	assert_int_equal(torsh_config.activities,
			 ACTIVITY_HEAP | ACTIVITY_VM | ACTIVITY_PYTHON | ACTIVITY_TORCH |
				 ACTIVITY_CUDA | ACTIVITY_NVTX | ACTIVITY_ITT | ACTIVITY_MPI);
	assert_int_equal(torsh_config.record_shapes, 1);
	assert_int_equal(torsh_config.with_modules, 1);
	assert_int_equal(torsh_config.operator_stacks, 0);
	assert_null(torsh_config.output);
}

static struct record_config record_of(const char *value)
{
	struct record_config record = {.mode = N_RECORD_MODES};

	torsh_config_record(value, &record);
	return record;
}

static void a_flight_recorder_has_a_limit(void **state)
{
	static const char *const bad[] = {"ring",    "ring:",	   "ring:0steps",
					  "ring:10", "ring:0s",	   "ring:9999h",
					  "ring:1K", "ring:steps", "ring:-1s"};
	struct record_config record = record_of("ring:90s");

	(void)state;
	assert_int_equal(record.mode, RECORD_LAST_NS);
	assert_true(record.amount == UINT64_C(90000000000));
	record = record_of("ring:20steps");
	assert_int_equal(record.mode, RECORD_LAST_STEPS);
	assert_int_equal(record.amount, 20);
	record = record_of("ring:512M");
	assert_int_equal(record.mode, RECORD_LAST_BYTES);
	assert_int_equal(record.amount, 512 << 20);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(record_of(bad[i]).mode, N_RECORD_MODES);
}

static void causes_of_copies_are_named(void **state)
{
	static const char *const bad[] = {"slow",	"slow:1", "slow:1.05",
					  "slow:2.125", "slow:x", "hang:10ms",
					  "memory:1",	"often",  "slow:2,none"};
	struct keep_config keep;

	(void)state;
	assert_int_equal(torsh_config_keep("slow:2.5,hang:90s", &keep), 0);
	assert_int_equal(keep.slow_percent, 250);
	assert_true(keep.hang_ns == UINT64_C(90000000000));
	assert_false(keep.on_memory);
	assert_int_equal(torsh_config_keep("memory,slow:1.25", &keep), 0);
	assert_int_equal(keep.slow_percent, 125);
	assert_true(keep.on_memory);
	assert_int_equal(torsh_config_keep("none", &keep), 0);
	assert_int_equal(keep.slow_percent + keep.hang_ns + keep.on_memory, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(torsh_config_keep(bad[i], &keep), -1);
}

static void values_are_taken(void **state)
{
	char *set[] = {"TORSH_PROFILER_ENABLED=0",
		       "TORSH_PROFILER_OUTPUT=out/%p",
		       "TORSH_PROFILER_RECORD=full",
		       "TORSH_PROFILER_RING=100K",
		       "TORSH_PROFILER_ACTIVITIES=vm",
		       "TORSH_PROFILER_MAX_SIZE=2G",
		       "TORSH_PROFILER_FILTER=py*",
		       "TORSH_PROFILER_CHECK_STACKS=7",
		       "TORSH_PROFILER_ALLOCATOR=jemalloc",
		       "TORSH_PROFILER_HEAP_SEED=12",
		       NULL};

	(void)state;
	read_config(set);
	assert_string_equal(printed, "");
	assert_int_equal(torsh_config.enabled, 0);
	assert_string_equal(torsh_config.output, "out/%p");
	assert_int_equal(torsh_config.record.mode, RECORD_FULL);
	assert_int_equal(torsh_config.ring_bytes, 128 << 10);
	assert_int_equal(torsh_config.activities, ACTIVITY_VM);
	assert_true(torsh_config.max_size_bytes == UINT64_C(2) << 30);
	assert_int_equal(torsh_config.check_stacks, 7);
	assert_int_equal(torsh_config.use_jemalloc, 1);
	assert_int_equal(torsh_config.heap_seed, 12);
	assert_true(torsh_config_matches("python3"));
	assert_false(torsh_config_matches("bash"));
}

static void a_schedule_is_taken_in_any_order(void **state)
{
	char *set[] = {"TORSH_PROFILER_SCHEDULE=repeat:4,active:3,skip:10,warmup:2", NULL};

	(void)state;
	assert_int_equal(torsh_config.schedule.active, 0);
	read_config(set);
	assert_string_equal(printed, "");
	assert_int_equal(torsh_config.schedule.skip, 10);
	assert_int_equal(torsh_config.schedule.wait, 0);
	assert_int_equal(torsh_config.schedule.warmup, 2);
	assert_int_equal(torsh_config.schedule.active, 3);
	assert_int_equal(torsh_config.schedule.repeat, 4);
}

static void every_block_is_recorded_until_samples_are_requested(void **state)
{
	static const struct {
		const char *variable;
		uint64_t rate;
	} settings[] = {
		{"TORSH_PROFILER_HEAP=sampled", 512 << 10},
		{"TORSH_PROFILER_HEAP=sampled:1K", 1024},
		{"TORSH_PROFILER_HEAP=sampled:1G", 1 << 30},
		{"TORSH_PROFILER_HEAP=exact", 0},
	};

	(void)state;
	assert_int_equal(torsh_config.heap_rate, 0);
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		char *set[] = {(char *)(uintptr_t)settings[i].variable, NULL};

		read_config(set);
		assert_string_equal(printed, "");
		assert_int_equal(torsh_config.heap_rate, settings[i].rate);
	}
}

static void counters_are_off_until_requested(void **state)
{
	static const struct {
		const char *variable;
		uint32_t mode, n_passes;
		uint64_t interval_ns;
	} settings[] = {
		{"TORSH_PROFILER_COUNTERS=operators", COUNTERS_OF_OPERATORS, 1, 1000000},
		{"TORSH_PROFILER_COUNTERS=operators:2", COUNTERS_OF_OPERATORS, 2, 1000000},
		{"TORSH_PROFILER_COUNTERS=operators:full", COUNTERS_OF_OPERATORS,
		 COUNTERS_ALL_PASSES, 1000000},
		{"TORSH_PROFILER_COUNTERS=timeline", COUNTERS_OF_TIMELINE, 1, 1000000},
		{"TORSH_PROFILER_COUNTERS=timeline:50us", COUNTERS_OF_TIMELINE, 1, 50000},
		{"TORSH_PROFILER_COUNTERS=timeline:20ms", COUNTERS_OF_TIMELINE, 1, 20000000},
		{"TORSH_PROFILER_COUNTERS=timeline:1s", COUNTERS_OF_TIMELINE, 1, 1000000000},
		{"TORSH_PROFILER_COUNTERS=off", COUNTERS_OFF, 1, 1000000},
	};

	(void)state;
	assert_int_equal(torsh_config.counters.mode, COUNTERS_OFF);
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		char *set[] = {(char *)(uintptr_t)settings[i].variable, NULL};

		read_config(set);
		assert_string_equal(printed, "");
		assert_int_equal(torsh_config.counters.mode, settings[i].mode);
		assert_int_equal(torsh_config.counters.n_passes, settings[i].n_passes);
		assert_int_equal(torsh_config.counters.interval_ns, settings[i].interval_ns);
	}
}

static void kinds_are_forwarded_if_they_are_named(void **state)
{
	static const struct {
		const char *variable;
		uint32_t forward;
	} settings[] = {
		{"TORSH_PROFILER_FORWARD=operators", FORWARD_OPERATORS},
		{"TORSH_PROFILER_FORWARD=steps,modules", FORWARD_STEPS | FORWARD_MODULES},
		{"TORSH_PROFILER_FORWARD=none", 0},
		{"TORSH_PROFILER_FORWARD=none,steps", 0},
		{"TORSH_PROFILER_FORWARD=", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		char *set[] = {(char *)(uintptr_t)settings[i].variable, NULL};

		read_config(set);
		assert_int_equal(torsh_config.forward, settings[i].forward);
		assert_int_equal(strstr(printed, "operators,modules,steps") != NULL, i > 2);
	}
}

static void counters_without_cuda_are_reported_as_none(void **state)
{
	char *set[] = {"TORSH_PROFILER_COUNTERS=operators", "TORSH_PROFILER_ACTIVITIES=heap", NULL};

	(void)state;
	read_config(set);
	assert_non_null(strstr(
		printed, "TORSH_PROFILER_COUNTERS: nothing is measured without the activity cuda"));
}

/* ACTIVITIES=nvtx turned PyTorch on too, once. */
static void each_activity_is_one_of_its_own(void **state)
{
	static const char *const names[] = {"heap", "vm",  "python", "torch",
					    "nvtx", "itt", "mpi",    "samples"};
	uint32_t seen = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char text[64];
		char *set[] = {text, NULL};

		snprintf(text, sizeof(text), "TORSH_PROFILER_ACTIVITIES=%s", names[i]);
		read_config(set);
		assert_int_equal(__builtin_popcount(torsh_config.activities), 1);
		assert_int_equal(seen & torsh_config.activities, 0);
		seen |= torsh_config.activities;
	}
	/* PyTorch's own word. */
	read_config((char *[]){"TORSH_PROFILER_ACTIVITIES=cpu", NULL});
	assert_int_equal(torsh_config.activities, seen);
}

/* Found at the end of a run of days, it would have been in vain. */
static void what_would_be_refused_at_the_end_is_refused_at_once(void **state)
{
	char *set[] = {"TORSH_PROFILER_EXPORT_FORMAT=chrome,webpage",
		       "TORSH_PROFILER_ACTIVITIES=pref", NULL};

	(void)state;
	read_config(set);
	assert_non_null(strstr(
		printed,
		"TORSH_PROFILER_EXPORT_FORMAT=chrome,webpage is not understood and is ignored; accepted: "));
	assert_null(torsh_config.export_formats);
	assert_non_null(strstr(printed, "TORSH_PROFILER_ACTIVITIES=pref is not understood"));
	assert_true(torsh_config.activities & ACTIVITY_HEAP &&
		    torsh_config.activities & ACTIVITY_CUDA);
}

static void profile_memory_0_records_no_memory(void **state)
{
	char *set[] = {"TORSH_PROFILER_PROFILE_MEMORY=0", NULL};

	(void)state;
	read_config(set);
	assert_int_equal(torsh_config.activities & (ACTIVITY_HEAP | ACTIVITY_VM), 0);
}

static void bad_values_are_named_and_leave_the_default(void **state)
{
	static const char *const bad[][2] = {
		{"TORSH_PROFILER_ENABLED=yes", "0, 1, or dormant"},
		{"TORSH_PROFILER_RING=1K", "from 64K to 256M"},
		{"TORSH_PROFILER_RING=99999999999999999999", "from 64K to 256M"},
		{"TORSH_PROFILER_RECORD=all", "folded, full, or ring:TIME"},
		{"TORSH_PROFILER_ACTIVITIES=heap,foo", "heap,vm,python"},
		{"TORSH_PROFILER_MAX_SIZE=12X", "10M, 2G"},
		{"TORSH_PROFILER_MAX_SIZE=", "10M, 2G"},
		{"TORSH_PROFILER_ALLOCATOR=tcmalloc", "system or jemalloc"},
		{"TORSH_PROFILER_EXPORT_FORMAT=pdf", "chrome perfetto"},
		{"TORSH_PROFILER_CHECK_STACKS=-1", "a number"},
		{"TORSH_PROFILER_HEAP=sample", "exact, sampled, or sampled:SIZE"},
		{"TORSH_PROFILER_HEAP=sampled:", "exact, sampled, or sampled:SIZE"},
		{"TORSH_PROFILER_HEAP=sampled:1023", "exact, sampled, or sampled:SIZE"},
		{"TORSH_PROFILER_HEAP=sampled:2G", "exact, sampled, or sampled:SIZE"},
		{"TORSH_PROFILER_HEAP=512K", "exact, sampled, or sampled:SIZE"},
		{"TORSH_PROFILER_HEAP_SEED=-1", "a number"},
		{"TORSH_PROFILER_COUNTERS=", "operators:2"},
		{"TORSH_PROFILER_COUNTERS=on", "operators:2"},
		{"TORSH_PROFILER_COUNTERS=operators:3", "operators:2"},
		{"TORSH_PROFILER_COUNTERS=timeline:", "timeline:INTERVAL of 50us to 1s"},
		{"TORSH_PROFILER_COUNTERS=timeline:1", "timeline:INTERVAL of 50us to 1s"},
		{"TORSH_PROFILER_COUNTERS=timeline:49us", "timeline:INTERVAL of 50us to 1s"},
		{"TORSH_PROFILER_COUNTERS=timeline:2s", "timeline:INTERVAL of 50us to 1s"},
		{"TORSH_PROFILER_COUNTERS=timeline:99999999999999999999s",
		 "timeline:INTERVAL of 50us to 1s"},
		{"TORSH_PROFILER_SCHEDULE=", "skip:N,wait:N"},
		{"TORSH_PROFILER_SCHEDULE=wait:1", "an active of at least 1"},
		{"TORSH_PROFILER_SCHEDULE=active:0", "an active of at least 1"},
		{"TORSH_PROFILER_SCHEDULE=active:1,", "skip:N,wait:N"},
		{"TORSH_PROFILER_SCHEDULE=active:1,,wait:1", "skip:N,wait:N"},
		{"TORSH_PROFILER_SCHEDULE=active:1,active:2", "skip:N,wait:N"},
		{"TORSH_PROFILER_SCHEDULE=active:4294967296", "skip:N,wait:N"},
		{"TORSH_PROFILER_SCHEDULE=active:-1", "skip:N,wait:N"},
		{"TORSH_PROFILER_SCHEDULE=active", "skip:N,wait:N"},
		{"TORSH_PROFILER_SCHEDULE=activ:1", "skip:N,wait:N"},
		{"TORSH_PROFILER_SCHEDULE=active:1 ", "skip:N,wait:N"},
		{"TORSH_PROFILER_WITH_FLOPS=no", "0 or 1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct config before = torsh_config;
		char *set[] = {(char *)bad[i][0], NULL};

		read_config(set);
		assert_non_null(strstr(printed, bad[i][0]));
		assert_non_null(strstr(printed, bad[i][1]));
		assert_memory_equal(&before, &torsh_config, sizeof(before));
	}
}

static void an_unknown_variable_is_named_with_what_there_is(void **state)
{
	char *set[] = {"TORSH_PROFILER_OUPUT=x", NULL};

	(void)state;
	read_config(set);
	assert_non_null(strstr(printed, "TORSH_PROFILER_OUPUT is not a variable"));
	assert_non_null(strstr(printed, " OUTPUT "));
	assert_null(torsh_config.output);
}

static void counters_are_recorded_only_if_they_are_named(void **state)
{
	char *host[] = {"TORSH_PROFILER_ACTIVITIES=cpu,cuda,waits", NULL};
	char *named[] = {"TORSH_PROFILER_ACTIVITIES=heap,perf", NULL};

	(void)state;
	assert_false(torsh_config.activities & ACTIVITY_PERF);
	read_config(host);
	assert_false(torsh_config.activities & ACTIVITY_PERF);
	read_config(named);
	assert_string_equal(printed, "");
	assert_int_equal(torsh_config.activities, ACTIVITY_HEAP | ACTIVITY_PERF);
}

static void waits_are_recorded_only_if_they_are_named(void **state)
{
	char *host[] = {"TORSH_PROFILER_ACTIVITIES=cpu,cuda", NULL};
	char *named[] = {"TORSH_PROFILER_ACTIVITIES=heap,waits", NULL};

	(void)state;
	assert_false(torsh_config.activities & ACTIVITY_WAITS);
	read_config(host);
	assert_false(torsh_config.activities & ACTIVITY_WAITS);
	read_config(named);
	assert_string_equal(printed, "");
	assert_int_equal(torsh_config.activities, ACTIVITY_HEAP | ACTIVITY_WAITS);
}

static void nccl_is_recorded_in_two_depths(void **state)
{
	char *calls[] = {"TORSH_PROFILER_ACTIVITIES=cpu,nccl", NULL};
	char *full[] = {"TORSH_PROFILER_ACTIVITIES=nccl:full", NULL};
	char *wrong[] = {"TORSH_PROFILER_ACTIVITIES=nccl:some", NULL};

	(void)state;
	read_config(calls);
	assert_string_equal(printed, "");
	assert_int_equal(torsh_config.activities,
			 ACTIVITIES_OF_HOST | ACTIVITY_SAMPLES | ACTIVITY_NCCL);
	read_config(full);
	assert_string_equal(printed, "");
	assert_int_equal(torsh_config.activities, ACTIVITY_NCCL | ACTIVITY_NCCL_FULL);
	read_config(wrong);
	assert_non_null(strstr(printed, "nccl:some is not understood"));
}

static void a_child_of_a_session_does_not_complain_again(void **state)
{
	char *set[] = {"TORSH_PROFILER_NONSENSE=1", "TORSH_PROFILER_ENABLED=2",
		       "TORSH_PROFILER_SESSION=/tmp/s", NULL};

	(void)state;
	read_config(set);
	assert_string_equal(printed, "");
	assert_string_equal(torsh_config.session, "/tmp/s");
}

static void patterns_expand(void **state)
{
	char buffer[256], expected[256];
	struct text text = TEXT_IN(buffer);

	(void)state;
	setenv("RANK", "3", 1);
	torsh_config_expand("a-%n-%p-%r-%%-%x-%", "prog", &text);
	snprintf(expected, sizeof(expected), "a-prog-%d-3-%%-%%x-%%", getpid());
	assert_string_equal(buffer, expected);
	unsetenv("RANK");
}

static void labels_are_texts_with_different_names(void **state)
{
	static const char *const good[] = {"a=1", "model=llama,run=17", "a-b.c_D=x y=z"};
	static const char *const bad[] = {"",	     "a",     "a=",   "=1",    "a=1,",
					  "a=1,a=2", "a b=1", ",a=1", "a=1\n", "b=1,ab=2,b=3"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(torsh_launcher_are_labels(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(torsh_launcher_are_labels(bad[i]));
	assert_true(torsh_launcher_are_labels("ab=1,b=2,a=3"));
}

static void the_innermost_launcher_describes_the_process(void **state)
{
	static const char expected[] =
		"launcher=openmpi\0world_size=4\0local_rank=1\0label.a=1\0label.b=2";
	char buffer[256];
	struct text text = TEXT_IN(buffer);

	(void)state;
	setenv("SLURM_PROCID", "0", 1);
	setenv("SLURM_NODEID", "0", 1);
	setenv("OMPI_COMM_WORLD_RANK", "3", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
	setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
	torsh_launcher_put(&text, "a=1,b=2");
	assert_string_equal(torsh_launcher_rank(), "3");
	assert_int_equal(text.length, sizeof(expected));
	assert_memory_equal(buffer, expected, sizeof(expected));
	unsetenv("SLURM_PROCID");
	unsetenv("SLURM_NODEID");
	unsetenv("OMPI_COMM_WORLD_RANK");
	unsetenv("OMPI_COMM_WORLD_SIZE");
	unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
}

static void text_that_does_not_fit_is_cut_and_ended(void **state)
{
	char buffer[8];
	struct text text = TEXT_IN(buffer);

	(void)state;
	torsh_text_put(&text, "abc");
	torsh_text_put_number(&text, UINT64_MAX);
	assert_string_equal(buffer, "abc1844");
	assert_true(text.is_cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_set_is_the_documented_default, restore_defaults),
		cmocka_unit_test(a_flight_recorder_has_a_limit),
		cmocka_unit_test(causes_of_copies_are_named),
		cmocka_unit_test_setup(values_are_taken, restore_defaults),
		cmocka_unit_test(labels_are_texts_with_different_names),
		cmocka_unit_test(the_innermost_launcher_describes_the_process),
		cmocka_unit_test_setup(a_schedule_is_taken_in_any_order, restore_defaults),
		cmocka_unit_test_setup(every_block_is_recorded_until_samples_are_requested,
				       restore_defaults),
		cmocka_unit_test_setup(counters_are_off_until_requested, restore_defaults),
		cmocka_unit_test_setup(kinds_are_forwarded_if_they_are_named, restore_defaults),
		cmocka_unit_test_setup(counters_without_cuda_are_reported_as_none,
				       restore_defaults),
		cmocka_unit_test_setup(each_activity_is_one_of_its_own, restore_defaults),
		cmocka_unit_test_setup(what_would_be_refused_at_the_end_is_refused_at_once,
				       restore_defaults),
		cmocka_unit_test_setup(profile_memory_0_records_no_memory, restore_defaults),
		cmocka_unit_test_setup(bad_values_are_named_and_leave_the_default,
				       restore_defaults),
		cmocka_unit_test_setup(an_unknown_variable_is_named_with_what_there_is,
				       restore_defaults),
		cmocka_unit_test_setup(counters_are_recorded_only_if_they_are_named,
				       restore_defaults),
		cmocka_unit_test_setup(waits_are_recorded_only_if_they_are_named, restore_defaults),
		cmocka_unit_test_setup(nccl_is_recorded_in_two_depths, restore_defaults),
		cmocka_unit_test_setup(a_child_of_a_session_does_not_complain_again,
				       restore_defaults),
		cmocka_unit_test_setup(patterns_expand, restore_defaults),
		cmocka_unit_test(text_that_does_not_fit_is_cut_and_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
