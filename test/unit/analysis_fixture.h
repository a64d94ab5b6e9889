/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A training of four steps of a millisecond each on a device, in which no rule finds anything; and what can be made worse in
 * it, a number each. Behind cmocka.h; one test program includes it.
 */
#ifndef TORSH_TEST_ANALYSIS_FIXTURE_H
#define TORSH_TEST_ANALYSIS_FIXTURE_H

#include "recording_fixture.h"
#include "tools/analysis/analysis.h"

enum {
	STEPS = 4,
	STEP_NS = 1000000,
	KERNELS = 4, /* of a step, at equal intervals */
	SLOT_NS = STEP_NS / KERNELS,
	CALL_NS = 1000, /* of a launch */
	EVENTS_MAX = 1024,
	MULTIPROCESSORS = 100,
	CONTEXT = 1,
	STREAM = 7,
};

#define MEMORY_BYTES UINT64_C(16000000000)

/* Doubles, so that a table can name each by its place. */
struct scenario {
	double kernel_ns, grid, block, dynamic_bytes; /* of each kernel */
	double is_gemm; /* by its name */
	double n_long_calls, long_call_ns; /* launches of a step that take so long */
	double n_early; /* kernels of a step that are asked for an interval earlier */
	double outside_ns; /* of a kernel in no operator, a step */
	double communication_ns; /* of one of NCCL's, between the others, a step */
	double n_ranks; /* 1: a process without a rank; 2: of two; -2: both have the same rank */
	double late_ns, late_is_other; /* of communication in the second, a step; it is another collective */
	double shapes,
		warm_shapes; /* that its products have, one after the other; more of them, all in the first step */
	double pause_ns; /* between the second step and the third */
	double tail_ns; /* behind the last step */
	double copy_is_async, copy_is_pageable, copy_call_ns; /* one a step */
	double memset_is_async, memset_call_ns;
	double waits, wait_ns, waits_in_optimizer; /* a step */
	double first_allocating_step; /* one allocation in each step from there on */
	double load_late; /* of a module, in the last step but one; else in the first one */
	double data_ns; /* a step */
	double tensor_bytes, allocated, reserved;
	double dropped, lost_records, refused_devices, overhead_ns;
	double run_ns; /* of the whole process */
	/* What counters say of each kernel. */
	double dram_read, dram_written, dram_pct, eligible_pct, threads, spills, tensor_instructions;
	double without_counters, without_steps, without_device;
};

static const struct scenario healthy = {
	.kernel_ns = 225000,
	.grid = 400, /* two waves of two blocks on each multiprocessor */
	.block = 1024,
	.n_ranks = 1,
	.shapes = 1,
	.n_long_calls = 0,
	.copy_is_async = 1,
	.copy_call_ns = 20000,
	.memset_is_async = 1,
	.memset_call_ns = 20000,
	.waits = 1,
	.wait_ns = 50,
	.first_allocating_step = STEPS,
	.tensor_bytes = 1e6,
	.allocated = 9e9,
	.reserved = 1e10,
	.dram_read = 24576,
	.dram_written = 8192,
	.dram_pct = 10,
	.eligible_pct = 50,
	.threads = 32,
	.tensor_instructions = 1,
	.run_ns = 5e9,
};

#define RANKS_MAX 2

struct story {
	struct fixture fixtures[RANKS_MAX], *fixture; /* that is told now */
	uint32_t rank;
	const struct scenario *told;
	struct {
		uint64_t at;
		size_t number; /* those of one time stay in their order */
		struct event event;
	} events[EVENTS_MAX];
	size_t n;
	uint32_t correlation, record;
	uint32_t n_shapes; /* so far */
};

static inline void story_event(struct story *story, uint64_t at, const struct event *event)
{
	if (story->n == EVENTS_MAX)
		abort();
	story->events[story->n].at = at;
	story->events[story->n].number = story->n;
	story->events[story->n++].event = *event;
}

static inline uint32_t story_label(struct story *story, const char *text)
{
	return fixture_label(story->fixture, text);
}

/* shape: 0 is that of all but products. */
static inline void story_operator_on(struct story *story, uint64_t begin, uint64_t end, const char *name,
				     uint32_t shape)
{
	char inputs[64];
	struct event event = {.id = EVENT_OP_BEGIN};
	uint32_t record = ++story->record;

	event.op_begin.name = story_label(story, name);
	/* What comes behind the factors changes nothing of how much there is to compute. */
	snprintf(inputs, sizeof(inputs),
		 shape ? "float32[64,64];float32[64,64];float32[%u]" : "float32[64,64];float32[64,64]", shape);
	event.op_begin.inputs = story_label(story, inputs);
	event.op_begin.record = record;
	event.op_begin.sequence = OP_NO_SEQUENCE;
	story_event(story, begin, &event);
	event = (struct event){.id = EVENT_OP_END, .op_end = {.record = record}};
	story_event(story, end, &event);
}

static inline void story_operator(struct story *story, uint64_t begin, uint64_t end, const char *name)
{
	story_operator_on(story, begin, end, name, 0);
}

/* A call that gives a device work; told when it returned. */
static inline uint32_t story_launch(struct story *story, uint64_t begin, uint64_t duration_ns, uint64_t told,
				    const char *api)
{
	const struct event event = {.id = EVENT_LAUNCH,
				    .launch = {.api = story_label(story, api),
					       .correlation = ++story->correlation,
					       .begin = begin,
					       .duration_ns = duration_ns,
					       .context = CONTEXT}};

	story_event(story, told, &event);
	return story->correlation;
}

static inline void story_call(struct story *story, uint64_t begin, uint64_t duration_ns, const char *api)
{
	const struct event event = {
		.id = EVENT_DEVICE_CALL,
		.device_call = {.api = story_label(story, api), .begin = begin, .duration_ns = duration_ns}};

	story_event(story, begin + duration_ns, &event);
}

static inline uint64_t story_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline void story_counted(struct story *story, uint64_t at, uint32_t correlation)
{
	const struct scenario *told = story->told;
	const struct event event = {.id = EVENT_COUNTER_RANGE,
				    .counter_range = {.correlation = correlation,
						      .n = 7,
						      .value_0 = story_bits(told->dram_read),
						      .value_1 = story_bits(told->dram_written),
						      .value_2 = story_bits(told->dram_pct),
						      .value_3 = story_bits(told->eligible_pct),
						      .value_4 = story_bits(told->threads),
						      .value_5 = story_bits(told->spills),
						      .value_6 = story_bits(told->tensor_instructions)}};

	if (!told->without_counters)
		story_event(story, at, &event);
}

static inline const char *story_kernel_name(const struct scenario *told)
{
	return told->is_gemm ? "ampere_sgemm_64x64_nn" : "work";
}

static inline void story_kernel(struct story *story, uint64_t begin, uint64_t duration_ns, uint32_t correlation,
				const char *name, uint32_t stream)
{
	const struct event event = {.id = EVENT_KERNEL,
				    .kernel = {.name = story_label(story, name),
					       .begin = begin,
					       .duration_ns = duration_ns,
					       .correlation = correlation,
					       .context = CONTEXT,
					       .stream = stream,
					       .grid_x = (uint32_t)story->told->grid,
					       .grid_y = 1,
					       .grid_z = 1,
					       .block_x = (uint32_t)story->told->block,
					       .block_y = 1,
					       .block_z = 1,
					       .registers = 32,
					       .dynamic_shared_bytes = (uint32_t)story->told->dynamic_bytes}};

	story_event(story, begin + 1, &event);
}

/* The i-th of a step, that begins at `at`. */
static inline void story_slot(struct story *story, uint64_t at, uint64_t i)
{
	const struct scenario *told = story->told;
	uint64_t slot = at + i * SLOT_NS, begin = slot + 2000;
	uint64_t call_ns = (double)i < told->n_long_calls ? (uint64_t)told->long_call_ns : CALL_NS;
	uint32_t correlation;

	if (i && (double)i <= told->n_early)
		begin -= SLOT_NS - 100;
	/* Operators that repeat themselves would tell steps, too. */
	if (!told->without_steps)
		story_operator_on(story, slot + 1000, slot + 9000, "aten::mm", story->n_shapes);
	story->n_shapes += story->n_shapes + 1 < (uint32_t)told->shapes;
	correlation = story_launch(story, begin, call_ns, slot + 2500, "cudaLaunchKernel");
	story_kernel(story, slot + 3000, (uint64_t)told->kernel_ns, correlation, story_kernel_name(told), STREAM);
	story_counted(story, slot + 3002, correlation);
}

static inline void story_copies(struct story *story, uint64_t at)
{
	const struct scenario *told = story->told;
	struct event event = {.id = EVENT_COPY,
			      .copy = {.bytes = 1000,
				       .begin = at + 30000,
				       .duration_ns = 1000,
				       .context = CONTEXT,
				       .stream = STREAM,
				       .kind = COPY_HTOD,
				       .from = told->copy_is_pageable ? MEMORY_PAGEABLE : MEMORY_PINNED,
				       .to = MEMORY_DEVICE,
				       .is_async = told->copy_is_async != 0}};

	event.copy.correlation =
		story_launch(story, at + 20000, (uint64_t)told->copy_call_ns, at + 20100, "cudaMemcpyAsync");
	story_event(story, at + 30001, &event);
	event = (struct event){.id = EVENT_MEMSET,
			       .memset = {.bytes = 1000,
					  .begin = at + 60000,
					  .duration_ns = 1000,
					  .context = CONTEXT,
					  .stream = STREAM,
					  .is_async = told->memset_is_async != 0}};
	event.memset.correlation =
		story_launch(story, at + 50000, (uint64_t)told->memset_call_ns, at + 50100, "cudaMemsetAsync");
	story_event(story, at + 60001, &event);
}

static inline void story_host(struct story *story, uint64_t at, uint64_t step)
{
	const struct scenario *told = story->told;

	if (told->waits_in_optimizer)
		story_operator(story, at + 100000, at + 200000, "Optimizer.step#SGD.step");
	for (uint64_t i = 0; (double)i < told->waits; i++)
		story_call(story, at + 110000 + i * 1000, (uint64_t)told->wait_ns, "cudaStreamSynchronize");
	if ((double)step >= told->first_allocating_step)
		story_call(story, at + 210000, 500, "cudaMalloc");
	if (step == (told->load_late ? STEPS - 2 : 0))
		story_call(story, at + 220000, 60000, "cuModuleLoadData");
	/* That launch something which nothing came of. */
	for (uint32_t i = 0; step == 0 && i < (uint32_t)told->warm_shapes; i++) {
		uint64_t begin = at + 400000 + i * 2000;

		story_operator_on(story, begin, begin + 1000, "aten::mm", 1000 + i);
		story_launch(story, begin + 100, 100, begin + 300, "cudaLaunchKernel");
	}
	if (told->data_ns)
		story_operator(story, at + 300000, at + 300000 + (uint64_t)told->data_ns,
			       "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
}

static inline void story_step(struct story *story, uint64_t at, uint64_t step)
{
	const struct scenario *told = story->told;
	const struct event mark = {.id = EVENT_STEP, .step = {.number = step}};
	uint64_t free_ns = at + 3000 + (uint64_t)told->kernel_ns; /* the device is idle from there on */

	if (!told->without_steps)
		story_event(story, at, &mark);
	for (uint64_t i = 0; i < KERNELS; i++)
		story_slot(story, at, i);
	story_copies(story, at);
	story_host(story, at, step);
	/* The last step ends with its last operator. */
	if (!told->without_steps)
		story_operator(story, at + STEP_NS - 1000, at + STEP_NS, "aten::detach");
	if (told->communication_ns)
		story_kernel(story, free_ns, (uint64_t)(story->rank ? told->late_ns : told->communication_ns),
			     story_launch(story, at + 12000, CALL_NS, at + 13100, "cudaLaunchKernel"),
			     story->rank && told->late_is_other ? "ncclDevKernel_Broadcast" : "ncclDevKernel_AllReduce",
			     STREAM + 1);
	if (told->outside_ns)
		story_kernel(story, free_ns, (uint64_t)told->outside_ns,
			     story_launch(story, at + 14000, CALL_NS, at + 15100, "cudaLaunchKernel"), "scale",
			     STREAM + 1);
}

static inline void story_device(struct story *story)
{
	const struct event mode = {.id = EVENT_DEVICE_MODE, .device_mode = {.mode = DEVICE_BY_CUPTI}};
	const struct event device = {.id = EVENT_DEVICE,
				     .device = {.name = story_label(story, "Made up"),
						.capability_major = 9,
						.memory_bytes = MEMORY_BYTES,
						.memory_bandwidth = UINT64_C(1000000000000),
						.clock_khz = 1000000,
						.multiprocessors = MULTIPROCESSORS,
						.warp_threads = 32,
						.multiprocessor_warps = 64,
						.multiprocessor_blocks = 32,
						.multiprocessor_shared_bytes = 233472,
						.multiprocessor_registers = 65536}};

	story_event(story, 10, &mode);
	story_event(story, 11, &device);
}

static inline void story_counters(struct story *story)
{
	static const char *const names[] = {"dram__bytes_read.sum",
					    "dram__bytes_write.sum",
					    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
					    "smsp__issue_active.avg.pct_of_peak_sustained_active",
					    "smsp__average_thread_inst_executed_per_inst_executed.ratio",
					    "l1tex__t_output_wavefronts_pipe_lsu_mem_local.sum",
					    "sm__inst_executed_pipe_tensor.sum"};
	const struct scenario *told = story->told;
	struct event event = {.id = EVENT_COUNTER_MODE,
			      .counter_mode = {.mode = COUNTERS_OF_OPERATORS, .passes = 2, .n_metrics = 7}};

	story_event(story, 20, &event);
	for (uint32_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		event = (struct event){.id = EVENT_COUNTER_METRIC,
				       .counter_metric = {.number = i,
							  .name = story_label(story, names[i]),
							  .field = story_label(story, names[i]),
							  .unit = story_label(story, "unit")}};
		story_event(story, 21, &event);
	}
	event = (struct event){.id = EVENT_COUNTER_LAUNCH,
			       .counter_launch = {.name = story_label(story, story_kernel_name(told)),
						  .grid_x = (uint32_t)told->grid,
						  .grid_y = 1,
						  .grid_z = 1,
						  .block_x = (uint32_t)told->block,
						  .block_y = 1,
						  .block_z = 1,
						  .dynamic_shared_bytes = (uint32_t)told->dynamic_bytes}};
	story_event(story, 22, &event);
	for (uint32_t i = 0; i < (uint32_t)told->refused_devices; i++) {
		event = (struct event){.id = EVENT_COUNTER_MODE,
				       .counter_mode = {.mode = COUNTERS_OFF,
							.reason = story_label(story, "it is not allowed"),
							.device = i + 1}};
		story_event(story, 23, &event);
	}
}

static inline void story_end(struct story *story, uint64_t at)
{
	const struct scenario *told = story->told;
	struct event event = {.id = EVENT_TENSOR,
			      .tensor = {.address = 0x1000,
					 .bytes = (uint64_t)told->tensor_bytes,
					 .device = 1 << 8,
					 .allocated = (uint64_t)told->allocated,
					 .reserved = (uint64_t)told->reserved}};

	story_event(story, at - 10, &event);
	/* What a program does at its end is no part of its steps. */
	for (uint64_t i = 0; i < 3 * STEPS; i++) {
		story_call(story, at - 2000 + 20 * i, 1, "cudaFree");
		story_call(story, at - 2000 + 20 * i, 0, "cudaDeviceSynchronize");
	}
	event = (struct event){
		.id = EVENT_DEVICE_OVERHEAD,
		.device_overhead = {.kind = 1 << 16, .begin = 10, .duration_ns = (uint64_t)told->overhead_ns}};
	story_event(story, at - 9, &event);
	event = (struct event){.id = EVENT_DEVICE_LOSS,
			       .device_loss = {.records = 100, .dropped = (uint64_t)told->lost_records}};
	story_event(story, at + (uint64_t)told->tail_ns, &event);
}

static inline int compare_story(const void *a, const void *b)
{
	const struct {
		uint64_t at;
		size_t number;
	} *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* A process, which is at work from the first step on. */
static inline void story_process(struct story *story)
{
	static char *const names[] = {"0", "1"};
	const struct scenario *told = story->told;
	uint64_t at = STEP_NS;

	story->fixture = &story->fixtures[story->rank];
	story->n = story->n_shapes = 0;
	fixture_start(story->fixture, story->rank + 1, 100 + story->rank);
	fixture_thread(story->fixture, 100, "main");
	story->fixture->process.end_ns = (uint64_t)told->run_ns;
	if (told->n_ranks != 1)
		story->fixture->process.rank = names[told->n_ranks > 0 ? story->rank : 0];
	if (told->dropped) {
		story->fixture->process.has_dropped = story->fixture->process.has_produced = 1;
		story->fixture->process.dropped = (uint64_t)told->dropped;
		story->fixture->process.produced = 1000;
	}
	if (!told->without_device)
		story_device(story);
	if (!told->without_counters && !told->without_device)
		story_counters(story);
	for (uint64_t step = 0; step < STEPS && !told->without_device; step++) {
		story_step(story, at, step);
		at += STEP_NS + (step == 1 ? (uint64_t)told->pause_ns : 0);
	}
	if (!told->without_device)
		story_end(story, at);
	qsort(story->events, story->n, sizeof(*story->events), compare_story);
	for (size_t i = 0; i < story->n; i++)
		fixture_event(story->fixture, story->events[i].at, 0, &story->events[i].event);
}

static inline size_t story_processes(const struct scenario *told)
{
	return told->n_ranks == 1 ? 1 : RANKS_MAX;
}

/* Writes the recording. */
static inline void story_write(const char *path, struct story *story, const struct scenario *told)
{
	memset(story, 0, sizeof(*story));
	story->told = told;
	for (; story->rank < story_processes(told); story->rank++)
		story_process(story);
	fixture_write(path, story->fixtures, story_processes(told), 1000);
}

static inline void story_forget(struct story *story)
{
	for (size_t i = 0; i < story_processes(story->told); i++)
		fixture_free(&story->fixtures[i]);
}

#endif
