/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client of CUPTI that uses only the public headers: it stores every record that it receives. For
 * a program of one file; on a device or on a simulated one.
 */
#ifndef CUPTI_CLIENT_H
#define CUPTI_CLIENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda.h>
#include <cupti.h>

enum { CLIENT_MAX_BUFFERS = 64, CLIENT_MAX_RECORDS = 512, CLIENT_BUFFER_BYTES = 1 << 16 };

/*
 * _Z4workPf ends at once. _Z4slowPf takes 20 ms of the device's own clock; the simulation does not
 * run code and gets the time from SIMCUDA_KERNELS.
 */
#define CLIENT_SLOW_KERNEL "_Z4slowPf"
#define CLIENT_MODULE                                  \
	".version 7.0\n"                               \
	".target sm_70\n"                              \
	".address_size 64\n"                           \
	".visible .entry _Z4workPf() { ret; }\n"       \
	".visible .entry " CLIENT_SLOW_KERNEL "() {\n" \
	"	.reg .u64 %now, %end; .reg .pred %early;\n"  \
	"	mov.u64 %end, %globaltimer;\n"               \
	"	add.u64 %end, %end, 20000000;\n"             \
	"again:\n"                                     \
	"	mov.u64 %now, %globaltimer;\n"               \
	"	setp.lt.u64 %early, %now, %end;\n"           \
	"	@%early bra again;\n"                        \
	"	ret;\n"                                      \
	"}\n"

/* What the client got, in the order of completion. */
static struct {
	size_t bytes, n_most; /* of the next buffers; 0 bytes: none is given */
	bool is_askew;
	uint8_t *buffers[CLIENT_MAX_BUFFERS];
	int n_requested, n_completed;
	CUpti_Activity *records[CLIENT_MAX_RECORDS];
	int n_records;
	int n_records_of_buffer[CLIENT_MAX_BUFFERS];
} client;

static CUfunction work, slow_work;
static CUstream stream;

/* The simulation keeps destroyed objects to distinguish stale handles from live ones: no leak. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static void give_buffer(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*buffer = client.bytes ? (uint8_t *)aligned_alloc(8, client.bytes + 8) + client.is_askew
			       : NULL;
	*size = client.bytes;
	*max_records = client.n_most;
	if (client.bytes)
		client.buffers[client.n_requested++ % CLIENT_MAX_BUFFERS] = *buffer;
}

static void take_buffer(CUcontext context, uint32_t stream_id, uint8_t *buffer, size_t size,
			size_t valid)
{
	CUpti_Activity *record = NULL;
	int before = client.n_records;

	(void)context, (void)stream_id, (void)size;
	while (client.n_records < CLIENT_MAX_RECORDS &&
	       cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
		client.records[client.n_records++] = record;
	client.n_records_of_buffer[client.n_completed++ % CLIENT_MAX_BUFFERS] =
		client.n_records - before;
}

/* The first device, a stream on it, and the kernels. Returns 0 or what failed. */
static inline int client_begin(void)
{
	CUmodule module;
	CUcontext context;
	CUdevice device;

	return cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
	       cuCtxSetCurrent(context) || cuModuleLoadData(&module, CLIENT_MODULE) ||
	       cuModuleGetFunction(&work, module, "_Z4workPf") ||
	       cuModuleGetFunction(&slow_work, module, CLIENT_SLOW_KERNEL) ||
	       cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
	       cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
}

/* Before each test: nothing is enabled, and nothing is left of the one before. */
static inline int client_reset(void **state)
{
	(void)state;
	cuCtxSynchronize();
	cuptiActivityFlushAll(0);
	for (int kind = 1; kind < CUPTI_ACTIVITY_KIND_COUNT; kind++)
		cuptiActivityDisable((CUpti_ActivityKind)kind);
	memset(&client, 0, sizeof(client));
	client.bytes = CLIENT_BUFFER_BYTES;
	return 0;
}

static inline void launch_function(CUfunction function)
{
	assert_int_equal(cuLaunchKernel(function, 4, 2, 1, 64, 1, 1, 256, stream, NULL, NULL), 0);
}

static inline void launch(void)
{
	launch_function(work);
}

static inline void finish(void)
{
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(cuptiActivityFlushAll(0), 0);
}

/* The n-th record of the kind, from 0; NULL: there are fewer. */
static inline const CUpti_Activity *find(CUpti_ActivityKind kind, int n)
{
	for (int i = 0; i < client.n_records; i++)
		if (client.records[i]->kind == kind && n-- == 0)
			return client.records[i];
	return NULL;
}

static inline int count(CUpti_ActivityKind kind)
{
	int n = 0;

	while (find(kind, n))
		n++;
	return n;
}

/* Must be there. */
static inline const CUpti_ActivityKernel9 *kernel(int n)
{
	const CUpti_Activity *record = find(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, n);

	assert_non_null(record);
	return (const CUpti_ActivityKernel9 *)record;
}

/* Two launches of the short kernel, as a graph. */
static inline CUgraphExec make_graph(void)
{
	CUgraph graph;
	CUgraphExec exec;

	assert_int_equal(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
	launch();
	launch();
	assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
	assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
	return exec;
}

#endif
