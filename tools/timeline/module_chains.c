/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/module_chains.h"

#include <search.h>
#include <stdlib.h>

#include "tools/base/die.h"

static int compare_chains(const void *a, const void *b)
{
	const struct module_chain *x = a, *y = b;

	if (x->module != y->module)
		return (x->module > y->module) - (x->module < y->module);
	return ((uintptr_t)x->outer > (uintptr_t)y->outer) -
	       ((uintptr_t)x->outer < (uintptr_t)y->outer);
}

const struct module_chain *torsh_module_chains_add(struct module_chains *chains,
						   const struct module_chain *outer,
						   uint32_t module)
{
	const struct module_chain key = {.outer = outer, .module = module};
	struct module_chain **found, *made;

	if (chains->last && compare_chains(chains->last, &key) == 0)
		return chains->last;
	found = tfind(&key, &chains->tree, compare_chains);
	if (found)
		return chains->last = *found;
	made = torsh_need(malloc(sizeof(*made)));
	*made = key;
	torsh_need(tsearch(made, &chains->tree, compare_chains));
	return chains->last = made;
}

void torsh_module_chains_free(struct module_chains *chains)
{
	tdestroy(chains->tree, free);
	*chains = (struct module_chains){0};
}
