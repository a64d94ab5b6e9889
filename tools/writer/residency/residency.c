/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/residency.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/base/memory.h"
#include "tools/writer/input/target.h"

#define COST_FACTOR 100u /* accounts may take one part of so many of the time */
#define FIRST_CPU_NS UINT64_C(40000000) /* and this */
#define ROLLUP_PAUSE_FACTOR 20u /* likewise of the others' sums */
#define PAUSE_FACTOR 8u /* the least time between two of them, in terms of what one takes */
#define RISE_BYTES (UINT64_C(4) << 20)
#define RISE_SHARE 20u /* a twentieth */
/* A smaller change is accounted for when so much more time has passed. */
#define SMALL_EVERY_NS UINT64_C(5000000000)
#define CHANGE_EVERY_NS UINT64_C(1000000000)
#define LOOKS_MAX 3 /* at memory that moves while it is looked at */
#define LOOK_MAX_NS UINT64_C(100000000) /* that an account waits for what happened before */
#define ONCE_CPU_NS UINT64_C(2000000000)
/* Helpers of shells and build systems: there are thousands, and their memory is no question. */
#define SMALL_BYTES (UINT64_C(4) << 20)

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct residency *residency_of(struct target *target)
{
	if (!target->residency)
		target->residency = torsh_memory_new(1, sizeof(*target->residency));
	return target->residency;
}

static uint64_t least_rise(uint64_t bytes)
{
	return bytes / RISE_SHARE > RISE_BYTES ? bytes / RISE_SHARE : RISE_BYTES;
}

/* ---- when ------------------------------------------------------------------------------------ */

bool torsh_residency_is_due(const struct target *target, const struct residency_pace *pace,
			    uint64_t now_ns)
{
	const struct residency *residency = target->residency;
	uint64_t rss = target->state.rss_bytes, peak, last, since;

	/* The look at its exit is ended by torsh_residency_exit_end. */
	if (residency && residency->is_looking)
		return !residency->is_at_exit;
	if (!rss || now_ns < pace->next_ns || target->is_drained)
		return false;
	if (!residency)
		return true;
	if (residency->has_end || residency->error)
		return false;
	last = residency->accounts[ACCOUNT_LAST].status_bytes;
	peak = residency->accounts[ACCOUNT_FORMER].status_bytes;
	peak = peak > last ? peak : last;
	since = now_ns - residency->last_ns;
	if (rss > peak)
		return rss - peak >= least_rise(peak) || since >= SMALL_EVERY_NS;
	return since >= CHANGE_EVERY_NS &&
	       (rss > last ? rss - last : last - rss) >= least_rise(last);
}

/* ---- the session's sum ----------------------------------------------------------------------- */

/* Returns false if it can't be read. */
static bool read_rollup(struct residency *residency, pid_t pid)
{
	char path[64], *line = NULL;
	unsigned long long rss_kib, pss_kib;
	size_t capacity = 0;
	bool is_read = false;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	in = fopen(path, "re");
	if (!in)
		return false;
	while (getline(&line, &capacity, in) > 0) {
		if (sscanf(line, "Rss: %llu", &rss_kib) == 1) {
			residency->rollup_rss_bytes = rss_kib << 10;
			is_read = true;
		} else if (sscanf(line, "Pss: %llu", &pss_kib) == 1) {
			residency->rollup_pss_bytes = pss_kib << 10;
		}
	}
	free(line);
	fclose(in);
	return is_read;
}

/* Where many processes end at once, reading all others for each would take longer than all else. */
static void add_rollup(struct account *account, struct target *target, uint32_t n_targets)
{
	struct residency *residency = residency_of(target);
	uint64_t now_ns = torsh_clock_monotonic_ns();

	if (!residency->rollup_ns ||
	    now_ns - residency->rollup_ns >=
		    ROLLUP_PAUSE_FACTOR * n_targets * residency->rollup_cost_ns) {
		if (!read_rollup(residency, target->pid))
			return;
		residency->rollup_ns = torsh_clock_monotonic_ns();
		residency->rollup_cost_ns = residency->rollup_ns - now_ns;
	}
	account->tree_rss_bytes += residency->rollup_rss_bytes;
	account->tree_pss_bytes += residency->rollup_pss_bytes;
	account->n_tree++;
}

static void add_tree(struct account *account, const struct residency_moment *moment,
		     const struct memory_areas *areas)
{
	account->n_tree = 1;
	for (uint32_t i = 0; i < areas->n; i++) {
		account->tree_rss_bytes += areas->items[i].rss_bytes;
		account->tree_pss_bytes += areas->items[i].pss_bytes;
	}
	for (uint32_t i = 0; i < moment->n_targets; i++) {
		struct target *other = moment->targets[i];

		if (other != moment->target && !other->is_drained && other->pidfd >= 0)
			add_rollup(account, other, moment->n_targets);
	}
}

/* ---- one account ----------------------------------------------------------------------------- */

static const struct target *find(const struct residency_moment *moment, uint32_t number)
{
	for (uint32_t i = 0; number && i < moment->n_targets; i++) {
		if (moment->targets[i]->number == number)
			return moment->targets[i];
	}
	return NULL;
}

/* Stacks are numbered as in the target only in the same tables. */
static void find_ancestors(struct account_source *source, const struct residency_moment *moment)
{
	const struct target *target = moment->target, *parent;

	while (source->n_ancestors < ANCESTORS_MAX &&
	       (parent = find(moment, target->parent_number)) &&
	       parent->state.tables == moment->target->state.tables) {
		source->ancestors[source->n_ancestors++] = parent;
		target = parent;
	}
}

static uint64_t resident_bytes(const struct target *target)
{
	struct process_memory memory;

	/* All is 0 if it can't be read. */
	torsh_process_read_memory(target->pid, &memory);
	return memory.resident_bytes;
}

/*
 * Look at the process: what comes of it is begun. Returns 0, or an error: -EAGAIN if its memory
 * moved each time.
 */
static int look(struct residency *residency, const struct residency_moment *moment)
{
	uint64_t begin = cpu_ns();
	struct account *begun = &residency->begun;
	int result, n = 0;

	residency->last_ns = moment->now_ns;
	torsh_residency_sample(moment->target);
	while (!(result = torsh_memory_look(&residency->look, moment->target,
					    residency->has_inherited)) &&
	       torsh_memory_look_is_torn(&residency->look, resident_bytes(moment->target))) {
		torsh_memory_look_free(&residency->look);
		result = -EAGAIN;
		if (++n == LOOKS_MAX)
			break;
	}
	*begun = (struct account){.at_ns = moment->at_ns};
	if (!result) {
		residency->is_looking = true;
		add_tree(begun, moment, &residency->look.areas);
	} else if (result != -EAGAIN) {
		residency->error = -result;
	}
	begun->cpu_ns = cpu_ns() - begin;
	return result;
}

static void copy_breaks(struct account *account, const struct residency *residency)
{
	const struct account_breaks *from = &residency->breaks.sums;

	account->is_fork = residency->has_inherited;
	account->breaks_error = residency->breaks.error;
	account->breaks = *from;
	account->breaks.capacity = from->n_lines;
	account->breaks.lines = torsh_memory_new((size_t)from->n_lines + 1, sizeof(*from->lines));
	for (uint32_t i = 0; i < from->n_lines; i++)
		account->breaks.lines[i] = from->lines[i];
}

/* Collect for the account what is live now. */
static void collect(struct residency *residency, const struct residency_moment *moment)
{
	struct account_source source = {
		.target = moment->target,
		.inherited = residency->has_inherited ? &residency->inherited : NULL,
		.left_bytes = moment->left_bytes,
	};
	uint64_t begin = cpu_ns();

	if (residency->has_inherited)
		find_ancestors(&source, moment);
	residency->taking = torsh_account_collect(&residency->taken, &residency->look, &source);
	copy_breaks(&residency->taken, residency);
	residency->begun.cpu_ns += cpu_ns() - begin;
}

/* Make the account from the look and what was collected. */
static void divide(struct residency *residency, struct account *account)
{
	const struct account *begun = &residency->begun;
	uint64_t begin = cpu_ns();

	torsh_account_divide(residency->taking);
	residency->taking = NULL;
	*account = residency->taken;
	residency->taken = (struct account){0};
	account->at_ns = begun->at_ns;
	account->tree_rss_bytes = begun->tree_rss_bytes;
	account->tree_pss_bytes = begun->tree_pss_bytes;
	account->n_tree = begun->n_tree;
	account->cpu_ns = begun->cpu_ns + cpu_ns() - begin;
	torsh_memory_look_free(&residency->look);
	residency->is_looking = false;
}

static void keep(struct residency *residency, struct account *account, int which)
{
	torsh_account_free(&residency->accounts[which]);
	residency->accounts[which] = *account;
	residency->is_there[which] = residency->is_changed[which] = true;
	*account = (struct account){0};
}

/* The last account gives way to this one, and stays if it is the highest so far. */
static void keep_last(struct residency *residency, struct account *account)
{
	const struct account *former = &residency->accounts[ACCOUNT_FORMER];
	struct account *last = &residency->accounts[ACCOUNT_LAST];

	if (residency->is_there[ACCOUNT_LAST] && last->rss_bytes > former->rss_bytes)
		keep(residency, last, ACCOUNT_FORMER);
	keep(residency, account, ACCOUNT_LAST);
}

/* The next account comes when all of them have not taken too much, and not at once. */
static void count(struct residency_pace *pace, uint64_t now_ns, uint64_t cost)
{
	uint64_t over;

	pace->begin_ns = pace->begin_ns ? pace->begin_ns : now_ns;
	pace->cpu_ns += cost;
	over = pace->cpu_ns > FIRST_CPU_NS ? pace->cpu_ns - FIRST_CPU_NS : 0;
	pace->next_ns = pace->begin_ns + over * COST_FACTOR;
	if (pace->next_ns < now_ns + cost * PAUSE_FACTOR)
		pace->next_ns = now_ns + cost * PAUSE_FACTOR;
}

/* What is read once of a process may take more, up to some seconds in a session. */
static bool may_take_once(const struct residency_pace *pace, uint64_t now_ns)
{
	return pace->once_cpu_ns < ONCE_CPU_NS || now_ns >= pace->next_ns;
}

static void count_once(struct residency_pace *pace, uint64_t now_ns, uint64_t cost)
{
	pace->once_cpu_ns += cost;
	if (pace->once_cpu_ns >= ONCE_CPU_NS)
		count(pace, now_ns, cost);
}

/* Returns whether what happened until the look is folded, or that takes too long. */
static bool is_ready(const struct residency_moment *moment)
{
	return torsh_target_is_at_account(moment->target) ||
	       moment->now_ns - moment->target->residency->last_ns >= LOOK_MAX_NS;
}

bool torsh_residency_watch(struct residency_pace *pace, const struct residency_moment *moment)
{
	struct account account = {0};
	struct residency *residency = residency_of(moment->target);
	struct clock_instant now;
	uint64_t before;

	if (!residency->is_looking) {
		if (look(residency, moment)) {
			count(pace, moment->now_ns, residency->begun.cpu_ns);
			return false;
		}
		now = torsh_clock_instant();
		torsh_target_hold_account(moment->target, &now);
		count(pace, moment->now_ns, residency->begun.cpu_ns);
		return true;
	}
	if (!is_ready(moment))
		return true;
	before = residency->begun.cpu_ns;
	collect(residency, moment);
	torsh_target_release_account(moment->target);
	divide(residency, &account);
	count(pace, moment->now_ns, account.cpu_ns - before);
	keep_last(residency, &account);
	return false;
}

void torsh_residency_drop(struct target *target)
{
	struct residency *residency = target->residency;

	if (!residency || !residency->is_looking || residency->is_at_exit)
		return;
	torsh_memory_look_free(&residency->look);
	residency->is_looking = false;
	torsh_target_release_account(target);
}

/* Returns whether memory was released while it was looked at. */
static bool has_changed(const struct account *account)
{
	for (uint32_t i = 0; i < account->n_owners; i++) {
		if (account->owners[i].owner.kind == OWNER_CHANGED && account->owners[i].bytes)
			return true;
	}
	return false;
}

static bool is_small(const struct target *target)
{
	uint64_t bytes = resident_bytes(target);

	return bytes && bytes < SMALL_BYTES;
}

void torsh_residency_exit_look(struct residency_pace *pace, const struct residency_moment *moment,
			       bool is_held)
{
	struct residency *residency = residency_of(moment->target);
	int result;

	if (residency->has_end)
		return;
	torsh_residency_drop(moment->target);
	if (!may_take_once(pace, moment->now_ns))
		return;
	residency->has_end = true;
	if (!moment->is_first && is_small(moment->target)) {
		residency->problem = "it was small: less than 4 MiB at its end";
		return;
	}
	result = look(residency, moment);
	if (result == -EAGAIN)
		residency->problem = "it changed each time that it was looked at";
	residency->is_at_exit = !result;
	residency->is_exit_held = is_held;
}

void torsh_residency_exit_collect(const struct residency_moment *moment)
{
	struct residency *residency = moment->target->residency;

	if (residency && residency->is_at_exit && !residency->taking)
		collect(residency, moment);
}

void torsh_residency_exit_end(struct residency_pace *pace, const struct residency_moment *moment)
{
	struct residency *residency = moment->target->residency;
	struct account account = {0};

	if (!residency || !residency->is_at_exit)
		return;
	torsh_residency_exit_collect(moment);
	residency->is_at_exit = false;
	divide(residency, &account);
	count_once(pace, moment->now_ns, account.cpu_ns);
	/* A process that waits may be killed meanwhile. */
	if (residency->is_exit_held && has_changed(&account)) {
		torsh_account_free(&account);
		return;
	}
	account.is_at_end = true;
	account.is_held = residency->is_exit_held;
	keep_last(residency, &account);
}

void torsh_residency_begin(struct residency_pace *pace, struct target *target, uint64_t now_ns)
{
	struct residency *residency;
	struct memory_look look;
	uint64_t begin = cpu_ns();

	if (!target->inheritance.is_fork || !may_take_once(pace, now_ns) || is_small(target))
		return;
	residency = residency_of(target);
	torsh_page_breaks_begin(&residency->breaks, target->pid, resident_bytes(target));
	if (!torsh_memory_look(&look, target, true)) {
		torsh_page_breaks_find_code(&residency->breaks, target->pid, &look);
		residency->has_inherited = true;
		residency->inherited = look.runs;
		look.runs = (struct page_runs){0};
		torsh_memory_look_free(&look);
	}
	count_once(pace, now_ns, cpu_ns() - begin);
}

void torsh_residency_sample(struct target *target)
{
	struct residency *residency = target->residency;

	if (residency && residency->has_inherited)
		torsh_page_breaks_take(&residency->breaks, target, &residency->inherited);
}

void torsh_residency_destroy(struct residency *residency)
{
	if (!residency)
		return;
	torsh_account_drop(residency->taking);
	torsh_account_free(&residency->taken);
	if (residency->is_looking)
		torsh_memory_look_free(&residency->look);
	for (int i = 0; i < N_ACCOUNTS; i++)
		torsh_account_free(&residency->accounts[i]);
	torsh_page_breaks_end(&residency->breaks);
	torsh_page_runs_free(&residency->inherited);
	free(residency);
}
