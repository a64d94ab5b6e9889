/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/timeline rebuilds what happened when. Read this file first.
 *
 * The spans of a timeline, rebuilt from their begins and ends: operators and ranges, including
 * modules, each with the enclosing spans of its thread. One pass; only open spans are held.
 *
 * Spans of a thread nest. One that doesn't (another thread ends it, or it outlives its enclosing
 * span) is asynchronous: no span encloses it, and it encloses none. That is known at its end only;
 * a reader that needs it at the begin makes two passes, and gives the second one what the first
 * one found (struct unnested_spans). Operators nest, because they are C++ scopes; if a range and
 * an operator overlap, the range is the unnested one.
 */
#ifndef TORSH_TIMELINE_SPANS_H
#define TORSH_TIMELINE_SPANS_H

#include "tools/recording/timeline.h"
#include "tools/timeline/counts/cpu_counts.h"

enum span_kind { SPAN_OPERATOR, SPAN_RANGE };

/* The part of a training step that a span belongs to, by its enclosing spans. */
#define SPAN_PHASES                 \
	PHASE(FORWARD, forward)     \
	PHASE(LOSS, loss)           \
	PHASE(BACKWARD, backward)   \
	PHASE(OPTIMIZER, optimizer) \
	PHASE(DATA, data)           \
	PHASE(SETUP, setup)

enum span_phase {
#define PHASE(NAME, name) PHASE_##NAME,
	SPAN_PHASES
#undef PHASE
		N_PHASES
};

extern const char *const torsh_phase_names[N_PHASES];

/* What a name implies about its span; bits. */
enum name_trait {
	NAME_BACKWARD = 1, /* a node of autograd, or FSDP's scope around backward */
	NAME_OPTIMIZER = 2,
	NAME_OPTIMIZER_STEP = 4,
	NAME_DATA = 8,
	NAME_LOSS = 16, /* a module or operator that computes a loss */
	NAME_PROFILER_STEP = 32,
	NAME_DATA_OF_WORKERS = 64, /* with NAME_DATA: separate processes load the batches */
	NAME_SEEN = 128,
};

/* Nested modules, as they were called; shared by all spans within the same modules. */
struct module_chain {
	const struct module_chain *outer; /* NULL: none */
	uint32_t module; /* label */
};

struct span {
	const struct recorded_process *process;
	enum span_kind kind;
	enum span_phase phase;
	bool is_phase_of_time; /* set by its start time: implies nothing about inner spans */
	bool is_async;
	bool is_cut; /* still open when the recording ended */
	bool is_module;
	uint8_t traits; /* enum name_trait of its name */
	uint32_t name, inputs, domain, category; /* labels */
	uint32_t scope, flags, record, overload; /* of an operator; overload: a label */
	/*
	 * PyTorch's number of the thread that owns its sequence number: the forward thread for
	 * backward spans, else its own. 0: unknown.
	 */
	uint32_t forward_thread;
	uint32_t source, color, payload_type; /* of a range */
	uint64_t payload;
	uint64_t sequence;
	uint64_t range; /* number of a range that any thread may end */
	uint32_t thread, end_thread; /* rows of the process's threads */
	uint32_t stack;
	/*
	 * label of the innermost enclosing module; for backward spans that of the forward span. 0:
	 * none
	 */
	uint32_t module;
	/* That module and the enclosing ones; valid during the pass. NULL: none. */
	const struct module_chain *modules;
	const struct module_chain *inside; /* likewise for inner spans: includes a module itself */
	uint64_t start_ns, end_ns; /* end_ns is set at the end */
	uint64_t ordinal; /* number among the process's spans, from 0 */
	struct span *outer; /* directly enclosing span; NULL: none, or it is asynchronous */

	/* Sums of directly inner spans of the same kind (operators; modules), set at the end. */
	uint64_t inner_ns;
	uint32_t n_inner;
	/*
	 * The visitor's values; those of an operator are added to the enclosing operator's when it
	 * ends.
	 */
	uint64_t flops, flops_all; /* of all inner spans and itself */
	uint64_t allocated_bytes, freed_bytes; /* by tensors, inner spans included */
	uint64_t self_allocated_bytes, self_freed_bytes;
	uint64_t device_ns, self_device_ns; /* of its launches; inner spans included */
	struct cpu_counts counts, self_counts; /* inner spans included */
	bool is_counted; /* within an operator with counted FLOPs, or such an operator itself */
	bool has_counted; /* contains such an operator */
	bool has_unknown; /* it or an inner span is listed as without a formula */
	/* contains an operator on tensors without data, which torch.compile only traces */
	bool is_traced;
	void *own; /* owned by the visitor */
};

/* Unnested spans, per process. */
struct unnested_spans;

/* The open spans of a thread. */
struct enclosing_spans {
	struct span *in_operator; /* the innermost operator, nested or not; NULL: none */
	const struct span *innermost; /* the innermost nested span of any kind; NULL: none */
	uint64_t last_ns; /* time of the thread's last begin or end */
};

/* The enclosing modules there; NULL: none. */
static inline const struct module_chain *
torsh_enclosing_modules(const struct enclosing_spans *around)
{
	if (around->innermost)
		return around->innermost->inside;
	return around->in_operator ? around->in_operator->inside : NULL;
}

struct span_visitor {
	void (*begin)(void *context, struct span *span);
	/* With end_ns, sums and outer set. */
	void (*end)(void *context, struct span *span);
	/* Every other event; innermost: the operator on its thread, or NULL. */
	void (*event)(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost);
	/*
	 * A call of CUDA, after it has returned, or a new node of a graph. NULL: event receives
	 * these.
	 */
	void (*launch)(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around);
	/* A sample of a thread's processor time, or its counters. NULL: event receives these. */
	void (*sample)(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around);
}; /* each may be NULL */

#define SPANS_DEPTH_MAX 4096u

struct span_counts {
	uint64_t n_events; /* without those in the background: torsh_timeline_is_background */
	uint64_t n_samples; /* of the processor */
	uint64_t n_spans;
	uint64_t n_cut; /* spans without an end */
	uint64_t n_unmatched; /* ends without a span */
	/* spans that were left out, because SPANS_DEPTH_MAX were open on their thread */
	uint64_t n_too_deep;
};

/*
 * Make a pass over the timeline of these processes. known: unnested spans from an earlier pass, or
 * NULL; found: receives unnested spans, or NULL. counts may be NULL. Returns 0 or -errno.
 */
int torsh_spans_visit(const struct recording *recording, struct recorded_process *const *processes,
		      size_t n_processes, const struct unnested_spans *known,
		      struct unnested_spans *found, const struct span_visitor *visitor,
		      void *context, struct span_counts *counts);

/* Create an empty set. */
struct unnested_spans *torsh_unnested_spans_create(void);

/* Free the set. */
void torsh_unnested_spans_destroy(struct unnested_spans *unnested);

/*
 * Returns the operator that a memory event is attributed to: skips operators that only allocate,
 * if another one encloses them.
 */
const struct span *torsh_span_attributed(const struct span *innermost);

/* Returns the innermost enclosing operator of the span, or NULL. */
struct span *torsh_span_outer_operator(const struct span *span);

/*
 * Returns the slot of a span with a sequence number, in a table by that and its thread; n_slots is
 * a power of two.
 */
size_t torsh_span_slot(const struct span *span, size_t n_slots);
/* Returns the innermost enclosing module, or NULL. */
struct span *torsh_span_outer_module(const struct span *span);

/* Returns a span's name, never NULL. */
const char *torsh_span_name(const struct span *span);

#endif
