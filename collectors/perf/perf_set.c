/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/perf/perf_set.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "shim/libc/cpu_timer.h"
#include "shim/perf/perf_page.h"
#include "shim/sys.h"

#define CACHE_MISSES(cache)                                               \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_MISS << 16)
#define SLOTS 1024u
#define HARDWARE_MASK ((1u << N_CPU_HARDWARE_COUNTERS) - 1)

/* A descriptor that is open, for a child that inherits it. */
struct slot {
	_Atomic uint64_t id; /* 0: unused */
	_Atomic int fd;
};

/* In pages that a forked child keeps. */
struct descriptors {
	uint32_t n_max;
	_Atomic uint32_t n;
	struct slot slots[SLOTS];
};

static void *_Atomic descriptors;

static const struct {
	uint32_t type;
	uint64_t config;
} known[] = {
#define HARDWARE(NAME, name, type, config) {type, config},
#define SOFTWARE(NAME, name)
#include "agent/wire/cpu_counters.def"
#undef HARDWARE
#undef SOFTWARE
};

static const struct perf_instructions instructions = {torsh_cpu_counter, torsh_cpu_ticks};

/* ---- descriptors ---- */

static struct descriptors *find_descriptors(void)
{
	struct descriptors *made, *all = atomic_load_explicit(&descriptors, memory_order_acquire);
	void *none = NULL;

	if (all)
		return all;
	made = torsh_sys_pages(sizeof(*made));
	if (!made)
		return NULL;
	made->n_max = torsh_perf_descriptors_max();
	if (atomic_compare_exchange_strong(&descriptors, &none, made))
		return made;
	torsh_sys_munmap(made, sizeof(*made));
	return none;
}

void torsh_perf_set_forked(void)
{
	struct descriptors *all = atomic_load_explicit(&descriptors, memory_order_acquire);

	for (uint32_t i = 0; all && i < SLOTS; i++) {
		struct slot *slot = &all->slots[i];

		if (slot->id)
			torsh_perf_close_inherited(slot->fd, slot->id);
		slot->id = 0;
	}
	if (all)
		all->n = 0;
}

/* Whether so many more descriptors are within the limit. */
static bool may_open(struct descriptors *all, uint32_t n)
{
	if (atomic_fetch_add_explicit(&all->n, n, memory_order_relaxed) + n <= all->n_max)
		return true;
	atomic_fetch_sub_explicit(&all->n, n, memory_order_relaxed);
	return false;
}

static void keep(struct descriptors *all, const struct perf_counter *counter)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		uint64_t none = 0;

		if (!atomic_compare_exchange_strong_explicit(&all->slots[i].id, &none, counter->id,
							     memory_order_relaxed,
							     memory_order_relaxed))
			continue;
		atomic_store_explicit(&all->slots[i].fd, counter->fd, memory_order_relaxed);
		return;
	}
}

static void close_kept(struct descriptors *all, struct perf_counter *counter)
{
	for (uint32_t i = 0; i < SLOTS && counter->fd >= 0; i++) {
		if (atomic_load_explicit(&all->slots[i].id, memory_order_relaxed) != counter->id)
			continue;
		torsh_perf_close_descriptor(counter);
		atomic_store_explicit(&all->slots[i].id, 0, memory_order_relaxed);
		atomic_fetch_sub_explicit(&all->n, 1, memory_order_relaxed);
	}
	torsh_perf_close(counter);
}

/* ---- opening ---- */

static void close_hardware(struct descriptors *all, struct perf_set *set)
{
	for (uint32_t i = 0; i < N_CPU_HARDWARE_COUNTERS; i++)
		close_kept(all, &set->hardware[i]);
	set->has &= ~HARDWARE_MASK;
	set->way = CPU_COUNTERS_NONE;
}

/* The counters of a group; those that this processor lacks are left out, but not the first. */
static int open_group(struct perf_set *set, uint32_t first)
{
	struct perf_counter *leader = &set->hardware[first];

	for (uint32_t i = first; i < first + CPU_GROUP_COUNTERS; i++) {
		struct perf_counter *counter = &set->hardware[i];
		int result = torsh_perf_open(counter, known[i].type, known[i].config,
					     i == first ? NULL : leader);

		if (result && !set->error)
			set->error = result;
		if (result && i == first)
			return result;
		if (result)
			continue;
		/* Without its page it is read. */
		torsh_perf_map(counter);
		set->has |= 1u << i;
	}
	return 0;
}

static bool are_pages_usable(const struct perf_set *set)
{
	for (uint32_t i = 0; i < N_CPU_HARDWARE_COUNTERS; i++)
		if (set->has >> i & 1 &&
		    (!set->hardware[i].page || !torsh_perf_page_is_usable(set->hardware[i].page)))
			return false;
	return true;
}

/* Where pages are enough, no descriptor stays; else all do, as a group ends with its members. */
static void open_hardware(struct descriptors *all, struct perf_set *set)
{
	if (!may_open(all, N_CPU_HARDWARE_COUNTERS)) {
		set->error = -EMFILE;
		return;
	}
	for (uint32_t i = 0; i < N_CPU_HARDWARE_COUNTERS; i += CPU_GROUP_COUNTERS)
		if (open_group(set, i) && !i)
			break;
	set->way = !(set->has & HARDWARE_MASK) ? CPU_COUNTERS_NONE
		   : are_pages_usable(set)     ? CPU_COUNTERS_BY_PAGE
					       : CPU_COUNTERS_BY_READ;
	for (uint32_t i = 0; i < N_CPU_HARDWARE_COUNTERS; i++) {
		struct perf_counter *counter = &set->hardware[i];

		if (set->way == CPU_COUNTERS_BY_READ && counter->fd >= 0) {
			keep(all, counter);
			continue;
		}
		torsh_perf_close_descriptor(counter);
		atomic_fetch_sub_explicit(&all->n, 1, memory_order_relaxed);
	}
}

static void open_migrations(struct descriptors *all, struct perf_set *set)
{
	if (!may_open(all, 1)) {
		set->migrations_error = -EMFILE;
		return;
	}
	set->migrations_error = torsh_perf_open(&set->migrations, PERF_TYPE_SOFTWARE,
						PERF_COUNT_SW_CPU_MIGRATIONS, NULL);
	if (set->migrations_error) {
		atomic_fetch_sub_explicit(&all->n, 1, memory_order_relaxed);
		return;
	}
	keep(all, &set->migrations);
	set->has |= 1u << CPU_COUNTER_MIGRATIONS;
}

void torsh_perf_set_open(struct perf_set *set)
{
	struct descriptors *all = find_descriptors();

	for (uint32_t i = 0; i < N_CPU_HARDWARE_COUNTERS; i++)
		set->hardware[i] = PERF_COUNTER_NONE;
	set->migrations = PERF_COUNTER_NONE;
	set->has = 1u << CPU_COUNTER_TASK_CLOCK | 1u << CPU_COUNTER_MINOR_FAULTS |
		   1u << CPU_COUNTER_MAJOR_FAULTS | 1u << CPU_COUNTER_VOLUNTARY |
		   1u << CPU_COUNTER_INVOLUNTARY;
	if (!all) {
		set->error = set->migrations_error = -ENOMEM;
		return;
	}
	open_hardware(all, set);
	open_migrations(all, set);
}

void torsh_perf_set_close(struct perf_set *set)
{
	struct descriptors *all = find_descriptors();

	if (!all)
		return;
	close_hardware(all, set);
	close_kept(all, &set->migrations);
	set->has = 0;
}

/* ---- reading ---- */

void torsh_perf_set_software(struct perf_set *set, const struct counter_values *before,
			     struct counter_values *values)
{
	uint64_t *counts = values->counts;
	struct perf_group group;
	struct rusage usage;

	memcpy(counts + N_CPU_HARDWARE_COUNTERS, before->counts + N_CPU_HARDWARE_COUNTERS,
	       sizeof(values->counts) - N_CPU_HARDWARE_COUNTERS * sizeof(*counts));
	counts[CPU_COUNTER_TASK_CLOCK] = torsh_cpu_timer_now();
	if (TORSH_SYS(SYS_getrusage, RUSAGE_THREAD, &usage, 0, 0, 0, 0))
		return;
	counts[CPU_COUNTER_MINOR_FAULTS] = (uint64_t)usage.ru_minflt;
	counts[CPU_COUNTER_MAJOR_FAULTS] = (uint64_t)usage.ru_majflt;
	counts[CPU_COUNTER_VOLUNTARY] = (uint64_t)usage.ru_nvcsw;
	counts[CPU_COUNTER_INVOLUNTARY] = (uint64_t)usage.ru_nivcsw;
	if (set->migrations.fd < 0 ||
	    (counts[CPU_COUNTER_VOLUNTARY] == before->counts[CPU_COUNTER_VOLUNTARY] &&
	     counts[CPU_COUNTER_INVOLUNTARY] == before->counts[CPU_COUNTER_INVOLUNTARY]))
		return;
	if (torsh_perf_read(&set->migrations, 1, &group))
		counts[CPU_COUNTER_MIGRATIONS] = group.values[0];
	else
		set->has &= ~(1u << CPU_COUNTER_MIGRATIONS);
}

static bool read_page(const struct perf_counter *counter, bool is_first, uint64_t *count,
		      struct counter_values *values, uint32_t group)
{
	struct perf_reading reading;

	if (!counter->page)
		return true;
	if (!torsh_perf_page_read(counter->page, &instructions, is_first, &reading))
		return false;
	*count = reading.value;
	if (is_first) {
		values->groups[group].enabled_ns = reading.enabled_ns;
		values->groups[group].running_ns = reading.running_ns;
	}
	return true;
}

static bool read_group(const struct perf_set *set, uint32_t first, uint32_t group,
		       struct counter_values *values)
{
	const struct perf_counter *counters = &set->hardware[first];
	struct perf_group read;
	size_t n = 0;

	for (uint32_t i = 0; i < CPU_GROUP_COUNTERS; i++)
		n += counters[i].fd >= 0;
	if (!n)
		return true;
	if (!torsh_perf_read(counters, n, &read))
		return false;
	values->groups[group].enabled_ns = read.enabled_ns;
	values->groups[group].running_ns = read.running_ns;
	for (uint32_t i = 0, k = 0; i < CPU_GROUP_COUNTERS; i++)
		if (counters[i].fd >= 0)
			values->counts[first + i] = read.values[k++];
	return true;
}

bool torsh_perf_set_hardware(const struct perf_set *set, struct counter_values *values)
{
	for (uint32_t group = 0; set->way != CPU_COUNTERS_NONE && group < N_COUNTER_GROUPS;
	     group++) {
		uint32_t first = group * CPU_GROUP_COUNTERS;

		if (set->way == CPU_COUNTERS_BY_READ && !read_group(set, first, group, values))
			return false;
		for (uint32_t i = first;
		     set->way == CPU_COUNTERS_BY_PAGE && i < first + CPU_GROUP_COUNTERS; i++)
			if (!read_page(&set->hardware[i], i == first, &values->counts[i], values,
				       group))
				return false;
	}
	return true;
}
