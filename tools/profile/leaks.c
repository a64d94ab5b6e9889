/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/leaks.h. */
#include "tools/profile/leaks.h"

#include <stdlib.h>
#include <string.h>

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

/* The rule for an address: by the names that are there first, by DWARF's only when these say nothing. */
static long rule_of_address(const struct suppress *suppress, struct symbols *symbols,
			    const struct profile_process *process, uint32_t address)
{
	const struct profile_module *module = torsh_profile_module(process, address);
	const char *name = torsh_symbols_name(symbols, process, address);
	const struct frames *frames;
	long rule = torsh_suppress_find(suppress, module ? module->path : NULL);

	if (rule < 0 && name)
		rule = torsh_suppress_find(suppress, name);
	if (rule < 0 && name)
		rule = torsh_suppress_find(suppress, torsh_symbols_demangle(symbols, name));
	if (rule >= 0)
		return rule;
	frames = torsh_symbols_frames(symbols, process, address);
	for (size_t i = 0; rule < 0 && i < frames->n; i++) {
		rule = torsh_suppress_find(suppress, frames->frames[i].function);
		if (rule < 0)
			rule = torsh_suppress_find(suppress, frames->frames[i].file);
	}
	return rule;
}

static long rule_of_stack(const struct suppress *suppress, struct symbols *symbols,
			  const struct profile_process *process, uint32_t stack, long *rules)
{
	while (stack && stack < process->n_stacks) {
		uint32_t address = process->stacks[stack].address;

		stack = process->stacks[stack].parent;
		if (address >= process->n_addresses)
			continue;
		if (rules[address] == NOT_ASKED)
			rules[address] = rule_of_address(suppress, symbols, process, address);
		if (rules[address] >= 0)
			return rules[address];
	}
	return NO_RULE;
}

/* Is it suppressed? Then it is counted for its rule. */
static bool suppress_holder(struct leaks *leaks, struct suppress *suppress, struct symbols *symbols,
			    const struct holder *holder, long *rules)
{
	long rule = rule_of_stack(suppress, symbols, holder->process, holder->stack, rules);

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

static void find_in_process(struct leaks *leaks, const struct profile_process *process, struct leaks_process *sum,
			    struct symbols *symbols, struct suppress *suppress)
{
	bool has_rules = suppress && suppress->n;
	long *rules = has_rules ? torsh_need_items(NULL, 0, process->n_addresses, sizeof(*rules)) : NULL;
	size_t first = leaks->found.n, n = first;

	for (size_t i = 0; has_rules && i < process->n_addresses; i++)
		rules[i] = NOT_ASKED;
	torsh_holders_collect(&leaks->found, process, HOLDERS_LIVE);
	for (size_t i = first; i < leaks->found.n; i++) {
		const struct holder *holder = &leaks->found.items[i];
		const char *what = torsh_bookkeeping_of(symbols, process, holder->stack);

		if (what) {
			keep_book(leaks, what, holder);
			continue;
		}
		if (has_rules && suppress_holder(leaks, suppress, symbols, holder, rules))
			continue;
		sum->blocks += holder->blocks;
		sum->bytes += holder->bytes;
		leaks->usable_bytes += holder->usable_bytes;
		leaks->usable_is_known = leaks->usable_is_known && holder->usable_is_known;
		leaks->found.items[n++] = *holder;
	}
	leaks->found.n = n;
	free(rules);
	count_inherited(leaks, process);
}

void torsh_leaks_find(struct leaks *leaks, struct profile_process *const *processes, size_t n_processes,
		      struct symbols *symbols, struct suppress *suppress)
{
	leaks->usable_is_known = true;
	leaks->n_processes = n_processes;
	leaks->processes = torsh_need_items(NULL, 0, n_processes, sizeof(*leaks->processes));
	for (size_t i = 0; i < n_processes; i++) {
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
