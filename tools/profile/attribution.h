/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Who made a device work: kernels, copies and memsets, with the call that launched them and what was open around it.
 * Reports and exports all ask here.
 *
 * A device's work is told some time after it was done, which is after its launch was told, but for rare races; what
 * comes too early waits for its launch. What is held are launches whose work has not all come (the survey knows how
 * much there is), so that memory is bounded by what was under way at once.
 */
#ifndef TORSH_PROFILE_ATTRIBUTION_H
#define TORSH_PROFILE_ATTRIBUTION_H

#include "tools/profile/device.h"
#include "tools/profile/survey.h"

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

/* A call that gave devices work. */
struct launch {
	uint32_t correlation; /* 0: it has none */
	uint32_t api; /* label: cudaLaunchKernel and the like */
	int32_t result; /* 0: it succeeded */
	uint32_t thread; /* row */
	uint64_t begin_ns, duration_ns;
	/*
	 * The same for pictures, in which what is on a thread nests: not before what last began or ended there, and over
	 * when the call was told. Both clocks agree to less than a microsecond.
	 */
	uint64_t shown_ns, shown_end_ns;
	bool has_operator, has_phase;
	enum call_phase phase; /* of what was open around it */
	uint64_t operator; /* ordinal of the innermost operator */
	uint32_t operator_name, module; /* labels; 0: none */
	uint32_t n_caused; /* kernels, copies and memsets that came of it */
};

/* What a device did. */
struct device_row {
	const struct profile_process *process;
	struct event event; /* EVENT_KERNEL, EVENT_COPY or EVENT_MEMSET */
	struct device_span span; /* of it */
	enum kernel_reason reason; /* why there is no operator; KERNEL_NONE: the launch has one */
	uint32_t index; /* which one of its launch's it is, from 0 */
	bool has_launch;
	struct launch launch;
};

/* When the program asked for it; where that was not seen, when it began. */
static inline uint64_t torsh_device_row_asked_ns(const struct device_row *row)
{
	return row->has_launch ? row->launch.begin_ns : row->span.begin_ns;
}

/* The phase of what launched it, or NULL. */
static inline const char *torsh_device_row_phase(const struct device_row *row)
{
	return row->has_launch && row->launch.has_phase ? torsh_phase_names[row->launch.phase] : NULL;
}

struct attribution_visitor {
	/* A launch, when it is told, before all that it caused. May be NULL. */
	void (*launch)(void *context, const struct profile_process *process, const struct launch *launch);
	/* In the order in which devices told it, not that in which it began. */
	void (*row)(void *context, const struct device_row *row);
};

struct attribution;

/* All of these are to outlive it. */
struct attribution *torsh_attribution_create(const struct survey *survey, const struct attribution_visitor *visitor,
					     void *context);
/* Let go of it, after telling what still waits. */
void torsh_attribution_destroy(struct attribution *attribution);

/* For the callbacks of a walk (struct calls_visitor): to be told of launches, and of all other events. */
void torsh_attribution_launch(struct attribution *attribution, const struct profile_process *process,
			      const struct timeline_event *event, const struct calls_around *around);
void torsh_attribution_event(struct attribution *attribution, const struct profile_process *process,
			     const struct event *event);

#endif
