/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Executes primitives of oneDNN, version 2 or 3, and prints what came out. */
#include <errno.h>
#include <fenv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <oneapi/dnnl/dnnl.h>

#define NEED(call)                                                  \
	do {                                                        \
		dnnl_status_t status = call;                        \
		if (status != dnnl_success) {                       \
			fprintf(stderr, "%s: %d\n", #call, status); \
			exit(1);                                    \
		}                                                   \
	} while (0)

#if DNNL_VERSION_MAJOR != 2
#error "written for version 2"
#endif

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static float data[4][65536];

static dnnl_memory_t memory_of(const dnnl_memory_desc_t *descriptor, int i)
{
	dnnl_memory_t memory;

	NEED(dnnl_memory_create(&memory, descriptor, engine, data[i]));
	return memory;
}

static dnnl_memory_desc_t describe(int n, const dnnl_dims_t sizes, dnnl_format_tag_t tag)
{
	dnnl_memory_desc_t descriptor;

	NEED(dnnl_memory_desc_init_by_tag(&descriptor, n, sizes, dnnl_f32, tag));
	return descriptor;
}

static dnnl_primitive_t make(const_dnnl_op_desc_t operation)
{
	dnnl_primitive_desc_t descriptor;
	dnnl_primitive_t primitive;

	NEED(dnnl_primitive_desc_create(&descriptor, operation, NULL, engine, NULL));
	NEED(dnnl_primitive_create(&primitive, descriptor));
	dnnl_primitive_desc_destroy(descriptor);
	return primitive;
}

static void execute(dnnl_primitive_t primitive, const dnnl_memory_desc_t *from,
		    const dnnl_memory_desc_t *weights, const dnnl_memory_desc_t *to, int times)
{
	dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, memory_of(from, 0)},
				       {DNNL_ARG_DST, memory_of(to, 2)},
				       {DNNL_ARG_WEIGHTS, weights ? memory_of(weights, 1) : NULL}};
	int n = weights ? 3 : 2;
	uint64_t sum = 0;

	errno = ERANGE;
	fesetround(FE_DOWNWARD);
	for (int i = 0; i < times; i++)
		NEED(dnnl_primitive_execute(primitive, stream, n, arguments));
	NEED(dnnl_stream_wait(stream));
	for (size_t i = 0; i < sizeof(data[2]); i++)
		sum = (sum ^ ((unsigned char *)data[2])[i]) * UINT64_C(0x100000001b3);
	printf("%llx %d %d\n", (unsigned long long)sum, errno, fegetround() == FE_DOWNWARD);
	fesetround(FE_TONEAREST);
	for (int i = 0; i < n; i++)
		dnnl_memory_destroy(arguments[i].memory);
	dnnl_primitive_destroy(primitive);
}

static void convolve(void)
{
	const dnnl_dims_t strides = {1, 1}, padding = {0, 0};
	dnnl_memory_desc_t from = describe(4, (dnnl_dims_t){2, 6, 12, 10}, dnnl_nchw);
	dnnl_memory_desc_t weights = describe(5, (dnnl_dims_t){2, 4, 3, 3, 3}, dnnl_goihw);
	dnnl_memory_desc_t to = describe(4, (dnnl_dims_t){2, 8, 10, 8}, dnnl_nchw);
	dnnl_convolution_desc_t operation;

	NEED(dnnl_convolution_forward_desc_init(&operation, dnnl_forward_inference,
						dnnl_convolution_direct, &from, &weights, NULL, &to,
						strides, padding, padding));
	execute(make(&operation), &from, &weights, &to, 3);
}

static void multiply(void)
{
	dnnl_memory_desc_t a = describe(3, (dnnl_dims_t){5, 12, 20}, dnnl_abc);
	dnnl_memory_desc_t b = describe(3, (dnnl_dims_t){5, 20, 8}, dnnl_abc);
	dnnl_memory_desc_t c = describe(3, (dnnl_dims_t){5, 12, 8}, dnnl_abc);
	dnnl_matmul_desc_t operation;

	NEED(dnnl_matmul_desc_init(&operation, &a, &b, NULL, &c));
	execute(make(&operation), &a, &b, &c, 2);
}

static void rectify(void)
{
	dnnl_memory_desc_t from = describe(2, (dnnl_dims_t){30, 40}, dnnl_ab);
	dnnl_eltwise_desc_t operation;

	NEED(dnnl_eltwise_forward_desc_init(&operation, dnnl_forward_training, dnnl_eltwise_relu,
					    &from, 0, 0));
	execute(make(&operation), &from, NULL, &from, 1);
	/* Not valid, and reported by its status. */
	printf("%d\n", dnnl_primitive_execute(NULL, stream, 0, NULL));
}

int main(void)
{
	NEED(dnnl_engine_create(&engine, dnnl_cpu, 0));
	NEED(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
	for (int i = 0; i < 4; i++)
		for (int at = 0; at < 65536; at++)
			data[i][at] = (float)(at % 19 - 7) / 8;
	convolve();
	multiply();
	rectify();
	dnnl_stream_destroy(stream);
	dnnl_engine_destroy(engine);
	return 0;
}
