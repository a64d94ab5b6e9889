/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Writes a recording of a training that never was, of any length, for tests and benchmarks of the readers:
 *
 *	synthetic FILE OPERATORS
 *
 * A step has 100 operators, forward in two modules on the main thread and backward on another one, with inputs,
 * sequence numbers and tensors; the optimizer ends it. Prints how many there are of each kind, as JSON.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/store/recording_write.h"
#include "tools/store/timeline_columns.h"

#define MESSAGE_EVENTS 65536u
#define MAIN_TID 1000u
#define PID 1000u
#define START_NS UINT64_C(1700000000000000000)

enum label {
	NO_LABEL,
	LINEAR,
	T,
	ADDMM,
	RELU,
	SUM,
	BACKWARD,
	MM,
	ADD,
	STEP,
	MODULE_0,
	MODULE_1,
	LINEAR_INPUTS,
	T_INPUTS,
	ADDMM_INPUTS,
	RELU_INPUTS,
	MM_INPUTS,
	ADD_INPUTS,
	N_LABELS
};

static char *const labels[N_LABELS] = {
	[LINEAR] = "aten::linear",
	[T] = "aten::t",
	[ADDMM] = "aten::addmm",
	[RELU] = "aten::relu",
	[SUM] = "aten::sum",
	[BACKWARD] = "AddmmBackward0",
	[MM] = "aten::mm",
	[ADD] = "aten::add_",
	[STEP] = "Optimizer.step#SGD.step",
	[MODULE_0] = "net.0:Linear",
	[MODULE_1] = "net.1:ReLU",
	[LINEAR_INPUTS] = "float32[64,128];float32[256,128];float32[256]",
	[T_INPUTS] = "float32[256,128]",
	[ADDMM_INPUTS] = "float32[256];float32[64,128];float32[128,256](1,128);1;1",
	[RELU_INPUTS] = "float32[64,256]",
	[MM_INPUTS] = "float32[256,64](1,256);float32[64,128]",
	[ADD_INPUTS] = "float32[256,128];float32[256,128];-0.01",
};

struct synthetic {
	struct recording_file *file;
	struct timeline_writer *writer;
	uint64_t now_ns, n_operators, n_modules, n_tensors, n_steps;
	uint32_t record;
	uint64_t sequence, random;
};

static void append(struct synthetic *made, Torsh__Chunk *chunk)
{
	if (torsh_recording_append(made->file, chunk, RECORDING_LAST))
		abort();
}

static void flush_events(struct synthetic *made)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Timeline message = TORSH__TIMELINE__INIT, *one = &message;

	message.has_process = message.has_n_events = message.has_columns = 1;
	message.process = 1;
	if (torsh_timeline_take(made->writer, &message.n_events, &message.columns.data, &message.columns.len))
		abort();
	chunk.n_timeline = 1;
	chunk.timeline = &one;
	append(made, &chunk);
	free(message.columns.data);
}

static void put(struct synthetic *made, uint32_t thread, const struct event *event)
{
	struct timeline_event added = {.thread = thread, .event = *event};

	made->random = made->random * 6364136223846793005u + 1442695040888963407u;
	made->now_ns += 200 + (made->random >> 54);
	added.at_ns = made->now_ns;
	if (torsh_timeline_add(made->writer, &added))
		abort();
	if (torsh_timeline_count(made->writer) == MESSAGE_EVENTS)
		flush_events(made);
}

static uint32_t begin(struct synthetic *made, uint32_t thread, enum label name, enum label inputs, uint32_t scope,
		      uint64_t sequence)
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
	inner = begin(made, 0, ADDMM, ADDMM_INPUTS, OP_FUNCTION, made->sequence + 1);
	tensor(made, 0, 0x100000 + place * 65536, false);
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
	end(made, 0, step);
	made->n_steps++;
}

static void put_session(struct synthetic *made)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Session session = TORSH__SESSION__INIT;

	session.has_format = session.has_start_realtime_ns = 1;
	session.format = RECORDING_FORMAT;
	session.start_realtime_ns = START_NS;
	session.agent_version = "synthetic";
	session.host = "host";
	session.record = "folded";
	chunk.session = &session;
	append(made, &chunk);
}

static void put_tables(struct synthetic *made)
{
	static char empty[] = "", main_name[] = "python", backward_name[] = "pt_autograd_0";
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Process process = TORSH__PROCESS__INIT, *processes = &process;
	Torsh__Functions functions = TORSH__FUNCTIONS__INIT, *all_functions = &functions;
	Torsh__Threads threads = TORSH__THREADS__INIT, *all_threads = &threads;
	char *files[N_LABELS], *names[] = {main_name, backward_name};
	uint32_t lines[N_LABELS] = {0}, tids[] = {MAIN_TID, MAIN_TID + 1};
	uint64_t zeros[2] = {0};

	for (size_t i = 0; i < N_LABELS; i++)
		files[i] = empty;
	process.has_process = process.has_pid = process.has_end = process.has_end_code = process.has_end_ns = 1;
	process.process = 1;
	process.pid = PID;
	process.program = "/usr/bin/python3";
	process.end = TORSH__PROCESS__END_KIND__EXITED;
	process.end_ns = made->now_ns;
	functions.has_process = 1;
	functions.process = 1;
	functions.n_name = functions.n_file = functions.n_first_line = N_LABELS - 1;
	functions.name = (char **)(uintptr_t)(labels + 1);
	functions.file = files;
	functions.first_line = lines;
	threads.has_process = 1;
	threads.process = 1;
	threads.n_tid = threads.n_name = threads.n_start_ns = threads.n_end_ns = 2;
	threads.n_allocs = threads.n_alloc_bytes = threads.n_frees = threads.n_dropped = 2;
	threads.tid = tids;
	threads.name = names;
	threads.start_ns = threads.end_ns = threads.allocs = zeros;
	threads.alloc_bytes = threads.frees = threads.dropped = zeros;
	chunk.n_process = chunk.n_functions = chunk.n_threads = 1;
	chunk.process = &processes;
	chunk.functions = &all_functions;
	chunk.threads = &all_threads;
	append(made, &chunk);
}

static void put_end(struct synthetic *made)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__End last = TORSH__END__INIT;

	last.has_complete = last.complete = last.has_at_ns = 1;
	last.at_ns = made->now_ns;
	chunk.end = &last;
	append(made, &chunk);
}

int main(int argc, char **argv)
{
	const struct recording_limits limits = {0};
	struct synthetic made = {.now_ns = 1000000};
	uint64_t n_operators;
	int fd;

	if (argc != 3)
		return 2;
	n_operators = strtoull(argv[2], NULL, 10);
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	made.file = torsh_recording_create(fd, &limits, START_NS);
	made.writer = torsh_timeline_create();
	if (fd < 0 || !made.file || !made.writer)
		return 2;
	put_session(&made);
	number_main_thread(&made);
	while (made.n_operators < n_operators)
		put_step(&made);
	flush_events(&made);
	put_tables(&made);
	put_end(&made);
	torsh_timeline_destroy(made.writer);
	torsh_recording_finish(made.file);
	close(fd);
	printf("{\"operators\": %" PRIu64 ", \"modules\": %" PRIu64 ", \"tensors\": %" PRIu64 ", \"steps\": %" PRIu64
	       "}\n",
	       made.n_operators, made.n_modules, made.n_tensors, made.n_steps);
	return 0;
}
