/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/process/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int count(char *const *environment, const char *definition)
{
	int n = 0;

	for (; *environment; environment++)
		n += !strcmp(*environment, definition);
	return n;
}

static int count_name(char *const *environment, const char *name)
{
	int n = 0;

	for (; *environment; environment++)
		n += !strncmp(*environment, name, strlen(name)) &&
		     (*environment)[strlen(name)] == '=';
	return n;
}

static int start(void **state)
{
	static char output[64] = "CMOCKA_MESSAGE_OUTPUT=";
	static char record[] = "TORSH_PROFILER_RECORD=full";
	static char *own[] = {"PATH=/bin", "LD_PRELOAD=build/libtorshagent.so:/x/libother.so",
			      record,	   "FOREIGN_INJECTION=/x/tool.so",
			      NULL,	   NULL};

	(void)state;
	if (getenv("CMOCKA_MESSAGE_OUTPUT")) {
		strncat(output, getenv("CMOCKA_MESSAGE_OUTPUT"), 16);
		own[4] = output;
	}
	environ = own;
	torsh_environment_inject("OWN_INJECTION", "/abs/libtorshagent.so");
	torsh_environment_inject("FOREIGN_INJECTION", "/abs/libtorshagent.so");
	torsh_environment_start("/abs/libtorshagent.so", "/run/s");
	return 0;
}

static void own_environment_gets_the_absolute_path_and_the_session(void **state)
{
	(void)state;
	assert_int_equal(count(environ, "LD_PRELOAD=/abs/libtorshagent.so:/x/libother.so"), 1);
	assert_int_equal(count_name(environ, "LD_PRELOAD"), 1);
	assert_int_equal(count(environ, "TORSH_PROFILER_SESSION=/run/s"), 1);
	assert_int_equal(count(environ, "PATH=/bin"), 1);
	assert_int_equal(count(environ, "TORSH_PROFILER_RECORD=full"), 1);
}

static void injections_are_put_where_nobodys_are(void **state)
{
	char *scrubbed[] = {NULL}, *slots[16], *const * child;

	(void)state;
	assert_int_equal(count(environ, "OWN_INJECTION=/abs/libtorshagent.so"), 1);
	assert_int_equal(count(environ, "FOREIGN_INJECTION=/x/tool.so"), 1);
	assert_int_equal(count_name(environ, "FOREIGN_INJECTION"), 1);
	assert_in_range(torsh_environment_slots(scrubbed), 1, 16);
	child = torsh_environment_for_child(scrubbed, slots);
	assert_int_equal(count_name(child, "OWN_INJECTION"), 1);
	assert_int_equal(count_name(child, "FOREIGN_INJECTION"), 0);
}

static void a_complete_environment_is_passed_on_as_it_is(void **state)
{
	(void)state;
	assert_int_equal(torsh_environment_slots(environ), 0);
}

static void a_scrubbed_environment_is_filled_again(void **state)
{
	char *scrubbed[] = {"A=1", NULL}, *slots[16], *const * child;
	size_t n = torsh_environment_slots(scrubbed);

	(void)state;
	assert_in_range(n, 1, 16);
	child = torsh_environment_for_child(scrubbed, slots);
	assert_int_equal(count(child, "A=1"), 1);
	assert_int_equal(count_name(child, "LD_PRELOAD"), 1);
	assert_int_equal(count(child, "TORSH_PROFILER_SESSION=/run/s"), 1);
	assert_int_equal(count(child, "TORSH_PROFILER_RECORD=full"), 1);
}

static void what_the_caller_changed_for_its_child_stays(void **state)
{
	char *changed[] = {"TORSH_PROFILER_RECORD=folded", "TORSH_PROFILER_SESSION=/other",
			   "LD_PRELOAD=", NULL};
	char *slots[24], *const *child;

	(void)state;
	assert_in_range(torsh_environment_slots(changed), 1, 24);
	child = torsh_environment_for_child(changed, slots);
	assert_int_equal(count(child, "TORSH_PROFILER_RECORD=folded"), 1);
	assert_int_equal(count_name(child, "TORSH_PROFILER_RECORD"), 1);
	assert_int_equal(count(child, "TORSH_PROFILER_SESSION=/run/s"), 1);
	assert_int_equal(count_name(child, "TORSH_PROFILER_SESSION"), 1);
	assert_int_equal(count_name(child, "LD_PRELOAD"), 1);
}

static void what_the_caller_preloads_into_its_child_is_preloaded(void **state)
{
	char *changed[] = {"LD_PRELOAD=/y/libnew.so:/old/libtorshagent.so /z/libmore.so", NULL};
	char *empty[] = {"LD_PRELOAD=", NULL};
	char *slots[32], *const *child;

	(void)state;
	assert_in_range(torsh_environment_slots(changed), 1, 32);
	child = torsh_environment_for_child(changed, slots);
	assert_int_equal(
		count(child, "LD_PRELOAD=/abs/libtorshagent.so:/y/libnew.so:/z/libmore.so"), 1);
	assert_int_equal(count_name(child, "LD_PRELOAD"), 1);
	assert_in_range(torsh_environment_slots(empty), 1, 32);
	child = torsh_environment_for_child(empty, slots);
	assert_int_equal(count(child, "LD_PRELOAD=/abs/libtorshagent.so"), 1);
}

static void no_environment_at_all_is_an_empty_one(void **state)
{
	char *slots[16], *const *child;

	(void)state;
	assert_in_range(torsh_environment_slots(NULL), 1, 16);
	child = torsh_environment_for_child(NULL, slots);
	assert_int_equal(count_name(child, "LD_PRELOAD"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_environment_gets_the_absolute_path_and_the_session),
		cmocka_unit_test(injections_are_put_where_nobodys_are),
		cmocka_unit_test(a_complete_environment_is_passed_on_as_it_is),
		cmocka_unit_test(a_scrubbed_environment_is_filled_again),
		cmocka_unit_test(what_the_caller_changed_for_its_child_stays),
		cmocka_unit_test(what_the_caller_preloads_into_its_child_is_preloaded),
		cmocka_unit_test(no_environment_at_all_is_an_empty_one),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
