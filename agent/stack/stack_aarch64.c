/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The capture on aarch64: walks the chain of frame records {x29, x30} that the procedure call
 * standard requires, in full each time; the delta is taken between the results. See stack.h.
 *
 * Limits: code compiled without frame records is skipped, and so is a function that a signal
 * interrupted before it made its record. There is no reference unwinder: torsh_stack_check_every()
 * returns -ENOENT.
 */
#include "agent/stack/stack.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/modules/memory_probe.h"
#include "agent/modules/module_registry.h"
#include "agent/modules/module_watch.h"
#include "agent/producer/counter.h"
#include "agent/wire/channel.h"
#include "shim/sys.h"

#define IDS_BITS 20
#define N_IDS (1u << IDS_BITS)
/* higher bits are tags and the signature of a signed return address */
#define CODE_MASK ((UINT64_C(1) << 48) - 1)
#define FLAGS_SHIFT 56

struct stack {
	uint32_t depth;
	uint32_t generation;
	bool is_anew;
	uintptr_t known_page;
	uint32_t ids[STACK_MAX_FRAMES + STACK_READABLE]; /* outermost first */
	uintptr_t sp[STACK_MAX_FRAMES]; /* the frame's record: its locals are above it */
	uint64_t ip[STACK_MAX_FRAMES];

	/* Innermost first. */
	uint32_t fresh[STACK_MAX_FRAMES];
	uintptr_t fresh_sp[STACK_MAX_FRAMES];
	uint64_t fresh_ip[STACK_MAX_FRAMES];
};

/* An address and its flags, with its id in one generation. Addresses are never removed. */
struct cached_id {
	_Atomic uint64_t key;
	_Atomic uint64_t id; /* generation << 32 | id */
};

static struct cached_id *cached_ids;
static _Atomic uint32_t generation = 1;

static void flush_span(uintptr_t start, uintptr_t end)
{
	(void)start;
	(void)end;
	torsh_registry_flush_modules();
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
	torsh_count(COUNTER_code_forgotten);
}

void torsh_stack_start(void)
{
	torsh_modules_start(flush_span, true);
	if (!cached_ids)
		cached_ids = torsh_sys_pages(N_IDS * sizeof(*cached_ids));
}

size_t torsh_stack_bytes(void)
{
	return sizeof(struct stack);
}

struct stack *torsh_stack_create(void *pages)
{
	if (!cached_ids)
		return NULL;
	torsh_stack_reset(pages);
	return pages;
}

void torsh_stack_destroy(struct stack *s)
{
	(void)s;
}

void torsh_stack_view(const struct stack *s, struct stack_view *view)
{
	*view = (struct stack_view){.depth = s->depth, .ids = s->ids, .sp = s->sp, .ip = s->ip};
}

void torsh_stack_invalidate(struct stack *s)
{
	torsh_stack_reset(s);
}

void torsh_stack_reset(struct stack *s)
{
	s->depth = 0;
	s->is_anew = true;
}

void torsh_stack_invalidate_code(void)
{
	torsh_modules_recheck();
}

int torsh_stack_check_every(uint32_t n)
{
	return n ? -ENOENT : 0;
}

/*
 * The id of an address; REGISTRY_FULL when a table is full. Two threads that find a new one may
 * take an id each.
 */
static uint32_t find_id(uint32_t now, uintptr_t ip, uint32_t flags)
{
	uint64_t key = (uint64_t)flags << FLAGS_SHIFT | ip, found;
	size_t first = key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - IDS_BITS);

	for (size_t i = first; i < first + 64; i++) {
		struct cached_id *known = &cached_ids[i % N_IDS];

		found = atomic_load_explicit(&known->key, memory_order_relaxed);
		if (!found && atomic_compare_exchange_strong(&known->key, &found, key))
			found = key;
		if (found != key)
			continue;
		found = atomic_load_explicit(&known->id, memory_order_relaxed);
		if (found >> 32 != now) {
			struct module module;
			/* Track the object of every id, so that its unmapping is noticed. */
			bool is_known = torsh_modules_find(ip, &module) != MODULE_NONE;

			found = (uint64_t)now << 32 |
				torsh_registry_add_address(ip, flags, is_known ? &module : NULL);
			atomic_store_explicit(&known->id, found, memory_order_relaxed);
		}
		return (uint32_t)found;
	}
	return REGISTRY_FULL;
}

/*
 * Fill fresh from the record at frame outwards; returns their number. The outermost record leads to
 * 0. Records may go down in memory, to another stack: only their number is bounded.
 */
static uint32_t walk(struct stack *s, uintptr_t frame)
{
	uint32_t n = 0;

	s->known_page = torsh_probe_page(frame);
	while (frame) {
		uintptr_t outer, ip;
		bool is_readable = torsh_probe_read(frame, &s->known_page, &outer) &&
				   torsh_probe_read(frame + 8, &s->known_page, &ip);

		if (n == STACK_MAX_FRAMES - 1 || !is_readable) {
			s->fresh[n] =
				find_id(s->generation, 0,
					is_readable ? ADDRESS_CUT_TOO_DEEP : ADDRESS_CUT_BAD_FRAME);
			s->fresh_sp[n] = UINTPTR_MAX;
			s->fresh_ip[n] = 0;
			torsh_count(COUNTER_captures_cut);
			return n + 1;
		}
		if (!(ip & CODE_MASK))
			break;
		s->fresh_sp[n] = outer;
		s->fresh_ip[n] = ip & CODE_MASK;
		s->fresh[n++] = find_id(s->generation, ip & CODE_MASK, ADDRESS_RETURN);
		frame = outer;
	}
	return n;
}

void torsh_stack_capture(struct stack *s, const void *frame, struct stack_delta *delta)
{
	uint32_t now = atomic_load_explicit(&generation, memory_order_acquire), n, n_kept = 0;

	if (now != s->generation) {
		s->generation = now;
		torsh_stack_reset(s);
	}
	n = walk(s, (uintptr_t)frame);
	while (n_kept < s->depth && n_kept < n && s->ids[n_kept] == s->fresh[n - 1 - n_kept])
		n_kept++;

	delta->pop = s->is_anew ? STACK_POP_ALL : s->depth - n_kept;
	delta->n_push = n - n_kept;
	delta->push = &s->ids[n_kept];
	s->is_anew = false;
	for (s->depth = n_kept; s->depth < n; s->depth++)
		s->ids[s->depth] = s->fresh[n - 1 - s->depth];
	/* Equal addresses may belong to frames elsewhere on the stack. */
	for (uint32_t i = 0; i < n; i++) {
		s->sp[i] = s->fresh_sp[n - 1 - i];
		s->ip[i] = s->fresh_ip[n - 1 - i];
	}
}
