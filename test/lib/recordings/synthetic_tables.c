/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The chunks of a synthetic recording other than events: session, processes, stacks and threads. */
#include "test/lib/recordings/synthetic.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TRAIN_LINE 7
#define FORWARD_LINE 3
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

void synthetic_append(struct synthetic *made, Torsh__Chunk *chunk)
{
	if (torsh_recording_append(made->file, chunk, RECORDING_LAST))
		abort();
}

void synthetic_put_session(struct synthetic *made)
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
	synthetic_append(made, &chunk);
}

void synthetic_put_stacks(struct synthetic *made)
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
	synthetic_append(made, &chunk);
}

void synthetic_put_tables(struct synthetic *made)
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
	synthetic_append(made, &chunk);
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
	synthetic_append(made, &chunk);
}

void synthetic_put_more_threads(struct synthetic *made)
{
	for (uint32_t i = 0; i < made->n_threads; i += CHECKPOINT_THREADS)
		put_more_threads(made, i,
				 made->n_threads - i < CHECKPOINT_THREADS ? made->n_threads - i
									  : CHECKPOINT_THREADS);
}

void synthetic_put_end(struct synthetic *made)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__End last = TORSH__END__INIT;

	last.has_complete = last.complete = last.has_at_ns = 1;
	last.at_ns = made->now_ns;
	chunk.end = &last;
	synthetic_append(made, &chunk);
}
