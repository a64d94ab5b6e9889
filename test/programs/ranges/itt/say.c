/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Makes every kind of ITT annotation: a program, or (SAY_LIBRARY) a library with a function `say`.
 * The results of the calls go to stdout; test/e2e/ranges/itt.py has the expected recording.
 */
#include <ittnotify.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static __itt_domain *domain;
static __itt_string_handle *name;

static void *end_elsewhere(void *id)
{
	__itt_thread_set_name("ender");
	__itt_task_end_overlapped(domain, *(__itt_id *)id);
	return NULL;
}

static void say_tasks(void)
{
	__itt_id id = __itt_id_make(&domain, 7);
	pthread_t thread;

	__itt_task_begin(domain, __itt_null, __itt_null, name);
	__itt_task_begin(domain, __itt_null, __itt_null, __itt_string_handle_create("inner"));
	__itt_task_end(domain);
	__itt_task_end(domain);
	__itt_task_begin_overlapped(domain, id, __itt_null,
				    __itt_string_handle_create("overlapped"));
	pthread_create(&thread, NULL, end_elsewhere, &id);
	pthread_join(thread, NULL);
	__itt_region_begin(domain, id, __itt_null, name);
	__itt_region_end(domain, id);
}

static void say_frames(void)
{
	__itt_id id = __itt_id_make(&domain, 8);
	__itt_timestamp begin = __itt_get_timestamp();

	__itt_frame_begin_v3(domain, NULL);
	__itt_frame_begin_v3(domain, &id);
	__itt_frame_end_v3(domain, &id);
	__itt_frame_end_v3(domain, NULL);
	__itt_frame_submit_v3(domain, NULL, begin, begin + 1000);
}

static void say_counters(void)
{
	__itt_counter typed = __itt_counter_create_typed("typed", "counters", __itt_metadata_s32);
	__itt_counter plain = __itt_counter_create("plain", "counters");
	__itt_counter real = __itt_counter_create_typed("real", "counters", __itt_metadata_float);
	int number = -4;
	float half = 0.5f;

	__itt_counter_set_value(typed, &number);
	__itt_counter_inc(plain);
	__itt_counter_inc_delta(plain, 10);
	__itt_counter_dec(plain);
	__itt_counter_dec_delta(plain, 11);
	__itt_counter_set_value(real, &half);
	__itt_counter_inc_v3(domain, name);
	__itt_counter_inc_delta_v3(domain, name, 4);
}

static void say_rest(void)
{
	static const unsigned long long bins[] = {10, 20};
	static const double heights[] = {0.5, 0.25};
	unsigned long long number = 77;
	__itt_event event = __itt_event_create("event", 5);
	__itt_histogram *histogram = __itt_histogram_create(domain, "histogram", __itt_metadata_u64,
							    __itt_metadata_double);

	__itt_marker(domain, __itt_null, __itt_string_handle_create("marker"), __itt_scope_task);
	__itt_metadata_add(domain, __itt_null, __itt_string_handle_create("number"),
			   __itt_metadata_u64, 1, &number);
	__itt_metadata_str_add(domain, __itt_null, __itt_string_handle_create("text"), "some text",
			       0);
	__itt_event_start(event);
	__itt_event_end(event);
	__itt_histogram_submit(histogram, 2, (void *)bins, (void *)heights);
	__itt_pause();
	__itt_resume();
	printf("%s\n", domain && domain->flags ? "heard" : "deaf");
}

#ifdef SAY_LIBRARY
__attribute__((visibility("default"))) void say(void)
#else
static void say(void)
#endif
{
	/* Made by the static part itself: it has not looked for a tool yet. */
	__itt_counter early = __itt_counter_create("early", "counters");

	domain = __itt_domain_create("domain");
	name = __itt_string_handle_create("outer");
	say_tasks();
	__itt_counter_inc(early);
	domain = __itt_domain_create("other domain");
	say_frames();
	say_counters();
	say_rest();
	fflush(stdout);
}

#ifndef SAY_LIBRARY
int main(void)
{
	say();
	return 0;
}
#endif
