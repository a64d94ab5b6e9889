/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the files of the simulated libcupti share: the subscriber, what is enabled, and how records
 * get into buffers.
 */
#ifndef SIMCUDA_CUPTI_H
#define SIMCUDA_CUPTI_H

#include "cupti_api.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/log/trace.h"
#include "test/simcuda/engine/queue.h"

/* CUPTI_API_VERSION of headers; those of CUDA 12 were counted up. */
#define CUPTI_12_3 21
#define CUPTI_12_8 26

/* By their number, from the headers; NULL: there is none. */
extern const char *const sim_driver_names[], *const sim_runtime_names[], *const sim_result_names[];
extern const unsigned sim_n_driver_names, sim_n_runtime_names, sim_n_result_names;

enum { CUPTI_N_KINDS = 96, CUPTI_N_CALLBACKS = 1024, CUPTI_N_DOMAINS = 7 };

/*
 * A kind of activity, and when it was enabled: what was launched in between is recorded, also when
 * it ends later.
 */
struct cupti_kind {
	_Atomic bool is_on;
	_Atomic uint64_t since_ns, until_ns;
};

extern struct cupti_kind cupti_kinds[CUPTI_N_KINDS];

/* Calls of a domain that are recorded, by their id: with the whole kind, or one by one. */
extern _Atomic uint8_t cupti_recorded_calls[3][CUPTI_N_CALLBACKS];

/* Whether an activity of the kind that began at t_ns is recorded. */
bool cupti_is_recorded(CUpti_ActivityKind kind, uint64_t t_ns);

/* CUPTI works only if the driver does: 0, or the result of every call. */
CUptiResult cupti_check(void);

/* Pass the observer to the engine. */
void cupti_attach(void);

/* ---- callbacks.c ----------------------------------------------------------------------------- */

void cupti_call_begins(struct sim_call *call);
void cupti_call_ends(struct sim_call *call);
void cupti_resource(const struct sim_resource_event *event);

/* ---- external.c ------------------------------------------------------------------------------ */

/* One record for each kind of id that the calling thread has pushed. */
void cupti_record_external_ids(uint32_t correlation);

/* ---- timestamps.c ---------------------------------------------------------------------------- */

/* A moment that is now, as records have it. */
uint64_t cupti_stamp(void);

/* A device's moment as records have it. */
uint64_t cupti_stamp_of(uint64_t t_ns);

/*
 * A kernel's moment: after a second registration some are of the wrong clock
 * (SIMCUDA_MIXED_CLOCKS).
 */
bool cupti_mixes_clocks(void);

/* Measure the registered clock against the device's again, before moments are converted. */
void cupti_calibrate(void);

/* ---- records.c ------------------------------------------------------------------------------- */

/* What happened on a device or to memory, until it is made a record. */
struct cupti_happening {
	enum { HAPPENED_OP, HAPPENED_MEMORY, HAPPENED_WAIT } what;
	bool is_unfinished; /* of an operation: forced out before its end */
	union {
		struct sim_op op;
		struct sim_memory_event memory;
		struct sim_wait_event wait;
	};
};

/* Make the record of it and append it. */
void cupti_record(const struct cupti_happening *happening);

/* The size of a record in the version that is simulated; 0: no such kind. */
size_t cupti_record_bytes(const CUpti_Activity *record);

/* A context or a stream was created; with the first context the devices are reported too. */
void cupti_record_context(const struct sim_context *context);
void cupti_record_stream(const struct sim_stream *stream);

/* CUPTI took time for itself. */
void cupti_record_overhead(CUpti_ActivityOverheadKind kind, uint64_t begin, uint64_t end);

void cupti_record_call(const struct sim_call *call, uint64_t begin, uint64_t end);

/* ---- buffers.c ------------------------------------------------------------------------------- */

/* Append a record to a buffer of the calling thread, or count it as dropped. */
void cupti_append(const void *record, size_t bytes);

/* Hand all buffers with records to the client. */
void cupti_complete_all(void);

/* ---- happenings.c ---------------------------------------------------------------------------- */

/* Functions of the tracer; see engine/trace.h. */
void cupti_op_ends(const struct sim_op *op);
void cupti_memory(const struct sim_memory_event *event);
void cupti_waited(const struct sim_wait_event *event);

/*
 * Make records of what happened so far, and return whether there was anything; not from a callback
 * of the client's.
 */
bool cupti_drain(void);
bool cupti_has_much(void);

/* Record what still runs without an end, and forget it. */
void cupti_force_out(void);

/* Forget all: nothing is recorded any more. */
void cupti_forget(void);

#endif
