/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/rules/growth_rules.h"

#include <stdlib.h>

#include "tools/memory/leaks/rules/rulings.h"

struct suppressing {
	struct growth *growth;
	struct rules rules;
	struct address_kinds kinds;
	struct import_runs runs;
	size_t n_left; /* sites of the growth that stay, from its first one on */
};

/* What an import or an interpreter keeps is bounded by a sum, and shows if it grows. */
static bool is_suppressed(const struct suppressing *of, const struct ruling *ruling)
{
	return ruling->rule >= 0 && of->rules.suppress->rules[ruling->rule].kind == SUPPRESS_LEAK;
}

static void take_out(struct growth *growth, const struct allocation_site *site)
{
	growth->suppressed.n++;
	growth->suppressed.blocks += site->blocks;
	growth->suppressed.bytes += site->bytes;
}

/* Look at n sites of one process. */
static void suppress_sites(struct suppressing *of, struct allocation_site *sites, size_t n)
{
	const struct site_reader reader = torsh_site_reader_of(sites, n);
	struct ruling *rulings = torsh_rulings_find(&of->rules, &reader);

	for (size_t i = 0; i < n; i++) {
		if (is_suppressed(of, &rulings[i]))
			take_out(of->growth, &sites[i]);
		else
			of->growth->found.items[of->n_left++] = sites[i];
	}
	free(rulings);
}

static void suppress_process(struct suppressing *of, size_t first, size_t n)
{
	struct allocation_site *sites = of->growth->found.items + first;

	/* Anew for each process: torsh_rules_end leaves freed lists in the one before. */
	of->rules = (struct rules){
		.suppress = of->rules.suppress,
		.symbols = of->rules.symbols,
		.process = sites->process,
		.kinds = &of->kinds,
		.runs = &of->runs,
	};
	torsh_address_kinds_start(&of->kinds, sites->process, of->rules.symbols);
	torsh_rules_start(&of->rules);
	suppress_sites(of, sites, n);
	torsh_rules_end(&of->rules);
	torsh_address_kinds_end(&of->kinds);
}

void torsh_growth_suppress(struct growth *growth, const struct suppress *suppress,
			   struct symbols *symbols)
{
	struct suppressing of = {.growth = growth};
	const struct allocation_site *sites = growth->found.items;
	size_t n = growth->found.n;

	if (!suppress || !suppress->n)
		return;
	of.rules.suppress = suppress;
	of.rules.symbols = symbols;
	for (size_t first = 0, end; first < n; first = end) {
		for (end = first + 1; end < n && sites[end].process == sites[first].process;)
			end++;
		suppress_process(&of, first, end - first);
	}
	growth->found.n = of.n_left;
}
