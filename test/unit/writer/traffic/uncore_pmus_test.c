/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Events of memory controllers are found in trees of files like those that a kernel shows. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/writer/traffic/uncore_pmus.h"

#define SCALE "6.103515625e-5\n" /* MiB of 64 bytes */

static char root[64];
static struct uncore_pmus pmus;

/* Make a file of an event source, with the folders that it needs. */
static void put(const char *source, const char *path, const char *text)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof(full), "%s/sys/bus/event_source/devices/%s/%s", root, source, path);
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

static void put_source(const char *source, const char *type, const char *cpus)
{
	put(source, "type", type);
	put(source, "cpumask", cpus);
	put(source, "format/event", "config:0-7\n");
	put(source, "format/umask", "config:8-15\n");
	put(source, "format/edge", "config:18\n");
}

static void put_event(const char *source, const char *name, const char *terms)
{
	char path[128];

	snprintf(path, sizeof(path), "events/%s", name);
	put(source, path, terms);
	snprintf(path, sizeof(path), "events/%s.scale", name);
	put(source, path, SCALE);
	snprintf(path, sizeof(path), "events/%s.unit", name);
	put(source, path, "MiB\n");
}

/* A channel of an Ice Lake server. */
static void put_channel(const char *source, const char *type)
{
	put_source(source, type, "0,28\n");
	put_event(source, "cas_count_read", "event=0x04,umask=0x0f\n");
	put_event(source, "cas_count_write", "event=0x04,umask=0x30\n");
	put_event(source, "clockticks", "event=0x00,umask=0x00\n");
}

static void find(void)
{
	torsh_uncore_pmus_free(&pmus);
	torsh_uncore_pmus_find(&pmus, root);
}

/* Returns the only event of a source, a CPU and a direction. */
static const struct uncore_event *event_of(uint32_t type, uint32_t cpu, bool is_write)
{
	const struct uncore_event *found = NULL;

	for (uint32_t i = 0; i < pmus.n_events; i++) {
		const struct uncore_event *event = &pmus.events[i];

		if (event->type != type || event->cpu != cpu || event->is_write != is_write)
			continue;
		assert_null(found);
		found = event;
	}
	assert_non_null(found);
	return found;
}

static void expect_none(enum memory_traffic_problem problem, const char *name)
{
	find();
	assert_int_equal(pmus.problem, problem);
	assert_int_equal(pmus.n_events, 0);
	assert_int_equal(pmus.n_sources, 0);
	assert_string_equal(pmus.name, name);
}

static void channels_of_all_sockets_are_counted(void **state)
{
	(void)state;
	put_channel("uncore_imc_0", "13\n");
	put_channel("uncore_imc_11", "24\n");
	put_source("uncore_cha_0", "30\n", "0\n");
	put("cpu", "type", "4\n");
	find();
	assert_int_equal(pmus.problem, TRAFFIC_COUNTED);
	assert_string_equal(pmus.name, "uncore_imc");
	assert_int_equal(pmus.n_sources, 2);
	assert_int_equal(pmus.n_events, 2 * 2 * 2);
	assert_int_equal(event_of(13, 28, false)->config[0], 0x0f04);
	assert_int_equal(event_of(24, 0, true)->config[0], 0x3004);
	assert_float_equal(event_of(24, 0, true)->bytes, 64, 1e-9);
	assert_int_equal(event_of(24, 0, true)->config[1], 0);
}

static void halves_of_a_channel_are_added(void **state)
{
	(void)state;
	put_source("uncore_imc_3", "70\n", "0-1\n");
	put_event("uncore_imc_3", "cas_count_read_sch0", "event=0x05,umask=0xcf\n");
	put_event("uncore_imc_3", "cas_count_read_sch1", "event=0x06,umask=0xcf\n");
	put_event("uncore_imc_3", "cas_count_write_sch0", "event=0x05,umask=0xf0\n");
	/* Without the other half of the writes they would seem to be half of what they are. */
	expect_none(TRAFFIC_UNNAMED, "uncore_imc");
	put_event("uncore_imc_3", "cas_count_write_sch1", "event=0x06,umask=0xf0\n");
	find();
	assert_int_equal(pmus.n_events, 2 * 4);
}

static void what_two_sources_count_is_counted_once(void **state)
{
	(void)state;
	put_channel("uncore_imc_0", "13\n");
	put_source("uncore_imc_free_running_0", "14\n", "0\n");
	put_event("uncore_imc_free_running_0", "read", "event=0xff,umask=0x20\n");
	put_event("uncore_imc_free_running_0", "write", "event=0xff,umask=0x30\n");
	find();
	assert_string_equal(pmus.name, "uncore_imc");
	assert_int_equal(pmus.n_events, 4);
}

static void clients_count_without_channels(void **state)
{
	(void)state;
	put_source("uncore_imc", "9\n", "0\n");
	put_event("uncore_imc", "data_reads", "event=0x01\n");
	put_event("uncore_imc", "data_writes", "event=0x02,edge\n");
	find();
	assert_int_equal(event_of(9, 0, false)->config[0], 1);
	assert_int_equal(event_of(9, 0, true)->config[0], 2 | 1 << 18);
}

static void newer_clients_have_counters_that_run_freely(void **state)
{
	(void)state;
	put_source("uncore_imc_free_running_0", "14\n", "0\n");
	put_event("uncore_imc_free_running_0", "data_total", "event=0xff,umask=0x10\n");
	put_event("uncore_imc_free_running_0", "data_read", "event=0xff,umask=0x20\n");
	put_event("uncore_imc_free_running_0", "data_write", "event=0xff,umask=0x30\n");
	/* Its other controllers, which have no such events there. */
	put_source("uncore_imc_0", "15\n", "0\n");
	put_event("uncore_imc_0", "clockticks", "event=0x01\n");
	find();
	assert_string_equal(pmus.name, "uncore_imc_free_running");
	assert_int_equal(pmus.n_events, 2);
	assert_int_equal(event_of(14, 0, false)->config[0], 0x20ff);
}

static void controllers_of_amd_have_no_names_of_events(void **state)
{
	(void)state;
	put("amd_umc_0", "type", "18\n");
	put("amd_umc_0", "cpumask", "0,64\n");
	put("amd_umc_0", "format/event", "config:0-7\n");
	/* An older driver has nothing that chooses reads. */
	expect_none(TRAFFIC_UNNAMED, "amd_umc");
	put("amd_umc_0", "format/rdwrmask", "config:8-9\n");
	find();
	assert_string_equal(pmus.name, "amd_umc");
	assert_int_equal(event_of(18, 64, false)->config[0], 0x10a);
	assert_int_equal(event_of(18, 64, true)->config[0], 0x20a);
	assert_float_equal(event_of(18, 0, true)->bytes, 64, 1e-9);
}

static void values_go_where_their_format_says(void **state)
{
	(void)state;
	put_channel("uncore_imc_0", "13\n");
	put("uncore_imc_0", "format/umask", "config1:4-7,32-35\n");
	put("uncore_imc_0", "format/event", "config2:0-63\n");
	find();
	assert_int_equal(event_of(13, 0, true)->config[0], 0);
	assert_int_equal(event_of(13, 0, true)->config[1], UINT64_C(3) << 32);
	assert_int_equal(event_of(13, 0, false)->config[1], 0xf0);
	assert_int_equal(event_of(13, 0, false)->config[2], 4);
}

static void what_is_not_understood_is_not_counted(void **state)
{
	static const struct {
		const char *path, *text;
	} bad[] = {
		{"events/cas_count_read.unit", "beats\n"},
		{"events/cas_count_read.scale", "x\n"},
		{"events/cas_count_read.scale", "-1\n"},
		{"events/cas_count_read", "event=\n"},
		{"events/cas_count_read", "event=0x104\n"},
		{"events/cas_count_read", "other=1\n"},
		{"events/cas_count_read", "event=1;umask=2\n"},
		{"format/event", "config3:0-7\n"},
		{"format/event", "config:7-0\n"},
		{"format/event", "config:0-64\n"},
		{"cpumask", "\n"},
		{"cpumask", "0-\n"},
		{"cpumask", "0,x\n"},
		{"cpumask", "0-4294967295\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		put_channel("uncore_imc_0", "13\n");
		put_channel("uncore_imc_1", "14\n");
		put("uncore_imc_1", bad[i].path, bad[i].text);
		expect_none(TRAFFIC_UNNAMED, "uncore_imc");
	}
	put_channel("uncore_imc_1", "14\n");
	find();
	assert_int_equal(pmus.problem, TRAFFIC_COUNTED);
	/* Another event of a name that begins like it. */
	put_source("uncore_imc_x", "15\n", "0\n");
	find();
	assert_int_equal(pmus.n_sources, 2);
}

static void without_controllers_there_are_none(void **state)
{
	(void)state;
	expect_none(TRAFFIC_NO_SOURCE, "");
	put("cpu", "type", "4\n");
	put("software", "type", "1\n");
	expect_none(TRAFFIC_NO_SOURCE, "");
	put_source("amd_df", "17\n", "0\n");
	expect_none(TRAFFIC_UNNAMED, "amd_df");
}

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/torsh-uncore-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	torsh_uncore_pmus_free(&pmus);
	snprintf(command, sizeof(command), "rm -r '%s'", root);
	return system(command);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)
	const struct CMUnitTest tests[] = {
		CASE(channels_of_all_sockets_are_counted),
		CASE(halves_of_a_channel_are_added),
		CASE(what_two_sources_count_is_counted_once),
		CASE(clients_count_without_channels),
		CASE(newer_clients_have_counters_that_run_freely),
		CASE(controllers_of_amd_have_no_names_of_events),
		CASE(values_go_where_their_format_says),
		CASE(what_is_not_understood_is_not_counted),
		CASE(without_controllers_there_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
