/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/usage/process_usage.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/writer/input/process_info.h"

#define CPUS_EVERY_NS 1000000000u /* between two looks at the CPUs, which open some files */
#define SAMPLE_NS_MAX 1000000000u /* what one sample may stand for */
#define NS_PER_THREAD \
	4000000u /* between samples of threads: at 10 us a thread, a quarter percent */

static uint32_t count_cpus(const struct process_status *status, const struct cpu_supply *supply)
{
	long n_online = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t n = status->n_cpus, quota = torsh_cpu_supply_quota(supply);

	if (n_online > 0 && n > (uint32_t)n_online)
		n = (uint32_t)n_online;
	return quota && quota < n ? quota : n;
}

/* A look at n threads costs some 10 us each: no more than a percent. */
#define WAIT_EVERY_NS 100000000u
#define WAIT_NS_PER_THREAD 1000000u

/* /proc/stat takes longer the larger the machine is: looks take a quarter percent of a CPU. */
#define SUPPLY_EVERY_NS 100000000u
#define SUPPLY_PARTS 400u

void torsh_process_usage_start(struct process_usage *usage, pid_t pid, int stat_fd)
{
	struct process_counts counts;
	struct process_cpu cpu = torsh_process_cpu(pid);

	*usage = (struct process_usage){0};
	usage->wait_before = cpu.n_threads ? cpu.waited_ns + 1 : 0;
	if (!torsh_process_read_counts(stat_fd, &counts))
		usage->before = (struct process_faults){.minor = counts.minor_faults,
							.major = counts.major_faults};
}

/* A sample stands for the time since the one before. */
static void sample_threads(struct process_usage *usage, pid_t pid, uint32_t n_threads,
			   uint64_t now_ns)
{
	uint64_t ns = usage->last_ns ? now_ns - usage->last_ns : 0;
	uint32_t n_runnable;

	if (!usage->n_cpus)
		return;
	if (n_threads > usage->n_cpus && usage->last_ns && ns < (uint64_t)n_threads * NS_PER_THREAD)
		return;
	n_runnable = n_threads > usage->n_cpus ? torsh_process_runnable(pid) : 0;
	usage->last_ns = now_ns;
	ns = ns < SAMPLE_NS_MAX ? ns : SAMPLE_NS_MAX;
	usage->sampled_ns += ns;
	if (n_runnable <= usage->n_cpus)
		return;
	usage->oversubscribed_ns += ns;
	usage->runnable_ns += ns * n_runnable;
}

static uint64_t own_cpu_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void sample_supply(struct process_usage *usage, pid_t pid, uint64_t now_ns, uint64_t stamp)
{
	uint64_t begin_ns = own_cpu_ns(), every_ns;
	cpu_set_t cpus;

	if (now_ns < usage->next_supply_ns)
		return;
	if (sched_getaffinity(pid, sizeof(cpus), &cpus))
		CPU_ZERO(&cpus);
	torsh_cpu_supply_sample(&usage->supply, "", pid, &cpus);
	torsh_sum_points_add(&usage->supply_points, stamp, usage->supply.throttling.ns,
			     usage->supply.stolen_ns);
	every_ns = (own_cpu_ns() - begin_ns) * SUPPLY_PARTS;
	usage->next_supply_ns = now_ns + (every_ns > SUPPLY_EVERY_NS ? every_ns : SUPPLY_EVERY_NS);
}

static void sample_cpus(struct process_usage *usage, const struct process_status *status,
			uint64_t now_ns)
{
	if (usage->n_cpus && now_ns - usage->cpus_ns < CPUS_EVERY_NS)
		return;
	usage->n_cpus = count_cpus(status, &usage->supply);
	usage->cpus_ns = now_ns;
}

/* A sum that is less than before lacks threads that ended: what the others have more is lost. */
static uint64_t more_of(uint64_t now, uint64_t *last)
{
	uint64_t more = now > *last ? now - *last : 0;

	*last = now;
	return more;
}

static void add_cpu(struct cpu_points *points, const struct process_cpu *cpu, uint64_t stamp)
{
	uint64_t ran_ns, waited_ns;

	if (!cpu->n_threads)
		return;
	ran_ns = more_of(cpu->ran_ns, &points->last_ran_ns);
	waited_ns = more_of(cpu->waited_ns, &points->last_waited_ns);
	if (points->points.items) {
		points->ran_ns += ran_ns;
		points->waited_ns += waited_ns;
	}
	torsh_sum_points_add(&points->points, stamp, points->ran_ns, points->waited_ns);
}

static void sample_wait(struct process_usage *usage, pid_t pid, uint64_t now_ns, uint64_t stamp)
{
	struct process_cpu cpu;

	if (now_ns < usage->next_wait_ns)
		return;
	cpu = torsh_process_cpu(pid);
	if (cpu.n_threads && cpu.waited_ns >= usage->wait_ns) /* less: threads ended */
		usage->wait_ns = cpu.waited_ns + 1;
	add_cpu(&usage->cpu, &cpu, stamp);
	usage->next_wait_ns = now_ns + WAIT_EVERY_NS + (uint64_t)cpu.n_threads * WAIT_NS_PER_THREAD;
}

void torsh_process_usage_sample(struct process_usage *usage, pid_t pid, int stat_fd,
				const struct process_status *status, uint64_t now_ns,
				uint64_t stamp)
{
	struct process_counts counts;

	if (torsh_process_read_counts(stat_fd, &counts))
		return;
	usage->is_sampled = true;
	usage->faults =
		(struct process_faults){.minor = counts.minor_faults, .major = counts.major_faults};
	if (status->swap_bytes > usage->swap_peak_bytes)
		usage->swap_peak_bytes = status->swap_bytes;
	sample_supply(usage, pid, now_ns, stamp);
	sample_cpus(usage, status, now_ns);
	sample_threads(usage, pid, counts.n_threads, now_ns);
	sample_wait(usage, pid, now_ns, stamp);
}

static uint64_t later(uint64_t at_exit, uint64_t last, uint64_t before)
{
	uint64_t n = at_exit > last ? at_exit : last;

	return n > before ? n - before : 0;
}

bool torsh_process_usage_wait(const struct process_usage *usage, uint64_t *ns)
{
	uint64_t wait = atomic_load_explicit(&usage->exit_wait, memory_order_relaxed);

	wait = wait > usage->wait_ns ? wait : usage->wait_ns;
	*ns = later(wait, 0, usage->wait_before);
	return wait != 0;
}

void torsh_process_usage_exit(struct process_usage *usage, pid_t pid, int stat_fd)
{
	struct process_cpu cpu = torsh_process_cpu(pid);
	struct process_counts counts;

	atomic_store_explicit(&usage->exit_wait, cpu.n_threads ? cpu.waited_ns + 1 : 0,
			      memory_order_relaxed);
	if (torsh_process_read_counts(stat_fd, &counts))
		return;
	atomic_store_explicit(&usage->exit_minor, counts.minor_faults, memory_order_relaxed);
	atomic_store_explicit(&usage->exit_major, counts.major_faults, memory_order_relaxed);
}

void torsh_process_usage_end(struct process_usage *usage)
{
	if (usage->is_sampled)
		torsh_cpu_supply_end(&usage->supply, "");
}

void torsh_process_usage_free(struct process_usage *usage)
{
	torsh_cpu_supply_free(&usage->supply);
	torsh_sum_points_free(&usage->cpu.points);
	torsh_sum_points_free(&usage->supply_points);
}

struct process_faults torsh_process_usage_faults(const struct process_usage *usage)
{
	uint64_t minor = atomic_load_explicit(&usage->exit_minor, memory_order_relaxed);
	uint64_t major = atomic_load_explicit(&usage->exit_major, memory_order_relaxed);

	return (struct process_faults){
		.minor = later(minor, usage->faults.minor, usage->before.minor),
		.major = later(major, usage->faults.major, usage->before.major),
	};
}
