/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The unwind rules of all addresses in stacks, each compiled once: a hash table that only grows and
 * is read without locks. A rule includes the id of its address in the channel.
 */
#ifndef TORSH_AGENT_STACK_UNWIND_RULES_H
#define TORSH_AGENT_STACK_UNWIND_RULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/stack/unwind_rule.h"

struct recent_functions;

struct rule_entry {
	_Atomic uint64_t tagged_ip; /* set once */
	_Atomic uint64_t rule; /* 0: not compiled yet, or flushed */
};

struct rule_table {
	struct rule_table *older; /* smaller; holds the entries that this table lacks */
	uint32_t shift; /* 64 - log2(number of entries) */
	uint32_t mask;
	_Atomic uint32_t n_used;
	/* four to a cache line */
	_Alignas(64) struct rule_entry entries[];
};

#pragma GCC visibility push(hidden) /* so that these are reached without the global offset table */

extern struct rule_table *_Atomic torsh_unwind_rules_table;

/* changes when rules are flushed: everything derived from earlier rules is invalid */
extern _Atomic uint32_t torsh_unwind_rules_generation;

#pragma GCC visibility pop

/* Called once, first; see torsh_modules_start. */
void torsh_unwind_rules_start(bool may_use_glibc);

/*
 * Compile, cache and register the rule of an address that torsh_unwind_rules_find does not have.
 * Never 0. Without memory for a larger table the rule is not cached and its id is 0.
 */
uint64_t torsh_unwind_rules_compile(uint64_t tagged_ip, struct recent_functions *recent);

/* Flush the rules of code from start to end. Any thread. */
void torsh_unwind_rules_flush(uintptr_t start, uintptr_t end);

/* The cached rule of a tagged return address, or 0. */
static inline uint64_t torsh_unwind_rules_find(uint64_t tagged_ip)
{
	/* Pairs with the release in add_table. */
	const struct rule_table *table =
		atomic_load_explicit(&torsh_unwind_rules_table, memory_order_acquire);
	size_t i = tagged_ip * UINT64_C(0x9e3779b97f4a7c15) >> table->shift;

	for (;; i++) {
		const struct rule_entry *entry = &table->entries[i & table->mask];
		uint64_t found = atomic_load_explicit(&entry->tagged_ip, memory_order_relaxed);

		/* The rule is self-contained: nothing else is published with it. */
		if (found == tagged_ip)
			return atomic_load_explicit(&entry->rule, memory_order_relaxed);
		if (!found)
			return 0;
	}
}

#endif
