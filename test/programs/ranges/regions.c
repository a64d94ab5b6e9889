/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Makes every kind of annotation of torsh.h. Prints the results of the calls, and whether there is
 * an agent; test/e2e/ranges/regions.py has the expected recording. Also built as C99 and as C++11,
 * see there.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "shim/ranges/torsh.h"

#define N_THREADS 4
#define N_ROUNDS 500

static uint64_t handed_over;

static void *end_it(void *unused)
{
	(void)unused;
	torsh_range_end(handed_over);
	return NULL;
}

static void *make_rounds(void *name)
{
	int i;

	for (i = 0; i < N_ROUNDS; i++) {
		torsh_range_push((const char *)name);
		torsh_range_push("inner");
		torsh_range_pop();
		torsh_range_pop();
	}
	return NULL;
}

static int in_a_scope(void)
{
	TORSH_RANGE("scoped");

	return torsh_range_push("in scope") + torsh_range_pop();
}

static void say_attributes(void)
{
	struct torsh_attributes attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.size = sizeof(attributes);
	attributes.color = 0xff336699;
	attributes.domain = "other";
	attributes.category = "kind";
	attributes.payload_type = TORSH_PAYLOAD_I64;
	attributes.payload.i64 = -5;
	printf("%d ", torsh_range_push_with("with all", &attributes));
	attributes.payload_type = TORSH_PAYLOAD_F64;
	attributes.payload.f64 = 0.25;
	torsh_mark_with("mark with all", &attributes);
	printf("%d ", torsh_range_pop_from("other"));
	torsh_request_begin("GET /");
	torsh_request_end();
	/* A version of the struct that ends before the domain. */
	attributes.size = offsetof(struct torsh_attributes, domain);
	torsh_mark_with("older", &attributes);
}

static void say_threads(void)
{
	static char names[N_THREADS][16] = {"round 0", "round 1", "round 2", "round 3"};
	pthread_t threads[N_THREADS];
	int i;

	handed_over = torsh_range_start("handed over");
	pthread_create(threads, NULL, end_it, NULL);
	pthread_join(threads[0], NULL);
	for (i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, make_rounds, names[i]);
	for (i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	static char long_name[3000];
	size_t i;

	for (i = 0; i < sizeof(long_name) - 1; i++)
		long_name[i] = 'x';
	printf("%s\n", torsh_is_there() ? "there" : "alone");
	torsh_step(7);
	errno = 42;
	printf("%d ", torsh_range_push("outer"));
	printf("%d ", torsh_range_push("middle"));
	printf("%d ", torsh_range_pop());
	printf("%d ", torsh_range_pop());
	printf("%d ", torsh_range_pop());
	printf("%d ", in_a_scope());
	say_attributes();
	printf("%d\n", errno);
	torsh_mark("here");
	torsh_mark("");
	torsh_mark(NULL);
	torsh_mark("\xff not UTF-8");
	torsh_mark(long_name);
	torsh_scalar("loss", 0.5);
	torsh_counter("items", 3);
	torsh_histogram("length", 17);
	torsh_step(TORSH_STEP_UNNUMBERED);
	say_threads();
	torsh_range_push("left open");
	torsh_range_start("never ended");
	return 0;
}
