/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a person, or a coding assistant, needs to make a program faster or smaller, in at most
 * BRIEF_BYTES_MAX of Markdown: the run, its most costly things with their lines, hypotheses ranked
 * by what they would gain, what was ruled out, and commands that check a change.
 */
#ifndef TORSH_REPORT_BRIEF_BRIEF_H
#define TORSH_REPORT_BRIEF_BRIEF_H

#include "tools/compare/change.h"
#include "tools/memory/growth/growth.h"
#include "tools/ops/step_durations.h"
#include "tools/report/brief/suspects.h"
#include "tools/report/overview.h"

#define BRIEF_BYTES_MAX 6144u
#define BRIEF_COSTS 3u
#define BRIEF_HYPOTHESES (N_RULES + N_SUSPECTS + 2u) /* with a leak and growth: all there can be */

enum brief_cost_kind {
	COST_OPERATOR, /* ns: of threads in it, without the operators inside */
	COST_DEVICE, /* ns: of devices, in what an operator launched */
	COST_PYTHON, /* ns: between operators that follow each other */
	COST_WAITING, /* ns: long gaps without any operator */
	COST_COLLECTOR, /* ns: Python's garbage collector */
	COST_PEAK, /* bytes: live when most was in use */
	COST_LEAK, /* bytes: not freed */
	N_COST_KINDS
};

extern const char *const torsh_brief_cost_names[N_COST_KINDS];

/* One of the most costly things. Texts belong to it, or live as long as the overview. */
struct brief_cost {
	enum brief_cost_kind kind;
	char *name; /* of the operator; NULL: it is none */
	/*
	 * Of memory: the line with most of it; of an operator: the line in whose calls it allocates
	 * most blocks. NULL: unknown
	 */
	const struct frame *frame;
	char *quoted; /* that line's text; NULL: unknown */
	const char *unquoted; /* then the reason; NULL: there is no line */
	char *inputs; /* shapes and types that took most; NULL: unknown */
	uint64_t ns, calls; /* of memory: 0, blocks */
	uint64_t bytes; /* of memory */
	double share_pct;
	const char *share_of;
};

enum brief_figure {
#define FIGURE(NAME, ...) FIGURE_##NAME,
#include "tools/report/brief/figures.def"
#undef FIGURE
	N_FIGURES /* none of them */
};

extern const char *const torsh_brief_figure_names[N_FIGURES];
extern const char *const torsh_brief_figure_words[N_FIGURES];
extern const enum change_unit torsh_brief_figure_units[N_FIGURES];

/* What leaked or grew, a finding or a suspect: one of the first three is set. */
struct brief_hypothesis {
	const struct allocation_site *site; /* the largest that leaked or grew */
	const struct finding *finding;
	const struct suspect *suspect;
	enum brief_figure figure; /* that becomes less */
	double gain_pct; /* at most, of share_of; NAN: unknown */
	const char *share_of;
	/* 100 / (100 - gain_pct), by Amdahl's law; NAN: the gain is no time, or unknown */
	double speedup;
};

struct brief {
	const struct overview *overview;
	const struct recorded_process *main; /* with the highest peak, else with most of the work */
	struct step_durations steps;
	struct growth growth;
	struct brief_cost costs[BRIEF_COSTS];
	size_t n_costs;
	struct suspects suspects; /* of the main process */
	struct brief_hypothesis hypotheses[BRIEF_HYPOTHESES];
	size_t n_hypotheses;
};

/*
 * Find the brief of an overview with its timeline and lists. Reads the source files that it quotes.
 * The overview must outlive it. The caller frees it with torsh_brief_free.
 */
void torsh_brief_make(struct brief *brief, const struct overview *overview,
		      const struct prepass *prepass);

/* Free what the brief owns. */
void torsh_brief_free(struct brief *brief);

/* Fill in the costs, the most costly first. */
void torsh_brief_find_costs(struct brief *brief, const struct prepass *prepass);

/* Fill in the hypotheses, those that gain most of the time first, then memory and unknown gains. */
void torsh_brief_find_hypotheses(struct brief *brief);

/* Returns the largest site that nothing refers to any more, unless it is small; NULL: none. */
const struct allocation_site *torsh_brief_lost(const struct brief *brief);

/*
 * Returns the line in whose calls the operator, or what it calls, allocates most blocks; NULL: none
 * is known.
 */
const struct frame *torsh_brief_caller(const struct brief *brief, const char *operator_name);

/* Returns the number of whole steps after the first; 0: none are known. */
uint64_t torsh_brief_steady_steps(const struct brief *brief);

/*
 * Returns whether the run has that figure, and what it is. The time of a step is the mean over the
 * whole steps after the first.
 */
bool torsh_brief_figure(const struct brief *brief, enum brief_figure figure, uint64_t *value);

/* Returns what became of a suspect, in the terms of rules. */
enum rule_state torsh_brief_suspect_state(const struct brief *brief, enum suspect_kind kind);

/* Write it as Markdown, at most BRIEF_BYTES_MAX: the least hypotheses are left out first. */
void torsh_brief_text(FILE *out, const struct brief *brief);

/* Write it as JSON: tools/schema/brief.json. */
void torsh_brief_json(FILE *out, const struct brief *brief);

/* Returns "leak", "growth", or the name of the rule or the suspect. */
const char *torsh_brief_rule(const struct brief_hypothesis *hypothesis);

/* Returns the finding, or what leaked or grew, as a sentence; the caller frees it. */
char *torsh_brief_sentence(const struct brief *brief, const struct brief_hypothesis *hypothesis);

/* Returns what to change. */
const char *torsh_brief_change(const struct brief_hypothesis *hypothesis);

/* Returns the command, without a path, that shows whether it helped; NULL: none. */
const char *torsh_brief_check(const struct brief_hypothesis *hypothesis);

/* Returns where, in the program; NULL: nowhere in particular. The caller frees it. */
char *torsh_brief_place(const struct brief *brief, const struct brief_hypothesis *hypothesis);

/* Returns the command that runs the program again; the caller frees it. NULL: it is unknown. */
char *torsh_brief_rerun(const struct brief *brief);

/* Returns how long the main process ran in ns; 0: unknown. */
uint64_t torsh_brief_run_ns(const struct brief *brief);

#endif
