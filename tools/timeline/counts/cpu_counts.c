/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/counts/cpu_counts.h"

/*
 * Limits of access patterns, in misses per 1,000 instructions. A line has 64 bytes and a page
 * 4,096: who reads page after page misses the TLB once in 64 lines, and who reads a line of another
 * page each time misses it with each line. Between these lie mixtures.
 */
#define LEAST_INSTRUCTIONS 100000.0
#define RESIDENT_L1D 1.0
#define CACHED_LLC 0.1
#define STREAMING_LINES 16.0 /* lines from memory for each miss of the TLB: at least */
#define RANDOM_LINES 2.0 /* at most */

const char *const torsh_cpu_counter_names[N_CPU_COUNTERS] = {
#define HARDWARE(NAME, name, type, config) #name,
#define SOFTWARE(NAME, name) #name,
#include "agent/wire/cpu_counters.def"
#undef HARDWARE
#undef SOFTWARE
};

const char *const torsh_access_pattern_names[N_ACCESS_PATTERNS] = {
	[ACCESS_RESIDENT] = "cache-resident",
	[ACCESS_CACHED] = "cached",
	[ACCESS_STREAMING] = "streaming",
	[ACCESS_RANDOM] = "random",
	[ACCESS_MIXED] = "mixed",
};

static void take_software(struct cpu_counts *counts, const struct event_cpu_counts *event)
{
	if (event->is_base)
		return;
	counts->has = counts->n ? counts->has & event->has : event->has;
	counts->n++;
	counts->counts[CPU_COUNTER_TASK_CLOCK] += event->task_clock_ns;
	counts->counts[CPU_COUNTER_MINOR_FAULTS] += event->minor_faults;
	counts->counts[CPU_COUNTER_MAJOR_FAULTS] += event->major_faults;
	counts->counts[CPU_COUNTER_VOLUNTARY] += event->voluntary_switches;
	counts->counts[CPU_COUNTER_INVOLUNTARY] += event->involuntary_switches;
	counts->counts[CPU_COUNTER_MIGRATIONS] += event->migrations;
}

static void take_hardware(struct cpu_counts *counts, const struct event_cpu_hardware_counts *event)
{
	counts->counts[CPU_COUNTER_CYCLES] += event->cycles;
	counts->counts[CPU_COUNTER_INSTRUCTIONS] += event->instructions;
	counts->counts[CPU_COUNTER_BRANCH_MISSES] += event->branch_misses;
	counts->counts[CPU_COUNTER_L1D_MISSES] += event->l1d_misses;
	counts->counts[CPU_COUNTER_LLC_MISSES] += event->llc_misses;
	counts->counts[CPU_COUNTER_DTLB_MISSES] += event->dtlb_misses;
	counts->groups[0].enabled_ns += event->enabled_0_ns;
	counts->groups[0].running_ns += event->running_0_ns;
	counts->groups[1].enabled_ns += event->enabled_1_ns;
	counts->groups[1].running_ns += event->running_1_ns;
}

void torsh_cpu_counts_take(struct cpu_counts *counts, const struct event *event)
{
	if (event->id == EVENT_CPU_COUNTS)
		take_software(counts, &event->cpu_counts);
	else if (event->id == EVENT_CPU_HARDWARE_COUNTS)
		take_hardware(counts, &event->cpu_hardware_counts);
}

void torsh_cpu_counts_add(struct cpu_counts *counts, const struct cpu_counts *more)
{
	if (!more->n)
		return;
	counts->has = counts->n ? counts->has & more->has : more->has;
	counts->n += more->n;
	for (int i = 0; i < N_CPU_COUNTERS; i++)
		counts->counts[i] += more->counts[i];
	for (unsigned i = 0; i < N_COUNTER_GROUPS; i++) {
		counts->groups[i].enabled_ns += more->groups[i].enabled_ns;
		counts->groups[i].running_ns += more->groups[i].running_ns;
	}
}

double torsh_cpu_counts_share(const struct cpu_counts *counts, enum cpu_counter counter)
{
	unsigned group = (unsigned)counter / CPU_GROUP_COUNTERS;
	uint64_t enabled_ns, running_ns;

	if (counter >= N_CPU_HARDWARE_COUNTERS)
		return 1;
	enabled_ns = counts->groups[group].enabled_ns;
	running_ns = counts->groups[group].running_ns;
	return running_ns < enabled_ns ? (double)running_ns / (double)enabled_ns : 1;
}

bool torsh_cpu_counts_value(const struct cpu_counts *counts, enum cpu_counter counter,
			    double *value)
{
	double share = torsh_cpu_counts_share(counts, counter);

	if (!counts->n || !(counts->has >> counter & 1) || share <= 0)
		return false;
	*value = (double)counts->counts[counter] / share;
	return true;
}

bool torsh_cpu_counts_ratio(const struct cpu_counts *counts, enum cpu_counter counter,
			    enum cpu_counter of, double scale, double *per)
{
	double value, whole;

	if (!torsh_cpu_counts_value(counts, counter, &value) ||
	    !torsh_cpu_counts_value(counts, of, &whole) || whole <= 0)
		return false;
	*per = value / whole * scale;
	return true;
}

static bool per_thousand(const struct cpu_counts *counts, enum cpu_counter counter, double *per)
{
	return torsh_cpu_counts_ratio(counts, counter, CPU_COUNTER_INSTRUCTIONS, 1000, per);
}

enum access_pattern torsh_cpu_counts_pattern(const struct cpu_counts *counts)
{
	double instructions, l1d, llc, dtlb;

	if (!torsh_cpu_counts_value(counts, CPU_COUNTER_INSTRUCTIONS, &instructions) ||
	    instructions < LEAST_INSTRUCTIONS ||
	    !per_thousand(counts, CPU_COUNTER_L1D_MISSES, &l1d) ||
	    !per_thousand(counts, CPU_COUNTER_LLC_MISSES, &llc))
		return ACCESS_UNKNOWN;
	if (l1d < RESIDENT_L1D && llc < CACHED_LLC)
		return ACCESS_RESIDENT;
	if (llc < CACHED_LLC)
		return ACCESS_CACHED;
	if (!per_thousand(counts, CPU_COUNTER_DTLB_MISSES, &dtlb))
		return ACCESS_UNKNOWN;
	/* Lines that the processor fetched ahead miss the first cache only. */
	if (dtlb * STREAMING_LINES <= (l1d > llc ? l1d : llc))
		return ACCESS_STREAMING;
	return dtlb * RANDOM_LINES >= llc ? ACCESS_RANDOM : ACCESS_MIXED;
}

void torsh_process_counts_create(struct process_counts *counts)
{
	*counts = (struct process_counts){0};
	torsh_sparse_array_create(&counts->threads, sizeof(struct cpu_counts));
	torsh_sparse_array_create(&counts->ran_operators, sizeof(bool));
}

void torsh_process_counts_take(struct process_counts *counts,
			       const struct recorded_process *process,
			       const struct timeline_event *event)
{
	if (event->event.id == EVENT_CPU_COUNTER_MODE && !counts->is_known) {
		counts->is_known = true;
		counts->mode = event->event.cpu_counter_mode;
	}
	/* A damaged file may name any thread. */
	if (torsh_cpu_counts_are_in(&event->event) && event->thread < process->n_threads)
		torsh_cpu_counts_take(torsh_sparse_array_at(&counts->threads, event->thread),
				      &event->event);
}

void torsh_process_counts_operator(struct process_counts *counts, uint32_t thread)
{
	*(bool *)torsh_sparse_array_at(&counts->ran_operators, thread) = true;
}

struct counts_elsewhere torsh_process_counts_elsewhere(const struct process_counts *counts,
						       const struct recorded_process *process)
{
	struct counts_elsewhere elsewhere = {0};

	for (size_t i = 0; i < process->n_threads; i++) {
		const struct cpu_counts *sum = torsh_sparse_array_find(&counts->threads, i);
		const bool *ran = torsh_sparse_array_find(&counts->ran_operators, i);
		double ns;

		if (sum && torsh_cpu_counts_value(sum, CPU_COUNTER_TASK_CLOCK, &ns)) {
			elsewhere.all_ns += ns;
			elsewhere.ns += ran && *ran ? 0 : ns;
		} else if (!ran || !*ran) {
			elsewhere.n_uncounted++;
		}
	}
	return elsewhere;
}

void torsh_process_counts_free(struct process_counts *counts)
{
	torsh_sparse_array_destroy(&counts->ran_operators);
	torsh_sparse_array_destroy(&counts->threads);
}
