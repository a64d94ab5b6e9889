/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/target.h"

#include <stdbool.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/writer/input/order.h"
#include "tools/writer/input/process_info.h"
#include "tools/writer/input/target_parts.h"
#include "tools/writer/output/rows/rows.h"

/*
 * Intervals between memory reads: short while its peak rises, because a program that ends without
 * libc sends no message.
 */
#define WATCH_OFTEN_NS 10000000u
#define WATCH_SELDOM_NS 200000000u
#define FOREIGN_NS 1000000000u

/* The pid that the target reports, unless it is in another pid namespace. */
static uint32_t parent_pid(const struct target *target)
{
	pid_t parent;

	if (target->start.pid == (uint32_t)target->pid)
		return target->start.parent_pid;
	parent = torsh_process_parent(target->stat_fd);
	return parent > 0 ? (uint32_t)parent : 0;
}

int torsh_target_create(struct target **created, int fd, pid_t pid, int pidfd)
{
	struct target *target = torsh_memory_new(1, sizeof(*target));
	int result = torsh_view_open(&target->view, fd);

	if (result)
		goto free;
	memcpy(&target->start, (const void *)target->view.header, sizeof(target->start));
	target->pid = pid;
	target->wait_status = -1;
	target->pidfd = pidfd;
	target->fold_until = target->account_until = ORDER_NO_BOUND;
	/* Without a pidfd, the pid may already be another process's. */
	target->status_fd = pidfd < 0 ? -1 : torsh_process_open_status(pid);
	target->stat_fd = pidfd < 0 ? -1 : torsh_process_open_stat(pid);
	target->parent_pid = parent_pid(target);
	torsh_process_usage_start(&target->usage, target->pid, target->stat_fd);
	target->slots = torsh_memory_new(target->view.n_slots, sizeof(*target->slots));
	target->consumers = torsh_memory_new(target->view.n_slots, sizeof(*target->consumers));
	target->lsan = torsh_memory_new(1, sizeof(*target->lsan));
	*created = target;
	return 0;
free:
	free(target);
	return result;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void torsh_target_destroy(struct target *target)
{
	for (uint32_t i = 0; i < target->n_consumers; i++)
		torsh_ring_consumer_destroy(target->consumers[i]);
	while (target->n_spare)
		torsh_ring_consumer_destroy(target->spare[--target->n_spare]);
	for (uint32_t i = 0; i < target->n_seen; i++)
		torsh_target_unmap_rings(target, i);
	torsh_process_state_destroy(&target->state);
	torsh_view_close(&target->view);
	close_if_open(target->pidfd);
	close_if_open(target->status_fd);
	close_if_open(target->stat_fd);
	free(target->slots);
	free(target->consumers);
	torsh_memory_windows_destroy(&target->windows);
	torsh_rows_state_destroy(target->rows);
	torsh_process_usage_free(&target->usage);
	free(target->lsan->suppressions);
	free(target->lsan);
	free(target);
}

static struct program_tables *find_tables(const struct target *target,
					  struct program_tables_set *set)
{
	struct program_tables *tables;
	size_t n;
	char *program;

	if (!set)
		return torsh_program_tables_create(target->number);
	program = torsh_view_text(&target->view, target->start.program, -1, &n);
	tables = torsh_program_tables_find(set, program, target->number);
	free(program);
	return tables;
}

static char *path_at(void *context, uint64_t address)
{
	const struct target *target = context;

	return target->status_fd < 0
		       ? NULL
		       : torsh_process_mapped_path(target->pid, target->status_fd, address);
}

void torsh_target_begin(struct target *target, const struct clock_conversion *clock,
			struct program_tables_set *set)
{
	uint64_t start = clock->start_ticks >> CHANNEL_STAMP_SHIFT;

	torsh_process_state_create(&target->state, &target->view, clock, find_tables(target, set),
				   target->number);
	target->state.mappings.path_at = path_at;
	target->state.mappings.path_context = target;
	torsh_heap_sample(&target->state.heap, target->view.heap_rate);
	target->is_clock_foreign =
		start > torsh_clock_now(clock) + torsh_clock_stamps_of_ns(clock, FOREIGN_NS);
}

void torsh_target_count_filters(const struct target *target, const struct process_status *status,
				uint64_t harmless_filters)
{
	struct channel_header *header = target->view.header;
	uint64_t n_under_way = harmless_filters / CHANNEL_FILTER_UNDER_WAY;
	uint64_t n_known = target->start.n_filters + (uint32_t)harmless_filters + n_under_way;

	if (target->start.n_filters != CHANNEL_FILTERS_UNKNOWN && status->n_filters > n_known &&
	    atomic_load(&header->harmless_filters) == harmless_filters)
		atomic_store_explicit(&header->has_new_filter, 1, memory_order_relaxed);
}

uint64_t torsh_target_watch(struct target *target, uint64_t now_ns)
{
	uint64_t next_ns = target->last_rss_ns + target->watch_every_ns;
	uint64_t harmless_filters = atomic_load(&target->view.header->harmless_filters);
	struct process_status status;
	uint64_t stamp;

	if (target->status_fd < 0)
		return UINT64_MAX;
	if (now_ns < next_ns)
		return next_ns;
	target->last_rss_ns = now_ns;
	stamp = torsh_clock_now(&target->state.clock);
	if (torsh_process_read_status(target->status_fd, &status))
		return UINT64_MAX;
	target->watch_every_ns *= 2;
	if (target->watch_every_ns > WATCH_SELDOM_NS)
		target->watch_every_ns = WATCH_SELDOM_NS;
	torsh_process_state_sample(&target->state, stamp, status.rss_bytes);
	if (status.rss_peak_bytes > target->rss_peak_bytes) {
		target->rss_peak_bytes = status.rss_peak_bytes;
		target->watch_every_ns = WATCH_OFTEN_NS;
	}
	torsh_target_count_filters(target, &status, harmless_filters);
	torsh_process_usage_sample(&target->usage, target->pid, target->stat_fd, &status, now_ns,
				   stamp);
	return now_ns + target->watch_every_ns;
}
