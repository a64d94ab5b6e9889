/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reading a counter of the PMU from its mapped page, without a system call: the sequence that
 * linux/perf_event.h documents at struct perf_event_mmap_page. The thread itself may be switched
 * out in between: the kernel changes `lock` then.
 */
#ifndef TORSH_SHIM_PERF_PERF_PAGE_H
#define TORSH_SHIM_PERF_PERF_PAGE_H

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PERF_PAGE_TRIES 64u
#define PERF_PAGE_SHORT_TIME (UINT64_C(1) << 5) /* cap_user_time_short, of later headers */

struct perf_reading {
	uint64_t value, enabled_ns, running_ns;
};

/* How the page's instruction set reads a counter, and the clock of its times. */
struct perf_instructions {
	uint64_t (*counter)(uint32_t index);
	uint64_t (*ticks)(void);
};

/* Whether the kernel allows it, and the code here can. */
static inline bool torsh_perf_page_is_usable(const volatile struct perf_event_mmap_page *page)
{
	return page->cap_user_rdpmc;
}

/* Counters have fewer bits than the result: the uppermost is the sign. */
static inline int64_t torsh_perf_page_extend(uint64_t counter, uint32_t width)
{
	return width && width < 64 ? (int64_t)(counter << (64 - width)) >> (64 - width)
				   : (int64_t)counter;
}

/* How much time passed since the kernel wrote the page's times. */
static inline uint64_t torsh_perf_page_since(const volatile struct perf_event_mmap_page *page,
					     uint64_t ticks)
{
	uint16_t shift = page->time_shift;
	uint64_t mult = page->time_mult, whole = ticks >> shift,
		 rest = ticks & ((UINT64_C(1) << shift) - 1);

	return page->time_offset + whole * mult + ((rest * mult) >> shift);
}

/*
 * Read the counter of this page. has_times: also the times up to now. Returns false if the kernel
 * changes the page without end.
 */
static inline __attribute__((always_inline)) bool
torsh_perf_page_read(const volatile struct perf_event_mmap_page *page,
		     const struct perf_instructions *cpu, bool has_times,
		     struct perf_reading *reading)
{
	for (uint32_t i = 0; i < PERF_PAGE_TRIES; i++) {
		uint32_t lock = page->lock, index;
		uint64_t since_ns = 0;
		int64_t value;

		atomic_signal_fence(memory_order_seq_cst);
		index = page->index;
		value = page->offset;
		reading->enabled_ns = page->time_enabled;
		reading->running_ns = page->time_running;
		if (has_times && page->cap_user_time &&
		    !(page->capabilities & PERF_PAGE_SHORT_TIME))
			since_ns = torsh_perf_page_since(page, cpu->ticks());
		if (index && page->cap_user_rdpmc)
			value += torsh_perf_page_extend(cpu->counter(index - 1), page->pmc_width);
		reading->value = (uint64_t)value;
		reading->enabled_ns += since_ns;
		reading->running_ns += index ? since_ns : 0;
		atomic_signal_fence(memory_order_seq_cst);
		if (page->lock == lock)
			return true;
	}
	return false;
}

#endif
