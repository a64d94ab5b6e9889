/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Functions and state that the parts of the exporter for Chrome's JSON share. */
#ifndef TORSH_EXPORT_CHROME_CHROME_H
#define TORSH_EXPORT_CHROME_CHROME_H

#include "tools/device/kernels/counters.h"
#include "tools/export/chrome/chrome_inputs.h"
#include "tools/export/string_cache.h"
#include "tools/timeline/collectives/collective_calls.h"
#include "tools/timeline/collectives/nccl_spans.h"
#include "tools/timeline/prepass/process_groups.h"

struct chrome_process {
	struct string_cache strings;
	int64_t *held_bytes; /* by device, of its tensors */
	size_t n_devices;
};

struct chrome {
	struct trace *trace;
	struct json_writer json;
	struct chrome_process *processes, *last;
	struct forward_spans *forward;
	struct inputs inputs;
	struct collectives collectives;
	struct collective_calls calls;
	struct nccl_spans nccl;
	struct chrome_devices *devices;
	struct chrome_kernels *kernels;
	struct counters counters;
	struct chrome_samples *samples; /* NULL: there was none yet */
	uint64_t n_memory;
	uint64_t n_flows;
};

static inline struct chrome_process *torsh_chrome_process(struct chrome *chrome,
							  const struct recorded_process *process)
{
	struct chrome_process *of = chrome->last;

	if (of && of->strings.process == process)
		return of;
	for (of = chrome->processes; of->strings.process != process; of++)
		;
	return chrome->last = of;
}

/* Put how long an event takes that begins and ends then. */
void torsh_chrome_put_duration(struct chrome *chrome, uint64_t begin_ns, uint64_t end_ns);

/* Put the collectives that other ranks had, too, with arrows between ranks: chrome_calls.c. */
void torsh_chrome_put_calls(struct chrome *chrome, const struct recorded_process *process);

/*
 * Begin an event: phase is its ph, category its cat; prefix and name, which are already escaped,
 * make up its name; thread contains the members pid and tid.
 */
struct json_writer *torsh_chrome_begin(struct chrome *chrome, const char *phase,
				       const char *category, const char *prefix, const char *name,
				       const char *thread, uint64_t at_ns);

/* Put one end of the arrow with number chrome->n_flows: phase "s" or "f". */
void torsh_chrome_put_arrow_end(struct chrome *chrome, const char *phase, const char *name,
				const char *thread, uint64_t at_ns);

/*
 * Put a member with an already escaped text, if there is one. With with_stack, torch.profiler
 * writes stacks as "Call stack".
 */
void torsh_chrome_put_text(struct json_writer *json, const char *name, const char *text);

/* Put everything before the first event. */
void torsh_chrome_put_header(struct json_writer *json, const struct trace *trace);

/* Put the names of a process and its threads, and its steps as slices. */
void torsh_chrome_put_process(struct json_writer *json, const struct trace *trace,
			      const struct recorded_process *process);

/* Put a metadata event with one argument, a text or a number. */
void torsh_chrome_put_text_of(struct json_writer *json, const char *what, uint32_t pid,
			      uint64_t tid, const char *argument, const char *text);
void torsh_chrome_put_number_of(struct json_writer *json, const char *what, uint32_t pid,
				uint64_t tid, const char *argument, uint64_t number);

/*
 * A cache of kernels' launch parameters and occupancy as members of args (chrome_kernel.c):
 * formatted once for launches with equal parameters.
 */
struct chrome_kernels *torsh_chrome_kernels_create(void);

/* Free the cache. */
void torsh_chrome_kernels_destroy(struct chrome_kernels *kernels);

/* Put the kernel's args into chrome->json. */
void torsh_chrome_put_kernel(struct chrome *chrome, const struct recorded_process *process,
			     const struct event_kernel *kernel);

/* A call of BLAS or LAPACK, as a slice: chrome_library.c. */
void torsh_chrome_put_library_call(struct chrome *chrome, const struct recorded_process *process,
				   const struct timeline_event *event);

/* A run of Python's garbage collector, as a slice: chrome_gc.c. */
void torsh_chrome_put_gc(struct chrome *chrome, struct string_cache *strings,
			 const struct timeline_event *event);

/* A thread waited for a collective, as a slice: chrome_wait.c. */
void torsh_chrome_put_wait(struct chrome *chrome, struct string_cache *strings,
			   const struct timeline_event *event, const struct collective_call *call);

/* Take any event, and put what of NCCL ends with it; at the end, what is open: chrome_nccl.c. */
void torsh_chrome_see_nccl(struct chrome *chrome, const struct recorded_process *process,
			   const struct timeline_event *event);
void torsh_chrome_end_nccl(struct chrome *chrome);

/* ---- samples of the processor: chrome_samples.c ---------------------------------------------- */

/* Keep a sample: they follow the events. */
void torsh_chrome_keep_sample(struct chrome *chrome, const struct recorded_process *process,
			      const struct timeline_event *event);

/* Put the members stackFrames and samples, and free them; nothing where there was no sample. */
void torsh_chrome_put_samples(struct chrome *chrome);

/* ---- what devices did: chrome_device.c ------------------------------------------------------- */

/* its context is the struct chrome */
extern const struct device_visitor torsh_chrome_device_visitor;

/* Prepare chrome->devices. */
void torsh_chrome_devices_create(struct chrome *chrome);
/* Writes the held activities first. */
void torsh_chrome_devices_destroy(struct chrome *chrome);

#endif
