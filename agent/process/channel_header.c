/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a channel's header contains about its process: pid, clock, program, arguments and notes. */
#include "agent/process/channel_header.h"

#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/process/clocks.h"
#include "agent/process/config.h"
#include "agent/launch/launcher.h"
#include "agent/process/paths.h"
#include "agent/process/process.h"
#include "agent/producer/counter.h"
#include "agent/producer/lifecycle.h"
#include "shim/find_text.h"
#include "shim/libc/boot.h"
#include "shim/libc/next.h"
#include "shim/pause.h"

#define ARGUMENTS_MAX (32u << 10) /* bytes; longer arguments are cut, with a note */
#define STATUS_BYTES (1u << 20) /* a process may be in 65,536 groups, which are listed first */

static long read_file(const char *path, char *buffer, size_t n_bytes)
{
	long fd = TORSH_SYS(SYS_openat, -100 /* AT_FDCWD */, path, 02000000 /* O_CLOEXEC */, 0, 0,
			    0),
	     n, total = 0;

	if (fd < 0)
		return fd;
	while (total < (long)n_bytes &&
	       (n = TORSH_SYS(SYS_read, fd, buffer + total, n_bytes - (size_t)total, 0, 0, 0)) > 0)
		total += n;
	TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
	return total;
}

/* The number in the line "Seccomp_filters:	2" of the text. */
static uint32_t find_filters(const char *status)
{
	const char *at = torsh_find_text(status, "Seccomp_filters:");
	uint32_t n = 0;

	if (!at)
		return CHANNEL_FILTERS_UNKNOWN;
	for (at += 16; *at == ' ' || *at == '\t'; at++)
		;
	for (; *at >= '0' && *at <= '9'; at++)
		n = n * 10 + (uint32_t)(*at - '0');
	return n;
}

/*
 * Filters of the calling thread, the only one. Not on the stack: fork may be called on a signal
 * handler's.
 */
static uint32_t count_filters(void)
{
	char *status;
	uint32_t n = CHANNEL_FILTERS_UNKNOWN;

	if (TORSH_SYS(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) == SECCOMP_MODE_DISABLED)
		return 0;
	status = torsh_sys_pages(STATUS_BYTES); /* zeroed */
	if (!status)
		return n;
	if (read_file("/proc/self/status", status, STATUS_BYTES - 1) > 0)
		n = find_filters(status);
	torsh_sys_munmap(status, STATUS_BYTES);
	return n;
}

void torsh_channel_header_choose_clock(void)
{
	char source[16];
	long n;

#if defined(__x86_64__)
	n = read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
		      sizeof(source));
	torsh_producer_clock_is_monotonic = n > 0 && strncmp(source, "tsc", 3) &&
					    strncmp(source, "kvm-clock", 9) &&
					    strncmp(source, "hyperv", 6);
#else
	(void)source;
	(void)n;
#endif
}

void torsh_channel_header_fill(struct channel_header *header)
{
	header->magic = CHANNEL_MAGIC;
	header->version = CHANNEL_VERSION;
	header->header_bytes = CHANNEL_HEADER_BYTES;
	header->pid = (uint32_t)torsh_sys_getpid();
	header->parent_pid = (uint32_t)getppid();
	header->n_filters = count_filters();
	header->clock =
		torsh_producer_clock_is_monotonic ? CHANNEL_CLOCK_MONOTONIC : CHANNEL_CLOCK_TSC;
	header->stamp_shift = CHANNEL_STAMP_SHIFT;
	header->wants_verdicts = torsh_config.reachability && !torsh_config.heap_rate &&
				 torsh_config.activities & ACTIVITY_HEAP;
	header->heap_is_off = PAUSE_FOR_GOOD;
	header->may_rest = torsh_agent_may_rest();
	torsh_clocks_read(header);
}

static void describe_arguments(struct channel *channel)
{
	char *arguments = torsh_sys_pages(ARGUMENTS_MAX + 1);
	long n = arguments ? read_file("/proc/self/cmdline", arguments, ARGUMENTS_MAX + 1) : 0;

	if (n > (long)ARGUMENTS_MAX) {
		n = ARGUMENTS_MAX;
		torsh_channel_note(
			channel,
			"the program's arguments are longer than 32 KiB: the rest is not in "
			"the recording");
	}
	channel->header->arguments =
		torsh_channel_add_text(channel, arguments, n > 0 ? (size_t)n : 0);
	if (arguments)
		torsh_sys_munmap(arguments, ARGUMENTS_MAX + 1);
}

static void describe_identity(struct channel *channel)
{
	struct text text = torsh_text_map(LAUNCHER_BYTES);

	torsh_launcher_put(&text, torsh_config.labels);
	if (text.length)
		channel->header->identity =
			torsh_channel_add_text(channel, text.bytes, text.length);
	torsh_text_unmap(&text);
}

__attribute__((noinline)) void torsh_channel_header_describe(struct channel *channel)
{
	const char *allocator = torsh_next_allocator(), *rank = torsh_launcher_rank(),
		   *program = torsh_agent_program();

	channel->header->program = torsh_channel_add_text(channel, program, strlen(program));
	describe_arguments(channel);
	channel->header->allocator = torsh_channel_add_text(channel, allocator, strlen(allocator));
	if (rank)
		channel->header->rank = torsh_channel_add_text(channel, rank, strlen(rank));
	describe_identity(channel);
	torsh_channel_header_note(channel);
}

void torsh_channel_header_note(struct channel *channel)
{
	const char *problem = torsh_next_problem();
	size_t boot_bytes;

	if (problem)
		torsh_channel_note(channel, problem);
	if (!torsh_paths_has_proc())
		torsh_channel_note(
			channel,
			"/proc can't be read: the program's name is the one that it was started by, its "
			"arguments and its highest resident set are unknown");
	if (!torsh_config.profile_memory)
		torsh_count(COUNTER_memory_left_out);
	if (!(torsh_config.activities & ACTIVITY_HEAP)) {
		torsh_count(COUNTER_heap_left_out);
		torsh_channel_note(channel, "the heap is not recorded: that was not requested");
	}
	torsh_count_many(COUNTER_boot_blocks, torsh_boot_served(&boot_bytes));
	torsh_count_many(COUNTER_boot_bytes, boot_bytes);
}

static void reuse_slot(struct channel *channel, uint32_t i)
{
	struct thread_slot *slot = torsh_channel_slot(channel, i);
	uint32_t active = THREAD_SLOT_ACTIVE, closed = THREAD_SLOT_CLOSED;

	if (!slot)
		return;
	atomic_store_explicit(&slot->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->head, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->produced, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->dropped, 0, memory_order_relaxed);
	/* Its thread may be closing it: it is closed then, and the writer frees it. */
	if (!atomic_compare_exchange_strong(&slot->state, &active, THREAD_SLOT_CLAIMED) &&
	    atomic_compare_exchange_strong(&slot->state, &closed, THREAD_SLOT_FREE))
		torsh_channel_push_free(channel->header, slot, i);
}

/* Zero the header from member `from` up to, not including, `to`. */
#define ZERO(header, from, to)                                              \
	memset((char *)(header) + offsetof(struct channel_header, from), 0, \
	       offsetof(struct channel_header, to) - offsetof(struct channel_header, from))

void torsh_channel_header_reuse(struct channel *channel)
{
	struct channel_header *header = channel->header;
	uint32_t n = atomic_load_explicit(&header->n_threads, memory_order_relaxed);

	for (uint32_t i = 0; i < n && i < header->n_thread_slots; i++)
		reuse_slot(channel, i);
	header->forked_from = 0;
	header->forked_from_ticks = 0;
	/* All but the layout, the texts, the tables' marks, the free slots and the clocks. */
	ZERO(header, writer_pid, free_slots);
	ZERO(header, n_closed, clock_reference);
	ZERO(header, switch_signals, call_memory);
	memset(torsh_channel_text(channel, 0), 0, CHANNEL_NOTES_BYTES);
}

#undef ZERO
