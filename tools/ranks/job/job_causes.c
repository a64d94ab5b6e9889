/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Why a rank is late: what it did between two collectives, in the calls that it was last in, less
 * what the others did there in the median.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/ranks/job/job.h"

#define LEAST_CAUSE 0.1 /* of what made it late */
#define MORE_OPERATORS 1.1 /* times as many as the others */
/*
 * What one costs at most, with what is done for it, also where others use the CPU: a fault is an
 * exception, in a virtual machine two, and a page to clear; an allocation the object made of it.
 */
#define FAULT_NS 10000.0
#define ALLOCATION_NS 1000.0
#define LEAST_EXPLAINED 0.5 /* of the time, by that */
#define LEAST_RATIO 1.25 /* to the other ranks */

const char *const torsh_job_cause_names[N_JOB_CAUSES] = {
	"data_loading", "garbage_collection", "more_compute", "slow_compute", "python",
	"device",	"allocation",	      "page_faults",  "cpu_wait",     "cpu_throttled",
	"cpu_stolen"};

const char *const torsh_job_cause_texts[N_JOB_CAUSES] = {
	"it waits for data longer",
	"Python's garbage collector runs longer",
	"it computes more",
	"its operators take longer",
	"Python, sleep or I/O outside of operators",
	"its device begins collectives later",
	"it allocates more",
	"it touches more new memory",
	"it waits for a CPU: others run there, or its quota is used up",
	"the quota of its control group is used up",
	"a hypervisor runs others in place of its CPU",
};

enum lead_cpu { LEAD_RAN, LEAD_WAITED, LEAD_THROTTLED, LEAD_STOLEN, N_LEAD_CPU };

/* Sums over the calls that the straggler was last in: its own, and the others' medians. */
struct leads {
	double own[N_FOLD_LEADS], others[N_FOLD_LEADS];
	double queued, others_queued;
	double cpu_ns[N_LEAD_CPU], others_cpu_ns[N_LEAD_CPU];
	bool lacks_cpu[N_LEAD_CPU]; /* it isn't known of all these ranks */
	uint64_t n;
};

static int compare_values(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t median_of(uint64_t *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), compare_values);
	return values[(n - 1) / 2];
}

static uint64_t lead_of(const struct job *job, const struct job_entry *entry, size_t lead)
{
	const Torsh__FoldRank *row = job->ranks[entry->rank].row;

	return row->leads[lead * row->n_group + entry->sample];
}

/* Returns the numbers of a row by sample, or NULL: it isn't known. */
static const uint64_t *cpu_column(const Torsh__FoldRank *row, enum lead_cpu of)
{
	switch (of) {
	case LEAD_RAN:
		return row->n_cpu_ran_ns ? row->cpu_ran_ns : NULL;
	case LEAD_WAITED:
		return row->n_cpu_waited_ns ? row->cpu_waited_ns : NULL;
	case LEAD_THROTTLED:
		return row->n_cpu_throttled_ns ? row->cpu_throttled_ns : NULL;
	default:
		return row->n_cpu_stolen_ns ? row->cpu_stolen_ns : NULL;
	}
}

static void add_cpu(struct leads *leads, const struct job *job, const struct job_call *call,
		    uint32_t rank, uint64_t *values)
{
	for (enum lead_cpu k = 0; k < N_LEAD_CPU; k++) {
		size_t n = 0;

		for (size_t i = 0; i < call->n; i++) {
			const struct job_entry *entry = &job->entries[call->first + i];
			const uint64_t *column = cpu_column(job->ranks[entry->rank].row, k);

			if (!column)
				leads->lacks_cpu[k] = true;
			else if (entry->rank == rank)
				leads->cpu_ns[k] += (double)column[entry->sample];
			else
				values[n++] = column[entry->sample];
		}
		leads->others_cpu_ns[k] += (double)median_of(values, n);
	}
}

static void add_call(struct leads *leads, const struct job *job, const struct job_call *call,
		     uint32_t rank, uint64_t *values)
{
	for (size_t k = 0; k <= N_FOLD_LEADS; k++) {
		uint64_t own = 0;
		size_t n = 0;

		for (size_t i = 0; i < call->n; i++) {
			const struct job_entry *entry = &job->entries[call->first + i];
			uint64_t value = k < N_FOLD_LEADS
						 ? lead_of(job, entry, k)
						 : (uint64_t)(entry->entered_ns - entry->issued_ns);

			if (entry->rank == rank)
				own = value;
			else
				values[n++] = value;
		}
		*(k < N_FOLD_LEADS ? &leads->own[k] : &leads->queued) += (double)own;
		*(k < N_FOLD_LEADS ? &leads->others[k] : &leads->others_queued) +=
			(double)median_of(values, n);
	}
	add_cpu(leads, job, call, rank, values);
	leads->n++;
}

/* ---- causes ---------------------------------------------------------------------------------- */

/* A kind that explains two parts has the evidence of the first. */
static void add_cause(struct job_straggler *straggler, enum job_cause_kind kind, double excess_ns,
		      char *evidence)
{
	for (size_t i = 0; i < straggler->n_causes; i++) {
		if (straggler->causes[i].kind != kind)
			continue;
		straggler->causes[i].ns += excess_ns > 0 ? (uint64_t)excess_ns : 0;
		free(evidence);
		return;
	}
	if (excess_ns <= 0) {
		free(evidence);
		return;
	}
	straggler->causes[straggler->n_causes++] =
		(struct job_cause){.kind = kind, .ns = (uint64_t)excess_ns, .evidence = evidence};
}

/* Returns "12 ms instead of 3 ms between two collectives", which the caller frees. */
static char *compare_text(double own_ns, double others_ns, uint64_t n)
{
	char own[SIZE_TEXT_BYTES], others[SIZE_TEXT_BYTES];

	return torsh_need_text("%s instead of %s between two collectives",
			       torsh_size_duration((uint64_t)(own_ns / (double)n), own),
			       torsh_size_duration((uint64_t)(others_ns / (double)n), others));
}

static double median_total(const struct job *job, uint32_t rank, enum fold_total total)
{
	uint64_t *values = torsh_need_items(NULL, 0, job->n_ranks, sizeof(*values)), median;
	size_t n = 0;

	for (uint32_t i = 0; i < job->n_ranks; i++)
		n += i != rank && torsh_job_total(job, i, total, &values[n]);
	median = median_of(values, n);
	free(values);
	return n ? (double)median : -1;
}

/*
 * A count that explains time in operators or outside of what is known: in the calls that the rank
 * was last in if it is known there, else in the whole run.
 */
struct count {
	enum fold_total total;
	enum job_cause_kind kind;
	double ns; /* that one costs at most */
	const char *what;
	enum lead_cpu lead; /* N_LEAD_CPU: of the whole run only */
};

/* A wait for a CPU is in the other two, too, where the kernel counts it: they are more exact. */
static const struct count counts[] = {
	{FOLD_TOTAL_minor_faults, CAUSE_PAGE_FAULTS, FAULT_NS, "page faults", N_LEAD_CPU},
	{FOLD_TOTAL_allocs, CAUSE_ALLOCATION, ALLOCATION_NS, "allocations", N_LEAD_CPU},
	{FOLD_TOTAL_cpu_wait_ns, CAUSE_CPU_WAIT, 1, "runnable without a CPU for", LEAD_WAITED},
	{FOLD_TOTAL_cpu_throttled_ns, CAUSE_CPU_THROTTLED, 1, "throttled for", LEAD_THROTTLED},
	{FOLD_TOTAL_cpu_stolen_ns, CAUSE_CPU_STOLEN, 1, "its CPUs were stolen for", LEAD_STOLEN},
};

/* Returns "in 3 of 40 periods of its quota" in some words, or "", which the caller frees. */
static char *periods_text(const struct job *job, uint32_t rank, const struct count *count,
			  const char *before, const char *after)
{
	uint64_t throttled, periods;

	if (count->kind != CAUSE_CPU_THROTTLED ||
	    !torsh_job_total(job, rank, FOLD_TOTAL_cpu_throttled_periods, &throttled) ||
	    !torsh_job_total(job, rank, FOLD_TOTAL_cpu_periods, &periods))
		return torsh_need_text("%s", "");
	return torsh_need_text("%sin %" PRIu64 " of %" PRIu64 " periods of its quota%s", before,
			       throttled, periods, after);
}

/* Returns the evidence of a count, which the caller frees. */
static char *count_text(const struct job *job, uint32_t rank, const struct count *count,
			uint64_t value, uint64_t others)
{
	char own[SIZE_TEXT_BYTES], other[SIZE_TEXT_BYTES], *periods, *text;

	if (count->kind == CAUSE_PAGE_FAULTS || count->kind == CAUSE_ALLOCATION)
		return torsh_need_text("%s %s instead of %s in the whole run",
				       torsh_size_grouped(value, own), count->what,
				       torsh_size_grouped(others, other));
	periods = periods_text(job, rank, count, " (", ")");
	text = torsh_need_text("%s %s%s instead of %s in the whole run", count->what,
			       torsh_size_duration(value, own), periods,
			       torsh_size_duration(others, other));
	free(periods);
	return text;
}

/* What time outside of what is known, or in operators, is explained by so far. */
struct reason {
	enum job_cause_kind kind;
	double explained; /* as a part of that time */
	char *evidence; /* owned */
};

/* A wait is in what the kernel counts of it, too, which has more. */
static bool is_better(const struct reason *reason, double explained)
{
	return explained >= (reason->kind == CAUSE_CPU_WAIT ? LEAST_EXPLAINED : reason->explained);
}

static void replace(struct reason *reason, enum job_cause_kind kind, double explained,
		    char *evidence)
{
	free(reason->evidence);
	*reason = (struct reason){kind, explained, evidence};
}

/*
 * A count in the calls that the rank was last in. A rank that computes more on a full machine or
 * with a quota waits more, too, and one that computes little waits less than in proportion: so its
 * waits count as far as it ran no more than the others did. Stolen time may be in what it ran.
 */
static void refine_lead(const struct job *job, uint32_t rank, const struct leads *leads,
			const struct count *count, double excess_ns, struct reason *reason)
{
	double ran_ns = leads->cpu_ns[LEAD_RAN], others_ran_ns = leads->others_cpu_ns[LEAD_RAN];
	double others_ns = leads->others_cpu_ns[count->lead], ns = leads->cpu_ns[count->lead];
	char own[SIZE_TEXT_BYTES], others[SIZE_TEXT_BYTES], *periods;

	if (count->lead != LEAD_STOLEN && !leads->lacks_cpu[LEAD_RAN] && ran_ns > others_ran_ns)
		ns *= others_ran_ns / ran_ns;
	if (ns < LEAST_RATIO * others_ns || !is_better(reason, (ns - others_ns) / excess_ns))
		return;
	periods = periods_text(job, rank, count, ", ", " in the whole run");
	replace(reason, count->kind, (ns - others_ns) / excess_ns,
		torsh_need_text(
			"%s %s instead of %s between two collectives%s", count->what,
			torsh_size_duration((uint64_t)(ns / (double)leads->n), own),
			torsh_size_duration((uint64_t)(others_ns / (double)leads->n), others),
			periods));
	free(periods);
}

/* A count of the whole run. The excess is of the calls that the rank was last in. */
static void refine_run(const struct job *job, const struct job_straggler *straggler,
		       const struct count *count, double excess_ns, struct reason *reason)
{
	double all_ns = excess_ns * (double)job->n_collectives / (double)job->n_ranks /
			(double)(straggler->compared ? straggler->compared : 1);
	double others = median_total(job, straggler->rank, count->total), explained;
	uint64_t value;

	if (others < 0 || !torsh_job_total(job, straggler->rank, count->total, &value) ||
	    (double)value < LEAST_RATIO * others)
		return;
	explained = ((double)value - others) * count->ns / all_ns;
	if (is_better(reason, explained))
		replace(reason, count->kind, explained,
			count_text(job, straggler->rank, count, value, (uint64_t)others));
}

/* Add a cause for time outside of what is known, or in operators. Takes over its evidence. */
static void add_refined(const struct job *job, struct job_straggler *straggler,
			const struct leads *leads, enum job_cause_kind kind, double excess_ns,
			char *evidence)
{
	struct reason reason = {kind, LEAST_EXPLAINED, evidence};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts) && excess_ns > 0; i++) {
		const struct count *count = &counts[i];

		if (count->lead != N_LEAD_CPU && !leads->lacks_cpu[count->lead])
			refine_lead(job, straggler->rank, leads, count, excess_ns, &reason);
		else
			refine_run(job, straggler, count, excess_ns, &reason);
	}
	add_cause(straggler, reason.kind, excess_ns, reason.evidence);
}

static void add_compute(const struct job *job, struct job_straggler *straggler,
			const struct leads *leads)
{
	double own = leads->own[FOLD_LEAD_operators], others = leads->others[FOLD_LEAD_operators];
	double excess = leads->own[FOLD_LEAD_compute_ns] - leads->others[FOLD_LEAD_compute_ns];
	char *times = compare_text(leads->own[FOLD_LEAD_compute_ns],
				   leads->others[FOLD_LEAD_compute_ns], leads->n);
	double n = (double)leads->n;

	if (own > MORE_OPERATORS * others) {
		add_cause(straggler, CAUSE_MORE_COMPUTE, excess,
			  torsh_need_text("%.0f operators instead of %.0f: %s", own / n, others / n,
					  times));
		free(times);
		return;
	}
	add_refined(job, straggler, leads, CAUSE_SLOW_COMPUTE, excess, times);
}

static void add_python(const struct job *job, struct job_straggler *straggler,
		       const struct leads *leads)
{
	double own = leads->own[FOLD_LEAD_python_ns], others = leads->others[FOLD_LEAD_python_ns];

	add_refined(job, straggler, leads, CAUSE_PYTHON, own - others,
		    compare_text(own, others, leads->n));
}

static int compare_causes(const void *a, const void *b)
{
	const struct job_cause *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

/* Set shares, and drop small causes. */
static void settle_causes(struct job_straggler *straggler)
{
	double sum = 0;
	size_t n = 0;

	if (straggler->n_causes)
		qsort(straggler->causes, straggler->n_causes, sizeof(*straggler->causes),
		      compare_causes);
	for (size_t i = 0; i < straggler->n_causes; i++)
		sum += (double)straggler->causes[i].ns;
	for (size_t i = 0; i < straggler->n_causes; i++) {
		struct job_cause cause = straggler->causes[i];

		cause.share = sum > 0 ? (double)cause.ns / sum : 0;
		if (cause.share >= LEAST_CAUSE)
			straggler->causes[n++] = cause;
		else
			free(cause.evidence);
	}
	straggler->n_causes = n;
}

void torsh_job_find_causes(const struct job *job, struct job_straggler *straggler)
{
	static const struct {
		enum fold_lead lead;
		enum job_cause_kind kind;
	} plain[] = {{FOLD_LEAD_gc_ns, CAUSE_GC}, {FOLD_LEAD_data_ns, CAUSE_DATA_LOADING}};
	uint64_t *values = torsh_need_items(NULL, 0, job->n_ranks, sizeof(*values));
	struct leads leads = {.n = 0};

	for (size_t i = 0; i < job->n_verdicts; i++) {
		if (job->verdicts[i].last == straggler->rank && job->verdicts[i].cost_ns)
			add_call(&leads, job, &job->calls[job->verdicts[i].call], straggler->rank,
				 values);
	}
	free(values);
	if (!leads.n)
		return;
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		double own = leads.own[plain[i].lead], others = leads.others[plain[i].lead];

		add_cause(straggler, plain[i].kind, own - others,
			  compare_text(own, others, leads.n));
	}
	add_compute(job, straggler, &leads);
	add_python(job, straggler, &leads);
	add_cause(straggler, CAUSE_DEVICE, leads.queued - leads.others_queued,
		  compare_text(leads.queued, leads.others_queued, leads.n));
	settle_causes(straggler);
}
