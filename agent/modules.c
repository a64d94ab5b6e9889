/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The objects that stacks went through, remembered so that their replacement is noticed. See modules.h.
 *
 * A remembered object is a slot that one thread at a time fills; readers may see a torn one while it is refilled, which
 * at worst makes rules be compiled anew.
 */
#include "agent/modules.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "agent/maps.h"
#include "agent/probe.h"
#include "shim/symbol.h"

#define N_REMEMBERED 4096u
#define FINGERPRINT_BYTES 1024u
#define HINT_BITS 10

/* What _dl_find_object fills in on architectures without dlfo_eh_dbase; older C libraries don't declare it. */
struct find_object_result {
	unsigned long long flags;
	void *map_start, *map_end;
	void *link_map;
	void *eh_frame;
	unsigned long long reserved[7];
};

typedef int find_object(void *address, struct find_object_result *result);

enum slot_state { SLOT_FREE, SLOT_BUSY, SLOT_USED };

struct slot {
	_Atomic uint32_t state; /* released when module is complete; pairs with the acquires of readers */
	struct module module;
};

static find_object *ask_glibc;
static torsh_module_gone *module_gone;
static struct slot remembered[N_REMEMBERED];
static _Atomic uint32_t n_slots; /* those above were never used */
static _Atomic uint16_t hints[1 << HINT_BITS]; /* slots */

void torsh_modules_start(torsh_module_gone *gone, bool may_ask_glibc)
{
	module_gone = gone;
	ask_glibc = may_ask_glibc ? (find_object *)torsh_symbol(RTLD_DEFAULT, "_dl_find_object") : NULL;
}

/* Weighted by place, with products that don't wait for each other: this is done for every rule. n is in bytes. */
static uint64_t hash_bytes(const uint8_t *bytes, uint32_t n)
{
	uint64_t hash = 0, weight = UINT64_C(0x9e3779b97f4a7c15), word;

	for (uint32_t i = 0; i < n; i += sizeof(word), weight += UINT64_C(0xbf58476d1ce4e5b8)) {
		memcpy(&word, bytes + i, sizeof(word));
		hash += (word ^ word >> 32) * weight;
	}
	return hash ^ hash >> 32;
}

/*
 * The start of the file, where its build-id is as a rule, and that of the sorted table in eh_frame_hdr, which tells
 * where its functions lie.
 */
static uint64_t take_fingerprint(const struct module *module, bool is_start_readable)
{
	const uint32_t *header = (const uint32_t *)module->eh_frame_hdr;
	uint64_t hash = 0;

	if (is_start_readable)
		hash = hash_bytes((const uint8_t *)module->start, FINGERPRINT_BYTES);
	/* Version 1 with 32-bit encodings, as linkers write: a count and that many pairs follow. */
	if (header[0] == 0x3b031b01)
		hash += hash_bytes((const uint8_t *)(header + 3), 8 * (header[2] < 16 ? header[2] : 16));
	return hash;
}

static bool look_up(uintptr_t pc, struct module *module)
{
	struct find_object_result found;

	if (!ask_glibc)
		return torsh_maps_find(pc, module);
	if (ask_glibc((void *)pc, &found) || !found.eh_frame)
		return false;
	*module = (struct module){
		.start = (uintptr_t)found.map_start,
		.end = (uintptr_t)found.map_end,
		.link_map = found.link_map,
		.eh_frame_hdr = found.eh_frame,
	};
	return true;
}

/* One object, or two of which one was loaded into the other's place. */
static bool is_in_place(const struct module *a, const struct module *b)
{
	return a->start == b->start && a->end == b->end && a->link_map == b->link_map &&
	       a->eh_frame_hdr == b->eh_frame_hdr;
}

static bool is_same(const struct module *a, const struct module *b)
{
	return is_in_place(a, b) && a->fingerprint == b->fingerprint;
}

/* Where a remembered object stands, so that hundreds of them need not be gone through. */
static _Atomic uint16_t *hint_of(const struct module *module)
{
	return &hints[(module->start >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HINT_BITS)];
}

/* Is it remembered where the hint says? An object in the same place has had a start that could be read, or not. */
static bool is_known(struct module *module)
{
	const struct slot *slot = &remembered[atomic_load_explicit(hint_of(module), memory_order_relaxed)];

	if (atomic_load_explicit(&slot->state, memory_order_acquire) != SLOT_USED ||
	    !is_in_place(&slot->module, module))
		return false;
	module->is_start_readable = slot->module.is_start_readable;
	module->fingerprint = take_fingerprint(module, module->is_start_readable);
	return slot->module.fingerprint == module->fingerprint;
}

/* Free the slot unless somebody else did, and tell. Told first: a rule of the old object is never found afterwards. */
static void forget(struct slot *slot)
{
	uint32_t used = SLOT_USED;

	module_gone(slot->module.start, slot->module.end);
	atomic_compare_exchange_strong(&slot->state, &used, SLOT_FREE);
}

/* With all slots used the object isn't remembered: its replacement would go unnoticed. 4096 objects are many. */
static void remember(const struct module *module)
{
	for (uint32_t i = 0; i < N_REMEMBERED; i++) {
		struct slot *slot = &remembered[i];
		uint32_t n = atomic_load_explicit(&n_slots, memory_order_relaxed), unused = SLOT_FREE;

		if (atomic_load_explicit(&slot->state, memory_order_relaxed) != SLOT_FREE ||
		    !atomic_compare_exchange_strong(&slot->state, &unused, SLOT_BUSY))
			continue;
		slot->module = *module;
		atomic_store_explicit(&slot->state, SLOT_USED, memory_order_release);
		atomic_store_explicit(hint_of(module), (uint16_t)i, memory_order_relaxed);
		while (n <= i && !atomic_compare_exchange_weak(&n_slots, &n, i + 1))
			;
		return;
	}
}

static struct slot *next_used(uint32_t *i)
{
	uint32_t n = atomic_load_explicit(&n_slots, memory_order_acquire);

	while (*i < n) {
		struct slot *slot = &remembered[(*i)++];

		if (atomic_load_explicit(&slot->state, memory_order_acquire) == SLOT_USED)
			return slot;
	}
	return NULL;
}

static bool find_remembered(uintptr_t pc, struct module *module)
{
	struct slot *slot;

	for (uint32_t i = 0; (slot = next_used(&i));) {
		if (pc - slot->module.start < slot->module.end - slot->module.start) {
			*module = slot->module;
			return true;
		}
	}
	return false;
}

enum module_answer torsh_modules_find(uintptr_t pc, struct module *module)
{
	struct slot *slot;

	/* Reading maps is slow, and there is nothing to compare what they say with. */
	if (!ask_glibc && find_remembered(pc, module))
		return MODULE_KNOWN;
	if (!look_up(pc, module))
		return MODULE_NONE;
	if (is_known(module))
		return MODULE_KNOWN;
	module->is_start_readable = torsh_probe(module->start);
	module->fingerprint = take_fingerprint(module, module->is_start_readable);
	for (uint32_t i = 0; (slot = next_used(&i));) {
		if (is_same(&slot->module, module)) {
			atomic_store_explicit(hint_of(module), (uint16_t)(slot - remembered), memory_order_relaxed);
			return MODULE_KNOWN;
		}
		if (slot->module.start < module->end && module->start < slot->module.end)
			forget(slot);
	}
	remember(module);
	return MODULE_NEW;
}

void torsh_modules_recheck(void)
{
	struct module now;
	struct slot *slot;

	for (uint32_t i = 0; (slot = next_used(&i));) {
		if (ask_glibc && look_up(slot->module.start, &now)) {
			now.fingerprint = take_fingerprint(&now, torsh_probe(now.start));
			if (is_same(&slot->module, &now))
				continue;
		}
		forget(slot);
	}
}
