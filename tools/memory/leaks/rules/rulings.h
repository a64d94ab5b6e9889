/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which rule takes which allocation site of a process. */
#ifndef TORSH_MEMORY_LEAKS_RULES_RULINGS_H
#define TORSH_MEMORY_LEAKS_RULES_RULINGS_H

#include "tools/frames/address_kinds.h"
#include "tools/memory/leaks/import_runs.h"
#include "tools/memory/leaks/rules/stack_bytes.h"
#include "tools/memory/leaks/rules/suppress.h"
#include "tools/memory/site_reader.h"

/* KEPT_RULE of what was looked up, for one kind of rules. */
struct kept_rules {
	int32_t *of_addresses; /* by address: of all that is known of it */
	int32_t *of_modules; /* of the path of a module, by its row */
	int32_t *of_symbols; /* of a symbol's name, by its row */
	int32_t *of_functions; /* of a function of Python, by its row */
};

/* The rules that match one process's stacks. */
struct rules {
	const struct suppress *suppress;
	struct symbols *symbols;
	const struct recorded_process *process;
	struct address_kinds *kinds;
	const struct import_runs *runs; /* has no imports unless imports are suppressed */
	bool has_own[N_SUPPRESS_KINDS]; /* rules that aren't built in */
	struct kept_rules kept[N_SUPPRESS_KINDS];
	char **words; /* by rule: a part of all names that it matches; NULL: not known */
	bool *is_nameless; /* by address: neither a symbol nor DWARF has a name or a file of it */
	const char **demangled; /* names of symbols, by row; NULL: not looked up yet */
	/* uint64_t by the stack that an import ends at: bytes that its rules would suppress */
	struct sparse_array import_bytes;
	/* by rule of the kind SUPPRESS_KEPT: bytes that it would suppress */
	uint64_t *kept_bytes;
};

/* The rule for a stack. import: the stack of the suppressed import; 0 for rules of another kind. */
struct ruling {
	int32_t rule;
	uint32_t import;
};

/* Start, when the members up to runs are set. */
void torsh_rules_start(struct rules *rules);

/* Free what was cached; also of zeroed rules. */
void torsh_rules_end(struct rules *rules);

/* Returns the rule of each allocation site; the caller frees the list. */
struct ruling *torsh_rulings_find(struct rules *rules, const struct site_reader *sites);

/* Returns whether the site of the ruling is suppressed: a rule takes it, and not too much. */
bool torsh_ruling_holds(const struct rules *rules, const struct ruling *ruling);

#endif
