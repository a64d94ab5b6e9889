/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/loader/rebinding.h"

#include <link.h>

#include "shim/find_text.h"
#include "shim/loader/objects.h"
#include "shim/loader/unloading.h"

static _Atomic uint32_t n_loads; /* dlopen was called */

struct pass {
	const struct rebinding *rebinding;
	bool is_start, is_done, has_library;
	uint64_t adds, subs, n, n_skipped;
};

static int count_objects(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	struct pass *pass = context;

	(void)n_bytes;
	pass->adds = object->dlpi_adds;
	pass->subs = object->dlpi_subs;
	pass->has_library |= !pass->rebinding->library ||
			     torsh_find_text(object->dlpi_name, pass->rebinding->library);
	return pass->has_library;
}

static int look_at(struct dl_phdr_info *object, size_t n_bytes, void *context)
{
	struct pass *pass = context;
	const struct rebinding *rebinding = pass->rebinding;

	(void)n_bytes;
	if (pass->n++ < pass->n_skipped)
		return 0;
	if (rebinding->before)
		rebinding->before(object);
	if (!torsh_bindings_change(object, pass->is_start, &rebinding->bindings))
		pass->is_done = false;
	if (rebinding->after)
		rebinding->after(object);
	return 0;
}

/* New objects are at the end of the list as long as none was closed. */
static void look(struct rebinding *rebinding, bool is_start)
{
	struct pass pass = {.rebinding = rebinding, .is_start = is_start, .is_done = true};
	uint32_t loads = atomic_load_explicit(&n_loads, memory_order_acquire);

	dl_iterate_phdr(count_objects, &pass);
	if (pass.adds == atomic_load_explicit(&rebinding->adds, memory_order_relaxed)) {
		atomic_store_explicit(&rebinding->n_seen_loads, loads, memory_order_relaxed);
		return;
	}
	if (pass.has_library && (!rebinding->find || rebinding->find())) {
		if (pass.subs == atomic_load_explicit(&rebinding->subs, memory_order_relaxed))
			pass.n_skipped = atomic_load_explicit(&rebinding->n, memory_order_relaxed);
		dl_iterate_phdr(look_at, &pass);
		atomic_store_explicit(&rebinding->n, pass.is_done ? pass.n : 0,
				      memory_order_relaxed);
	}
	if (!pass.is_done)
		return;
	atomic_store_explicit(&rebinding->adds, pass.adds, memory_order_relaxed);
	atomic_store_explicit(&rebinding->subs, pass.subs, memory_order_relaxed);
	atomic_store_explicit(&rebinding->n_seen_loads, loads, memory_order_relaxed);
}

void torsh_rebinding_start(struct rebinding *rebinding)
{
	look(rebinding, true);
}

void torsh_rebinding_loading(void)
{
	atomic_fetch_add_explicit(&n_loads, 1, memory_order_release);
}

void torsh_rebinding_recheck(struct rebinding *rebinding)
{
	if (atomic_load_explicit(&n_loads, memory_order_relaxed) ==
		    atomic_load_explicit(&rebinding->n_seen_loads, memory_order_relaxed) ||
	    torsh_objects_is_forked_child() || !torsh_unloading_forbid())
		return;
	look(rebinding, false);
	torsh_unloading_allow();
}
