/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Unmaps pages that only unwinding has read. */
#include "agent/stack/unwind_pages.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "agent/modules/memory_probe.h"
#include "shim/sys.h"

#define COUNT_BITS 8
/*
 * Unmapping costs some microseconds, and the next reads cause page faults. What stays mapped
 * depends on how many pieces of code the reads were for: each piece has about as much unwind
 * information as one fault maps.
 */
#define PIECE_BITS 19
#define PIECES_PER_RELEASE 6
#define READS_PER_RELEASE 64

/* What was read of a module since its last release. */
struct reads {
	_Atomic uint64_t pieces; /* bit (address >> PIECE_BITS) % 64 */
	_Atomic uint32_t n;
};

/* By a hash of the module's place; two modules with the same hash are released a little earlier. */
static struct reads all[1 << COUNT_BITS];

/*
 * Whether a page is still the file's, unwritten through this mapping: programs restored from a
 * checkpoint have private copies instead. The kernel's results for removing the two kinds differ.
 */
static bool is_of_file(uintptr_t page)
{
	return TORSH_SYS(SYS_madvise, page, PROBE_PAGE_BYTES, MADV_REMOVE, 0, 0, 0) == -EACCES;
}

static void release(const struct module *module)
{
	struct object_span span;

	if (!module->is_start_readable ||
	    !torsh_object_clean_span(module->start, &module->memory,
				     (uintptr_t)module->eh_frame_hdr, &span))
		return;
	if (is_of_file(span.start) && is_of_file(span.end - PROBE_PAGE_BYTES))
		TORSH_SYS(SYS_madvise, span.start, span.end - span.start, MADV_DONTNEED, 0, 0, 0);
}

void torsh_unwind_pages_were_read(const struct module *module, uintptr_t pc)
{
	uint64_t hash = (module->start >> 12) * UINT64_C(0x9e3779b97f4a7c15);
	struct reads *reads = &all[hash >> (64 - COUNT_BITS)];
	uint64_t piece = UINT64_C(1) << (pc >> PIECE_BITS) % 64;
	uint64_t pieces = atomic_fetch_or_explicit(&reads->pieces, piece, memory_order_relaxed);
	uint32_t n = atomic_fetch_add_explicit(&reads->n, 1, memory_order_relaxed) + 1;

	if (n < READS_PER_RELEASE && __builtin_popcountll(pieces | piece) < PIECES_PER_RELEASE)
		return;
	atomic_store_explicit(&reads->pieces, 0, memory_order_relaxed);
	atomic_store_explicit(&reads->n, 0, memory_order_relaxed);
	release(module);
}
