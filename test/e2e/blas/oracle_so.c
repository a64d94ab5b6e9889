/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A library with routines of BLAS and LAPACK under several names, which compute something from all
 * their arguments and write every call to the file ORACLE, with the arguments as they came.
 * Compiled more than once, as libraries of other names and with WIDE for integers of 64 bits.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef WIDE
typedef int64_t integer;
#define FORTRAN(name) scipy_##name##_64_
#define CBLAS(name) scipy_cblas_##name##64_
#else
typedef int32_t integer;
#define FORTRAN(name) name##_
#define CBLAS(name) cblas_##name
#endif
#define TEXT(name) #name
#define NAME(name) TEXT(name)
#ifndef LIBRARY
#define LIBRARY "liboracle.so"
#endif

static void put(const char *name, long long m, long long n, long long k, long long batch,
		const char *letters)
{
	char line[200];
	int fd = open(getenv("ORACLE"), O_WRONLY | O_APPEND | O_CREAT, 0600);
	int length = snprintf(line, sizeof(line), "%d %s %s %lld %lld %lld %lld %s\n", getpid(),
			      LIBRARY, name, m, n, k, batch, letters);

	if (fd < 0 || write(fd, line, (size_t)length) != length)
		abort();
	close(fd);
}

/* The program's, if it wants to know that a thread is in cblas_dgemm. */
__attribute__((weak)) void oracle_inside(void);

static uint64_t mix(uint64_t all, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return (all ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t sum;

uint64_t oracle_sum(void)
{
	return __atomic_load_n(&sum, __ATOMIC_RELAXED);
}

static void add(uint64_t value)
{
	__atomic_fetch_add(&sum, value, __ATOMIC_RELAXED);
}

void FORTRAN(dgemm)(const char *ta, const char *tb, const integer *m, const integer *n,
		    const integer *k, const double *alpha, const double *a, const integer *lda,
		    const double *b, const integer *ldb, const double *beta, double *c,
		    const integer *ldc, size_t n_ta, size_t n_tb)
{
	char letters[3] = {*ta, *tb};

	put(NAME(FORTRAN(dgemm)), *m, *n, *k, -1, letters);
	/* The lengths of characters come last, on the stack. */
	add(mix(mix(mix(n_ta * 3 + n_tb, *alpha), *beta), a[0] + b[0]) +
	    (uint64_t)(*lda * 7 + *ldb * 11 + *ldc * 13));
	c[0] = *alpha * a[0] * b[0] + *beta * c[0];
	errno = *m < 0 ? EDOM : 0;
}

void FORTRAN(ztrsm)(const char *side, const char *triangle, const char *ta, const char *diagonal,
		    const integer *m, const integer *n, const double *alpha, const double *a,
		    const integer *lda, double *b, const integer *ldb, size_t n1, size_t n2,
		    size_t n3, size_t n4)
{
	char letters[5] = {*side, *triangle, *ta, *diagonal};

	put(NAME(FORTRAN(ztrsm)), *m, *n, -1, -1, letters);
	add(mix(n1 + n2 * 2 + n3 * 3 + n4 * 4, alpha[1] + a[0]) + (uint64_t)(*lda + *ldb));
	b[0] += a[0];
}

static const char transposed[] = "NTC";

double CBLAS(dgemm)(int order, int ta, int tb, integer m, integer n, integer k, double alpha,
		    const double *a, integer lda, const double *b, integer ldb, double beta,
		    double *c, integer ldc)
{
	char letters[3] = {transposed[ta - 111], transposed[tb - 111]};

	put(NAME(CBLAS(dgemm)), m, n, k, -1, letters);
	if (oracle_inside)
		oracle_inside();
	add(mix(mix(mix((uint64_t)order, alpha), beta), a[0] * b[0]) +
	    (uint64_t)(lda * 7 + ldb * 11 + ldc * 13));
	c[0] = alpha * a[0] * b[0] + beta * c[0];
	return alpha - beta;
}

void CBLAS(sgemm)(int order, int ta, int tb, integer m, integer n, integer k, float alpha,
		  const float *a, integer lda, const float *b, integer ldb, float beta, float *c,
		  integer ldc)
{
	char letters[3] = {transposed[ta - 111], transposed[tb - 111]};

	put(NAME(CBLAS(sgemm)), m, n, k, -1, letters);
	add(mix(mix(mix((uint64_t)order, (double)alpha), (double)beta), (double)(a[0] * b[0])) +
	    (uint64_t)(lda * 7 + ldb * 11 + ldc * 13));
	c[0] = alpha * a[0] * b[0] + beta * c[0];
}

void CBLAS(dgemm_batch_strided)(int order, int ta, int tb, integer m, integer n, integer k,
				double alpha, const double *a, integer lda, integer stride_a,
				const double *b, integer ldb, integer stride_b, double beta,
				double *c, integer ldc, integer stride_c, integer batch)
{
	char letters[3] = {transposed[ta - 111], transposed[tb - 111]};

	put(NAME(CBLAS(dgemm_batch_strided)), m, n, k, batch, letters);
	add(mix(mix((uint64_t)order, alpha), beta) +
	    (uint64_t)(lda + ldb * 3 + ldc * 5 + stride_a * 7 + stride_b * 11 + stride_c * 13));
	c[0] = a[0] + b[0];
}

void CBLAS(zgemm_batch_strided)(int order, int ta, int tb, integer m, integer n, integer k,
				const double *alpha, const double *a, integer lda, integer stride_a,
				const double *b, integer ldb, integer stride_b, const double *beta,
				double *c, integer ldc, integer stride_c, integer batch)
{
	char letters[3] = {transposed[ta - 111], transposed[tb - 111]};

	put(NAME(CBLAS(zgemm_batch_strided)), m, n, k, batch, letters);
	add(mix(mix((uint64_t)order, alpha[0]), beta[0]) +
	    (uint64_t)(lda + ldb * 3 + ldc * 5 + stride_a * 7 + stride_b * 11 + stride_c * 13));
	c[0] = a[0] + b[0];
}

/* A factorisation that calls a product, as LAPACK does: by the name that all objects share. */
void FORTRAN(dgetrf)(const integer *m, const integer *n, double *a, const integer *lda,
		     integer *pivots, integer *info)
{
	const double one = 1;
	integer inner = 2;

	put(NAME(FORTRAN(dgetrf)), *m, *n, -1, -1, "-");
	FORTRAN(dgemm)("N", "N", &inner, &inner, &inner, &one, a, lda, a, lda, &one, a, lda, 1, 1);
	pivots[0] = 1;
	*info = 7;
}

void FORTRAN(dgesdd)(const char *job, const integer *m, const integer *n, double *a,
		     const integer *lda, double *s, double *u, const integer *ldu, double *vt,
		     const integer *ldvt, double *work, const integer *n_work, integer *iwork,
		     integer *info, size_t n_job)
{
	char letters[2] = {*job};

	*info = 0;
	if (*n_work == -1) {
		work[0] = 64;
		return;
	}
	put(NAME(FORTRAN(dgesdd)), *m, *n, -1, -1, letters);
	add((uint64_t)(*lda + *ldu * 3 + *ldvt * 5 + *n_work * 7) + n_job);
	s[0] = a[0];
	u[0] = vt[0] = 1;
	iwork[0] = 3;
}

#ifndef WIDE
/* Not NVIDIA's: what matters is how its functions are called. */
int cublasZgemmStridedBatched(void *handle, int ta, int tb, int m, int n, int k,
			      const double *alpha, const double *a, int lda, long long stride_a,
			      const double *b, int ldb, long long stride_b, const double *beta,
			      double *c, int ldc, long long stride_c, int batch)
{
	char letters[3] = {transposed[ta], transposed[tb]};

	put("cublasZgemmStridedBatched", m, n, k, batch, letters);
	add(mix(mix((uint64_t)(uintptr_t)handle, alpha[0]), beta[0]) +
	    (uint64_t)(lda + ldb * 3 + ldc * 5 + stride_a * 7 + stride_b * 11 + stride_c * 13));
	c[0] = a[0] + b[0];
	return 9;
}

int cublasDtrsm_v2(void *handle, int side, int triangle, int ta, int diagonal, int m, int n,
		   const double *alpha, const double *a, int lda, double *b, int ldb)
{
	char letters[5] = {"LR"[side], "LU"[triangle], transposed[ta], "NU"[diagonal]};

	put("cublasDtrsm_v2", m, n, -1, -1, letters);
	add(mix((uint64_t)(uintptr_t)handle, *alpha) + (uint64_t)(lda * 3 + ldb));
	b[0] += a[0];
	return 8;
}

int LAPACKE_dpotrf(int order, char triangle, integer n, double *a, integer lda)
{
	char letters[2] = {triangle};

	put("LAPACKE_dpotrf", -1, n, -1, -1, letters);
	add((uint64_t)(order + lda) + (uint64_t)a[0]);
	errno = ERANGE;
	return 42;
}
#endif
