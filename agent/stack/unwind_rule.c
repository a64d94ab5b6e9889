/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Compiles call frame information to an unwind rule. */
#include "agent/stack/unwind_rule.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agent/modules/memory_probe.h"
#include "agent/modules/module_watch.h"
#include "agent/stack/recent_functions.h"
#include "agent/stack/unwind_rules.h"
#include "agent/wire/channel.h"

/* some rules belong to code outside of any object: a new object may be loaded in its place */
static _Atomic bool has_orphans;

static const uint8_t signal_return[] = UNWIND_SIGNAL_RETURN;

bool torsh_unwind_rule_is_signal_return(uintptr_t ip, const struct object_memory *memory)
{
	uintptr_t last = ip + sizeof(signal_return) - 1;
	bool is_there = memory && torsh_object_readable(memory, ip) >= sizeof(signal_return);

	if (!is_there && !(torsh_probe(ip) && torsh_probe(last - 7)))
		return false;
	return memcmp((const void *)ip, signal_return, sizeof(signal_return)) == 0;
}

bool torsh_unwind_rule_is_origin(uintptr_t ip, const struct module *module)
{
	return torsh_object_readable(&module->memory, ip - UNWIND_LONGEST_CALL) >=
		       UNWIND_LONGEST_CALL &&
	       !torsh_unwind_follows_call(ip) &&
	       torsh_cfi_begins(module->eh_frame_hdr, &module->memory, ip);
}

static uint64_t compile_orphan(uintptr_t ip, uintptr_t pc)
{
	atomic_store_explicit(&has_orphans, true, memory_order_relaxed);
	if (torsh_unwind_rule_is_signal_return(ip, NULL))
		return RULE_SIGNAL;
	return torsh_probe(pc & ~(uintptr_t)7) ? RULE_NO_INFO : RULE_NOWHERE;
}

static uint64_t compile_address(uintptr_t ip, bool is_exact, struct recent_functions *recent,
				const struct module **module)
{
	uintptr_t pc = is_exact ? ip : ip - 1;
	struct looked_up found = torsh_recent_functions_look_up(recent, pc);

	if (found.answer == MODULE_NONE)
		return compile_orphan(ip, pc);
	*module = found.module;
	if (found.answer == MODULE_NEW && atomic_load_explicit(&has_orphans, memory_order_relaxed))
		torsh_modules_forget(found.module->start, found.module->end);
	if (torsh_unwind_rule_is_signal_return(ip, &found.module->memory))
		return RULE_SIGNAL;
	if (found.err == -ENOENT)
		return !is_exact && torsh_unwind_rule_is_origin(ip, found.module) ? RULE_STOP
										  : RULE_NO_INFO;
	return found.err ? RULE_BAD : torsh_unwind_pack(found.row, ip, is_exact);
}

uint64_t torsh_unwind_rule_compile(uint64_t tagged_ip, struct recent_functions *recent,
				   uint32_t *flags, const struct module **module)
{
	enum ip_tag tag = torsh_ip_tag(tagged_ip);
	uint64_t rule;

	*module = NULL;
	switch (tag) {
	case IP_TAG_CUT_UNKNOWN:
		*flags = ADDRESS_CUT_UNKNOWN_CODE;
		return RULE_STOP;
	case IP_TAG_CUT_BAD:
		*flags = ADDRESS_CUT_BAD_FRAME;
		return RULE_STOP;
	case IP_TAG_CUT_DEEP:
		*flags = ADDRESS_CUT_TOO_DEEP;
		return RULE_STOP;
	default:
		rule = compile_address(torsh_untagged_ip(tagged_ip), tag == IP_TAG_INTERRUPTED,
				       recent, module);
		*flags = tag == IP_TAG_INTERRUPTED ? ADDRESS_EXACT : ADDRESS_RETURN;
		if (torsh_unwind_rule_kind(rule) == RULE_SIGNAL)
			*flags |= ADDRESS_SIGNAL_FRAME;
		if (torsh_unwind_rule_kind(rule) == RULE_NO_INFO)
			*flags |= ADDRESS_NO_UNWIND_INFO;
		return rule;
	}
}
