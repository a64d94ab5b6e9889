/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/leaks.h. */
#include "tools/profile/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/die.h"
#include "tools/profile/bookkeeping.h"

#define NOT_ASKED -2L
#define NO_RULE -1L

static void keep_book(struct leaks *leaks, const char *what, const struct holder *holder)
{
	struct leaks_kept *kept = NULL;

	for (size_t i = 0; i < leaks->n_bookkeeping && !kept; i++) {
		if (strcmp(leaks->bookkeeping[i].what, what) == 0)
			kept = &leaks->bookkeeping[i];
	}
	if (!kept) {
		leaks->bookkeeping = torsh_need_room(leaks->bookkeeping, leaks->n_bookkeeping, &leaks->bookkeeping_room,
						     sizeof(*kept));
		kept = &leaks->bookkeeping[leaks->n_bookkeeping++];
		*kept = (struct leaks_kept){.what = what};
	}
	kept->blocks += holder->blocks;
	kept->bytes += holder->bytes;
	leaks->bookkeeping_blocks += holder->blocks;
	leaks->bookkeeping_bytes += holder->bytes;
}

/* What is asked of all stacks: the rules of one process's addresses, by kind. */
struct rules {
	const struct suppress *suppress;
	struct symbols *symbols;
	const struct profile_process *process;
	long *of[2]; /* by is_kept, then by address: NOT_ASKED, NO_RULE, or a rule's index */
};

static long find_rule(const struct rules *rules, bool is_kept, const struct frame *frame)
{
	long rule = torsh_suppress_find(rules->suppress, is_kept, frame->function);
	char *both;

	if (rule < 0)
		rule = torsh_suppress_find(rules->suppress, is_kept, frame->file);
	if (rule >= 0 || !frame->is_python || !frame->file || !frame->function)
		return rule;
	both = torsh_need_text("%s:%s", frame->file, frame->function);
	rule = torsh_suppress_find(rules->suppress, is_kept, both);
	free(both);
	return rule;
}

/* The rule for an address: by the names that are there first, by DWARF's only when these say nothing. */
static long rule_of_address(const struct rules *rules, bool is_kept, uint32_t address)
{
	const struct profile_module *module = torsh_profile_module(rules->process, address);
	const char *name = torsh_symbols_name(rules->symbols, rules->process, address);
	const struct frames *frames;
	long rule = torsh_suppress_find(rules->suppress, is_kept, module ? module->path : NULL);

	if (rule < 0 && name)
		rule = torsh_suppress_find(rules->suppress, is_kept, name);
	if (rule < 0 && name)
		rule = torsh_suppress_find(rules->suppress, is_kept, torsh_symbols_demangle(rules->symbols, name));
	if (rule >= 0)
		return rule;
	frames = torsh_symbols_frames(rules->symbols, rules->process, address);
	for (size_t i = 0; rule < 0 && i < frames->n; i++)
		rule = find_rule(rules, is_kept, &frames->frames[i]);
	return rule;
}

static long ask_address(struct rules *rules, bool is_kept, uint32_t address)
{
	long *known = &rules->of[is_kept][address];

	if (*known == NOT_ASKED)
		*known = rule_of_address(rules, is_kept, address);
	return *known;
}

static long rule_of_stack(struct rules *rules, uint32_t stack)
{
	const struct profile_process *process = rules->process;
	bool is_inside = true; /* of the innermost line of Python */

	while (stack && stack < process->n_stacks) {
		uint32_t address = process->stacks[stack].address;
		long rule;

		stack = process->stacks[stack].parent;
		if (address >= process->n_addresses)
			continue;
		is_inside = is_inside && process->addresses[address].flags != ADDRESS_PYTHON;
		rule = ask_address(rules, false, address);
		if (rule < 0 && is_inside)
			rule = ask_address(rules, true, address);
		if (rule >= 0)
			return rule;
	}
	return NO_RULE;
}

static void start_rules(struct rules *rules)
{
	size_t n = rules->process->n_addresses;

	for (int kind = 0; kind < 2; kind++) {
		rules->of[kind] = torsh_need_items(NULL, 0, n, sizeof(**rules->of));
		for (size_t i = 0; i < n; i++)
			rules->of[kind][i] = NOT_ASKED;
	}
}

/* Is it suppressed? Then it is counted for its rule. */
static bool suppress_holder(struct leaks *leaks, struct suppress *suppress, const struct holder *holder,
			    struct rules *rules)
{
	long rule = rule_of_stack(rules, holder->stack);

	if (rule < 0)
		return false;
	suppress->rules[rule].blocks += holder->blocks;
	suppress->rules[rule].bytes += holder->bytes;
	suppress->rules[rule].n_stacks++;
	leaks->suppressed_blocks += holder->blocks;
	leaks->suppressed_bytes += holder->bytes;
	return true;
}

static void count_inherited(struct leaks *leaks, const struct profile_process *process)
{
	const struct profile_live *live = process->live.items;

	for (size_t i = 0; i < process->live.n; i++) {
		leaks->inherited_blocks += live[i].inherited_blocks;
		leaks->inherited_bytes += live[i].inherited_bytes;
	}
}

static void keep_cached(struct leaks *leaks, const struct device_sum *cached)
{
	const struct holder holder = {.blocks = cached->blocks, .bytes = cached->bytes};

	if (cached->blocks)
		keep_book(leaks, "cache of the framework's allocator", &holder);
}

static void collect_device(struct leaks *leaks, const struct profile_process *process)
{
	struct device_sum cached = {0};

	for (size_t i = 0; i < leaks->devices->n; i++) {
		const struct device_process *of = &leaks->devices->items[i];
		size_t place = of->process == process ? torsh_device_place(of, leaks->device) : DEVICE_NO_PLACE;

		if (place != DEVICE_NO_PLACE)
			torsh_device_memory_alive(&leaks->found, of, place, &cached, &leaks->with_context);
	}
	keep_cached(leaks, &cached);
}

static void collect_alive(struct leaks *leaks, const struct profile_process *process)
{
	if (leaks->devices)
		collect_device(leaks, process);
	else
		torsh_holders_collect(&leaks->found, process, HOLDERS_LIVE);
}

static void count_at_exec(struct leaks *leaks, const struct profile_process *process, struct leaks_process *sum)
{
	struct leaks live = {.devices = leaks->devices, .device = leaks->device};
	struct holders alive;

	collect_alive(&live, process);
	alive = live.found;
	free(live.bookkeeping);
	torsh_holders_sum(&alive, &sum->exec_blocks, &sum->exec_bytes);
	torsh_holders_free(&alive);
	leaks->exec_blocks += sum->exec_blocks;
	leaks->exec_bytes += sum->exec_bytes;
}

static void find_in_process(struct leaks *leaks, const struct profile_process *process, struct leaks_process *sum,
			    struct symbols *symbols, struct suppress *suppress)
{
	bool has_rules = suppress && suppress->n;
	struct rules rules = {.suppress = suppress, .symbols = symbols, .process = process};
	size_t first = leaks->found.n, n = first;

	if (has_rules)
		start_rules(&rules);
	collect_alive(leaks, process);
	for (size_t i = first; i < leaks->found.n; i++) {
		const struct holder *holder = &leaks->found.items[i];
		const char *what = leaks->devices ? NULL : torsh_bookkeeping_of(symbols, process, holder->stack);

		if (what) {
			keep_book(leaks, what, holder);
			continue;
		}
		if (has_rules && suppress_holder(leaks, suppress, holder, &rules))
			continue;
		sum->blocks += holder->blocks;
		sum->bytes += holder->bytes;
		leaks->usable_bytes += holder->usable_bytes;
		leaks->usable_is_known = leaks->usable_is_known && holder->usable_is_known;
		leaks->found.items[n++] = *holder;
	}
	leaks->found.n = n;
	free(rules.of[0]);
	free(rules.of[1]);
	if (!leaks->devices)
		count_inherited(leaks, process);
}

void torsh_leaks_find(struct leaks *leaks, struct profile_process *const *processes, size_t n_processes,
		      struct symbols *symbols, struct suppress *suppress)
{
	leaks->usable_is_known = true;
	leaks->n_processes = n_processes;
	leaks->processes = torsh_need_items(NULL, 0, n_processes, sizeof(*leaks->processes));
	for (size_t i = 0; i < n_processes; i++) {
		bool is_exec = processes[i]->end == TORSH__PROCESS__END_KIND__EXECUTED;

		if (is_exec)
			count_at_exec(leaks, processes[i], &leaks->processes[i]);
		if (is_exec == leaks->at_exec)
			find_in_process(leaks, processes[i], &leaks->processes[i], symbols, suppress);
		leaks->blocks += leaks->processes[i].blocks;
		leaks->bytes += leaks->processes[i].bytes;
	}
	torsh_holders_merge_stacks(&leaks->found, symbols);
}

void torsh_leaks_free(struct leaks *leaks)
{
	torsh_holders_free(&leaks->found);
	free(leaks->processes);
	free(leaks->bookkeeping);
	*leaks = (struct leaks){0};
}
