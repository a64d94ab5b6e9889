/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a person, or a coding assistant, needs to make a program faster or smaller, in at most
 * BRIEF_BYTES_MAX of Markdown: the run, its most costly things with their lines, hypotheses ranked
 * by what they would gain, what was ruled out, and commands that check a change.
 */
#ifndef TORSH_REPORT_BRIEF_BRIEF_H
#define TORSH_REPORT_BRIEF_BRIEF_H

#include "tools/memory/growth/growth.h"
#include "tools/ops/step_durations.h"
#include "tools/report/overview.h"

#define BRIEF_BYTES_MAX 6144u
#define BRIEF_COSTS 3u
#define BRIEF_HYPOTHESES 8u

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

/* A finding, or what leaked or grew, with what it would gain at most. */
struct brief_hypothesis {
	const struct finding *finding; /* NULL: memory */
	const struct allocation_site *site; /* the largest that leaked or grew; NULL: a finding */
	double gain_pct; /* of finding->share_of; NAN: unknown */
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

/* Write it as Markdown, at most BRIEF_BYTES_MAX: the least hypotheses are left out first. */
void torsh_brief_text(FILE *out, const struct brief *brief);

/* Write it as JSON: tools/schema/brief.json. */
void torsh_brief_json(FILE *out, const struct brief *brief);

/* Returns "leak", "growth", or the name of the finding's rule. */
const char *torsh_brief_rule(const struct brief *brief, const struct brief_hypothesis *hypothesis);

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
