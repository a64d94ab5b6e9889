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

#include "agent/wire/channel.h"
#include "tools/store/recording_write.h"
#include "tools/store/timeline_columns.h"

#define MESSAGE_EVENTS 65536u
#define PID 1000u
#define START_DELAY_NS 1000000u
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
	LOSS,
	LENGTH,
	HERE,
	LAUNCH,
	GEMM,
	REDUCE,
	TRAIN, /* functions of Python */
	FORWARD,
	N_LABELS
};

/* Numbers of stacks: lines of Python, the outermost first. */
enum stack { NO_STACK, TRAIN_STACK, FORWARD_STACK, N_STACKS };

#define TRAIN_LINE 7
#define FORWARD_LINE 3
#define SAMPLES_OF_STEP 10
#define LAUNCH_NS 100u /* of a launch: less than what lies between two events */
#define KERNEL_NS 500u
#define CORRELATION_STRIDE 3u /* other calls have numbers too */
#define KERNELS_UNTOLD 256u /* that a device keeps before it reports them */
#define STREAMS 2u
/* number of the first thread beyond those of a training, of which the device's is the last */
#define FIRST_MORE 3u
#define MORE_TIDS 1000000u

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
	[LOSS] = "loss",
	[LENGTH] = "length",
	[HERE] = "end of a step",
	[LAUNCH] = "cudaLaunchKernel",
	[GEMM] = "_Z4gemmILi128EEvPKfS1_Pf",
	[REDUCE] = "_Z6reducePKfPf",
	[TRAIN] = "train",
	[FORWARD] = "Net.forward",
};

struct synthetic {
	struct recording_file *file;
	struct timeline_writer *writer;
	uint64_t now_ns, n_operators, n_modules, n_tensors, n_steps;
	uint32_t record, process, n_ranks;
	enum stack stack; /* of events that come */
	uint64_t sequence, random;
	uint32_t kernels_of_operator, correlation;
	uint32_t n_threads; /* more than the two */
	uint64_t n_kernels, idle_ns[STREAMS]; /* idle: when the stream's last kernel ends */
	struct event untold[KERNELS_UNTOLD];
	size_t n_untold;
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
	message.process = made->process;
	if (torsh_timeline_take(made->writer, &message.n_events, &message.columns.data,
				&message.columns.len))
		abort();
	chunk.n_timeline = 1;
	chunk.timeline = &one;
	append(made, &chunk);
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
	for (size_t i = 0; i < made->n_untold; i++)
		put(made, 2, &made->untold[i]);
	made->n_untold = 0;
}

static void launch_kernel(struct synthetic *made, uint32_t thread)
{
	uint32_t stream = (uint32_t)(made->n_kernels % STREAMS);
	struct event launch = {.id = EVENT_LAUNCH}, *kernel = &made->untold[made->n_untold++];

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
	if (made->n_untold == KERNELS_UNTOLD)
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

/* Two lines of Python, and the heap that they held at its peak. */
static void put_stacks(struct synthetic *made)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Addresses addresses = TORSH__ADDRESSES__INIT, *all_addresses = &addresses;
	Torsh__Stacks stacks = TORSH__STACKS__INIT, *all_stacks = &stacks;
	Torsh__StackTotals totals = TORSH__STACK_TOTALS__INIT, *all_totals = &totals;
	Torsh__Heap heap = TORSH__HEAP__INIT, *heaps = &heap;
	uint64_t lines[] = {TRAIN_LINE, FORWARD_LINE}, blocks[] = {1, 2}, bytes[] = {100, 3000},
		 zeros[2] = {0};
	uint32_t flags[] = {ADDRESS_PYTHON, ADDRESS_PYTHON}, functions[] = {TRAIN - 1, FORWARD - 1};
	uint32_t parents[] = {NO_STACK, TRAIN_STACK}, tops[] = {0, 1},
		 numbers[] = {TRAIN_STACK, FORWARD_STACK}, seen[] = {1, 1};
	int64_t none[2] = {0};

	addresses.has_process = stacks.has_process = totals.has_process = heap.has_process = 1;
	addresses.process = stacks.process = totals.process = heap.process = made->process;
	addresses.n_ip = addresses.n_flags = addresses.n_module = 2;
	addresses.ip = lines;
	addresses.flags = flags;
	addresses.module = functions;
	stacks.has_first = stacks.first = 1;
	stacks.n_parent = stacks.n_address = 2;
	stacks.parent = parents;
	stacks.address = tops;
	totals.n_stack = totals.n_seen = totals.n_allocs = totals.n_alloc_bytes = 2;
	totals.n_temporary = totals.n_temporary_bytes = totals.n_base_blocks = totals.n_base_bytes =
		2;
	totals.n_delta_blocks = totals.n_delta_bytes = 2;
	totals.stack = numbers;
	totals.seen = seen;
	totals.allocs = totals.base_blocks = blocks;
	totals.alloc_bytes = totals.base_bytes = bytes;
	totals.temporary = totals.temporary_bytes = zeros;
	totals.delta_blocks = totals.delta_bytes = none;
	heap.has_peak_number = heap.has_peak_bytes = heap.has_peak_blocks = heap.has_peak_ns = 1;
	heap.peak_number = 1;
	heap.peak_bytes = bytes[0] + bytes[1];
	heap.peak_blocks = blocks[0] + blocks[1];
	heap.peak_ns = made->now_ns / 2;
	chunk.n_addresses = chunk.n_stacks = chunk.n_stack_totals = chunk.n_heap = 1;
	chunk.addresses = &all_addresses;
	chunk.stacks = &all_stacks;
	chunk.stack_totals = &all_totals;
	chunk.heap = &heaps;
	append(made, &chunk);
}

static void put_tables(struct synthetic *made)
{
	static char empty[] = "", file[] = "/src/train.py", main_name[] = "python",
		    backward_name[] = "pt_autograd_0";
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Process process = TORSH__PROCESS__INIT, *processes = &process;
	Torsh__Functions functions = TORSH__FUNCTIONS__INIT, *all_functions = &functions;
	Torsh__Threads threads = TORSH__THREADS__INIT, *all_threads = &threads;
	char *files[N_LABELS], *names[] = {main_name, backward_name};
	uint32_t lines[N_LABELS] = {0}, pid = PID * made->process, tids[] = {pid, pid + 1};
	char rank[16];
	uint64_t zeros[2] = {0};

	for (size_t i = 0; i < N_LABELS; i++)
		files[i] = i + 1 < TRAIN ? empty : file;
	process.has_process = process.has_pid = process.has_end = process.has_end_code =
		process.has_end_ns = 1;
	process.process = made->process;
	process.pid = pid;
	snprintf(rank, sizeof(rank), "%" PRIu32, made->process - 1);
	if (made->n_ranks)
		process.rank = rank;
	process.program = "/usr/bin/python3";
	process.end = TORSH__PROCESS__END_KIND__EXITED;
	process.end_ns = made->now_ns;
	functions.has_process = 1;
	functions.process = made->process;
	functions.n_name = functions.n_file = functions.n_first_line = N_LABELS - 1;
	functions.name = (char **)(uintptr_t)(labels + 1);
	functions.file = files;
	functions.first_line = lines;
	threads.has_process = 1;
	threads.process = made->process;
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

#define CHECKPOINT_THREADS 1000u /* rows of a message */

/* Row i is thread FIRST_MORE + first + i. */
static void put_more_threads(struct synthetic *made, uint32_t first, uint32_t n)
{
	static char name[] = "more";
	static uint64_t zeros[CHECKPOINT_THREADS], ns[CHECKPOINT_THREADS];
	static uint32_t numbers[CHECKPOINT_THREADS], tids[CHECKPOINT_THREADS];
	static char *names[CHECKPOINT_THREADS];
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Threads row = TORSH__THREADS__INIT, *rows = &row;

	for (uint32_t i = 0; i < n; i++) {
		numbers[i] = FIRST_MORE + first + i;
		tids[i] = MORE_TIDS + first + i;
		ns[i] = made->now_ns;
		names[i] = name;
	}
	row.has_process = 1;
	row.process = made->process;
	row.n_number = row.n_tid = row.n_name = row.n_start_ns = row.n_end_ns = n;
	row.n_allocs = row.n_alloc_bytes = row.n_frees = row.n_dropped = n;
	row.number = numbers;
	row.tid = tids;
	row.name = names;
	row.start_ns = row.end_ns = ns;
	row.allocs = row.alloc_bytes = row.frees = row.dropped = zeros;
	chunk.n_threads = 1;
	chunk.threads = &rows;
	append(made, &chunk);
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

static void emit_more_threads(struct synthetic *made)
{
	for (uint32_t i = 0; i < made->n_threads; i += CHECKPOINT_THREADS)
		put_more_threads(made, i,
				 made->n_threads - i < CHECKPOINT_THREADS ? made->n_threads - i
									  : CHECKPOINT_THREADS);
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
	put_tables(made);
	emit_more_threads(made);
	if (made->n_ranks)
		put_stacks(made);
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
	put_session(&made);
	do
		put_process(&made, n_operators);
	while (made.process < made.n_ranks);
	put_end(&made);
	torsh_timeline_destroy(made.writer);
	torsh_recording_finish(made.file);
	close(fd);
	printf("{\"operators\": %" PRIu64 ", \"modules\": %" PRIu64 ", \"tensors\": %" PRIu64
	       ", \"steps\": %" PRIu64 ", \"kernels\": %" PRIu64 "}\n",
	       made.n_operators, made.n_modules, made.n_tensors, made.n_steps, made.n_kernels);
	return 0;
}
