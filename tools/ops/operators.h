/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/ops has the time, memory and FLOPs of operators, modules, steps and ranges. Read this file
 * first.
 *
 * Totals of operators: time, memory and FLOPs of all spans with an equal key. One pass over the
 * timeline after a pre-pass; it holds the keys and the open spans.
 */
#ifndef TORSH_OPS_OPERATORS_H
#define TORSH_OPS_OPERATORS_H

#include "tools/ops/flops.h"
#include "tools/timeline/histogram.h"
#include "tools/timeline/prepass/prepass.h"
#include "tools/timeline/prepass/process_groups.h"

/* GROUP(NAME, name, the property that the spans share) */
#define OPERATOR_GROUPS                                                          \
	GROUP(NAME, name, "the operator's name")                                 \
	GROUP(SHAPE, shape, "name and inputs")                                   \
	GROUP(STACK, stack, "name and stack")                                    \
	GROUP(OVERLOAD, overload, "name and overload")                           \
	GROUP(MODULE, module, "the module around; of backward: around forward")  \
	GROUP(PHASE, phase, "setup, data, forward, loss, backward or optimizer") \
	GROUP(STEP, step, "the step in which they began")

enum operator_group {
#define GROUP(NAME, name, text) OPERATORS_BY_##NAME,
	OPERATOR_GROUPS
#undef GROUP
		N_OPERATOR_GROUPS
};

extern const char *const torsh_operator_group_names[N_OPERATOR_GROUPS];

struct operator_total {
	const struct recorded_process *process; /* of the first call */
	/* by MODULE: the module, "": none; by PHASE: the phase; by STEP: NULL, outside of steps */
	char *name;
	char *inputs; /* by SHAPE */
	char *overload; /* by OVERLOAD; "": the default overload */
	uint32_t stack; /* by STACK */
	uint64_t step; /* by STEP: its number */
	uint64_t calls;
	/* inner spans with this key don't count again, unless the key is a name */
	uint64_t cpu_ns;
	uint64_t self_cpu_ns;
	uint64_t device_ns, self_device_ns; /* of kernels, copies and memsets that they launched */
	struct cpu_counts counts, self_counts; /* of the CPU, on the threads that ran them */
	uint64_t min_ns, max_ns;
	uint64_t allocated_bytes, freed_bytes, self_allocated_bytes, self_freed_bytes;
	uint64_t flops, flops_all; /* if has_flops: of these spans; with inner ones */
	uint64_t self_flops, self_flops_all;
	bool has_flops; /* a span or an inner one has a formula */
	struct histogram durations;
};

/* An operator without inner operators and without a formula. */
struct operator_unknown {
	char *name;
	uint64_t calls;
	const char *reason; /* of its first call; NULL: there is no formula */
};

struct operators {
	enum operator_group group;
	struct operator_total *items;
	size_t n, n_room;
	struct operator_unknown *unknown;
	size_t n_unknown, unknown_room;
	uint64_t calls, self_cpu_ns, self_device_ns; /* over all */
	uint64_t merged_calls; /* merged into the enclosing span, not counted as spans */
	bool has_devices; /* the devices of some process were recorded */
	bool has_flops; /* FLOPs were requested */
	uint64_t flops, flops_all;
	bool has_elsewhere; /* some of them on tensors of a device */
	struct process_groups groups; /* that inputs refer to */
	uint64_t calls_without_inputs; /* calls with unknown FLOPs */
};

struct operators_request {
	enum operator_group group;
	bool has_thread;
	uint32_t tid; /* of the counted spans */
	/*
	 * Merge a span that is the only inner one of a span with the same name into that, as
	 * PyTorch's key_averages does.
	 */
	bool merge_nested;
};

/* Add up the spans of these processes. */
void torsh_operators_collect(struct operators *operators, const struct operators_request *request,
			     const struct recording *recording,
			     struct recorded_process *const *processes, size_t n_processes,
			     const struct prepass *prepass);

/* Free the operators. */
void torsh_operators_free(struct operators *operators);

/*
 * FLOPs of spans during a pass: shared by several visitors. Call begin and end with every operator
 * before other uses of it; they fill the part of struct span that belongs to the visitor. A
 * recording without FLOPs has no formulas.
 */
struct flops_book;

/* Create a cache of FLOPs by name and inputs. The recording and the pre-pass must outlive it. */
struct flops_book *torsh_flops_book_create(const struct recording *recording,
					   const struct prepass *prepass);

/* Free the cache. */
void torsh_flops_book_destroy(struct flops_book *book);

/* Call with each span that begins. */
void torsh_flops_book_begin(struct flops_book *book, struct span *span);
/* Call with each span that ends. Returns the operator's own FLOPs, or that they are unknown. */
struct flops torsh_flops_book_end(struct flops_book *book, struct span *span);

#endif
