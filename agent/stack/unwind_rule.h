/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Unwind rules: how to step from a frame to the next outer one, packed into 64 bits with the id of
 * the frame's address; and the tagged return address by which rules are found. Almost every frame's
 * unwind information fits; the rest is RULE_BAD and is interpreted in full each time.
 *
 * bits 0-39 the kind and places of agent/stack/cpu/, 40-61 id, 62 and 63 of steps
 */
#ifndef TORSH_AGENT_STACK_UNWIND_RULE_H
#define TORSH_AGENT_STACK_UNWIND_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/modules/loaded_object.h"
#include "agent/stack/cpu/unwind_cpu.h"

struct module;
struct recent_functions;

#define RULE_LAST (UINT64_C(1) << 62) /* of a step not taken: the stack is cut here */
/* of a step taken, never of a rule: re-reading its slots proves nothing */
#define RULE_UNPROVABLE (UINT64_C(1) << 63)

static inline enum rule_kind torsh_unwind_rule_kind(uint64_t rule)
{
	return (enum rule_kind)(rule & 7);
}

static inline uint32_t torsh_unwind_rule_id(uint64_t rule)
{
	return (uint32_t)(rule >> 40) & 0x3fffff;
}

static inline uint64_t torsh_unwind_rule_with_id(uint64_t rule, uint32_t id)
{
	return rule | (uint64_t)(id & 0x3fffff) << 40;
}

/*
 * The kind of a tagged address, in its top bits; a tagged return address equals the plain address.
 */
enum ip_tag {
	IP_TAG_CALL, /* a return address: the rule is that of the call before it */
	IP_TAG_INTERRUPTED, /* the next instruction of code that a signal interrupted */
	IP_TAG_CUT_UNKNOWN, /* pseudo-frames, which have ids but no rules */
	IP_TAG_CUT_BAD,
	IP_TAG_CUT_DEEP,
};

#define IP_TAG_SHIFT 60

static inline uint64_t torsh_tagged_ip(uintptr_t ip, enum ip_tag tag)
{
	return ip | (uint64_t)tag << IP_TAG_SHIFT;
}

static inline uintptr_t torsh_untagged_ip(uint64_t tagged_ip)
{
	return tagged_ip & ((UINT64_C(1) << IP_TAG_SHIFT) - 1);
}

static inline enum ip_tag torsh_ip_tag(uint64_t tagged_ip)
{
	return (enum ip_tag)(tagged_ip >> IP_TAG_SHIFT);
}

/* Whether ip can be an address: user space ends below 2^56, garbage often doesn't. */
static inline bool torsh_unwind_rule_can_be_ip(uintptr_t ip)
{
	return ip >> 56 == 0;
}

/*
 * Compile the rule of a tagged address, without an id. *flags gets its ADDRESS_* of
 * agent/wire/channel.h, *module the object there, valid until the next compilation, or NULL.
 */
uint64_t torsh_unwind_rule_compile(uint64_t tagged_ip, struct recent_functions *recent,
				   uint32_t *flags, const struct module **module);

/*
 * Whether ip starts the code that returns from a signal. memory is that of the object at ip, NULL
 * if there is none.
 */
bool torsh_unwind_rule_is_signal_return(uintptr_t ip, const struct object_memory *memory);

/*
 * Whether the return address ip in module, with no unwind information before it, is a function that
 * no code calls: whoever created the stack put it there, to run after its first function returns
 * (makecontext). Such a frame has no caller.
 */
bool torsh_unwind_rule_is_origin(uintptr_t ip, const struct module *module);

#endif
