/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Joins device activities, kernels, copies and memsets, with the calls that launched them and the
 * spans around these.
 *
 * An activity is reported some time after it ran, usually after its launch was reported; one that
 * comes earlier waits for its launch. Launches with outstanding activities (the pre-pass has
 * counted them) are held, so that memory is bounded by what is under way at once.
 *
 * torsh ops works without it: it sums by open operators, and needs only the total device time of a
 * launch, which the pre-pass has when the launch is reported.
 */
#ifndef TORSH_TIMELINE_DEVICE_LAUNCH_JOIN_H
#define TORSH_TIMELINE_DEVICE_LAUNCH_JOIN_H

#include "tools/timeline/prepass/prepass.h"

/* REASON(NAME, why something has no operator) */
#define KERNEL_REASONS                                                   \
	REASON(NONE, "")                                                 \
	REASON(NO_LAUNCH, "CUPTI did not report which call launched it") \
	REASON(NOT_SEEN, "the call that launched it was not seen")       \
	REASON(NO_OPERATOR, "it was launched outside of every operator that was recorded")

enum kernel_reason {
#define REASON(NAME, text) KERNEL_##NAME,
	KERNEL_REASONS
#undef REASON
		N_KERNEL_REASONS
};

extern const char *const torsh_kernel_reasons[N_KERNEL_REASONS];

/* The spans around a launch or a captured node. */
struct device_cause {
	bool has_operator, has_phase;
	/* of the innermost operator; without one, of any open span */
	enum span_phase phase;
	uint64_t operator_span; /* ordinal of the innermost operator */
	uint32_t operator_name, module; /* labels; 0: none */
	const struct module_chain *modules; /* around it, valid during the pass; NULL: none */
	uint64_t own; /* the visitor's value */
};

/* A call that launched device activities, or another call of CUDA. */
struct device_launch {
	uint32_t correlation; /* 0: it has none */
	uint32_t api; /* label: cudaLaunchKernel and the like */
	int32_t result; /* 0: it succeeded */
	uint32_t thread; /* row */
	uint64_t begin_ns, duration_ns;
	/*
	 * Adjusted for trace viewers, in which slices of a thread nest: not before the last begin
	 * or end there, and ended when the call was reported. Both clocks agree to less than a
	 * microsecond.
	 */
	uint64_t shown_ns, shown_end_ns;
	struct device_cause cause;
	uint32_t stack; /* as recorded; 0: none was taken */
	uint32_t n_caused; /* number of kernels, copies and memsets that it caused */
};

/* An activity of a device. */
struct device_activity {
	const struct recorded_process *process;
	/* EVENT_KERNEL, EVENT_COPY or EVENT_MEMSET; EVENT_SUBMISSION of a graph, or untimed */
	struct event event;
	struct activity_record record; /* its common fields */
	/* The cause: for a captured graph node its capture, else the launch; zeros if unknown. */
	struct device_cause cause;
	bool is_captured; /* the cause is a node's capture */
	enum kernel_reason reason; /* why there is no operator; KERNEL_NONE: there is one */
	/* for a graph's node where it was captured, else of the launch; 0: none was taken */
	uint32_t stack;
	bool has_node_stack; /* stack is the node's */
	uint32_t index; /* index among its launch's activities, from 0 */
	bool has_launch;
	struct device_launch launch;
};

/* Returns when the program requested it; if that was not recorded, when it began. */
static inline uint64_t torsh_activity_issued_ns(const struct device_activity *activity)
{
	return activity->has_launch ? activity->launch.begin_ns : activity->record.begin_ns;
}

/* Returns the phase that it belongs to, or NULL. */
static inline const char *torsh_activity_phase(const struct device_activity *activity)
{
	return activity->cause.has_phase ? torsh_phase_names[activity->cause.phase] : NULL;
}

struct device_visitor {
	bool wants_untimed; /* also activities without times (torsh_activity_untimed) */
	/*
	 * Returns the visitor's value for a launch, or for a node of a graph, which each of its
	 * activities gets (cause.own); called before launch. May be NULL.
	 */
	uint64_t (*own)(void *context, const struct recorded_process *process,
			const struct timeline_event *event, const struct enclosing_spans *around);
	/* A launch, when it is reported, before all that it caused. May be NULL. */
	void (*launch)(void *context, const struct recorded_process *process,
		       const struct device_launch *launch);
	/*
	 * A call without device activities (it waits, allocates, ...), when it is reported. May be
	 * NULL.
	 */
	void (*call)(void *context, const struct recorded_process *process,
		     const struct device_launch *call);
	/* An activity, in the order of reports, not of begins. */
	void (*activity)(void *context, const struct device_activity *row);
};

struct device_join;

/* Begin a join. The arguments must outlive it. */
struct device_join *torsh_device_join_create(const struct prepass *prepass,
					     const struct device_visitor *visitor, void *context);
/* End the join, after reporting the activities that still wait. */
void torsh_device_join_destroy(struct device_join *join);

/*
 * For the callbacks of a pass (struct span_visitor): report launches to the first, and all other
 * events to the second.
 */
void torsh_device_join_launch(struct device_join *join, const struct recorded_process *process,
			      const struct timeline_event *event,
			      const struct enclosing_spans *around);

/* Pass all events except launches. */
void torsh_device_join_event(struct device_join *join, const struct recorded_process *process,
			     const struct event *event);

#endif
