/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the operators of a program on the CPU show beyond the rules of torsh report: suspects.def.
 * One pass over the timeline of one process.
 */
#ifndef TORSH_REPORT_BRIEF_SUSPECTS_H
#define TORSH_REPORT_BRIEF_SUSPECTS_H

#include "tools/analysis/metrics.h"
#include "tools/symbols/symbols.h"

enum suspect_kind {
#define SUSPECT(NAME, ...) SUSPECT_##NAME,
#include "tools/report/brief/suspects.def"
#undef SUSPECT
	N_SUSPECTS
};

struct suspect_words {
	const char *name;
	double limit_pct;
	const char *change, *check;
};

extern const struct suspect_words torsh_suspects[N_SUSPECTS];

#define SUSPECT_OPERATORS 4u

struct suspect {
	enum suspect_kind kind;
	bool is_found;
	const char *reason; /* why it was not judged; NULL: it was */
	uint64_t ns; /* of its operators */
	uint64_t gain_ns; /* of that, what the change saves; 0: not known */
	uint64_t n, bytes; /* its calls, or nodes of the graph; what they wrote */
	uint64_t n_steps;
	double gain_pct; /* of share_of; NAN: not known */
	const char *share_of;
	const struct recorded_process *process;
	/* of its longest call */
	const char *operator_name; /* the outermost operator; NULL: none in particular */
	const char *operators[SUSPECT_OPERATORS]; /* from the innermost on */
	size_t n_operators;
	uint32_t stack; /* 0: none was taken */
};

struct suspects {
	struct suspect items[N_SUSPECTS];
};

/*
 * Look for all of them in a process: in its steps after the first, without steps in its run. Ends
 * the program if the recording can't be read. Nothing is to be freed.
 */
void torsh_suspects_find(struct suspects *suspects, const struct recording *recording,
			 const struct metrics_process *of, const struct prepass *prepass);

/* Returns it as a sentence; the caller frees it. */
char *torsh_suspect_sentence(const struct suspect *suspect);

/* Returns the line of its stack: "train.py(30): main"; NULL: unknown. The caller frees it. */
char *torsh_suspect_line(const struct suspect *suspect, struct symbols *symbols);

#endif
