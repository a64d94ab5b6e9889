/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Writes a recording of a training that never was, of any length, for tests and benchmarks of the
 * readers:
 *
 *	synthetic FILE OPERATORS [RANKS [KERNELS [THREADS]]]
 *
 * A step has 100 operators, forward in two modules on the main thread and backward on another one,
 * with inputs, sequence numbers and tensors; the optimizer ends it. With RANKS there are so many
 * processes of as many operators, of ranks 0, 1 and so on, which emit values and marks and have
 * stacks: of addmm and of the tensors, which it allocates; 0 RANKS are none. With KERNELS each
 * operator launches so many, on two streams of a device that reports them later. With THREADS each
 * process has so many more, one after another, each with a range, an end of an operator that nobody
 * saw begin, and a row in several messages, as checkpoints write them. Prints how many there are of
 * each kind in a process, as JSON.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/lib/recordings/synthetic.h"

#define MESSAGE_EVENTS 65536u
#define START_DELAY_NS 1000000u
#define SAMPLES_OF_STEP 10
#define LAUNCH_NS 100u /* of a launch: less than what lies between two events */
#define KERNEL_NS 500u
#define CORRELATION_STRIDE 3u /* other calls have numbers too */

static void flush_events(struct synthetic *made)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Timeline message = TORSH__TIMELINE__INIT, *one = &message;

	message.has_process = message.has_n_events = message.has_columns = 1;
	message.process = made->process;
	if (torsh_timeline_take(made->writer, &message.n_events, &message.columns.data,
				&message.columns.len))
		abort();
	chunk.n_timeline = 1;
	chunk.timeline = &one;
	synthetic_append(made, &chunk);
	free(message.columns.data);
}

static void put(struct synthetic *made, uint32_t thread, const struct event *event)
{
	struct timeline_event added = {.thread = thread, .event = *event, .stack = made->stack};

	made->random = made->random * 6364136223846793005u + 1442695040888963407u;
	made->now_ns += 200 + (made->random >> 54);
	added.at_ns = made->now_ns;
	if (torsh_timeline_add(made->writer, &added))
		abort();
	if (torsh_timeline_count(made->writer) == MESSAGE_EVENTS)
		flush_events(made);
}

static void emit_kernels(struct synthetic *made)
{
	for (size_t i = 0; i < made->n_pending; i++)
		put(made, 2, &made->pending[i]);
	made->n_pending = 0;
}

static void launch_kernel(struct synthetic *made, uint32_t thread)
{
	uint32_t stream = (uint32_t)(made->n_kernels % STREAMS);
	struct event launch = {.id = EVENT_LAUNCH}, *kernel = &made->pending[made->n_pending++];

	launch.launch.api = LAUNCH;
	launch.launch.correlation = made->correlation += CORRELATION_STRIDE;
	launch.launch.begin = made->now_ns + LAUNCH_NS;
	launch.launch.duration_ns = LAUNCH_NS;
	put(made, thread, &launch);
	*kernel = (struct event){.id = EVENT_KERNEL};
	kernel->kernel.name = stream ? REDUCE : GEMM;
	kernel->kernel.correlation = made->correlation;
	kernel->kernel.context = 1;
	kernel->kernel.stream = 7 + stream;
	kernel->kernel.begin =
		made->idle_ns[stream] > made->now_ns ? made->idle_ns[stream] : made->now_ns;
	kernel->kernel.duration_ns = KERNEL_NS;
	kernel->kernel.grid_x = (uint32_t)(made->n_kernels % 100) + 1;
	kernel->kernel.grid_y = kernel->kernel.grid_z = kernel->kernel.block_y =
		kernel->kernel.block_z = 1;
	kernel->kernel.block_x = 256;
	kernel->kernel.registers = 32;
	made->idle_ns[stream] = kernel->kernel.begin + KERNEL_NS;
	made->n_kernels++;
	if (made->n_pending == PENDING_KERNELS)
		emit_kernels(made);
}

static uint32_t begin(struct synthetic *made, uint32_t thread, enum label name, enum label inputs,
		      uint32_t scope, uint64_t sequence)
{
	struct event event = {.id = EVENT_OP_BEGIN};

	event.op_begin.name = name;
	event.op_begin.inputs = inputs;
	event.op_begin.scope = scope;
	event.op_begin.record = ++made->record;
	event.op_begin.sequence = sequence;
	event.op_begin.forward_thread = scope == OP_BACKWARD ? 1 : 0;
	made->n_operators++;
	put(made, thread, &event);
	for (uint32_t i = 0; i < made->kernels_of_operator; i++)
		launch_kernel(made, thread);
	return made->record;
}

static void number_main_thread(struct synthetic *made)
{
	struct event event = {.id = EVENT_OP_THREAD};

	event.op_thread.number = 1;
	put(made, 0, &event);
}

static void end(struct synthetic *made, uint32_t thread, uint32_t record)
{
	struct event event = {.id = EVENT_OP_END};

	event.op_end.record = record;
	put(made, thread, &event);
}

static void tensor(struct synthetic *made, uint32_t thread, uint64_t address, bool is_free)
{
	struct event event = {.id = EVENT_TENSOR};

	event.tensor.address = address;
	event.tensor.bytes = 65536;
	event.tensor.is_free = is_free;
	made->n_tensors++;
	put(made, thread, &event);
}

static void module(struct synthetic *made, enum label name)
{
	struct event event = {.id = name ? EVENT_RANGE_PUSH : EVENT_RANGE_POP};

	if (name) {
		event.range_push.name = name;
		event.range_push.source = RANGE_BY_MODULE;
		made->n_modules++;
	} else {
		event.range_pop.source = RANGE_BY_MODULE;
	}
	put(made, 0, &event);
}

/* 5 operators */
static void put_forward(struct synthetic *made, uint64_t place)
{
	uint32_t linear, inner;

	module(made, MODULE_0);
	linear = begin(made, 0, LINEAR, LINEAR_INPUTS, OP_FUNCTION, made->sequence);
	inner = begin(made, 0, T, T_INPUTS, OP_FUNCTION, made->sequence);
	end(made, 0, inner);
	made->stack = made->n_ranks ? FORWARD_STACK : NO_STACK;
	inner = begin(made, 0, ADDMM, ADDMM_INPUTS, OP_FUNCTION, made->sequence + 1);
	tensor(made, 0, 0x100000 + place * 65536, false);
	made->stack = NO_STACK;
	end(made, 0, inner);
	end(made, 0, linear);
	module(made, NO_LABEL);
	module(made, MODULE_1);
	inner = begin(made, 0, RELU, RELU_INPUTS, OP_FUNCTION, made->sequence + 2);
	end(made, 0, inner);
	module(made, NO_LABEL);
	inner = begin(made, 0, SUM, RELU_INPUTS, OP_FUNCTION, made->sequence + 2);
	end(made, 0, inner);
	made->sequence += 2;
}

/* 4 operators */
static void put_backward(struct synthetic *made, uint64_t place, uint64_t sequence)
{
	uint32_t node = begin(made, 1, BACKWARD, NO_LABEL, OP_BACKWARD, sequence), inner;

	inner = begin(made, 1, MM, MM_INPUTS, OP_FUNCTION, OP_NO_SEQUENCE);
	end(made, 1, inner);
	tensor(made, 1, 0x100000 + place * 65536, true);
	inner = begin(made, 1, T, T_INPUTS, OP_FUNCTION, OP_NO_SEQUENCE);
	end(made, 1, inner);
	inner = begin(made, 1, T, T_INPUTS, OP_FUNCTION, OP_NO_SEQUENCE);
	end(made, 1, inner);
	end(made, 1, node);
}

static void value(struct synthetic *made, enum label name, uint32_t kind, double number)
{
	struct event event = {.id = EVENT_VALUE};

	event.value.name = name;
	event.value.kind = kind;
	event.value.payload_type = PAYLOAD_F64;
	memcpy(&event.value.payload, &number, sizeof(number));
	put(made, 0, &event);
}

/* A program's annotations: a loss that is the step's number, samples from 0 on, a mark. */
static void emit(struct synthetic *made)
{
	struct event event = {.id = EVENT_MARK};

	value(made, LOSS, VALUE_SCALAR, (double)made->n_steps);
	for (int i = 0; i < SAMPLES_OF_STEP; i++)
		value(made, LENGTH, VALUE_SAMPLE, i);
	event.mark.name = HERE;
	put(made, 0, &event);
}

/* 10 layers forward, backward, and 10 operators of the optimizer */
static void put_step(struct synthetic *made)
{
	uint64_t first = made->sequence;
	uint32_t step;

	for (uint64_t i = 0; i < 10; i++)
		put_forward(made, i);
	for (uint64_t i = 10; i-- > 0;)
		put_backward(made, i, first + 2 * i + 1);
	step = begin(made, 0, STEP, NO_LABEL, OP_USER, OP_NO_SEQUENCE);
	for (int i = 0; i < 9; i++) {
		uint32_t add = begin(made, 0, ADD, ADD_INPUTS, OP_FUNCTION, OP_NO_SEQUENCE);

		end(made, 0, add);
	}
	if (made->n_ranks)
		emit(made);
	end(made, 0, step);
	made->n_steps++;
}

static void run_more_threads(struct synthetic *made)
{
	for (uint32_t i = 0; i < made->n_threads; i++) {
		struct event event = {.id = EVENT_RANGE_PUSH};

		event.range_push.name = HERE;
		put(made, FIRST_MORE + i, &event);
		event = (struct event){.id = EVENT_OP_END};
		event.op_end.record = UINT32_MAX;
		put(made, FIRST_MORE + i, &event);
		put(made, FIRST_MORE + i, &(struct event){.id = EVENT_RANGE_POP});
	}
}

static void put_process(struct synthetic *made, uint64_t n_operators)
{
	made->process++;
	made->now_ns = START_DELAY_NS;
	made->n_operators = made->n_modules = made->n_tensors = made->n_steps = made->n_kernels = 0;
	number_main_thread(made);
	while (made->n_operators < n_operators)
		put_step(made);
	emit_kernels(made);
	run_more_threads(made);
	flush_events(made);
	synthetic_put_tables(made);
	synthetic_put_more_threads(made);
	if (made->n_ranks)
		synthetic_put_stacks(made);
}

int main(int argc, char **argv)
{
	const struct recording_limits limits = {0};
	struct synthetic made = {0};
	uint64_t n_operators;
	int fd;

	if (argc < 3 || argc > 6)
		return 2;
	n_operators = strtoull(argv[2], NULL, 10);
	made.n_ranks = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	made.kernels_of_operator = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;
	made.n_threads = argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : 0;
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	made.file = torsh_recording_create(fd, &limits, START_NS);
	made.writer = torsh_timeline_create();
	if (fd < 0 || !made.file || !made.writer)
		return 2;
	synthetic_put_session(&made);
	do
		put_process(&made, n_operators);
	while (made.process < made.n_ranks);
	synthetic_put_end(&made);
	torsh_timeline_destroy(made.writer);
	torsh_recording_finish(made.file);
	close(fd);
	printf("{\"operators\": %" PRIu64 ", \"modules\": %" PRIu64 ", \"tensors\": %" PRIu64
	       ", \"steps\": %" PRIu64 ", \"kernels\": %" PRIu64 "}\n",
	       made.n_operators, made.n_modules, made.n_tensors, made.n_steps, made.n_kernels);
	return 0;
}
