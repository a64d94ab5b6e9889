/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The steps of a training in one process: the program's own marks, else steps inferred from its
 * operators. The result includes the rule that was used.
 */
#ifndef TORSH_TIMELINE_STEPS_H
#define TORSH_TIMELINE_STEPS_H

#include "agent/wire/schedule.h"
#include "tools/timeline/spans.h"

/* RULE(NAME, name, description), best first */
#define STEP_RULES                                                                              \
	RULE(NONE, none, "nothing in the recording shows where steps begin")                    \
	RULE(USER, user, "marks of the program")                                                \
	RULE(PROFILER, profiler_step, "ProfilerStep# of torch.profiler")                        \
	RULE(OPTIMIZER, optimizer, "from the end of one Optimizer.step to the end of the next") \
	RULE(DATALOADER, dataloader, "from one batch of the DataLoader to the next")            \
	RULE(BACKWARD, backward, "from the begin of one backward pass to that of the next")     \
	RULE(PERIOD, period, "the sequence of operators repeats itself")

enum step_rule {
#define RULE(NAME, name, text) STEPS_BY_##NAME,
	STEP_RULES
#undef RULE
		N_STEP_RULES
};

extern const char *const torsh_step_rule_names[N_STEP_RULES];
extern const char *const torsh_step_rule_texts[N_STEP_RULES];

struct time_window;

struct step {
	uint64_t number, start_ns, end_ns;
};

/* The steps that reports show: without those that a schedule left out or that were not selected. */
struct steps {
	enum step_rule rule;
	struct step *items; /* in time order, without overlap */
	size_t n, n_room;
	size_t n_all; /* including those left out */
	bool is_restricted; /* times outside of steps are left out, too */
	struct schedule schedule; /* by which operators were recorded; active 0: no schedule */
	/*
	 * there is a schedule, and the process's steps were reported: without reports all is
	 * recorded
	 */
	bool is_scheduled;
	const struct time_window *window; /* nothing else is reported (window.h); NULL: all times */
};

/* The selected steps: by number, without the first ones among these. */
struct steps_choice {
	bool is_some; /* false: all */
	uint64_t first, last, n_skipped;
};

/* Remove steps that were not selected, and everything outside of steps. */
void torsh_steps_choose(struct steps *steps, const struct steps_choice *choice);

#define STEP_NONE SIZE_MAX

/* Find a time in n ordered steps: returns the first step that ends after it, or n. */
size_t torsh_steps_after(const struct step *steps, size_t n, uint64_t at_ns);

/* Returns the step that contains the time, or STEP_NONE. */
size_t torsh_steps_find(const struct step *steps, size_t n, uint64_t at_ns);

/* Returns the index in items of the step that contains the time, or STEP_NONE. */
size_t torsh_steps_at(const struct steps *steps, uint64_t at_ns);

/* Returns true if events at that time are reported. */
bool torsh_steps_have(const struct steps *steps, uint64_t at_ns);

/* Report only what lies in the window, which must outlive the steps: remove the other steps. */
void torsh_steps_restrict(struct steps *steps, const struct time_window *window);

/* Free the steps. */
void torsh_steps_free(struct steps *steps);

/*
 * Finds the steps: receives all spans and events of a process, in the order of a pass, then
 * decides.
 */
struct step_finder;

/* A finder for one process; the caller destroys it. */
struct step_finder *torsh_step_finder_create(void);

/* Free the finder. */
void torsh_step_finder_destroy(struct step_finder *finder);

/* Pass each span's begin, in time order. */
void torsh_step_finder_begin(struct step_finder *finder, const struct span *span);

/* Pass each span's end. */
void torsh_step_finder_end(struct step_finder *finder, const struct span *span);

/* Pass each other event. */
void torsh_step_finder_event(struct step_finder *finder, const struct timeline_event *event);

/*
 * Decide on the steps. last_ns: time of the process's last event; setup_end_ns: 0 if unknown. The
 * caller frees *steps.
 */
void torsh_step_finder_decide(struct step_finder *finder, uint64_t last_ns, uint64_t setup_end_ns,
			      struct steps *steps);

#endif
