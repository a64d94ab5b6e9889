/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A training that never ran, as it is written: labels, counts, and the chunks around its events. */
#ifndef TORSH_TEST_LIB_RECORDINGS_SYNTHETIC_H
#define TORSH_TEST_LIB_RECORDINGS_SYNTHETIC_H

#include <stddef.h>
#include <stdint.h>

#include "agent/wire/channel.h"
#include "tools/store/recording_write.h"
#include "tools/store/timeline_columns.h"

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

#define PENDING_KERNELS 256u /* that a device keeps before it reports them */
#define STREAMS 2u
/* number of the first thread beyond those of a training; the device has its last one */
#define FIRST_MORE 3u

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
	struct event pending[PENDING_KERNELS];
	size_t n_pending;
};

/* Append a chunk to the recording; ends the program if it cannot be written. */
void synthetic_append(struct synthetic *made, Torsh__Chunk *chunk);

/* The session, the first chunk. */
void synthetic_put_session(struct synthetic *made);

/* Two lines of Python, and the heap that they held at its peak. */
void synthetic_put_stacks(struct synthetic *made);

/* The process that ends now, with its labels and the two threads of a training. */
void synthetic_put_tables(struct synthetic *made);

/* Rows of made->n_threads more threads, in several messages. */
void synthetic_put_more_threads(struct synthetic *made);

/* The end of the recording. */
void synthetic_put_end(struct synthetic *made);

#endif
