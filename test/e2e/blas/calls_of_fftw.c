/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls FFTW in each of its ways, prints on stderr what each call was ("routine sizes batch type
 * count"), and prints what came out, to the last bit:
 *
 *	calls_of_fftw [threads|many]
 */
#include <complex.h>
#include <errno.h>
#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fftw3.h>

#define POINTS 4096

static double complex in[POINTS], out[POINTS];
static double real[2 * POINTS];
static float complex narrow[POINTS];
static long double complex wide[POINTS];

static void say(const char *routine, const char *sizes, int batch, const char *type, int calls)
{
	fprintf(stderr, "%s %s %d %s %d\n", routine, sizes, batch, type, calls);
}

static uint64_t sum(const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	uint64_t all = 0;

	for (size_t i = 0; i < n; i++)
		all = (all ^ at[i]) * UINT64_C(0x100000001b3);
	return all;
}

static void print(const char *what)
{
	printf("%s %" PRIx64 " %" PRIx64 " %d %d\n", what, sum(out, sizeof(out)),
	       sum(real, sizeof(real)), errno, fegetround());
}

static void fill(void)
{
	for (int i = 0; i < POINTS; i++) {
		in[i] = sin(i) + I * cos(3 * i);
		real[i] = sin(7 * i);
		narrow[i] = (float complex)in[i];
		wide[i] = in[i];
	}
}

/* errno and rounding are the caller's. */
static void run(fftw_plan plan, int times, const char *what)
{
	if (!plan)
		abort();
	errno = ERANGE;
	fesetround(FE_UPWARD);
	for (int i = 0; i < times; i++)
		fftw_execute(plan);
	print(what);
	fesetround(FE_TONEAREST);
	fftw_destroy_plan(plan);
}

static void call_complex(void)
{
	const int sizes[] = {4, 6, 10};
	fftw_plan plan;

	run(fftw_plan_dft_1d(60, in, out, FFTW_FORWARD, FFTW_ESTIMATE), 3, "1d");
	say("fft_c2c", "60", 1, "complex128", 3);
	run(fftw_plan_dft_2d(8, 12, in, out, FFTW_BACKWARD, FFTW_ESTIMATE), 1, "2d");
	say("fft_c2c", "8x12", 1, "complex128", 1);
	run(fftw_plan_dft_3d(4, 5, 6, in, in, FFTW_FORWARD, FFTW_ESTIMATE), 1, "3d in place");
	say("fft_c2c", "4x5x6", 1, "complex128", 1);
	run(fftw_plan_dft(3, sizes, in, out, FFTW_FORWARD, FFTW_ESTIMATE), 1, "by array");
	say("fft_c2c", "4x6x10", 1, "complex128", 1);
	run(fftw_plan_many_dft(1, sizes + 2, 7, in, NULL, 1, 10, out, NULL, 1, 10, FFTW_FORWARD,
			       FFTW_ESTIMATE),
	    2, "many");
	say("fft_c2c", "10", 7, "complex128", 2);
	plan = fftw_plan_dft_1d(64, in, out, FFTW_FORWARD, FFTW_ESTIMATE | FFTW_UNALIGNED);
	fftw_execute_dft(plan, in + 64, out + 64);
	print("other arrays");
	say("fft_c2c", "64", 1, "complex128", 1);
	fftw_destroy_plan(plan);
}

static void call_real(void)
{
	const fftw_iodim dims[] = {{6, 5, 5}, {5, 1, 1}}, batch[] = {{3, 30, 30}, {2, 90, 90}};
	const fftw_iodim64 large[] = {{9, 1, 1}};
	const fftw_r2r_kind kinds[] = {FFTW_REDFT10, FFTW_RODFT00};
	const int sizes[] = {6, 5};

	run(fftw_plan_dft_r2c_1d(100, real, out, FFTW_ESTIMATE), 1, "r2c");
	say("fft_r2c", "100", 1, "float64", 1);
	run(fftw_plan_dft_c2r_2d(10, 14, in, real, FFTW_ESTIMATE), 1, "c2r");
	say("fft_c2r", "10x14", 1, "float64", 1);
	run(fftw_plan_r2r_2d(6, 5, real, real, FFTW_REDFT10, FFTW_RODFT00, FFTW_ESTIMATE), 1,
	    "r2r");
	say("fft_r2r", "6x5", 1, "float64", 1);
	run(fftw_plan_many_r2r(2, sizes, 4, real, NULL, 1, 30, real, NULL, 1, 30, kinds,
			       FFTW_ESTIMATE),
	    1, "many r2r");
	say("fft_r2r", "6x5", 4, "float64", 1);
	run(fftw_plan_guru_dft(2, dims, 2, batch, in, out, FFTW_BACKWARD, FFTW_ESTIMATE), 1,
	    "guru");
	say("fft_c2c", "6x5", 6, "complex128", 1);
	run(fftw_plan_guru64_split_dft_r2c(1, large, 0, NULL, real, (double *)out,
					   (double *)out + 64, FFTW_ESTIMATE),
	    1, "guru64");
	say("fft_r2c", "9", 1, "float64", 1);
}

static void call_other_precisions(void)
{
	fftwf_plan single = fftwf_plan_dft_1d(32, narrow, narrow, FFTW_FORWARD, FFTW_ESTIMATE);
	fftwl_plan extended = fftwl_plan_dft_1d(16, wide, wide, FFTW_FORWARD, FFTW_ESTIMATE);

	fftwf_execute(single);
	say("fft_c2c", "32", 1, "complex64", 1);
	fftwl_execute(extended);
	say("fft_c2c", "16", 1, "clongdouble", 1);
	printf("%" PRIx64 " %a\n", sum(narrow, sizeof(narrow)), (double)creall(wide[3]));
	fftwf_destroy_plan(single);
	fftwl_destroy_plan(extended);
	/* Not a plan: the sizes are not valid. */
	printf("%d\n", fftw_plan_dft_1d(0, in, out, FFTW_FORWARD, FFTW_ESTIMATE) == NULL);
}

static fftw_plan shared;

static void *execute(void *data)
{
	for (int i = 0; i < 50; i++)
		fftw_execute_dft(shared, data, data);
	return NULL;
}

static void call_in_threads(void)
{
	pthread_t threads[4];

	shared = fftw_plan_dft_1d(128, in, in, FFTW_FORWARD, FFTW_ESTIMATE | FFTW_UNALIGNED);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, execute, in + 128 * i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	say("fft_c2c", "128", 1, "complex128", 200);
	fftw_destroy_plan(shared);
}

/* One plan after another at the same places: each has its own sizes. */
static void call_many(void)
{
	fftw_plan plans[1200];
	char sizes[16];

	for (int i = 0; i < 3000; i++) {
		fftw_plan plan = fftw_plan_dft_1d(1 + i % 7, in, out, FFTW_FORWARD, FFTW_ESTIMATE);

		fftw_execute(plan);
		fftw_destroy_plan(plan);
	}
	for (int i = 0; i < 7; i++) {
		snprintf(sizes, sizeof(sizes), "%d", i + 1);
		say("fft_c2c", sizes, 1, "complex128", 3000 / 7 + (i < 3000 % 7));
	}
	/* More at one time than the agent keeps. */
	for (int i = 0; i < 1200; i++)
		plans[i] = fftw_plan_dft_1d(11, in, out, FFTW_FORWARD, FFTW_ESTIMATE);
	for (int i = 0; i < 1200; i++)
		fftw_execute(plans[i]);
	say("fft_c2c", "11", 1, "complex128", 1024);
	say("fft", "-", 0, "-", 1200 - 1024);
	for (int i = 0; i < 1200; i++)
		fftw_destroy_plan(plans[i]);
	run(fftw_plan_dft_1d(13, in, out, FFTW_FORWARD, FFTW_ESTIMATE), 1, "after them");
	say("fft_c2c", "13", 1, "complex128", 1);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";

	fill();
	if (!strcmp(way, "threads")) {
		call_in_threads();
	} else if (!strcmp(way, "many")) {
		call_many();
	} else {
		call_complex();
		call_real();
		call_other_precisions();
	}
	print("end");
	return 0;
}
