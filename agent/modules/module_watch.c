/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Tracks the objects that stacks passed through, so that their replacement is noticed.
 *
 * Another thread may unmap an object at any time, unless the object is on the calling thread's
 * stack. Only those objects are read directly, and likely candidates while unloading is blocked.
 * The kernel compares all others word by word, which fails safely once the memory is gone.
 *
 * A tracked object is a slot that one thread at a time fills. Readers copy it; the copy is
 * consistent if the slot's state, which never repeats, is the same before and after.
 */
#include "agent/modules/module_watch.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "agent/modules/maps.h"
#include "agent/modules/memory_probe.h"
#include "agent/wire/channel.h"
#include "shim/loader/objects.h"
#include "shim/sys.h"

/* the registry only counts modules beyond this number */
#define N_TRACKED CHANNEL_MODULES
#define CHUNK_SLOTS 64u
#define FINGERPRINT_BYTES 1024u
#define FINGERPRINT_FUNCTIONS 16u
#define HINT_BITS 10
#define N_SAMPLES 8u
#define BUILD_ID_SAMPLES 2u /* 64 bits of a hash */

/*
 * What _dl_find_object fills in on architectures without dlfo_eh_dbase; older C libraries don't
 * declare it.
 */
struct find_object_result {
	unsigned long long flags;
	void *map_start, *map_end;
	void *link_map;
	void *eh_frame;
	unsigned long long reserved[7];
};

typedef int find_object(void *address, struct find_object_result *result);

/* Words in which another object at the same place would differ. */
struct samples {
	uint32_t n;
	struct {
		uintptr_t at;
		uint32_t value;
	} words[N_SAMPLES];
};

enum slot_state { SLOT_FREE, SLOT_BUSY, SLOT_USED, SLOT_STATES };

struct slot {
	/*
	 * slot_state + SLOT_STATES * times filled; released when the rest is complete, pairs with
	 * copy_slot
	 */
	_Atomic uint32_t state;
	struct module module;
	struct samples samples;
};

static find_object *dl_find_object;
static torsh_module_gone *module_gone;
static struct slot *_Atomic chunks[N_TRACKED / CHUNK_SLOTS]; /* NULL until first needed */
static _Atomic uint32_t n_slots; /* higher ones were never used */
static _Atomic uint16_t hints[1 << HINT_BITS]; /* slot numbers */

void torsh_modules_start(torsh_module_gone *gone, bool may_use_glibc)
{
	module_gone = gone;
	dl_find_object =
		may_use_glibc ? (find_object *)torsh_objects_find("_dl_find_object") : NULL;
}

void torsh_modules_forget(uintptr_t start, uintptr_t end)
{
	module_gone(start, end);
}

/*
 * Weighted by place, with products that don't depend on each other: this runs for every unwind
 * rule. n is in bytes.
 */
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
 * The sorted table of eh_frame_hdr, in version 1 with 32-bit encodings as linkers write it;
 * *n_functions may be 0.
 */
static const uint32_t *function_table(const struct module *module, uint32_t *n_functions)
{
	const uint32_t *header = (const uint32_t *)module->eh_frame_hdr;
	size_t room = torsh_object_readable(&module->memory, (uintptr_t)header);

	*n_functions = 0;
	if (room >= 3 * sizeof(*header) && header[0] == 0x3b031b01) {
		size_t most = room / sizeof(*header) / 2 - 2;

		*n_functions = header[2] < most ? header[2] : (uint32_t)most;
	}
	return header + 3;
}

/*
 * Hash of the file's start, which usually has its build-id, and of the table's start, which has the
 * addresses of functions.
 */
static uint64_t take_fingerprint(const struct module *module)
{
	uint64_t hash = 0;
	uint32_t n;
	const uint32_t *table = function_table(module, &n);

	if (module->is_start_readable)
		hash = hash_bytes((const uint8_t *)module->start, FINGERPRINT_BYTES);
	return hash + hash_bytes((const uint8_t *)table,
				 8 * (n < FINGERPRINT_FUNCTIONS ? n : FINGERPRINT_FUNCTIONS));
}

static void add_sample(struct samples *samples, const void *word)
{
	if ((uintptr_t)word % sizeof(uint32_t))
		return;
	samples->words[samples->n].at = (uintptr_t)word;
	samples->words[samples->n++].value = *(const uint32_t *)word;
}

/* From the build-id or, if there is none, from entries throughout the table. */
static void take_samples(const struct module *module, struct samples *samples)
{
	uint32_t n = 0;
	const uint8_t *id = module->is_start_readable
				    ? torsh_object_build_id(module->start, &module->memory, &n)
				    : NULL;
	const uint32_t *table;

	samples->n = 0;
	if (id && n >= BUILD_ID_SAMPLES * sizeof(uint32_t)) {
		for (uint32_t i = 0; i < BUILD_ID_SAMPLES; i++)
			add_sample(samples, id + i * sizeof(uint32_t));
		return;
	}
	table = function_table(module, &n);
	for (uint32_t i = 0; n && i < N_SAMPLES; i++)
		add_sample(samples, &table[2 * ((uint64_t)n * (i / 2) / (N_SAMPLES / 2)) + i % 2]);
}

/* Whether the sampled object is still there. The kernel reads, not this function. */
static bool hold(const struct samples *samples)
{
	for (uint32_t i = 0; i < samples->n && i < N_SAMPLES; i++) {
		long answer = torsh_sys_compare(samples->words[i].at, samples->words[i].value);

		/* Where a filter prevents the query, the address range has to do. */
		if (answer == -EAGAIN || answer == -EFAULT)
			return false;
	}
	return true;
}

/* Not inlined: its result isn't on the stack while maps are read. */
static __attribute__((noinline)) bool find_by_dl_find_object(uintptr_t pc, struct module *module)
{
	struct find_object_result found;

	if (dl_find_object((void *)pc, &found) || !found.eh_frame)
		return false;
	*module = (struct module){
		.start = (uintptr_t)found.map_start,
		.end = (uintptr_t)found.map_end,
		.link_map = found.link_map,
		.eh_frame_hdr = found.eh_frame,
	};
	return true;
}

static bool find_module(uintptr_t pc, struct module *module)
{
	return dl_find_object ? find_by_dl_find_object(pc, module) : torsh_maps_find(pc, module);
}

/* Whether the two are one object, or one was loaded in place of the other. */
static bool is_in_place(const struct module *a, const struct module *b)
{
	return a->start == b->start && a->end == b->end && a->link_map == b->link_map &&
	       a->eh_frame_hdr == b->eh_frame_hdr;
}

static bool is_same(const struct module *a, const struct module *b)
{
	return is_in_place(a, b) && a->fingerprint == b->fingerprint;
}

/* Hint for the slot of an object, which saves searching hundreds. */
static _Atomic uint16_t *hint_of(const struct module *module)
{
	return &hints[(module->start >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HINT_BITS)];
}

/* NULL: never used. */
static struct slot *slot_at(uint32_t i)
{
	/* Pairs with the release in make_slot. */
	struct slot *chunk = atomic_load_explicit(&chunks[i / CHUNK_SLOTS], memory_order_acquire);

	return chunk ? &chunk[i % CHUNK_SLOTS] : NULL;
}

/* The same, allocated on first use; NULL without memory. */
static struct slot *make_slot(uint32_t i)
{
	struct slot *chunk, *other = NULL;

	if (slot_at(i))
		return slot_at(i);
	chunk = torsh_sys_pages(CHUNK_SLOTS * sizeof(*chunk));
	if (chunk &&
	    !atomic_compare_exchange_strong_explicit(&chunks[i / CHUNK_SLOTS], &other, chunk,
						     memory_order_acq_rel, memory_order_acquire))
		torsh_sys_munmap(chunk, CHUNK_SLOTS * sizeof(*chunk));
	return slot_at(i);
}

/* Copy a slot that holds an object, with its state. */
static bool copy_slot(struct slot *slot, uint32_t *state, struct module *module,
		      struct samples *samples)
{
	*state = atomic_load_explicit(&slot->state, memory_order_acquire);
	if (*state % SLOT_STATES != SLOT_USED)
		return false;
	*module = slot->module;
	if (samples)
		*samples = slot->samples;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&slot->state, memory_order_relaxed) == *state;
}

/* Fill in what is read from an object on the calling thread's stack. */
static void describe(struct module *module, bool is_start_readable)
{
	module->is_start_readable = is_start_readable;
	torsh_object_describe(module->start, module->end, is_start_readable, &module->memory);
	module->fingerprint = take_fingerprint(module);
}

/* Whether the hinted slot holds this object; it also has whether the object's start is readable. */
static bool is_hinted(struct module *module)
{
	struct slot *slot = slot_at(atomic_load_explicit(hint_of(module), memory_order_relaxed));
	struct module known;
	uint32_t state;

	if (!slot || !copy_slot(slot, &state, &known, NULL) || !is_in_place(&known, module))
		return false;
	describe(module, known.is_start_readable);
	return known.fingerprint == module->fingerprint;
}

/*
 * Free the slot unless another thread did, and report its object as gone if it had this state. The
 * report comes first: afterwards no unwind rule of the old object is ever found.
 */
static void untrack(struct slot *slot, uint32_t state, const struct module *module)
{
	module_gone(module->start, module->end);
	atomic_compare_exchange_strong(&slot->state, &state, state - SLOT_USED + SLOT_FREE);
}

/*
 * Track the object. If all slots are used its replacement goes unnoticed; the channel has no room
 * for more modules then either.
 */
static void track(const struct module *module)
{
	for (uint32_t i = 0; i < N_TRACKED; i++) {
		struct slot *slot = make_slot(i);
		uint32_t n = atomic_load_explicit(&n_slots, memory_order_relaxed), state, filled;

		if (!slot)
			return;
		state = atomic_load_explicit(&slot->state, memory_order_relaxed);
		if (state % SLOT_STATES != SLOT_FREE ||
		    !atomic_compare_exchange_strong(&slot->state, &state,
						    state - SLOT_FREE + SLOT_BUSY))
			continue;
		filled = state - SLOT_FREE + SLOT_STATES + SLOT_USED;
		atomic_thread_fence(memory_order_release);
		slot->module = *module;
		take_samples(module, &slot->samples);
		atomic_store_explicit(&slot->state, filled, memory_order_release);
		atomic_store_explicit(hint_of(module), (uint16_t)i, memory_order_relaxed);
		while (n <= i && !atomic_compare_exchange_weak(&n_slots, &n, i + 1))
			;
		return;
	}
}

/* The next tracked object from slot *i on; *i moves past it. */
static struct slot *next_used(uint32_t *i, uint32_t *state, struct module *module,
			      struct samples *samples)
{
	uint32_t n = atomic_load_explicit(&n_slots, memory_order_acquire);

	while (*i < n) {
		struct slot *slot = slot_at((*i)++);

		if (slot && copy_slot(slot, state, module, samples))
			return slot;
	}
	return NULL;
}

/* Found without a look-up: its samples show whether another object has taken its place. */
static __attribute__((noinline)) bool find_tracked(uintptr_t pc, struct module *module)
{
	struct samples samples;
	struct slot *slot;
	uint32_t state;

	for (uint32_t i = 0; (slot = next_used(&i, &state, module, &samples));) {
		if (pc - module->start >= module->end - module->start)
			continue;
		if (hold(&samples))
			return true;
		untrack(slot, state, module);
	}
	return false;
}

/*
 * Whether any slot tracks the object; others at its address are untracked. Not inlined: its copies
 * are off the stack during the look-up.
 */
static __attribute__((noinline)) bool is_tracked(const struct module *module)
{
	struct module other;
	struct slot *slot;
	uint32_t state;

	for (uint32_t i = 0; (slot = next_used(&i, &state, &other, NULL));) {
		if (is_same(&other, module)) {
			atomic_store_explicit(hint_of(module), (uint16_t)(i - 1),
					      memory_order_relaxed);
			return true;
		}
		if (other.start < module->end && module->start < other.end)
			untrack(slot, state, &other);
	}
	return false;
}

enum module_answer torsh_modules_find(uintptr_t pc, struct module *module)
{
	/* Reading maps is slow. */
	if (!dl_find_object && find_tracked(pc, module))
		return MODULE_KNOWN;
	if (!find_module(pc, module))
		return MODULE_NONE;
	if (is_hinted(module))
		return MODULE_KNOWN;
	describe(module, torsh_probe(module->start));
	if (is_tracked(module))
		return MODULE_KNOWN;
	track(module);
	return MODULE_NEW;
}

bool torsh_modules_is_in_place(uintptr_t pc, const struct module *known)
{
	struct module now;

	return dl_find_object && find_by_dl_find_object(pc, &now) && is_in_place(known, &now);
}

/*
 * For objects off the calling thread's stack only glibc's look-up is used: reading maps would read
 * the object, too.
 */
static bool is_loaded(const struct module *known)
{
	struct module now;

	if (!dl_find_object)
		return torsh_objects_is_linked(known->link_map);
	return find_by_dl_find_object(known->start, &now) && is_in_place(known, &now);
}

void torsh_modules_recheck(void)
{
	struct samples samples;
	struct module known;
	struct slot *slot;
	uint32_t state;

	for (uint32_t i = 0; (slot = next_used(&i, &state, &known, &samples));)
		if (!is_loaded(&known) || !hold(&samples))
			untrack(slot, state, &known);
}
