/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the simulated cuBLAS and cuBLASLt share: launching a kernel of a name, that takes as long as
 * its arithmetic.
 */
#ifndef SIMCUDA_BLAS_H
#define SIMCUDA_BLAS_H

#include <cuda.h>
#include <stdint.h>

/*
 * Launch a kernel through the driver, as the vendor's libraries do: with a call record of its own.
 * flops determines its duration, unless SIMCUDA_KERNELS names it.
 */
CUresult blas_launch(const char *name, double flops, CUstream stream);

/* The flops of a batch of products of an m x k by a k x n matrix. */
double blas_gemm_flops(int64_t m, int64_t n, int64_t k, int64_t batch);

#endif
