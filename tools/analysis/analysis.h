/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/analysis has rules and the metrics that they use. Read this file first.
 *
 * Inefficiencies in a recording, by the rules of tools/analysis/rules.def. A rule uses recorded
 * data only; without its data it is reported as not evaluated, with the reason.
 */
#ifndef TORSH_ANALYSIS_ANALYSIS_H
#define TORSH_ANALYSIS_ANALYSIS_H

#include "tools/timeline/prepass/prepass.h"

/* KIND(NAME, name) */
#define ANALYSIS_KINDS                                    \
	KIND(RECORDING, NULL)                             \
	KIND(LOW_THROUGHPUT, "LowThroughput")             \
	KIND(HIGH_LATENCY, "HighLatency")                 \
	KIND(MEMORY_WASTE, "MemoryWaste")                 \
	KIND(CPU_UNDERUTILIZATION, "CpuUnderutilization") \
	KIND(FREQUENT_ALLOCATION, "FrequentAllocation")   \
	KIND(LARGE_ALLOCATION, "LargeAllocation")

enum analysis_kind {
#define KIND(NAME, name) KIND_##NAME,
	ANALYSIS_KINDS
#undef KIND
		N_ANALYSIS_KINDS
};

/* By their share: Low below 2 %, Medium below 10 %, High below 30 %, Critical above. */
enum severity { SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH, SEVERITY_CRITICAL };

enum rule {
#define RULE(NAME, ...) RULE_##NAME,
#define LIMIT(...)
#include "tools/analysis/rules.def"
#undef RULE
#undef LIMIT
	N_RULES
};

enum limit {
#define RULE(...)
#define LIMIT(RULE, NAME, ...) LIMIT_##RULE##_##NAME,
#include "tools/analysis/rules.def"
#undef RULE
#undef LIMIT
	N_LIMITS
};

enum limit_side { SIDE_BELOW, SIDE_ABOVE, SIDE_AT_MOST, SIDE_AT_LEAST };

struct limit_words {
	enum rule rule;
	const char *name, *unit;
	enum limit_side side;
	double value;
};

struct rule_words {
	const char *name, *sentence, *next, *description, *suggestion;
	enum analysis_kind kind;
	double floor_pct;
};

extern const struct rule_words torsh_rules[N_RULES];
extern const struct limit_words torsh_limits[N_LIMITS];
extern const char
	*const torsh_analysis_kind_names[N_ANALYSIS_KINDS]; /* NULL: about the recording */
extern const char *const torsh_severity_names[];
extern const char *const torsh_side_names[];

/* A number that a finding is based on. */
struct evidence {
	const char *name, *unit;
	double value;
	/* the limit that it exceeded; NULL: it is shown for context */
	const struct limit_words *limit;
};

#define EVIDENCE_MAX 8u

/* Texts are the recording's or the analysis's. */
struct finding {
	enum rule rule;
	enum severity severity;
	double share_pct;
	const char *share_of; /* "the steps", "the run", ... */
	const struct recorded_process *process;
	const char *operator_name, *kernel, *api; /* NULL: none, or unknown */
	bool has_device;
	uint32_t device;
	uint32_t stack; /* of a CUDA call; 0: none was taken */
	bool is_stack_of_program; /* the stack is not a CUDA call's: its line is the user's own */
	struct evidence evidence[EVIDENCE_MAX];
	size_t n_evidence;
	const char *note; /* a sentence; NULL: none */
	/* Gained at most, if what it is about cost nothing. NAN: unknown. */
	double gain_ns, gain_bytes;
	const char *no_gain; /* why neither is known; NULL: one is */
	/* A time that shows it, the longest of its kind; until_ns 0: none is known. */
	uint64_t from_ns, until_ns;
};

enum rule_state { RULE_NOT_EVALUATED, RULE_CLEAR, RULE_FIRED };

extern const char *const torsh_rule_state_names[];

struct rule_result {
	enum rule_state state;
	const char *reason; /* why it was not, or only partly, evaluated; NULL: it was */
	size_t n_findings; /* may be more than are stored */
};

#define FINDINGS_A_RULE 10u /* stored per rule: the worst ones */

struct analysis {
	struct finding *findings; /* the worst first */
	size_t n, n_room;
	struct rule_result rules[N_RULES];
	bool has_anything; /* some process used devices, or a framework's operators */
	struct metrics *metrics; /* owns texts */
};

/* What is analysed: calls that began in the window, and in the pre-pass's steps if it has any. */
struct analysis_request {
	const struct recording *recording;
	struct recorded_process *const *processes; /* the pre-pass may have more processes */
	size_t n_processes;
	const struct prepass *prepass;
	uint64_t from_ns, to_ns;
};

/*
 * Evaluate all rules. The request's data must outlive the analysis. Ends the program if the
 * recording can't be read.
 */
void torsh_analysis_make(struct analysis *analysis, const struct analysis_request *request);

/* Free the findings and the metrics; the recording stays. */
void torsh_analysis_free(struct analysis *analysis);

/* Returns whether a value exceeds a limit. */
bool torsh_limit_passed(enum limit limit, double value);

/* Returns the severity of a share in percent. */
enum severity torsh_severity_of(double share_pct);

#endif
