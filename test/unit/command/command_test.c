/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The reading commands on a recording with known contents: their output, and the schemas that it
 * matches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/fixtures/command_fixture.h"
#include "test/unit/fixtures/recording_fixture.h"

static char directory[] = "/tmp/torsh-command-XXXXXX";

/* A process with three leaks, bookkeeping and a peak. */
static void make_first(struct fixture *first)
{
	static char *arguments[] = {"program", "--odd=\xff\"\n"};
	uint32_t stack;

	fixture_start(first, 1, 100);
	first->process.n_arguments = 2;
	first->process.arguments = arguments;
	first->process.has_produced = first->process.has_delivered = 1;
	first->process.produced = first->process.delivered = 1234;
	first->process.has_rss_peak_bytes = 1;
	first->process.rss_peak_bytes = 1 << 20;
	stack = fixture_stack(first, "leak@/opt/program main@/opt/program");
	fixture_live(first, stack, 10, 10240);
	fixture_total(first, stack, 1, 4, 4096, 6, 6144);
	fixture_survivors(first, stack, UINT64_MAX, 96, 48 * 1024, 1);
	stack = fixture_stack(first, "_ZN1a4leakEv@/opt/program main@/opt/program");
	fixture_live(first, stack, 1, 100);
	fixture_total(first, stack, 2, 1, 100, 0, 0);
	fixture_survivors(first, stack, 0xffffff, 8, 8000, 0);
	stack = fixture_stack(first, "?@/opt/program main@/opt/program");
	fixture_live(first, stack, 2, 30);
	fixture_total(first, stack, 2, 2, 30, 0, 0);
	stack = fixture_stack(first, "?@/lib/libc.so.6 printf@/lib/libc.so.6 main@/opt/program");
	fixture_live(first, stack, 1, 1024);
	fixture_total(first, stack, 2, 1, 1024, 0, 0);
	first->heap.has_peak_number = first->heap.has_peak_bytes = first->heap.has_peak_blocks = 1;
	first->heap.peak_number = 2;
	first->heap.peak_bytes = 4096 + 6144 + 100 + 30 + 1024;
	first->heap.peak_blocks = 14;
}

/* Its child with a smaller peak. */
static void make_child(struct fixture *child)
{
	uint32_t stack;

	fixture_start(child, 2, 200);
	child->process.has_forked_from = 1;
	child->process.forked_from = 1;
	child->process.end = TORSH__PROCESS__END_KIND__SIGNALED;
	child->process.end_code = 9;
	stack = fixture_stack(child, "leak@/opt/program main@/opt/program");
	fixture_live(child, stack, 3, 300);
	fixture_total(child, stack, 1, 3, 300, 0, 0);
	child->heap.has_peak_number = child->heap.has_peak_bytes = 1;
	child->heap.peak_number = 1;
	child->heap.peak_bytes = 300;
}

/* A program that the child started, which was not followed. */
static void make_unfollowed(struct fixture *unfollowed)
{
	fixture_start(unfollowed, 1, 300);
	unfollowed->not_followed = "it is of another kind";
	unfollowed->process.has_parent_pid = unfollowed->process.has_start_ns = 1;
	unfollowed->process.parent_pid = 200;
	unfollowed->process.start_ns = 1000;
	unfollowed->process.has_end_ns = unfollowed->process.has_end_code = 0;
	unfollowed->process.end = TORSH__PROCESS__END_KIND__VANISHED;
}

static int write_recording(void **state)
{
	static struct fixture fixtures[3];
	struct fixture *first = &fixtures[0], *child = &fixtures[1], *unfollowed = &fixtures[2];
	char path[256];

	(void)state;
	if (!mkdtemp(directory))
		return -1;
	make_first(first);
	make_child(child);
	make_unfollowed(unfollowed);
	snprintf(path, sizeof(path), "%s/new.torsh", directory);
	fixture_write(path, fixtures, 3, 2000);
	snprintf(path, sizeof(path), "%s/old.torsh", directory);
	fixture_write(path, child, 1, 1000);
	fixture_free(first);
	fixture_free(child);
	fixture_free(unfollowed);
	return 0;
}

static int remove_recording(void **state)
{
	char path[256];

	(void)state;
	free(output);
	snprintf(path, sizeof(path), "%s/new.torsh", directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/old.torsh", directory);
	unlink(path);
	return rmdir(directory);
}

static void leaks_are_those_of_all_processes(void **state)
{
	cJSON *json;
	const cJSON *leak;

	(void)state;
	assert_int_equal(RUN(leaks, directory, "--json"), 0);
	assert_schema("leaks");
	json = parse_output();
	assert_int_equal(number_of(json, "pid"), 100);
	assert_int_equal(number_of(json, "leaked_bytes"), 10240 + 100 + 30 + 300);
	assert_int_equal(number_of(json, "leaked_blocks"), 16);
	assert_int_equal(number_of(cJSON_GetObjectItem(json, "bookkeeping"), "bytes"), 1024);
	assert_int_equal(number_of(cJSON_GetObjectItem(json, "events"), "produced"), 1234);
	leak = item_of(json, "leaks", 0);
	assert_int_equal(number_of(leak, "bytes"), 10240);
	assert_int_equal(number_of(leak, "usable_bytes"), 10320);
	assert_string_equal(text_of(item_of(leak, "stack", 0), "function"), "leak");
	assert_string_equal(text_of(item_of(leak, "stack", 1), "function"), "main");
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(item_of(leak, "stack", 0), "line")));
	leak = item_of(json, "leaks", 1);
	assert_int_equal(number_of(leak, "pid"), 200);
	leak = item_of(json, "leaks", 2);
	assert_string_equal(text_of(item_of(leak, "stack", 0), "function"), "a::leak()");
	leak = item_of(json, "leaks", 3);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(item_of(leak, "stack", 0), "function")));
	assert_string_equal(text_of(item_of(json, "processes", 0), "end"), "exit 0");
	assert_string_equal(text_of(item_of(json, "processes", 1), "end"), "signal 9");
	assert_string_equal(item_of(item_of(json, "processes", 0), "arguments", 1)->valuestring,
			    "--odd=\xef\xbf\xbd\"\n");
	cJSON_Delete(json);
}

static void options_narrow_leaks_down(void **state)
{
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(leaks, directory, "--json", "--pid", "200"), 0);
	json = parse_output();
	assert_int_equal(number_of(json, "pid"), 200);
	assert_int_equal(number_of(json, "leaked_bytes"), 300);
	cJSON_Delete(json);
	assert_int_equal(
		RUN(leaks, directory, "--json", "--min-bytes", "50", "--sort=blocks", "--limit=2"),
		0);
	assert_schema("leaks");
	json = parse_output();
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "leaks")), 2);
	assert_int_equal(number_of(item_of(json, "leaks", 1), "bytes"), 300);
	assert_int_equal(number_of(cJSON_GetObjectItem(json, "omitted"), "groups"), 2);
	assert_int_equal(number_of(cJSON_GetObjectItem(json, "omitted"), "bytes"), 130);
	cJSON_Delete(json);
	assert_int_equal(RUN(leaks, directory, "--json", "--depth=1"), 0);
	json = parse_output();
	assert_int_equal(
		cJSON_GetArraySize(cJSON_GetObjectItem(item_of(json, "leaks", 0), "stack")), 1);
	cJSON_Delete(json);
}

static void growth_has_its_steps(void **state)
{
	const cJSON *grown;
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(leaks, directory, "--growth", "--json"), 0);
	assert_schema("leaks-growth");
	json = parse_output();
	assert_int_equal(number_of(json, "steps"), 65);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "growth")), 1);
	grown = item_of(json, "growth", 0);
	assert_int_equal(number_of(grown, "bytes_per_step"), 1024);
	assert_int_equal(number_of(grown, "blocks_per_step"), 2);
	assert_int_equal(number_of(grown, "steps"), 48);
	assert_string_equal(text_of(grown, "kind"), "tensor");
	assert_string_equal(text_of(item_of(grown, "stack", 0), "function"), "leak");
	cJSON_Delete(json);
	assert_int_equal(RUN(leaks, directory, "--growth"), 0);
	assert_non_null(strstr(output, "What grows, over 65 steps"));
	assert_non_null(strstr(output, "1.00 KiB/step   program leak"));
	/* The child reported no steps. */
	assert_int_equal(RUN(leaks, directory, "--growth", "--pid", "200"), 0);
	assert_non_null(strstr(output, "No steps are known"));
}

static void the_peak_is_that_of_the_highest_process(void **state)
{
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(peak, directory, "--json"), 0);
	assert_schema("peak");
	json = parse_output();
	assert_int_equal(number_of(json, "pid"), 100);
	assert_int_equal(number_of(json, "peak_bytes"), 11394);
	assert_int_equal(number_of(json, "attributed_bytes"), 11394);
	assert_int_equal(number_of(json, "rss_peak_bytes"), 1 << 20);
	assert_int_equal(number_of(item_of(json, "holders", 0), "bytes"), 10240);
	assert_int_equal(number_of(item_of(json, "holders", 1), "bytes"), 1024);
	cJSON_Delete(json);
	assert_int_equal(RUN(peak, directory, "--json", "--pid=200"), 0);
	json = parse_output();
	assert_int_equal(number_of(json, "peak_bytes"), 300);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "rss_peak_bytes")));
	cJSON_Delete(json);
}

static void reports_for_people_name_what_was_left_out(void **state)
{
	(void)state;
	assert_int_equal(RUN_WITH_ERRORS(leaks, directory), 0);
	assert_non_null(strstr(output, "has 2 sessions; this is the newest, new.torsh"));
	assert_non_null(strstr(output, "10.4 KiB leaked in 16 blocks, at 3 lines of yours"));
	assert_non_null(strstr(output, "Kept: by libraries 1.00 KiB"));
	assert_int_equal(RUN(leaks, directory, "--verbose"), 0);
	assert_non_null(
		strstr(output, "left out: 1.00 KiB (1,024 bytes) in 1 block of bookkeeping"));
	assert_non_null(strstr(output, "C library: stdio buffers"));
	assert_non_null(strstr(output, "events: 1,234 produced, 1,234 delivered, 0 dropped"));
	assert_null(strstr(output, "\033["));
	assert_int_equal(RUN(peak, directory), 0);
	assert_non_null(strstr(output, "peak of the heap: 11.1 KiB (11,394 bytes) in 14 blocks"));
	assert_int_equal(RUN(report, directory, "-v"), 0);
	assert_non_null(strstr(output, "Leaks: 10.4 KiB (10,670 bytes) in 16 blocks not freed"));
	assert_non_null(strstr(output, "Next: torsh leaks"));
}

/* Its end and all that would have been measured is null, not 0. */
static void programs_that_were_not_followed_are_listed(void **state)
{
	static const char *const unknown[] = {"end_ns", "leaked_bytes", "at_exec_blocks",
					      "inherited", "rank"};
	const cJSON *process;
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(leaks, directory, "--json"), 0);
	json = parse_output();
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "processes")), 3);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(item_of(json, "processes", 1), "followed")));
	process = item_of(json, "processes", 2);
	assert_true(cJSON_IsFalse(cJSON_GetObjectItem(process, "followed")));
	assert_string_equal(text_of(process, "reason"), "it is of another kind");
	assert_string_equal(text_of(process, "end"), "vanished");
	assert_int_equal(number_of(process, "pid"), 300);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_true(cJSON_IsNull(cJSON_GetObjectItem(process, unknown[i])));
	cJSON_Delete(json);
	assert_int_equal(RUN(report, directory, "--tree"), 0);
	assert_non_null(strstr(
		output, "   └─ program (pid 300): from 1 µs, vanished, not followed: it is of"));
	assert_int_equal(RUN(report, directory, "--all"), 0);
	assert_non_null(strstr(
		output, "program (pid 300): vanished; not followed: it is of another kind\n"));
	assert_int_equal(RUN(report, directory), 0);
	assert_non_null(strstr(output, "not followed: program (pid 300): it is of another kind\n"));
	assert_int_equal(RUN_WITH_ERRORS(leaks, directory, "--pid=300"), 2);
	assert_non_null(strstr(output, "process 300 was not followed: it is of another kind"));
	assert_int_equal(RUN_WITH_ERRORS(check, directory, "--max-leak=1G"), 0);
	assert_non_null(strstr(output, "not of programs that were not followed"));
}

static void the_overview_fits_its_schema(void **state)
{
	(void)state;
	assert_int_equal(RUN(report, directory, "--json"), 0);
	assert_schema("report");
}

static void budgets_decide_the_exit_status(void **state)
{
	cJSON *json;

	(void)state;
	assert_int_equal(RUN(check, directory, "--max-leak", "11K", "--max-peak=1M"), 0);
	assert_non_null(strstr(output, "ok     leak"));
	assert_int_equal(RUN(check, directory, "--max-leak", "10K", "--max-dropped=0"), 1);
	assert_non_null(strstr(output, "BROKEN leak"));
	assert_non_null(strstr(output, "ok     dropped"));
	assert_int_equal(RUN(check, directory, "--max-growth=1K"), 0);
	assert_int_equal(RUN(check, directory, "--max-growth=1023"), 1);
	assert_int_equal(RUN(check, directory, "--max-growth=2%"), 2);
	/* The child's resident set was never read. */
	assert_int_equal(RUN(check, directory, "--max-rss", "1G", "--json"), 1);
	assert_schema("check");
	json = parse_output();
	assert_true(cJSON_IsFalse(cJSON_GetObjectItem(json, "passed")));
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(item_of(json, "checks", 0), "value")));
	cJSON_Delete(json);
	assert_int_equal(RUN(check, directory, "--max-rss", "1M", "--pid=100"), 0);
	assert_int_equal(RUN(check, directory), 2);
}

static void dump_prints_an_object_a_line(void **state)
{
	char *line, *rest;
	int n = 0;

	(void)state;
	assert_int_equal(RUN(dump, directory), 0);
	assert_non_null(strstr(output, "\"agent_version\":\"test\""));
	assert_non_null(strstr(output, "{\"stack_totals\":{\"process\":1,"));
	assert_non_null(strstr(output, "{\"end\":{\"complete\":true,"));
	assert_non_null(strstr(output, "{\"unfollowed\":{\"process\":{"));
	assert_non_null(strstr(output, "\"bias\":[\"0x10000000\","));
	for (rest = output; (line = strsep(&rest, "\n")) && *line; n++) {
		struct schema_check check;

		if (!schema_check_text(&check, "tools/schema/dump.json", line))
			fail_msg("%s", check.problem);
	}
	assert_int_equal(n, 2 * 10 + 1 + 2);
}

static void dump_prints_only_what_is_selected(void **state)
{
	char *line, *rest;
	int n_stacks = 0, n_ends = 0;

	(void)state;
	assert_int_equal(RUN(dump, directory, "--only=stacks,end"), 0);
	for (rest = output; (line = strsep(&rest, "\n")) && *line;) {
		bool is_end = strncmp(line, "{\"end\":", 7) == 0;

		assert_true(is_end || strncmp(line, "{\"stacks\":", 10) == 0);
		n_ends += is_end;
		n_stacks += !is_end;
	}
	assert_int_equal(n_ends, 1);
	assert_int_equal(n_stacks, 2);
}

static void wrong_usage_ends_with_2(void **state)
{
	(void)state;
	assert_int_equal(RUN(leaks, "--json"), 2);
	assert_int_equal(RUN(leaks, directory, directory), 2);
	assert_int_equal(RUN(leaks, directory, "--limit=x"), 2);
	assert_int_equal(RUN(leaks, directory, "--min-bytes=-5"), 2);
	assert_int_equal(RUN(leaks, directory, "--sort=name"), 2);
	assert_int_equal(RUN(leaks, directory, "--unheard-of"), 2);
	assert_int_equal(RUN(leaks, directory, "--suppress=/nowhere"), 2);
	assert_int_equal(RUN(leaks, directory, "--pid=999"), 2);
	assert_int_equal(RUN(export, directory), 2);
	assert_int_equal(RUN(export, directory, "--format=svg"), 2);
	assert_int_equal(RUN(export, directory, "--format=folded", "--what=much"), 2);
	assert_int_equal(RUN(dump, "--no-events"), 2);
	assert_int_equal(RUN(dump, directory, "--only=stacks,leaks"), 2);
}

static void what_is_no_recording_ends_with_2_and_a_sentence(void **state)
{
	(void)state;
	assert_int_equal(RUN_WITH_ERRORS(leaks, "/nowhere"), 2);
	assert_non_null(strstr(output, "torsh: /nowhere: No such file or directory"));
	assert_int_equal(RUN_WITH_ERRORS(peak, "tools/schema"), 2);
	assert_non_null(strstr(output, "has no recording"));
	assert_int_equal(RUN_WITH_ERRORS(dump, "tools/schema/peak.json"), 2);
	assert_non_null(strstr(output, "it is not a recording of torsh"));
}

static void a_recording_that_was_cut_is_read_as_far_as_it_goes(void **state)
{
	char from[256], to[256], bytes[65536];
	struct stat status;
	int in, out;

	(void)state;
	snprintf(from, sizeof(from), "%s/new.torsh", directory);
	snprintf(to, sizeof(to), "%s/cut", directory);
	in = open(from, O_RDONLY);
	out = open(to, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(fstat(in, &status), 0);
	assert_true((size_t)status.st_size < sizeof(bytes));
	assert_int_equal(read(in, bytes, sizeof(bytes)), status.st_size);
	assert_true(write(out, bytes, (size_t)status.st_size - 10) > 0);
	close(in);
	close(out);
	assert_int_equal(RUN_WITH_ERRORS(leaks, to), 0);
	assert_non_null(strstr(output, "no whole chunk"));
	assert_non_null(strstr(
		output,
		"Incomplete: the file was cut or the writer was killed before its first checkpoint"));
	assert_non_null(strstr(output, "10.4 KiB leaked in 16 blocks"));
	unlink(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaks_are_those_of_all_processes),
		cmocka_unit_test(options_narrow_leaks_down),
		cmocka_unit_test(growth_has_its_steps),
		cmocka_unit_test(the_peak_is_that_of_the_highest_process),
		cmocka_unit_test(reports_for_people_name_what_was_left_out),
		cmocka_unit_test(programs_that_were_not_followed_are_listed),
		cmocka_unit_test(the_overview_fits_its_schema),
		cmocka_unit_test(budgets_decide_the_exit_status),
		cmocka_unit_test(dump_prints_an_object_a_line),
		cmocka_unit_test(dump_prints_only_what_is_selected),
		cmocka_unit_test(wrong_usage_ends_with_2),
		cmocka_unit_test(what_is_no_recording_ends_with_2_and_a_sentence),
		cmocka_unit_test(a_recording_that_was_cut_is_read_as_far_as_it_goes),
	};

	unsetenv("TORSH_PROFILER_SUPPRESS");
	return cmocka_run_group_tests(tests, write_recording, remove_recording);
}
