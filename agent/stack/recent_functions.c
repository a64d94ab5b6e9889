/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Looks up unwind rows, in the recent functions first. */
#include "agent/stack/recent_functions.h"

#include <stddef.h>
#include <string.h>

#include "agent/stack/unwind_pages.h"

/* Whether the function is still loaded. Its FDE is mapped if an object of that size is. */
static bool is_there(const struct recent_function *recent, uintptr_t pc)
{
	return torsh_modules_is_in_place(pc, &recent->module) &&
	       !memcmp(recent->function.description.fde, recent->head, recent->n_head);
}

static struct recent_function *find(struct recent_functions *recent, uintptr_t pc)
{
	for (uint32_t i = 0; i < RECENT_FUNCTIONS; i++) {
		struct recent_function *known = &recent->functions[i];
		const struct frame_description *d = &known->function.description;

		if (!known->n_head || pc - d->start >= d->end - d->start)
			continue;
		if (is_there(known, pc))
			return known;
		known->n_head = 0;
	}
	return NULL;
}

static void keep(struct recent_functions *recent, struct recent_function *opened)
{
	const struct frame_description *d = &opened->function.description;
	size_t n = (size_t)(d->fde_program.end - d->fde);

	opened->n_head = n < RECENT_HEAD_BYTES ? (uint32_t)n : RECENT_HEAD_BYTES;
	memcpy(opened->head, d->fde, opened->n_head);
	recent->oldest = (recent->oldest + 1) % RECENT_FUNCTIONS;
}

struct looked_up torsh_recent_functions_look_up(struct recent_functions *recent, uintptr_t pc)
{
	struct recent_function *known = find(recent, pc);
	struct cfi_function *function;
	struct looked_up result = {.answer = MODULE_KNOWN};

	if (known) {
		function = &known->function;
		result.err = torsh_cfi_read(function, pc);
	} else {
		known = &recent->functions[recent->oldest];
		known->n_head = 0;
		function = &known->function;
		result.answer = torsh_modules_find(pc, &known->module);
		if (result.answer == MODULE_NONE)
			return result;
		result.err = torsh_cfi_open(known->module.eh_frame_hdr, &known->module.memory, pc,
					    function);
		if (!result.err) {
			result.err = torsh_cfi_read(function, pc);
			keep(recent, known);
		}
		torsh_unwind_pages_were_read(&known->module, pc);
	}
	result.module = &known->module;
	result.row = &function->row;
	return result;
}

void torsh_recent_functions_clear(struct recent_functions *recent)
{
	for (uint32_t i = 0; i < RECENT_FUNCTIONS; i++)
		recent->functions[i].n_head = 0;
}
