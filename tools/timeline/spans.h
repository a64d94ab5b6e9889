/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/timeline rebuilds what happened when; this file is the first to read.
 *
 * The spans of a timeline, rebuilt from their begins and ends: operators and ranges, modules among
 * them, each with what is around it on its thread. One pass; what is held are the open spans.
 *
 * Spans of a thread nest. One that doesn't (it is ended by another thread, or outlives what was
 * around it) is asynchronous: it stands on its own and is around nothing. That is found at its end
 * only; a reader that needs it at its begin goes over the timeline twice and gives the second pass
 * what the first one found (struct unnested_spans). Ranges give way to operators, which C++ nests.
 */
#ifndef TORSH_TIMELINE_SPANS_H
#define TORSH_TIMELINE_SPANS_H

#include "tools/recording/timeline.h"

enum span_kind { SPAN_OPERATOR, SPAN_RANGE };

/* What a span is part of, by what is around it. */
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

/* What a name implies about the span; bits. */
enum name_trait {
	NAME_BACKWARD = 1, /* a node of autograd, or what FSDP does around backward */
	NAME_OPTIMIZER = 2,
	NAME_OPTIMIZER_STEP = 4,
	NAME_DATA = 8,
	NAME_LOSS = 16, /* a module or operator that computes a loss */
	NAME_PROFILER_STEP = 32,
	NAME_DATA_OF_WORKERS = 64, /* with NAME_DATA: processes of their own load the batches */
	NAME_SEEN = 128,
};

/*
 * Modules around one another, as they were called; the same of all spans that are inside of the
 * same ones.
 */
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
	bool is_cut; /* it was open when the recording ended */
	bool is_module;
	uint8_t traits; /* enum name_trait of its name */
	uint32_t name, inputs, domain, category; /* labels */
	uint32_t scope, flags, record, overload; /* of an operator; overload: a label */
	/*
	 * PyTorch's number of the thread that owns its sequence number: of forward's thread, or for
	 * spans other than backward, of its own. 0: unknown.
	 */
	uint32_t forward_thread;
	uint32_t source, color, payload_type; /* of a range */
	uint64_t payload;
	uint64_t sequence;
	uint64_t range; /* number of a range that any thread may end */
	uint32_t thread, end_thread; /* rows of the process's threads */
	uint32_t stack;
	/* label of the innermost module around it; of backward: around the forward span. 0: none */
	uint32_t module;
	/* That module and those around it; as long as the pass. NULL: none. */
	const struct module_chain *modules;
	const struct module_chain *inside; /* the same of what it calls: of a module with itself */
	uint64_t start_ns, end_ns; /* end_ns only at the end */
	uint64_t ordinal; /* which of the process's spans this is, from 0 */
	struct span *outer; /* directly around it; NULL: none, or it is asynchronous */

	/* Sums of the spans directly inside, of the same kind (operators; modules): at the end. */
	uint64_t inner_ns;
	uint32_t n_inner;
	/*
	 * The visitor's own; what an operator's hold when it ends is added to those of the operator
	 * around it.
	 */
	uint64_t flops, flops_all; /* of all inside, and of itself */
	uint64_t allocated_bytes, freed_bytes; /* by tensors, inside too */
	uint64_t self_allocated_bytes, self_freed_bytes;
	uint64_t device_ns, self_device_ns; /* of what it launched; inside too */
	bool is_counted; /* inside of an operator with counted FLOPs, or such a one */
	bool has_counted; /* around such a one */
	bool has_unknown; /* it or something inside is listed as without a formula */
	/* around an operator on tensors without data: what torch.compile only looks at */
	bool is_traced;
	void *own; /* whatever the visitor wants */
};

/* Unnested spans, per process. */
struct unnested_spans;

/* What is open on a thread. */
struct enclosing_spans {
	struct span *in_operator; /* the innermost one, also one that doesn't nest; NULL: none */
	const struct span *innermost; /* of any kind that nests; NULL: none */
	uint64_t last_ns; /* when the thread last began or ended something */
};

/* The modules around what happens there; NULL: none. */
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
	 * A call of CUDA, which has returned by then, or a node of a graph that comes into being;
	 * where this is NULL, event is reported it.
	 */
	void (*launch)(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around);
}; /* each may be NULL */

#define SPANS_DEPTH_MAX 4096u

struct span_counts {
	uint64_t n_events; /* without those in the background: torsh_timeline_is_background */
	uint64_t n_spans;
	uint64_t n_cut; /* spans without an end */
	uint64_t n_unmatched; /* ends without a span */
	/* spans that were left out: SPANS_DEPTH_MAX were open on their thread */
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
 * Returns the operator that a memory event is charged to: skips operators that only allocate, if
 * another one is around them.
 */
const struct span *torsh_span_attributed(const struct span *innermost);

/* The nearest operator around the span, or NULL. */
struct span *torsh_span_outer_operator(const struct span *span);

/*
 * Returns the slot of a span with a sequence number, in a table by that and its thread; n_slots is
 * a power of two.
 */
size_t torsh_span_slot(const struct span *span, size_t n_slots);
/* The nearest module around it, or NULL. */
struct span *torsh_span_outer_module(const struct span *span);

/* A span's name, never NULL. */
const char *torsh_span_name(const struct span *span);

#endif
