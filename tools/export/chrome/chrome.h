/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the parts of the exporter for Chrome's JSON share. */
#ifndef TORSH_EXPORT_CHROME_CHROME_H
#define TORSH_EXPORT_CHROME_CHROME_H

#include "tools/device/kernels/counters.h"
#include "tools/export/chrome/chrome_inputs.h"
#include "tools/export/string_cache.h"
#include "tools/timeline/prepass/process_groups.h"

struct chrome_process {
	struct string_cache strings;
	int64_t *held_bytes; /* by device, of its tensors */
	size_t n_devices;
};

struct chrome {
	struct trace *trace;
	struct output_stream *output;
	struct chrome_process *processes, *last;
	struct forward_spans *forward;
	struct inputs inputs;
	struct collectives collectives;
	struct chrome_devices *devices;
	struct chrome_kernels *kernels;
	struct counters counters;
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

/*
 * Begin a line in the output's room: kind is its ph and cat, prefix and name are its name, thread
 * holds the members pid and tid. Returns where it goes on.
 */
char *torsh_chrome_begin(struct chrome *chrome, const char *kind, const char *prefix,
			 const char *name, const char *thread, uint64_t at_ns);
/* End it there. */
void torsh_chrome_end(struct chrome *chrome, char *at);

/*
 * ,"name":"text", where there is a text, as it is: quoted already. torch.profiler has stacks, with
 * with_stack, as "Call stack".
 */
char *torsh_chrome_put_text(char *at, const char *name, const char *text);

/* Everything before the first event. */
void torsh_chrome_put_header(struct trace *trace);

/* Names of a process and its threads, and its steps as slices. */
void torsh_chrome_put_process(struct trace *trace, const struct recorded_process *process);

/* A line of metadata; argument is a member. */
void torsh_chrome_put_metadata(struct output_stream *output, const char *name, uint32_t pid,
			       uint64_t tid, const char *argument);
/* The same that gives a name, which is escaped. */
void torsh_chrome_put_named(struct output_stream *output, const char *what, uint32_t pid,
			    uint64_t tid, const char *name);

/*
 * A kernel's launch parameters and the occupancy that follows from them, as members of its args,
 * each with a comma before it: chrome_kernel.c. It is written once for launches that are alike.
 */
struct chrome_kernels *torsh_chrome_kernels_create(void);

/* Free the cache. */
void torsh_chrome_kernels_destroy(struct chrome_kernels *kernels);

/* Append the kernel's args; returns the new end. */
char *torsh_chrome_put_kernel(char *at, struct chrome *chrome,
			      const struct recorded_process *process,
			      const struct event_kernel *kernel);

/* ---- what devices did: chrome_device.c ------------------------------------------------------- */

extern const struct device_visitor torsh_chrome_device_visitor; /* its context is the chrome */

/* Prepare chrome->devices. */
void torsh_chrome_devices_create(struct chrome *chrome);
/* With the rows that were held back. */
void torsh_chrome_devices_destroy(struct chrome *chrome);

#endif
