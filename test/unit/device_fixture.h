/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A recording of two processes whose devices worked: told late, out of order, over one another, without a launch. Behind
 * cmocka.h; one test program includes it.
 */
#ifndef TORSH_TEST_DEVICE_FIXTURE_H
#define TORSH_TEST_DEVICE_FIXTURE_H

#include "recording_fixture.h"
#include "tools/profile/survey.h"
#include "tools/symbols/symbols.h"

#define NONE OP_NO_SEQUENCE
#define N_GRAPH 3 /* kernels of the graph */
#define N_ROWS (N_GRAPH + 10) /* all that devices did */

static char path[] = "/tmp/torsh-devices-XXXXXX";
static struct fixture fixtures[2];
static struct profile *profile;
static struct survey survey;
static struct symbols *symbols;

static inline void put_launch(struct fixture *fixture, uint64_t at_ns, uint32_t correlation, uint64_t begin,
			      uint64_t duration_ns)
{
	struct event event = {.id = EVENT_LAUNCH};

	event.launch.api = fixture_label(fixture, "cudaLaunchKernel_v7000");
	event.launch.correlation = correlation;
	event.launch.begin = begin;
	event.launch.duration_ns = duration_ns;
	fixture_event(fixture, at_ns, 0, &event);
}

static inline void put_kernel(struct fixture *fixture, uint64_t at_ns, const char *name, uint32_t correlation,
			      uint64_t begin, uint64_t duration_ns)
{
	struct event event = {.id = EVENT_KERNEL};

	event.kernel.name = fixture_label(fixture, name);
	event.kernel.correlation = correlation;
	event.kernel.begin = begin;
	event.kernel.duration_ns = duration_ns;
	event.kernel.context = 1;
	event.kernel.stream = 7;
	event.kernel.grid_x = event.kernel.grid_y = event.kernel.grid_z = 2;
	event.kernel.block_x = 64;
	event.kernel.block_y = event.kernel.block_z = 1;
	fixture_event(fixture, at_ns, 1, &event);
}

/* In a graph: as a node of it. */
static inline void put_captured(struct fixture *fixture, uint64_t at_ns, uint64_t node)
{
	struct event event = {.id = EVENT_GRAPH_NODE, .graph_node.node = node};

	fixture_event(fixture, at_ns, 0, &event);
}

static inline void put_replayed(struct fixture *fixture, uint64_t at_ns, uint64_t node, uint32_t correlation,
				uint64_t begin)
{
	struct event event = {.id = EVENT_KERNEL};

	event.kernel.name = fixture_label(fixture, "captured");
	event.kernel.correlation = correlation;
	event.kernel.begin = begin;
	event.kernel.duration_ns = 10;
	event.kernel.context = 1;
	event.kernel.stream = 7;
	event.kernel.graph = 1;
	event.kernel.node = node;
	fixture_event(fixture, at_ns, 1, &event);
}

/* A graph that was timed as a whole, where CUPTI can't be had. */
static inline void put_whole_graph(struct fixture *fixture, uint64_t at_ns, uint64_t begin, uint64_t duration_ns)
{
	struct event event = {.id = EVENT_SUBMISSION};

	event.submission.what = SUBMISSION_GRAPH;
	event.submission.is_timed = 1;
	event.submission.begin = begin;
	event.submission.duration_ns = duration_ns;
	event.submission.context = 1;
	event.submission.stream = 7;
	fixture_event(fixture, at_ns, 1, &event);
}

static inline void put_call(struct fixture *fixture, uint64_t at_ns, const char *api, uint32_t correlation,
			    uint64_t begin, uint64_t duration_ns)
{
	struct event event = {.id = EVENT_DEVICE_CALL};

	event.device_call.api = fixture_label(fixture, api);
	event.device_call.correlation = correlation;
	event.device_call.begin = begin;
	event.device_call.duration_ns = duration_ns;
	fixture_event(fixture, at_ns, 0, &event);
}

/* A GH100; the second of its process is not told. */
static inline void put_device(struct fixture *fixture, uint64_t at_ns, uint32_t device)
{
	struct event event = {.id = EVENT_DEVICE};

	event.device = (struct event_device){
		.device = device,
		.name = fixture_label(fixture, "a \"device\""),
		.capability_major = 9,
		.memory_bytes = UINT64_C(1) << 34,
		.multiprocessors = 132,
		.warp_threads = 32,
		.multiprocessor_warps = 64,
		.multiprocessor_blocks = 32,
		.multiprocessor_shared_bytes = 228 << 10,
		.multiprocessor_registers = 65536,
		.block_threads = 1024,
		.block_shared_bytes = 48 << 10,
	};
	fixture_event(fixture, at_ns, 1, &event);
}

/* Times in thousands are those of a launch each, with what it caused. */
static inline void put_launches(struct fixture *fixture)
{
	struct event copy = {.id = EVENT_COPY};

	fixture_op(fixture, 1000, 0, 1, "aten::one", NULL, 0, NONE);
	/* By the other clock it began before its operator, and ended after it was told. */
	put_launch(fixture, 1100, 10, 990, 120);
	fixture_op_end(fixture, 1200, 0, 1);
	fixture_op(fixture, 2000, 0, 2, "aten::two", NULL, 0, NONE);
	put_kernel(fixture, 2040, "_Z5earlyv", 20, 2020, 10); /* while the call still runs */
	put_launch(fixture, 2050, 20, 2010, 30);
	fixture_op_end(fixture, 2100, 0, 2);
	put_launch(fixture, 3050, 30, 3000, 40); /* of no operator */
	fixture_op(fixture, 4000, 0, 3, "aten::graph", NULL, 0, NONE);
	put_captured(fixture, 4005, 77);
	put_launch(fixture, 4050, 40, 4010, 30);
	fixture_op_end(fixture, 4100, 0, 3);
	put_launch(fixture, 5050, 50, 5000, 40); /* which caused nothing that was told */
	put_call(fixture, 5500, "cudaStreamSynchronize_v3020", 55, 5200, 290);
	/* Devices tell later, and not in order. */
	for (uint64_t i = N_GRAPH; i--;)
		put_kernel(fixture, 6000, "node", 40, 4100 + 100 * i, 100);
	put_kernel(fixture, 6010, "_Z3onev", 10, 1110, 500);
	put_kernel(fixture, 6020, "none", 30, 3005, 100);
	put_kernel(fixture, 6030, "nearly", 0, 3102, 50); /* over the one before by 3 ns */
	put_kernel(fixture, 6040, "unseen", 99, 3110, 2000); /* over it and the graph's by more */
	put_kernel(fixture, 6050, "too_early", 30, 2990, 5); /* before its launch */
	copy.copy.kind = COPY_HTOD;
	copy.copy.from = MEMORY_PINNED;
	copy.copy.to = MEMORY_DEVICE;
	copy.copy.bytes = 4096;
	copy.copy.begin = 6000;
	copy.copy.duration_ns = 1000;
	copy.copy.context = 1;
	copy.copy.stream = 7;
	fixture_event(fixture, 7000, 1, &copy);
	put_replayed(fixture, 8100, 77, 98, 8000); /* its launch was not seen */
	put_whole_graph(fixture, 9200, 9000, 100);
}

static inline int make(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	for (uint32_t i = 0; i < 2; i++) {
		fixture_start(&fixtures[i], i + 1, 100 + i);
		fixture_thread(&fixtures[i], 100 + i, "main");
		fixture_thread(&fixtures[i], 200 + i, "CUPTI's");
	}
	put_device(&fixtures[0], 900, 2);
	put_device(&fixtures[0], 910, 0);
	put_launches(&fixtures[0]);
	/* The other process's device has the same number, and does something at the same time. */
	put_kernel(&fixtures[1], 6000, "other", 0, 1110, 500);
	fixture_write(path, fixtures, 2, 5000);
	profile = torsh_profile_create(path);
	if (fixture_give_session(fixture_take_profile, profile, 5000))
		return -1;
	for (size_t i = 0; i < 2; i++) {
		if (fixture_give(&fixtures[i], fixture_take_profile, profile))
			return -1;
	}
	symbols = torsh_symbols_create(false);
	torsh_survey_make(&survey, profile, profile->processes, profile->n_processes);
	return 0;
}

static inline int let_go(void **state)
{
	(void)state;
	torsh_survey_free(&survey);
	torsh_symbols_destroy(symbols);
	torsh_profile_destroy(profile);
	fixture_free(&fixtures[0]);
	fixture_free(&fixtures[1]);
	return unlink(path);
}

#endif
