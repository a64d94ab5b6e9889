/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What torsh regions sums, against a naive replay of random events; and that its JSON fits its
 * schema.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/recording_fixture.h"
#include "test/unit/fixtures/schema_check.h"
#include "tools/command/command.h"
#include "tools/ops/regions.h"
#include "tools/recording/read.h"

#define N_EVENTS 20000u
#define N_PROCESSES 2u
#define N_THREADS 3u
#define N_NAMES 5u
#define N_DOMAINS 3u /* the first: none */
#define N_NUMBERS 50u
#define DEPTH_MAX 200u
#define END_NS UINT64_C(10000000000)

static const char *const names[N_NAMES] = {"a", "b", "c", "d", "e"};
static const char *const domains[N_DOMAINS] = {NULL, "one", "two"};
static char path[] = "/tmp/torsh-regions-XXXXXX";

struct sums {
	uint64_t n, total_ns, min_ns, max_ns, n_left_open;
};

/* The truth, slowly. */
static struct {
	struct sums ranges[N_DOMAINS][N_NAMES];
	uint64_t marks[N_NAMES];
	double value_sum[N_NAMES];
	uint64_t n_values[N_NAMES];
	uint64_t n_unpaired, n_steps;
	struct {
		uint64_t at_ns;
		uint32_t name;
	} open[N_PROCESSES][N_THREADS][N_DOMAINS][DEPTH_MAX];
	uint32_t n_open[N_PROCESSES][N_THREADS][N_DOMAINS];
	struct {
		uint64_t at_ns;
		uint32_t name, domain;
		bool is_open;
	} started[N_PROCESSES][N_NUMBERS];
} truth;

static void add(uint32_t domain, uint32_t name, uint64_t ns)
{
	struct sums *sums = &truth.ranges[domain][name];

	sums->min_ns = !sums->n || ns < sums->min_ns ? ns : sums->min_ns;
	sums->max_ns = ns > sums->max_ns ? ns : sums->max_ns;
	sums->total_ns += ns;
	sums->n++;
}

static uint32_t label(struct fixture *fixture, const char *text)
{
	return text ? fixture_label(fixture, text) : 0;
}

static void emit_push(struct fixture *fixture, uint32_t p, uint32_t thread, uint64_t now,
		      uint32_t domain, uint32_t name)
{
	struct event event = {.id = EVENT_RANGE_PUSH,
			      .range_push = {.name = label(fixture, names[name]),
					     .domain = label(fixture, domains[domain])}};
	uint32_t *n = &truth.n_open[p][thread][domain];

	if (*n == DEPTH_MAX)
		return;
	truth.open[p][thread][domain][*n].at_ns = now;
	truth.open[p][thread][domain][(*n)++].name = name;
	fixture_event(fixture, now, thread, &event);
}

static void emit_pop(struct fixture *fixture, uint32_t p, uint32_t thread, uint64_t now,
		     uint32_t domain)
{
	struct event event = {.id = EVENT_RANGE_POP,
			      .range_pop = {.domain = label(fixture, domains[domain])}};
	uint32_t *n = &truth.n_open[p][thread][domain];

	fixture_event(fixture, now, thread, &event);
	if (!*n) {
		truth.n_unpaired++;
		return;
	}
	--*n;
	add(domain, truth.open[p][thread][domain][*n].name,
	    now - truth.open[p][thread][domain][*n].at_ns);
}

/* Numbers are used again after their ranges ended, as ITT's frames do. */
static void emit_started(struct fixture *fixture, uint32_t p, uint32_t thread, uint64_t now,
			 uint32_t number, uint32_t domain, uint32_t name)
{
	struct event start = {.id = EVENT_RANGE_START,
			      .range_start = {.name = label(fixture, names[name]),
					      .domain = label(fixture, domains[domain]),
					      .range = number + 1}};
	struct event end = {.id = EVENT_RANGE_END, .range_end = {.range = number + 1}};

	if (!truth.started[p][number].is_open) {
		fixture_event(fixture, now, thread, &start);
		truth.started[p][number].at_ns = now;
		truth.started[p][number].name = name;
		truth.started[p][number].domain = domain;
		truth.started[p][number].is_open = true;
		return;
	}
	fixture_event(fixture, now, thread, &end);
	truth.started[p][number].is_open = false;
	add(truth.started[p][number].domain, truth.started[p][number].name,
	    now - truth.started[p][number].at_ns);
}

static void emit_rest(struct fixture *fixture, uint32_t thread, uint64_t now, uint32_t what,
		      uint32_t name, double number)
{
	struct event mark = {.id = EVENT_MARK, .mark = {.name = label(fixture, names[name])}};
	struct event step = {.id = EVENT_STEP, .step = {.number = 1}};
	struct event value = {
		.id = EVENT_VALUE,
		.value = {.name = label(fixture, names[name]), .payload_type = PAYLOAD_F64}};
	struct event unpaired = {.id = EVENT_RANGE_END, .range_end = {.range = N_NUMBERS + 7}};

	memcpy(&value.value.payload, &number, sizeof(number));
	fixture_event(fixture, now, thread,
		      what == 0	  ? &mark
		      : what == 1 ? &step
		      : what == 2 ? &value
				  : &unpaired);
	truth.marks[name] += what == 0;
	truth.n_steps += what == 1;
	truth.n_values[name] += what == 2;
	truth.value_sum[name] += what == 2 ? number : 0;
	truth.n_unpaired += what == 3;
}

static void emit(struct fixture *fixture, uint32_t p, uint64_t now, uint64_t *random)
{
	uint32_t thread = (uint32_t)random_below(random, N_THREADS),
		 name = (uint32_t)random_below(random, N_NAMES);
	uint32_t domain = (uint32_t)random_below(random, N_DOMAINS),
		 what = (uint32_t)random_below(random, 12);

	if (what < 4)
		emit_push(fixture, p, thread, now, domain, name);
	else if (what < 8)
		emit_pop(fixture, p, thread, now, domain);
	else if (what < 11)
		emit_started(fixture, p, thread, now, (uint32_t)random_below(random, N_NUMBERS),
			     domain, name);
	else
		emit_rest(fixture, thread, now, (uint32_t)random_below(random, 4), name,
			  (double)random_below(random, 1000));
}

static void close_rest(void)
{
	for (uint32_t p = 0; p < N_PROCESSES; p++) {
		for (uint32_t t = 0; t < N_THREADS; t++)
			for (uint32_t d = 0; d < N_DOMAINS; d++)
				for (uint32_t i = 0; i < truth.n_open[p][t][d]; i++) {
					add(d, truth.open[p][t][d][i].name,
					    END_NS - truth.open[p][t][d][i].at_ns);
					truth.ranges[d][truth.open[p][t][d][i].name].n_left_open++;
				}
		for (uint32_t i = 0; i < N_NUMBERS; i++)
			if (truth.started[p][i].is_open) {
				add(truth.started[p][i].domain, truth.started[p][i].name,
				    END_NS - truth.started[p][i].at_ns);
				truth.ranges[truth.started[p][i].domain][truth.started[p][i].name]
					.n_left_open++;
			}
	}
}

static int write_recording(void **state)
{
	static struct fixture fixtures[N_PROCESSES];
	uint64_t random = 5, now = 0;

	(void)state;
	for (uint32_t p = 0; p < N_PROCESSES; p++) {
		fixture_start(&fixtures[p], p + 1, 100 + p);
		fixtures[p].process.has_end_ns = 1;
		fixtures[p].process.end_ns = END_NS;
	}
	for (uint32_t i = 0; i < N_EVENTS; i++) {
		uint32_t p = (uint32_t)random_below(&random, N_PROCESSES);

		now += random_below(&random, 10000);
		emit(&fixtures[p], p, now, &random);
	}
	close_rest();
	close(mkstemp(path));
	fixture_write(path, fixtures, N_PROCESSES, 1000);
	for (uint32_t p = 0; p < N_PROCESSES; p++)
		fixture_free(&fixtures[p]);
	return 0;
}

static int remove_recording(void **state)
{
	(void)state;
	return unlink(path);
}

static uint32_t index_of(const char *const *texts, uint32_t n, const char *text)
{
	for (uint32_t i = 0; i < n; i++)
		if (texts[i] == text || (texts[i] && text && strcmp(texts[i], text) == 0))
			return i;
	fail_msg("nobody printed \"%s\"", text);
	return 0;
}

static void assert_range(const struct region *region)
{
	const struct sums *sums = &truth.ranges[index_of(domains, N_DOMAINS, region->domain)]
					       [index_of(names, N_NAMES, region->name)];

	assert_int_equal(region->n, sums->n);
	assert_int_equal(region->total_ns, sums->total_ns);
	assert_int_equal(region->min_ns, sums->min_ns);
	assert_int_equal(region->max_ns, sums->max_ns);
	assert_int_equal(region->n_left_open, sums->n_left_open);
	assert_int_equal(region->n_threads, N_PROCESSES * N_THREADS);
}

static int find_regions(struct regions *regions, const struct recording *recording)
{
	struct prepass prepass;
	int rc;

	torsh_prepass_make(&prepass, recording, recording->processes, recording->n_processes);
	rc = torsh_regions_find(regions, recording, &prepass);
	torsh_prepass_free(&prepass);
	return rc;
}

static void sums_are_those_of_a_replay(void **state)
{
	struct recording *recording;
	struct regions regions = {0};
	uint32_t n_of_kind[N_REGION_KINDS] = {0};
	char why[256];

	(void)state;
	recording = torsh_recording_read(path, 0, 0, why, sizeof(why));
	assert_non_null(recording);
	assert_int_equal(find_regions(&regions, recording), 0);
	assert_int_equal(regions.n_unpaired_ends, truth.n_unpaired);
	assert_int_equal(regions.n_steps, truth.n_steps);
	for (size_t i = 0; i < regions.n; i++) {
		const struct region *region = &regions.items[i];

		n_of_kind[region->kind]++;
		if (region->kind == REGION_RANGE) {
			assert_range(region);
		} else if (region->kind == REGION_MARK) {
			assert_int_equal(region->n,
					 truth.marks[index_of(names, N_NAMES, region->name)]);
		} else {
			assert_int_equal(region->n,
					 truth.n_values[index_of(names, N_NAMES, region->name)]);
			assert_true(region->sum ==
				    truth.value_sum[index_of(names, N_NAMES, region->name)]);
		}
	}
	assert_int_equal(n_of_kind[REGION_RANGE], N_DOMAINS * N_NAMES);
	assert_int_equal(n_of_kind[REGION_MARK], N_NAMES);
	assert_int_equal(n_of_kind[REGION_SCALAR], N_NAMES);
	torsh_regions_free(&regions);
	torsh_recording_destroy(recording);
}

/* By thread the same sums fall into parts. */
static void threads_add_up(void **state)
{
	struct recording *recording;
	struct regions regions = {.by_thread = true};
	uint64_t n = 0, n_true = 0;
	char why[256];

	(void)state;
	recording = torsh_recording_read(path, 0, 0, why, sizeof(why));
	assert_int_equal(find_regions(&regions, recording), 0);
	for (size_t i = 0; i < regions.n; i++) {
		assert_int_equal(regions.items[i].n_threads, 1);
		assert_non_null(regions.items[i].process);
		n += regions.items[i].kind == REGION_RANGE ? regions.items[i].n : 0;
	}
	for (uint32_t d = 0; d < N_DOMAINS; d++)
		for (uint32_t i = 0; i < N_NAMES; i++)
			n_true += truth.ranges[d][i].n;
	assert_int_equal(n, n_true);
	torsh_regions_free(&regions);
	torsh_recording_destroy(recording);
}

static void json_fits_its_schema(void **state)
{
	static char output[1 << 20];
	static const char *const options[] = {"--json", "--by-thread", "--sort=calls",
					      "--source=torsh"};
	struct schema_check check;

	(void)state;
	for (size_t n = 1; n <= sizeof(options) / sizeof(*options); n++) {
		char *argv[8] = {"torsh regions", path}, file[] = "/tmp/torsh-regions-XXXXXX";
		int status, out = mkstemp(file);
		pid_t child;
		ssize_t n_bytes;

		for (size_t i = 0; i < n; i++)
			argv[2 + i] = (char *)options[i];
		child = fork();
		if (!child) {
			dup2(out, STDOUT_FILENO);
			exit(torsh_command_regions((int)n + 2, argv));
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		n_bytes = pread(out, output, sizeof(output) - 1, 0);
		assert_in_range(n_bytes, 1000, sizeof(output) - 2);
		output[n_bytes] = '\0';
		if (!schema_check_text(&check, "tools/schema/regions.json", output))
			fail_msg("%s", check.problem);
		close(out);
		unlink(file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_those_of_a_replay),
		cmocka_unit_test(threads_add_up),
		cmocka_unit_test(json_fits_its_schema),
	};

	unsetenv("TORSH_PROFILER_SUPPRESS");
	return cmocka_run_group_tests(tests, write_recording, remove_recording);
}
