/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Microseconds from pthread_create to the return of pthread_join, for threads that allocate and
 * free one block, one after the other:
 *
 *	threads COUNT
 *
 * prints the median.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void *use_block(void *unused)
{
	void *volatile block = malloc(100);

	free(block);
	return unused;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	double *times_us = calloc(n ? n : 1, sizeof(*times_us));

	if (!n || !times_us)
		return 2;
	for (size_t i = 0; i < n; i++) {
		double start_us = now_us();
		pthread_t thread;

		if (pthread_create(&thread, NULL, use_block, NULL) || pthread_join(thread, NULL))
			return 3;
		times_us[i] = now_us() - start_us;
	}
	qsort(times_us, n, sizeof(*times_us), compare);
	printf("%.2f\n", times_us[n / 2]);
	free(times_us);
	return 0;
}
