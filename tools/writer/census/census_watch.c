/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/census/census_watch.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "tools/base/memory.h"
#include "tools/writer/input/target.h"
#include "tools/writer/reachability/allocator_maps.h"

#define LEAST_BYTES (UINT64_C(2) << 20) /* of mappings: an interpreter alone is no question */
#define RISE_SHARE 10u /* a tenth */
#define SMALL_RISE_BYTES (UINT64_C(64) << 10)
#define SMALL_EVERY_NS UINT64_C(2000000000) /* a smaller rise counts after so much time */
#define LOOK_EVERY_NS UINT64_C(20000000)
#define COST_FACTOR 100u
#define FIRST_CPU_NS UINT64_C(60000000)
#define GUESS_NS_PER_BYTE 1.5
#define JOB_NICE 10

struct census_job {
	pthread_t thread;
	pid_t pid;
	struct heap_ranges maps;
	uint64_t map_bytes;
	struct census census;
	int error;
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	_Atomic bool is_cancelled, is_done;
};

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *run(void *argument)
{
	struct census_job *job = argument;

	/* Nobody waits. On Linux this is about the calling thread. */
	setpriority(PRIO_PROCESS, 0, JOB_NICE);
	job->error = -torsh_census_take(&job->census, job->pid, &job->maps, &job->is_cancelled);
	job->census.cpu_ns = cpu_ns();
	/* Pairs with the acquire in collect. */
	atomic_store_explicit(&job->is_done, true, memory_order_release);
	return NULL;
}

static void free_job(struct census_job *job)
{
	torsh_heap_ranges_free(&job->maps);
	torsh_census_free(&job->census);
	free(job);
}

static void start(struct target *target, struct census_job *job, uint64_t now_ns, uint64_t at_ns)
{
	struct census_watch *watch = target->census;

	job->pid = target->pid;
	job->began_ns = now_ns;
	job->census.begin_ns = at_ns;
	job->census.heap_begin_bytes = target->state.heap.tracker.bytes;
	job->census.level_bytes = job->census.heap_begin_bytes + job->map_bytes;
	if (pthread_create(&job->thread, NULL, run, job))
		free_job(job);
	else
		watch->job = job;
}

/* Mappings stay when what was in them is freed: what is in use counts. */
static bool is_higher(const struct census *census, const struct census_watch *watch)
{
	return !watch->is_there || census->heap_begin_bytes + census->bytes >=
					   watch->last.heap_begin_bytes + watch->last.bytes;
}

/* Take what the thread has made. */
static void collect(struct target *target, struct census_pace *pace, uint64_t now_ns,
		    uint64_t at_ns)
{
	struct census_watch *watch = target->census;
	struct census_job *job = watch->job;

	if (!atomic_load_explicit(&job->is_done, memory_order_acquire))
		return;
	pthread_join(job->thread, NULL);
	watch->job = NULL;
	watch->last_ns = job->began_ns;
	pace->cpu_ns += job->census.cpu_ns;
	pace->ns_per_byte = (double)job->census.cpu_ns / (double)job->map_bytes;
	watch->is_settled =
		job->error || (job->census.level_bytes < watch->level_bytes + SMALL_RISE_BYTES &&
			       job->census.bytes < watch->found_bytes + SMALL_RISE_BYTES);
	watch->found_bytes = job->census.bytes;
	watch->level_bytes = job->census.level_bytes;
	if (!job->error && job->census.objects && is_higher(&job->census, watch)) {
		torsh_census_free(&watch->last);
		watch->last = job->census;
		watch->last.end_ns = at_ns;
		watch->last.heap_end_bytes = target->state.heap.tracker.bytes;
		watch->is_there = watch->is_changed = true;
		watch->problem = NULL;
		job->census = (struct census){0};
	}
	watch->next_ns = now_ns + LOOK_EVERY_NS;
	free_job(job);
}

/* ---- when ------------------------------------------------------------------------------------ */

static uint64_t bytes_of(const struct heap_ranges *maps)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < maps->n; i++)
		bytes += maps->items[i].end - maps->items[i].begin;
	return bytes;
}

/* Returns whether that many bytes, and the last census, are so far apart that another is due. */
static bool is_due(const struct census_watch *watch, uint64_t level_bytes, uint64_t now_ns)
{
	uint64_t last = watch->level_bytes;

	bool is_long_ago = now_ns - watch->last_ns >= SMALL_EVERY_NS;

	if (!watch->is_settled && is_long_ago && level_bytes + SMALL_RISE_BYTES >= last)
		return true;
	return level_bytes > last && (level_bytes - last > last / RISE_SHARE ||
				      (level_bytes - last >= SMALL_RISE_BYTES && is_long_ago));
}

static bool may_take(const struct census_pace *pace, uint64_t bytes, uint64_t now_ns)
{
	double of_byte = pace->ns_per_byte > 0 ? pace->ns_per_byte : GUESS_NS_PER_BYTE;
	double cost = (double)pace->cpu_ns + (double)bytes * of_byte;

	return cost <= (double)FIRST_CPU_NS + (double)(now_ns - pace->begin_ns) / COST_FACTOR;
}

static void look(struct target *target, struct census_pace *pace, uint64_t now_ns, uint64_t at_ns)
{
	struct census_watch *watch = target->census;
	struct census_job *job = torsh_memory_new(1, sizeof(*job));

	watch->next_ns = now_ns + LOOK_EVERY_NS;
	torsh_python_maps_add(&job->maps, target);
	job->map_bytes = bytes_of(&job->maps);
	if (job->map_bytes < LEAST_BYTES ||
	    !is_due(watch, target->state.heap.tracker.bytes + job->map_bytes, now_ns)) {
		free_job(job);
	} else if (!may_take(pace, job->map_bytes, now_ns)) {
		if (!watch->is_there && !watch->problem) {
			watch->problem = "it would have taken more than a hundredth of the time";
			watch->is_changed = true;
		}
		free_job(job);
	} else {
		start(target, job, now_ns, at_ns);
	}
}

void torsh_census_watch(struct target *target, struct census_pace *pace, uint64_t now_ns,
			uint64_t at_ns)
{
	if (!target->census)
		target->census = torsh_memory_new(1, sizeof(*target->census));
	pace->begin_ns = pace->begin_ns ? pace->begin_ns : now_ns;
	if (target->census->job)
		collect(target, pace, now_ns, at_ns);
	else if (now_ns >= target->census->next_ns && !target->is_drained &&
		 target->state.mappings.tracker.bytes >= LEAST_BYTES)
		look(target, pace, now_ns, at_ns);
}

void torsh_census_watch_destroy(struct census_watch *watch)
{
	if (!watch)
		return;
	if (watch->job) {
		atomic_store_explicit(&watch->job->is_cancelled, true, memory_order_relaxed);
		pthread_join(watch->job->thread, NULL);
		free_job(watch->job);
	}
	torsh_census_free(&watch->last);
	free(watch);
}
