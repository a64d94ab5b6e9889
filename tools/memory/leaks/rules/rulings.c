/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/rules/rulings.h"

#include <stdlib.h>

#include "agent/wire/channel.h"
#include "tools/base/die.h"

#define NO_RULE -1L
/* What is kept by address: 0 is not looked up yet. */
#define KEPT_RULE(rule) ((int32_t)(rule) + 2)
#define RULE_KEPT(kept) ((long)(kept)-2)

static long find_rule(const struct rules *rules, enum suppress_kind kind, const struct frame *frame)
{
	long rule =
		torsh_suppress_find(rules->suppress, kind, rules->process->number, frame->function);
	char *both;

	if (rule < 0)
		rule = torsh_suppress_find(rules->suppress, kind, rules->process->number,
					   frame->file);
	if (rule >= 0 || !frame->is_python || !frame->file || !frame->function)
		return rule;
	both = torsh_need_text("%s:%s", frame->file, frame->function);
	rule = torsh_suppress_find(rules->suppress, kind, rules->process->number, both);
	free(both);
	return rule;
}

/* Returns whether DWARF may have a name or a file of the address that a rule of the kind names. */
static bool asks_dwarf(const struct rules *rules, enum suppress_kind kind, uint32_t address,
		       const char *name)
{
	if (rules->process->tables->addresses[address].flags == ADDRESS_PYTHON ||
	    rules->has_own[kind])
		return true;
	return !name || torsh_suppress_find(rules->suppress, SUPPRESS_WITHIN,
					    rules->process->number, name) >= 0;
}

/*
 * Returns the rule for an address: by the recorded names first, by DWARF's only if these match
 * none.
 */
static long rule_of_address(const struct rules *rules, enum suppress_kind kind, uint32_t address)
{
	const struct recorded_module *module = torsh_recording_module(rules->process, address);
	const char *name = torsh_symbols_name(rules->symbols, rules->process, address);
	const struct frames *frames;
	long rule = torsh_suppress_find(rules->suppress, kind, rules->process->number,
					module ? module->path : NULL);

	if (rule < 0 && name)
		rule = torsh_suppress_find(rules->suppress, kind, rules->process->number, name);
	if (rule < 0 && name)
		rule = torsh_suppress_find(rules->suppress, kind, rules->process->number,
					   torsh_symbols_demangle(rules->symbols, name));
	if (rule >= 0 || !asks_dwarf(rules, kind, address, name))
		return rule;
	frames = torsh_symbols_frames(rules->symbols, rules->process, address);
	for (size_t i = 0; rule < 0 && i < frames->n; i++)
		rule = find_rule(rules, kind, &frames->frames[i]);
	return rule;
}

static long match_address(struct rules *rules, enum suppress_kind kind, uint32_t address)
{
	int32_t *known = &rules->of[kind][address];

	if (!*known)
		*known = KEPT_RULE(rule_of_address(rules, kind, address));
	return RULE_KEPT(*known);
}

/* Returns the rule of kinds that match only native frames inside of the innermost Python line. */
static long match_inside(struct rules *rules, uint32_t address, struct ruling *imported)
{
	if (imported->rule < 0)
		imported->rule = match_address(rules, SUPPRESS_IMPORT, address);
	return match_address(rules, SUPPRESS_KEPT, address);
}

static struct ruling rule_of_stack(struct rules *rules, uint32_t stack)
{
	const struct recorded_process *process = rules->process;
	struct ruling imported = {.rule = NO_RULE};
	bool is_inside = true; /* inside of the innermost line of Python and of own code */

	for (; stack && stack < process->tables->n_stacks;
	     stack = process->tables->stacks[stack].parent) {
		uint32_t address = process->tables->stacks[stack].address;
		long rule;

		if (address >= process->tables->n_addresses)
			continue;
		is_inside = is_inside &&
			    process->tables->addresses[address].flags != ADDRESS_PYTHON &&
			    torsh_address_kind(rules->kinds, address) != FRAME_OWN;
		rule = match_address(rules, SUPPRESS_LEAK, address);
		if (rule < 0 && is_inside)
			rule = match_inside(rules, address, &imported);
		if (rule >= 0)
			return (struct ruling){.rule = rule};
		if (!torsh_address_is_import(rules->kinds, address))
			continue;
		if (rules->runs->is_repeated && rules->runs->is_repeated[stack])
			imported.rule = NO_RULE;
		if (!imported.import)
			imported.import = stack;
	}
	return imported.import ? imported : (struct ruling){.rule = NO_RULE};
}

void torsh_rules_start(struct rules *rules)
{
	size_t n = rules->process->tables->n_addresses;

	for (int kind = 0; kind < N_SUPPRESS_KINDS; kind++) {
		rules->has_own[kind] = torsh_suppress_has_own(
			rules->suppress, (enum suppress_kind)kind, rules->process->number);
		if (kind == SUPPRESS_WITHIN)
			continue;
		rules->of[kind] = torsh_need_items(NULL, 0, n, sizeof(**rules->of));
	}
	torsh_sparse_array_create(&rules->import_bytes, sizeof(uint64_t));
	rules->kept_bytes =
		torsh_need_items(NULL, 0, rules->suppress->n, sizeof(*rules->kept_bytes));
}

void torsh_rules_end(struct rules *rules)
{
	for (int kind = 0; kind < N_SUPPRESS_KINDS; kind++)
		free(rules->of[kind]);
	torsh_sparse_array_destroy(&rules->import_bytes);
	free(rules->kept_bytes);
}

struct ruling *torsh_rulings_find(struct rules *rules, const struct allocation_site *sites,
				  size_t n)
{
	struct ruling *rulings = torsh_need_items(NULL, 0, n, sizeof(*rulings));

	for (size_t i = 0; i < n; i++) {
		rulings[i] = rule_of_stack(rules, sites[i].stack);
		if (rulings[i].rule < 0)
			continue;
		torsh_stack_bytes_add(&rules->import_bytes, rulings[i].import, sites[i].bytes);
		if (rules->suppress->rules[rulings[i].rule].kind == SUPPRESS_KEPT)
			rules->kept_bytes[rulings[i].rule] += sites[i].bytes;
	}
	return rulings;
}

bool torsh_ruling_holds(const struct rules *rules, const struct ruling *ruling)
{
	return ruling->rule >= 0 && rules->kept_bytes[ruling->rule] <= LEAKS_KEPT_BYTES &&
	       (!ruling->import ||
		torsh_stack_bytes_at(&rules->import_bytes, ruling->import) <= LEAKS_KEPT_BYTES);
}
