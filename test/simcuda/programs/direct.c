/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program that gets all of its memory from CUDA itself, and frees some of it again. */
#include <cuda_runtime_api.h>
#include <stddef.h>

#include "test/lib/need.h"

#define MIB ((size_t)1 << 20)

static void *take(size_t bytes)
{
	void *p;

	NEED(cudaMalloc(&p, bytes));
	return p;
}

__attribute__((noinline)) static void take_tables(void)
{
	for (int i = 0; i < 3; i++)
		take(5 * MIB + 100);
}

__attribute__((noinline)) static void *take_buffer(void)
{
	return take(40 * MIB);
}

int main(void)
{
	void *buffer;

	take_tables();
	buffer = take_buffer();
	NEED(cudaFree(buffer));
	take(3 * MIB);
	NEED(cudaDeviceSynchronize());
	return 0;
}
