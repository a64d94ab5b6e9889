/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What memory controllers move, from the meter's thread or rows with known readings over a
 * recording to the reports: by simulated counters, in place of the kernel's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "test/unit/fixtures/command_fixture.h"
#include "test/unit/fixtures/recording_fixture.h"
#include "tools/recording/read.h"
#include "tools/writer/output/rows/rows.h"
#include "tools/writer/traffic/traffic_meter.h"

#define MS UINT64_C(1000000)
#define STEP_MS 1000u
#define FROM_MS 503u /* of the first reading; they are 10 ms apart */
#define N_READINGS 300u
#define SWITCH 100u /* a row of its own begins there */

static char path[] = "/tmp/torsh-traffic-XXXXXX";
static struct traffic_point points[N_READINGS];
static struct traffic_state counted = {.is_begun = true,
				       .name = "uncore_imc",
				       .n_sources = 4,
				       .n_counters = 8,
				       .counted_share = 0.75};

/* ---- a run with known rates ------------------------------------------------------------------ */

/*
 * Each second from the first on: forward for 120 ms with 10 bytes a ns read, backward from 200 to
 * 400 ms with 20 read and 5 written, an optimizer from 500 to 700 ms. Else 1 and 1.
 */
static void add_ms(uint64_t ms, uint64_t sums[2])
{
	uint64_t in = ms % STEP_MS, read = 1, written = 1;

	if (ms >= STEP_MS && ms < 3 * STEP_MS && in < 120) {
		read = 10;
		written = 0;
	} else if (ms >= STEP_MS && ms < 3 * STEP_MS && in >= 200 && in < 400) {
		read = 20;
		written = 5;
	}
	sums[0] += read * MS;
	sums[1] += written * MS;
}

static void make_points(void)
{
	uint64_t sums[2] = {0}, ms = FROM_MS;

	for (uint32_t i = 0; i < N_READINGS; i++) {
		points[i] = (struct traffic_point){ms * MS, {sums[0], sums[1]}};
		for (uint64_t until = ms + 10; ms < until; ms++)
			add_ms(ms, sums);
	}
}

static void put_steps(struct fixture *fixture)
{
	uint32_t record = 1;

	for (uint64_t at = STEP_MS; at < 3 * STEP_MS; at += STEP_MS, record += 3) {
		uint64_t sequence = at / STEP_MS;

		fixture_push(fixture, at * MS, 0, "net:Linear", NULL, RANGE_BY_MODULE);
		fixture_op(fixture, at * MS + 10, 0, record, "aten::addmm",
			   "float32[32];float32[4,64];float32[64,32];1;1", 0, sequence);
		fixture_op_end(fixture, at * MS + 20, 0, record);
		fixture_pop(fixture, (at + 120) * MS, 0, NULL, RANGE_BY_MODULE);
		fixture_op(fixture, (at + 200) * MS, 0, record + 1, "AddmmBackward0", NULL,
			   OP_BACKWARD, sequence);
		fixture_op_end(fixture, (at + 400) * MS, 0, record + 1);
		fixture_op(fixture, (at + 500) * MS, 0, record + 2, "Optimizer.step#SGD.step", NULL,
			   OP_USER, OP_NO_SEQUENCE);
		fixture_op_end(fixture, (at + 700) * MS, 0, record + 2);
	}
}

/* Write a recording with these rows: n_first of the points, and the others if there are any. */
static void write_rows(const struct traffic_state *state, size_t n_first, size_t n)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct recording_file *file = torsh_recording_create(fd, &(struct recording_limits){0}, 1);
	struct fixture fixture;

	fixture_start(&fixture, 1, 100);
	fixture.process.has_end_ns = 1;
	fixture.process.end_ns = 3300 * MS;
	fixture_thread(&fixture, 100, "main");
	put_steps(&fixture);
	assert_int_equal(fixture_give_session(fixture_take_file, file, 1), 0);
	assert_int_equal(fixture_give(&fixture, fixture_take_file, file), 0);
	if (state)
		torsh_rows_memory_traffic(file, state, points, n_first);
	if (n > n_first)
		torsh_rows_memory_traffic(file, state, points + n_first, n - n_first);
	assert_int_equal(fixture_give_end(fixture_take_file, file), 0);
	torsh_recording_finish(file);
	close(fd);
	fixture_free(&fixture);
}

static cJSON *report_of(const char *command)
{
	if (!strcmp(command, "ops"))
		assert_int_equal(RUN(ops, path, "--json"), 0);
	else if (!strcmp(command, "steps"))
		assert_int_equal(RUN(steps, path, "--json"), 0);
	else
		assert_int_equal(RUN(report, path, "--json"), 0);
	assert_schema(command);
	return parse_output();
}

static const cJSON *member(const cJSON *object, const char *name)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);

	assert_non_null(value);
	return value;
}

/* ---- reports --------------------------------------------------------------------------------- */

static void expect_rates(const cJSON *object, double read, double written)
{
	assert_float_equal(number_of(object, "read_gb_per_s"), read, 1e-5);
	assert_float_equal(number_of(object, "written_gb_per_s"), written, 1e-5);
}

/* The readings of the process's time. */
static void expect_whole(const cJSON *traffic)
{
	const struct traffic_point *first = &points[0], *last = &points[279];
	double ns = (double)(last->at_ns - first->at_ns);

	assert_int_equal(last->at_ns, 3293 * MS);
	assert_string_equal(text_of(traffic, "of"), "machine");
	assert_string_equal(text_of(traffic, "source"), "uncore_imc");
	assert_int_equal(number_of(traffic, "counters"), 8);
	assert_float_equal(number_of(traffic, "ns"), ns, 0.5);
	assert_float_equal(number_of(traffic, "read_bytes"), (double)last->sums[0], 0.5);
	assert_float_equal(number_of(traffic, "written_bytes"), (double)last->sums[1], 0.5);
	expect_rates(traffic, (double)last->sums[0] / ns, (double)last->sums[1] / ns);
	assert_float_equal(number_of(traffic, "highest_gb_per_s"), 25, 1e-9);
	assert_float_equal(number_of(traffic, "counted_share"), 0.75, 1e-9);
	assert_true(cJSON_IsNull(member(traffic, "reason")));
}

static void reports_have_the_machines_traffic(void **state)
{
	static const char *const commands[] = {"ops", "steps", "report"};
	const cJSON *traffic, *roofline;
	cJSON *json;

	(void)state;
	write_rows(&counted, SWITCH, N_READINGS);
	for (size_t i = 0; i < 3; i++) {
		json = report_of(commands[i]);
		traffic = member(json, "memory_traffic");
		expect_whole(traffic);
		if (i == 0) {
			roofline = member(json, "cpu_roofline");
			assert_float_equal(number_of(roofline, "memory_gb_per_s"),
					   (number_of(traffic, "read_bytes") +
					    number_of(traffic, "written_bytes")) /
						   number_of(traffic, "ns"),
					   1e-5);
			assert_float_equal(number_of(roofline, "memory_highest_gb_per_s"), 25,
					   1e-9);
			assert_true(cJSON_IsNull(member(roofline, "memory_reason")));
		}
		cJSON_Delete(json);
	}
}

static void steps_and_phases_have_what_lies_in_them(void **state)
{
	const cJSON *phases;
	cJSON *json;

	(void)state;
	write_rows(&counted, SWITCH, N_READINGS);
	json = report_of("steps");
	phases = member(json, "memory_traffic_of_phases");
	expect_rates(member(phases, "forward"), 10, 0);
	expect_rates(member(phases, "backward"), 20, 5);
	expect_rates(member(phases, "optimizer"), 1, 1);
	/* Of both steps: from 1.003 to 1.113 s, and a second later. */
	assert_int_equal(number_of(member(phases, "forward"), "ns"), 2 * 110 * MS);
	assert_true(cJSON_IsNull(member(phases, "loss")));
	for (int i = 0; i < cJSON_GetArraySize(member(json, "steps")); i++) {
		const cJSON *step = item_of(json, "steps", i);
		const cJSON *rates = member(step, "memory_traffic");

		assert_true(number_of(rates, "ns") <= number_of(step, "duration_ns"));
		assert_true(number_of(rates, "read_gb_per_s") > 1);
	}
	cJSON_Delete(json);
	assert_int_equal(RUN(steps, path), 0);
	assert_non_null(strstr(output, "of the whole machine, all programs"));
	assert_non_null(strstr(output, "in backward: 20 GB/s read, 5 GB/s written"));
	assert_int_equal(RUN(report, path), 0);
	assert_non_null(strstr(output, "of the whole machine, all programs"));
}

/* Returns the reason; the figures are null. */
static const char *reason_of(const struct traffic_state *state, size_t n, cJSON **json)
{
	static const char *const unknown[] = {"read_gb_per_s", "written_gb_per_s", "read_bytes",
					      "written_bytes", "highest_gb_per_s"};
	const cJSON *traffic;

	write_rows(state, n, n);
	*json = report_of("ops");
	traffic = member(*json, "memory_traffic");
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		assert_true(cJSON_IsNull(member(traffic, unknown[i])));
	assert_int_equal(number_of(traffic, "ns"), 0);
	assert_string_equal(text_of(member(*json, "cpu_roofline"), "memory_reason"),
			    text_of(traffic, "reason"));
	return text_of(traffic, "reason");
}

static void what_is_unknown_has_a_reason(void **state)
{
	static const struct {
		struct traffic_state state;
		size_t n;
		const char *words;
	} cases[] = {
		{{.problem = TRAFFIC_NO_SOURCE}, 0, "modprobe -a intel_uncore amd_uncore"},
		{{.problem = TRAFFIC_UNNAMED, .name = "amd_df"}, 0, "the kernel shows amd_df"},
		{{.problem = TRAFFIC_REFUSED,
		  .name = "uncore_imc",
		  .error = EACCES,
		  .has_paranoid = true,
		  .paranoid = 2},
		 0,
		 "is 2: sudo sysctl kernel.perf_event_paranoid=0"},
		{{.problem = TRAFFIC_REFUSED,
		  .name = "uncore_imc",
		  .error = EPERM,
		  .has_paranoid = true,
		  .paranoid = -1},
		 0,
		 "docker run --cap-add PERFMON"},
		{{.problem = TRAFFIC_REFUSED, .name = "uncore_imc", .error = ENOENT},
		 0,
		 "failed for uncore_imc: No such file"},
		{{.problem = TRAFFIC_UNREADABLE, .name = "uncore_imc", .error = EIO},
		 1,
		 "can't be read: Input/output error"},
		{{.problem = TRAFFIC_COUNTED, .name = "uncore_imc", .n_counters = 8},
		 1,
		 "some of the 8 counters of uncore_imc never had their turn"},
	};
	cJSON *json;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_non_null(
			strstr(reason_of(&cases[i].state, cases[i].n, &json), cases[i].words));
		cJSON_Delete(json);
	}
	assert_non_null(strstr(reason_of(NULL, 0, &json), "does not name perf"));
	cJSON_Delete(json);
}

static void what_was_counted_until_then_is_kept(void **state)
{
	struct traffic_state broken = counted;
	const cJSON *traffic;
	cJSON *json;

	(void)state;
	broken.problem = TRAFFIC_UNREADABLE;
	broken.error = ERANGE;
	write_rows(&broken, SWITCH, SWITCH);
	json = report_of("ops");
	traffic = member(json, "memory_traffic");
	assert_float_equal(number_of(traffic, "read_bytes"), (double)points[SWITCH - 1].sums[0],
			   0.5);
	assert_non_null(strstr(text_of(traffic, "reason"), "until 1.49 s only"));
	cJSON_Delete(json);
}

static void rows_that_go_backwards_are_left_out(void **state)
{
	char error[256];
	struct recording *recording;
	struct traffic_point last = points[150];

	(void)state;
	points[150].sums[0] = 0; /* the row's differences wrap around */
	write_rows(&counted, SWITCH, N_READINGS);
	points[150] = last;
	recording = torsh_recording_read(path, 0, 0, error, sizeof(error));
	assert_non_null(recording);
	assert_int_equal(recording->n_bad_rows, 1);
	assert_int_equal(recording->memory_traffic.n, SWITCH);
	torsh_recording_destroy(recording);
}

/* ---- the meter ------------------------------------------------------------------------------- */

#define COUNTERS 2u

static char root[64];
static _Atomic uint64_t n_reads;
static sem_t enough;

static int open_simulated(const struct perf_event_attr *attributes, uint32_t cpu)
{
	static int n;

	(void)attributes;
	(void)cpu;
	return n++;
}

/* Each reading has 16,384 counts of 64 bytes more than the one before: 1 MiB. */
static ssize_t read_simulated(int fd, void *at, size_t n)
{
	uint64_t number = n_reads++ / COUNTERS;

	(void)fd;
	*(struct uncore_reading *)at = (struct uncore_reading){number << 14, number, number};
	if (number == 8)
		sem_post(&enough);
	return (ssize_t)n;
}

static int close_simulated(int fd)
{
	(void)fd;
	return 0;
}

static void put(const char *name, const char *text)
{
	char full[256];
	FILE *file;

	snprintf(full, sizeof(full), "%s/sys/bus/event_source/devices/uncore_imc/%s", root, name);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(!mkdir(full, 0700) || errno == EEXIST);
		*slash = '/';
	}
	file = fopen(full, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void put_controller(void)
{
	put("type", "9\n");
	put("cpumask", "0\n");
	put("format/event", "config:0-7\n");
	put("events/data_reads", "event=0x01\n");
	put("events/data_reads.scale", "6.103515625e-5\n");
	put("events/data_reads.unit", "MiB\n");
	put("events/data_writes", "event=0x02\n");
	put("events/data_writes.scale", "6.103515625e-5\n");
	put("events/data_writes.unit", "MiB\n");
}

static void the_meter_reads_until_it_is_stopped(void **state)
{
	static const struct uncore_calls calls = {open_simulated, read_simulated, close_simulated};
	const struct traffic_options options = {.root = root, .calls = &calls, .period_ns = MS};
	struct traffic_meter *meter;
	struct traffic_state end;
	struct traffic_point *taken;
	size_t n;

	(void)state;
	put_controller();
	sem_init(&enough, 0, 0);
	meter = torsh_traffic_start(&options);
	assert_non_null(meter);
	while (sem_wait(&enough))
		assert_int_equal(errno, EINTR);
	torsh_traffic_stop(meter);
	end = torsh_traffic_take(meter, &taken, &n);
	assert_int_equal(end.problem, TRAFFIC_COUNTED);
	assert_string_equal(end.name, "uncore_imc");
	assert_int_equal(end.n_counters, COUNTERS);
	assert_int_equal(n, n_reads / COUNTERS);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(taken[i].sums[0], i << 20);
		assert_int_equal(taken[i].sums[1], i << 20);
		assert_true(!i || taken[i].at_ns > taken[i - 1].at_ns);
	}
	free(taken);
	end = torsh_traffic_take(meter, &taken, &n);
	assert_int_equal(n, 0);
	torsh_traffic_destroy(meter);
}

static void a_meter_without_controllers_says_so(void **state)
{
	const struct traffic_options options = {
		.root = "/nonexistent", .calls = &torsh_uncore_calls, .period_ns = MS};
	struct traffic_meter *meter = torsh_traffic_start(&options);
	struct traffic_point *taken;
	struct traffic_state end;
	size_t n;

	(void)state;
	torsh_traffic_stop(meter);
	end = torsh_traffic_take(meter, &taken, &n);
	assert_true(end.is_begun && !end.has_paranoid);
	assert_int_equal(end.problem, TRAFFIC_NO_SOURCE);
	assert_int_equal(n, 0);
	torsh_traffic_destroy(meter);
}

static int make_files(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	make_points();
	strcpy(root, "/tmp/torsh-traffic-sys-XXXXXX");
	if (fd < 0 || !mkdtemp(root))
		return -1;
	close(fd);
	return 0;
}

static int remove_files(void **state)
{
	char command[128];

	(void)state;
	free(output);
	snprintf(command, sizeof(command), "rm -r '%s' '%s'", root, path);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_have_the_machines_traffic),
		cmocka_unit_test(steps_and_phases_have_what_lies_in_them),
		cmocka_unit_test(what_is_unknown_has_a_reason),
		cmocka_unit_test(what_was_counted_until_then_is_kept),
		cmocka_unit_test(rows_that_go_backwards_are_left_out),
		cmocka_unit_test(the_meter_reads_until_it_is_stopped),
		cmocka_unit_test(a_meter_without_controllers_says_so),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
