/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/module_chains.h"

#include <stdlib.h>

#include "tools/base/die.h"

#define SEQUENCES 65536u /* slots for forward spans with their modules: a power of two */

/* The modules of a forward span, kept for its backward spans. */
struct forward_modules {
	uint64_t sequence;
	const struct module_chain *modules;
	uint32_t forward_thread;
};

void torsh_module_chains_create(struct module_chains *chains)
{
	*chains = (struct module_chains){0};
	torsh_sparse_array_create(&chains->forward, sizeof(struct forward_modules));
}

const struct module_chain *torsh_module_chains_add(struct module_chains *chains,
						   const struct module_chain *outer,
						   uint32_t module)
{
	const uint64_t key[] = {(uintptr_t)outer, module};
	const struct hash_entry *entry;
	struct module_chain *made;

	if (chains->last && chains->last->outer == outer && chains->last->module == module)
		return chains->last;
	entry = torsh_hash_map_find(&chains->map, key, sizeof(key));
	if (entry)
		return chains->last = (const struct module_chain *)entry->value;
	made = torsh_need(malloc(sizeof(*made)));
	*made = (struct module_chain){.outer = outer, .module = module};
	torsh_hash_map_put(&chains->map, key, sizeof(key), (uintptr_t)made);
	return chains->last = made;
}

void torsh_module_chains_place(struct module_chains *chains, struct span *span,
			       const struct span *outer)
{
	size_t slot = torsh_span_slot(span, SEQUENCES);
	bool has_sequence = span->kind == SPAN_OPERATOR && span->sequence != OP_NO_SEQUENCE;
	struct forward_modules *forward;

	if (outer)
		span->modules = outer->inside;
	if (span->modules && has_sequence && span->phase != PHASE_BACKWARD) {
		forward = torsh_sparse_array_at(&chains->forward, slot);
		forward->sequence = span->sequence;
		forward->forward_thread = span->forward_thread;
		forward->modules = span->modules;
	}
	forward = span->phase == PHASE_BACKWARD && has_sequence
			  ? torsh_sparse_array_find(&chains->forward, slot)
			  : NULL;
	if (forward && forward->sequence == span->sequence &&
	    forward->forward_thread == span->forward_thread)
		span->modules = forward->modules;
	span->module = span->modules ? span->modules->module : 0;
	span->inside = span->is_module ? torsh_module_chains_add(chains, span->modules, span->name)
				       : span->modules;
}

void torsh_module_chains_free(struct module_chains *chains)
{
	torsh_hash_map_free_values(&chains->map, free);
	torsh_sparse_array_destroy(&chains->forward);
	*chains = (struct module_chains){0};
}
