/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls the routines of test/e2e/blas/oracle_so.c in one way each, and prints what they returned
 * and what is left of the processor's state:
 *
 *	calls_of_blas WAY [FOLDER]	FOLDER: of the libraries that it opens
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void dgemm(const char *, const char *, const int *, const int *, const int *,
		   const double *, const double *, const int *, const double *, const int *,
		   const double *, double *, const int *, size_t, size_t);
typedef double cblas_dgemm_of(int, int, int, int, int, int, double, const double *, int,
			      const double *, int, double, double *, int);
typedef void wide_dgemm(int, int, int, int64_t, int64_t, int64_t, double, const double *, int64_t,
			const double *, int64_t, double, double *, int64_t);

dgemm dgemm_;
cblas_dgemm_of cblas_dgemm;
wide_dgemm scipy_cblas_dgemm64_;
extern void ztrsm_(const char *, const char *, const char *, const char *, const int *, const int *,
		   const double *, const double *, const int *, double *, const int *, size_t,
		   size_t, size_t, size_t);
extern void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int,
			float, float *, int);
extern void cblas_dgemm_batch_strided(int, int, int, int, int, int, double, const double *, int,
				      int, const double *, int, int, double, double *, int, int,
				      int);
extern void cblas_zgemm_batch_strided(int, int, int, int, int, int, const double *, const double *,
				      int, int, const double *, int, int, const double *, double *,
				      int, int, int);
extern void dgetrf_(const int *, const int *, double *, const int *, int *, int *);
extern void dgesdd_(const char *, const int *, const int *, double *, const int *, double *,
		    double *, const int *, double *, const int *, double *, const int *, int *,
		    int *, size_t);
extern int cublasZgemmStridedBatched(void *, int, int, int, int, int, const double *,
				     const double *, int, long long, const double *, int, long long,
				     const double *, double *, int, long long, int);
extern int cublasDtrsm_v2(void *, int, int, int, int, int, int, const double *, const double *, int,
			  double *, int);
extern int LAPACKE_dpotrf(int, char, int, double *, int);
extern uint64_t oracle_sum(void);

static double a[64] = {2, 3}, b[64] = {5, 7}, c[64];
static float fa[4] = {2}, fb[4] = {3}, fc[4];

static void multiply(dgemm *of, int m, int n, int k)
{
	const double alpha = 1.5, beta = 0.25;
	const int lda = 3, ldb = 4, ldc = 5;

	of("n", "T", &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);
}

static void call_all(void)
{
	const double alpha[2] = {1.5, 2.5}, beta[2] = {0.5, 1};
	const int three = 3, four = 4, m = 30, n = 20, ask = -1, given = 64;
	int pivots[2] = {0}, info = 0, iwork[64] = {0};
	double s[4], u[4], vt[4], work[64], returned;

	for (int i = 0; i < 5; i++)
		multiply(dgemm_, 30, 20, 10 + (i > 2));
	ztrsm_("L", "U", "N", "u", &m, &n, alpha, a, &three, c, &four, 1, 1, 1, 1);
	returned = cblas_dgemm(101, 111, 112, 3, 4, 5, 0.5, a, 6, b, 7, 0.125, c, 8);
	cblas_sgemm(102, 113, 111, 33, 44, 55, 0.5F, fa, 6, fb, 7, 0.125F, fc, 8);
	scipy_cblas_dgemm64_(101, 112, 112, 3, 4, INT64_C(5000000000), 2.0, a, 6, b, 7, 0.5, c, 8);
	cblas_dgemm_batch_strided(101, 111, 111, 2, 3, 4, 1.0, a, 5, 6, b, 7, 8, 0.0, c, 9, 10, 11);
	cblas_zgemm_batch_strided(101, 111, 111, 2, 3, 4, alpha, a, 5, 6, b, 7, 8, beta, c, 9, 10,
				  12);
	printf("%d ", cublasZgemmStridedBatched((void *)77, 2, 1, 3, 4, 5, alpha, a, 6, 7, b, 8, 9,
						beta, c, 10, 11, 12));
	printf("%d ", cublasDtrsm_v2((void *)77, 1, 1, 2, 1, 30, 20, alpha, a, 6, b, 8));
	dgetrf_(&m, &n, a, &three, pivots, &info);
	dgesdd_("S", &m, &n, a, &three, s, u, &three, vt, &four, work, &ask, iwork, &info, 1);
	dgesdd_("S", &m, &n, a, &three, s, u, &three, vt, &four, work, &given, iwork, &info, 1);
	errno = 0;
	printf("%d", LAPACKE_dpotrf(102, 'L', 17, a, 18));
	printf(" %d %.17g %d %.17g %g %g\n", errno, returned, pivots[0], s[0], work[0],
	       (double)fc[0]);
}

/* Invalid arguments reach the routine, and errno and the floating-point environment stay its. */
static void call_wrongly(void)
{
	fesetround(FE_UPWARD);
	feclearexcept(FE_ALL_EXCEPT);
	errno = 0;
	multiply(dgemm_, -1, 20, 10);
	printf("%d %d %d\n", errno, fegetround() == FE_UPWARD,
	       fetestexcept(FE_ALL_EXCEPT) & ~FE_INEXACT);
	errno = EAGAIN;
	multiply(dgemm_, 1, 20, 10);
	printf("%d\n", errno);
}

static void *call_often(void *context)
{
	for (int i = 0; i < 50; i++)
		multiply(dgemm_, 8, 8, (int)(intptr_t)context);
	return NULL;
}

static void call_in_threads(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, call_often, (void *)(intptr_t)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static bool is_meeting;
static _Atomic int n_inside;

void oracle_inside(void)
{
	if (!is_meeting)
		return;
	n_inside++;
	while (n_inside < 2)
		sched_yield();
}

/* is_second: calls while the other thread is in its call. */
static void *call_once(void *is_second)
{
	double own[1] = {0};

	while (is_second && !n_inside)
		sched_yield();
	cblas_dgemm(101, 111, 112, 3, 4, 5, 0.5, a, 6, b, 7, 0.125, own, 8);
	return NULL;
}

/* The first call of a routine lasts until the second one is in it. */
static void call_within_first(void)
{
	pthread_t threads[2];

	is_meeting = true;
	pthread_create(&threads[0], NULL, call_once, NULL);
	pthread_create(&threads[1], NULL, call_once, &is_meeting);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void call_in_fork(void)
{
	int status;
	pid_t child;

	multiply(dgemm_, 2, 2, 2);
	fflush(stdout);
	child = fork();
	if (!child) {
		multiply(dgemm_, 3, 3, 3);
		multiply(dgemm_, 3, 3, 3);
		exit(5);
	}
	waitpid(child, &status, 0);
	multiply(dgemm_, 4, 4, 4);
	printf("%d\n", WEXITSTATUS(status));
}

static void *open_library(const char *folder, const char *name, int mode)
{
	char path[4096];
	void *library;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	library = dlopen(path, mode);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return library;
}

/* The same names in other libraries, and callers that are bound to these. */
static void call_opened(const char *folder)
{
	static const struct {
		const char *name;
		int mode;
	} callers[] = {
		{"libcaller_own.so", RTLD_NOW},
		{"libcaller_lazy.so", RTLD_LAZY},
		{"libcaller_deep.so", RTLD_NOW | RTLD_DEEPBIND},
	};
	void *other = open_library(folder, "libother.so", RTLD_NOW | RTLD_LOCAL);
	dgemm *direct = (dgemm *)dlsym(other, "dgemm_"), *again = (dgemm *)dlsym(other, "dgemm_");

	multiply(direct, 5, 5, 5);
	printf("%d %d\n", direct == again, direct == dgemm_);
	for (size_t i = 0; i < sizeof(callers) / sizeof(*callers); i++) {
		void *library = open_library(folder, callers[i].name, callers[i].mode);
		void (*call)(int) = (void (*)(int))dlsym(library, "caller_calls");

		call(6 + (int)i);
		call(6 + (int)i);
	}
	printf("%d %d\n", dlsym(RTLD_DEFAULT, "dgemm_") == (void *)dgemm_,
	       dlsym(RTLD_DEFAULT, "sgemm_") == NULL);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";

	if (!strcmp(way, "all"))
		call_all();
	else if (!strcmp(way, "wrong"))
		call_wrongly();
	else if (!strcmp(way, "threads"))
		call_in_threads();
	else if (!strcmp(way, "first"))
		call_within_first();
	else if (!strcmp(way, "fork"))
		call_in_fork();
	else if (!strcmp(way, "opened") && argc > 2)
		call_opened(argv[2]);
	printf("%" PRIu64 " %.17g\n", oracle_sum(), c[0]);
	return 0;
}
