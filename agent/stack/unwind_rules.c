/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The table of unwind rules, and compiling them from call frame information. */
#include "agent/stack/unwind_rules.h"

#include <stdbool.h>

#include "agent/modules/module_registry.h"
#include "agent/modules/module_watch.h"
#include "agent/producer/counter.h"
#include "shim/hot.h"
#include "shim/sys.h"

#define FIRST_BITS 11
#define LAST_BITS 25
#define GROWTH_BITS 2
#define HUGE_PAGE_BYTES (UINT64_C(1) << 21)
#define LARGEST_PAGE_BYTES (UINT64_C(1) << 16) /* of those that aren't huge */

/* Guarantees that there is always a table: always full, all others come before it. */
static struct rule_table last_resort = {
	.shift = 63, .mask = 1, .n_used = 1, .entries = {{.tagged_ip = 0}, {.tagged_ip = 0}}};

struct rule_table *_Atomic torsh_unwind_rules_table = &last_resort;
HOT _Atomic uint32_t torsh_unwind_rules_generation = 1;

static size_t n_entries(const struct rule_table *table)
{
	return (size_t)table->mask + 1;
}

static bool is_full(const struct rule_table *table)
{
	return atomic_load_explicit(&table->n_used, memory_order_relaxed) >= n_entries(table) / 2;
}

static size_t table_bytes(uint32_t bits)
{
	size_t size_bytes = sizeof(struct rule_table) + (sizeof(struct rule_entry) << bits);

	return (size_bytes + LARGEST_PAGE_BYTES - 1) & ~(LARGEST_PAGE_BYTES - 1);
}

/*
 * Pages for a table with huge ones in it: a hash reaches all of it soon, in any order. NULL without
 * memory.
 */
static void *huge_pages(size_t size_bytes)
{
	char *pages = torsh_sys_pages(size_bytes + HUGE_PAGE_BYTES);
	size_t n_before = -(uintptr_t)pages & (HUGE_PAGE_BYTES - 1);

	if (!pages)
		return NULL;
	if (n_before)
		torsh_sys_munmap(pages, n_before);
	torsh_sys_munmap(pages + n_before + size_bytes, HUGE_PAGE_BYTES - n_before);
	TORSH_SYS(SYS_madvise, pages + n_before, size_bytes, MADV_HUGEPAGE, 0, 0, 0);
	return pages + n_before;
}

static struct rule_table *make_table(uint32_t bits)
{
	size_t size_bytes = table_bytes(bits);
	struct rule_table *table;

	if (bits > LAST_BITS)
		return NULL;
	table = size_bytes > HUGE_PAGE_BYTES ? huge_pages(size_bytes) : NULL;
	if (table)
		return table;
	table = torsh_sys_pages(size_bytes);
	if (table && size_bytes < HUGE_PAGE_BYTES)
		torsh_sys_populate(table, sizeof(*table) + (sizeof(struct rule_entry) << bits));
	return table;
}

/* Put a larger table in front of current, which is never freed because it still has readers. */
static void add_table(struct rule_table *current)
{
	uint32_t bits = current == &last_resort ? FIRST_BITS : 64 - current->shift + GROWTH_BITS;
	struct rule_table *table = make_table(bits);

	if (!table)
		return;
	table->older = current;
	table->shift = 64 - bits;
	table->mask = (1u << bits) - 1;
	/* Pairs with the acquire loads of torsh_unwind_rules_table. */
	if (!atomic_compare_exchange_strong_explicit(&torsh_unwind_rules_table, &current, table,
						     memory_order_release, memory_order_relaxed))
		torsh_sys_munmap(table, table_bytes(bits));
}

/* The entry of tagged_ip, created if there is room; NULL if there is neither. */
static struct rule_entry *claim(struct rule_table *table, uint64_t tagged_ip)
{
	size_t i = tagged_ip * UINT64_C(0x9e3779b97f4a7c15) >> table->shift;

	for (;; i++) {
		struct rule_entry *entry = &table->entries[i & table->mask];
		uint64_t found = atomic_load_explicit(&entry->tagged_ip, memory_order_relaxed);

		if (!found) {
			if (is_full(table))
				return NULL;
			if (atomic_compare_exchange_strong(&entry->tagged_ip, &found, tagged_ip)) {
				atomic_fetch_add_explicit(&table->n_used, 1, memory_order_relaxed);
				return entry;
			}
		}
		if (found == tagged_ip)
			return entry;
	}
}

static uint64_t find_older(const struct rule_table *table, uint64_t tagged_ip)
{
	while ((table = table->older)) {
		size_t i = tagged_ip * UINT64_C(0x9e3779b97f4a7c15) >> table->shift;
		uint64_t found;

		while ((found = atomic_load_explicit(&table->entries[i & table->mask].tagged_ip,
						     memory_order_relaxed))) {
			if (found == tagged_ip)
				return atomic_load_explicit(&table->entries[i & table->mask].rule,
							    memory_order_relaxed);
			i++;
		}
	}
	return 0;
}

/* Compile and register the rule, and store it. */
static uint64_t add_rule(struct rule_table *table, uint64_t tagged_ip,
			 struct recent_functions *recent)
{
	struct rule_entry *entry;
	uint32_t flags;
	const struct module *module;
	uint64_t rule = torsh_unwind_rule_compile(tagged_ip, recent, &flags, &module), winner = 0;

	torsh_count(COUNTER_rules_compiled);
	/* Garbage addresses would fill the tables. */
	if (rule == RULE_NOWHERE)
		return rule;
	entry = claim(table, tagged_ip);
	if (!entry)
		return rule;
	rule = torsh_unwind_rule_with_id(
		rule, torsh_registry_add_address(torsh_untagged_ip(tagged_ip), flags, module));
	/*
	 * Two threads may compile one tagged_ip at the same time: the first one's id stays, the
	 * other is never used.
	 */
	return atomic_compare_exchange_strong(&entry->rule, &winner, rule) ? rule : winner;
}

uint64_t torsh_unwind_rules_compile(uint64_t tagged_ip, struct recent_functions *recent)
{
	struct rule_table *table =
		atomic_load_explicit(&torsh_unwind_rules_table, memory_order_acquire);
	struct rule_entry *entry;
	uint64_t rule, winner = 0;

	if (is_full(table)) {
		add_table(table);
		table = atomic_load_explicit(&torsh_unwind_rules_table, memory_order_acquire);
	}
	rule = find_older(table, tagged_ip);
	if (!rule)
		return add_rule(table, tagged_ip, recent);
	entry = claim(table, tagged_ip);
	return !entry || atomic_compare_exchange_strong(&entry->rule, &winner, rule) ? rule
										     : winner;
}

static size_t flush_span(struct rule_table *table, uintptr_t start, uintptr_t end)
{
	size_t n_forgotten = 0;

	for (size_t i = 0; i < n_entries(table); i++) {
		struct rule_entry *entry = &table->entries[i];
		uintptr_t ip = torsh_untagged_ip(
			atomic_load_explicit(&entry->tagged_ip, memory_order_relaxed));

		/* A return address may lie just past its object's last byte. */
		if (ip >= start && ip <= end &&
		    atomic_load_explicit(&entry->rule, memory_order_relaxed)) {
			atomic_store_explicit(&entry->rule, 0, memory_order_relaxed);
			n_forgotten++;
		}
	}
	return n_forgotten;
}

void torsh_unwind_rules_flush(uintptr_t start, uintptr_t end)
{
	struct rule_table *current = atomic_load_explicit(&torsh_unwind_rules_table,
							  memory_order_acquire),
			  *table = current;
	size_t n_forgotten = 0;

	torsh_registry_flush_modules();
	do
		n_forgotten += flush_span(table, start, end);
	while ((table = table->older));
	/* Stacks have frames without a cached rule only if the table is full. */
	if (n_forgotten == 0 && !is_full(current))
		return;
	/* After the rules are gone: pairs with the acquire in torsh_stack_capture. */
	atomic_fetch_add_explicit(&torsh_unwind_rules_generation, 1, memory_order_release);
	torsh_count(COUNTER_code_forgotten);
}

void torsh_unwind_rules_start(bool may_use_glibc)
{
	torsh_modules_start(torsh_unwind_rules_flush, may_use_glibc);
	if (atomic_load_explicit(&torsh_unwind_rules_table, memory_order_relaxed) == &last_resort)
		add_table(&last_resort);
}
