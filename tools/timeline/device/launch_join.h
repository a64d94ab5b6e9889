/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Who made a device work: kernels, copies and memsets, each with the call that launched it and what
 * was open around that.
 *
 * A device's work is reported some time after it was done, which is after its launch was reported,
 * but for rare races; what comes too early waits for its launch. What is held are launches with
 * work that has not all come (the pre-pass has counted it), so that memory is bounded by what was
 * under way at once.
 *
 * torsh ops does without: it adds up by operators that are still open, and needs of a launch no
 * more than the time that all of its work took, which the pre-pass has when the launch is reported.
 */
#ifndef TORSH_TIMELINE_DEVICE_LAUNCH_JOIN_H
#define TORSH_TIMELINE_DEVICE_LAUNCH_JOIN_H

#include "tools/timeline/prepass/prepass.h"

/* REASON(NAME, why something has no operator) */
#define KERNEL_REASONS                                                \
	REASON(NONE, "")                                              \
	REASON(NO_LAUNCH, "CUPTI did not say which call launched it") \
	REASON(NOT_SEEN, "the call that launched it was not seen")    \
	REASON(NO_OPERATOR, "it was launched outside of every operator that was recorded")

enum kernel_reason {
#define REASON(NAME, text) KERNEL_##NAME,
	KERNEL_REASONS
#undef REASON
		N_KERNEL_REASONS
};

extern const char *const torsh_kernel_reasons[N_KERNEL_REASONS];

/* What was open around something. */
struct device_cause {
	bool has_operator, has_phase;
	/* of the innermost operator; where there is none, of whatever is open */
	enum span_phase phase;
	uint64_t operator_span; /* ordinal of the innermost operator */
	uint32_t operator_name, module; /* labels; 0: none */
	const struct module_chain *modules; /* around it, as long as the pass lasts; NULL: none */
	uint64_t own; /* the visitor's */
};

/* A call that gave devices work, or another call of CUDA. */
struct device_launch {
	uint32_t correlation; /* 0: it has none */
	uint32_t api; /* label: cudaLaunchKernel and the like */
	int32_t result; /* 0: it succeeded */
	uint32_t thread; /* row */
	uint64_t begin_ns, duration_ns;
	/*
	 * The same for pictures, in which what is on a thread nests: not before what last began or
	 * ended there, and over when the call was reported. Both clocks agree to less than a
	 * microsecond.
	 */
	uint64_t shown_ns, shown_end_ns;
	struct device_cause cause;
	uint32_t stack; /* as it was recorded; 0: none was taken */
	uint32_t n_caused; /* kernels, copies and memsets that came of it */
};

/* What a device did. */
struct device_activity {
	const struct recorded_process *process;
	/* EVENT_KERNEL, EVENT_COPY or EVENT_MEMSET; EVENT_SUBMISSION of a graph, or untimed */
	struct event event;
	struct activity_record record; /* of it */
	/* The cause: of a captured graph node the capture, else the launch; zeros if unknown. */
	struct device_cause cause;
	bool is_captured; /* the cause is that of its node */
	enum kernel_reason reason; /* why there is no operator; KERNEL_NONE: there is one */
	/* of a graph's node where it was captured, else of the launch; 0: none was taken */
	uint32_t stack;
	bool has_node_stack; /* stack is that of the node */
	uint32_t index; /* which one of its launch's it is, from 0 */
	bool has_launch;
	struct device_launch launch;
};

/* When the program requested it; where that was not seen, when it began. */
static inline uint64_t torsh_activity_issued_ns(const struct device_activity *activity)
{
	return activity->has_launch ? activity->launch.begin_ns : activity->record.begin_ns;
}

/* The phase that it belongs to, or NULL. */
static inline const char *torsh_activity_phase(const struct device_activity *activity)
{
	return activity->cause.has_phase ? torsh_phase_names[activity->cause.phase] : NULL;
}

struct device_visitor {
	bool wants_untimed; /* also what has no times (torsh_activity_untimed) */
	/*
	 * What the visitor attaches to a launch, or to a node of a graph, and gets back with each
	 * activity of it (cause.own); called before launch. May be NULL.
	 */
	uint64_t (*own)(void *context, const struct recorded_process *process,
			const struct timeline_event *event, const struct enclosing_spans *around);
	/* A launch, when it is reported, before all that it caused. May be NULL. */
	void (*launch)(void *context, const struct recorded_process *process,
		       const struct device_launch *launch);
	/*
	 * A call that gives devices nothing to do (it waits, allocates, ...), when it is reported.
	 * May be NULL.
	 */
	void (*call)(void *context, const struct recorded_process *process,
		     const struct device_launch *call);
	/* In the order in which devices reported it, not that in which it began. */
	void (*activity)(void *context, const struct device_activity *row);
};

struct device_join;

/* Begin a join. The arguments must outlive it. */
struct device_join *torsh_device_join_create(const struct prepass *prepass,
					     const struct device_visitor *visitor, void *context);
/* End the join, after reporting what still waits. */
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
