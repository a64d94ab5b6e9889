/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The steps of one process: the program's own marks, else steps inferred from its operators
 * (steps/step_finder.h). The result includes the rule that was used, and how sure it is.
 */
#ifndef TORSH_TIMELINE_STEPS_H
#define TORSH_TIMELINE_STEPS_H

#include "agent/wire/schedule.h"
#include "tools/timeline/spans.h"

/* RULE(NAME, name, description), best first */
#define STEP_RULES                                                                              \
	RULE(NONE, none, "nothing in the recording shows where steps begin")                    \
	RULE(USER, user, "marks of the program")                                                \
	RULE(REQUESTS, requests, "one request that the program served")                         \
	RULE(PROFILER, profiler_step, "ProfilerStep# of torch.profiler")                        \
	RULE(OPTIMIZER, optimizer, "from the end of one Optimizer.step to the end of the next") \
	RULE(DATALOADER, dataloader, "from one batch of the DataLoader to the next")            \
	RULE(BACKWARD, backward, "from the begin of one backward pass to that of the next")     \
	RULE(PERIOD, period, "one pass of a sequence of operators that repeats itself")

enum step_rule {
#define RULE(NAME, name, text) STEPS_BY_##NAME,
	STEP_RULES
#undef RULE
		N_STEP_RULES
};

extern const char *const torsh_step_rule_names[N_STEP_RULES];
extern const char *const torsh_step_rule_texts[N_STEP_RULES];

struct time_window;

/* What a step of a model that makes tokens does. */
#define STEP_KINDS             \
	KIND(PREFILL, prefill) \
	KIND(DECODE, decode)

enum step_kind {
	STEP_OF_NO_KIND,
#define KIND(NAME, name) STEP_##NAME,
	STEP_KINDS
#undef KIND
		N_STEP_KINDS
};

extern const char *const torsh_step_kind_names[N_STEP_KINDS]; /* NULL: of no kind */

struct step {
	uint64_t number, start_ns, end_ns;
	uint32_t burst; /* number of the burst: between two of them, the process idles */
	enum step_kind kind;
	uint32_t name; /* label of a request; 0: none */
};

/* The time in which a thread works on a step, where steps overlap. */
struct step_slice {
	uint32_t thread; /* row of the process's threads */
	size_t step; /* its index */
	uint64_t start_ns, end_ns;
};

/* The steps that reports show: without those that a schedule left out or that were not selected. */
struct steps {
	enum step_rule rule;
	/* In the order of their begins. Without slices they don't overlap. */
	struct step *items;
	size_t n, n_room;
	/*
	 * Of requests, which threads work on at the same time: by thread, then by time, without
	 * overlap on a thread. NULL: a step is of all threads.
	 */
	struct step_slice *slices;
	size_t n_slices;
	uint64_t longest_ns; /* of a step; with slices only */
	size_t n_all; /* including those left out */
	double certainty; /* 0 to 1; torsh-steps(1) defines it for each rule */
	uint32_t n_bursts; /* 0: bursts are not looked for by this rule */
	bool is_restricted; /* times outside of steps are left out, too */
	struct schedule schedule; /* by which operators were recorded; active 0: no schedule */
	/*
	 * there is a schedule, and the process's steps were reported: without reports all is
	 * recorded
	 */
	bool is_scheduled;
	const struct time_window *window; /* nothing else is reported (window.h); NULL: all times */
};

/*
 * Append a step, which begins with the end of the last one where they overlap. Returns it until the
 * next call, or NULL if nothing is left of it.
 */
struct step *torsh_steps_add(struct steps *steps, uint64_t number, uint64_t start_ns,
			     uint64_t end_ns);

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

/*
 * Returns the index in items of the step that contains the time, or STEP_NONE; of several the one
 * that began last.
 */
size_t torsh_steps_at(const struct steps *steps, uint64_t at_ns);

/* Returns the index in items of the step that the thread, a row, is in then, or STEP_NONE. */
size_t torsh_steps_of(const struct steps *steps, uint64_t at_ns, uint32_t thread);

/* Returns true if events at that time are reported. */
bool torsh_steps_have(const struct steps *steps, uint64_t at_ns);

/* Report only what lies in the window, which must outlive the steps: remove the other steps. */
void torsh_steps_restrict(struct steps *steps, const struct time_window *window);

/* Free the steps. */
void torsh_steps_free(struct steps *steps);

#endif
