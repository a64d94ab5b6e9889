/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/session_heap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/fold/heap_state.h"

#define LOG_KEPT (1u << 14) /* changes for which a member always has room */

static void destroy_member(struct session_member *member)
{
	free(member->log);
	free(member->stacks);
	torsh_peak_usages_destroy(&member->usages);
	free(member);
}

void torsh_session_heap_destroy(struct session_heap *session_heap)
{
	while (session_heap->members) {
		struct session_member *member = session_heap->members;

		session_heap->members = member->next;
		destroy_member(member);
	}
	*session_heap = (struct session_heap){0};
}

struct site_usage torsh_session_heap_usage(const struct session_member *member, uint32_t site)
{
	return torsh_peak_usages_get(&member->usages, site, &member->session_heap->tracker);
}

uint32_t torsh_session_heap_stack(const struct session_member *member, uint32_t site)
{
	return member->heap ? member->heap->sites[site].stack : member->stacks[site];
}

static bool is_in_peak(const struct session_heap *session_heap, const struct site_usage *usage)
{
	return torsh_session_heap_peak_bytes(session_heap, usage) ||
	       torsh_session_heap_peak_n(session_heap, usage);
}

/* The first process's sum so far becomes the session's. */
static void begin_with(struct session_heap *session_heap, struct session_member *member,
		       struct heap *heap)
{
	torsh_peak_tracker_settle(&heap->tracker);
	session_heap->tracker = heap->tracker;
	session_heap->settled = heap->tracker.last_stamp;
	for (uint32_t i = 0; i < heap->n_sites; i++) {
		struct site_usage usage = torsh_heap_totals(heap, i).live;

		if (usage.n || usage.bytes || is_in_peak(session_heap, &usage))
			torsh_peak_usages_set(&member->usages, i, &session_heap->tracker, &usage);
	}
}

struct session_member *torsh_session_heap_add(struct session_heap *session_heap, struct heap *heap,
					      uint32_t process)
{
	struct session_member *member = torsh_memory_new(1, sizeof(*member));

	*member = (struct session_member){.next = session_heap->members,
					  .session_heap = session_heap,
					  .heap = heap,
					  .process = process,
					  .step_name = heap->step_name};
	if (!session_heap->n_added++)
		begin_with(session_heap, member, heap);
	session_heap->members = member;
	heap->session_heap = member;
	return member;
}

void torsh_session_heap_note(struct session_member *member, uint64_t stamp, uint32_t site,
			     int64_t n, int64_t bytes)
{
	struct session_heap *session_heap = member->session_heap;

	if (__builtin_expect(stamp < session_heap->settled, 0)) {
		stamp = session_heap->settled;
		session_heap->late_changes++;
	}
	member->log = torsh_array_reserve(member->log, member->n, &member->capacity,
					  sizeof(*member->log));
	member->log[member->n++] = (struct session_change){
		.stamp = stamp, .bytes = bytes, .site = site, .n = (int32_t)n};
	session_heap->n_logged++;
}

void torsh_session_heap_name_step(struct session_member *member, uint64_t stamp, uint32_t name,
				  bool is_by_optimizer)
{
	torsh_session_heap_note(member, stamp,
				is_by_optimizer ? SESSION_STEP_BY_OPTIMIZER : SESSION_STEP,
				(int32_t)name, 0);
}

void torsh_session_heap_end(struct session_member *member, uint64_t stamp)
{
	const struct heap *heap = member->heap;
	uint64_t last = member->n ? member->log[member->n - 1].stamp : 0;

	member->heap = NULL;
	member->n_stacks = heap->n_sites;
	member->stacks = torsh_memory_new(member->n_stacks, sizeof(*member->stacks));
	for (uint32_t i = 0; i < member->n_stacks; i++)
		member->stacks[i] = heap->sites[i].stack;
	torsh_session_heap_note(member, stamp > last ? stamp : last, SESSION_NO_SITE, 0, 0);
}

/* Remove everything that the process still held, as one change of the sum. */
static void take_end(struct session_heap *session_heap, struct session_member *member,
		     uint64_t stamp)
{
	uint32_t n_sites = (uint32_t)member->usages.n_codes;
	int64_t n = 0, bytes = 0;

	for (uint32_t i = 0; i < n_sites; i++) {
		struct site_usage usage = torsh_session_heap_usage(member, i);

		n += (int64_t)usage.n;
		bytes += (int64_t)usage.bytes;
	}
	torsh_peak_tracker_change(&session_heap->tracker, stamp, -n, -bytes);
	for (uint32_t i = 0; i < n_sites; i++) {
		struct site_usage usage = torsh_session_heap_usage(member, i);

		if (usage.n || usage.bytes)
			torsh_peak_usages_change(&member->usages, i, &session_heap->tracker, 0,
						 -(int64_t)usage.n, -(int64_t)usage.bytes);
	}
	member->has_ended = true;
}

static void take(struct session_heap *session_heap, struct session_member *member)
{
	const struct session_change *change = &member->log[member->first++];

	session_heap->n_logged--;
	if (change->site == SESSION_NO_SITE) {
		take_end(session_heap, member, change->stamp);
		return;
	}
	if (change->site >= SESSION_STEP_BY_OPTIMIZER) {
		member->step_name = (uint32_t)change->n;
		member->is_by_optimizer = change->site == SESSION_STEP_BY_OPTIMIZER;
		return;
	}
	torsh_peak_tracker_change(&session_heap->tracker, change->stamp, change->n, change->bytes);
	torsh_peak_usages_change(&member->usages, change->site, &session_heap->tracker,
				 member->step_name, change->n, change->bytes);
}

static uint64_t first_stamp(const struct session_member *member)
{
	return member->first < member->n ? member->log[member->first].stamp : UINT64_MAX;
}

static bool is_due(const struct session_member *member, uint64_t stamp)
{
	return first_stamp(member) < stamp;
}

/* Returns the greatest rise of the sum by the member's changes below the stamp, at any moment. */
static uint64_t rise_of(const struct session_member *member, uint64_t stamp)
{
	int64_t sum = 0, most = 0;

	for (uint32_t i = member->first; i < member->n && member->log[i].stamp < stamp; i++) {
		sum += member->log[i].bytes;
		most = sum > most ? sum : most;
	}
	return (uint64_t)most;
}

static bool may_break_record(const struct session_heap *session_heap, uint64_t stamp)
{
	uint64_t bound = session_heap->tracker.bytes;

	for (const struct session_member *member = session_heap->members; member;
	     member = member->next)
		bound += rise_of(member, stamp);
	return bound > session_heap->tracker.peak_bytes;
}

/* No moment in the span can be a peak, so the order of its changes does not matter. */
static void take_one_by_one(struct session_heap *session_heap, uint64_t stamp)
{
	uint64_t last = session_heap->tracker.last_stamp;

	for (struct session_member *member = session_heap->members; member; member = member->next) {
		while (is_due(member, stamp))
			take(session_heap, member);
		last = session_heap->tracker.last_stamp > last ? session_heap->tracker.last_stamp
							       : last;
	}
	session_heap->tracker.last_stamp = last;
}

/*
 * Returns the member with the oldest change below the stamp, or NULL; *until is the next member's
 * oldest change, or the stamp.
 */
static struct session_member *next_in_order(const struct session_heap *session_heap, uint64_t stamp,
					    uint64_t *until)
{
	struct session_member *next = NULL;
	uint64_t first = stamp;

	*until = stamp;
	for (struct session_member *member = session_heap->members; member; member = member->next) {
		uint64_t own = first_stamp(member);

		if (own < first) {
			*until = first;
			first = own;
			next = member;
		} else if (own < *until) {
			*until = own;
		}
	}
	return next;
}

static void take_in_order(struct session_heap *session_heap, uint64_t stamp)
{
	struct session_member *member;
	uint64_t until;

	while ((member = next_in_order(session_heap, stamp, &until))) {
		do
			take(session_heap, member);
		while (is_due(member, until));
	}
}

/* Drop the applied changes from the log, and its memory once few are left. */
static void shorten_log(struct session_member *member)
{
	uint32_t n_left = member->n - member->first;
	struct session_change *shorter;

	if (!member->first || n_left > member->first)
		return;
	memcpy(member->log, member->log + member->first, n_left * sizeof(*member->log));
	member->first = 0;
	member->n = n_left;
	if (member->capacity <= LOG_KEPT || n_left > LOG_KEPT / 2)
		return;
	shorter = realloc(member->log, LOG_KEPT * sizeof(*shorter));
	if (shorter) {
		member->log = shorter;
		member->capacity = LOG_KEPT;
	}
}

static bool was_in_peak(const struct session_member *member)
{
	for (uint32_t i = 0; i < member->usages.n_codes; i++) {
		struct site_usage usage = torsh_session_heap_usage(member, i);

		if (is_in_peak(member->session_heap, &usage))
			return true;
	}
	return false;
}

/* A process that ended and held nothing at the peak is no longer needed. */
static void forget_members(struct session_heap *session_heap)
{
	struct session_member **at = &session_heap->members;

	while (*at) {
		struct session_member *member = *at;

		if (!member->has_ended ||
		    member->kept_for == session_heap->tracker.peak_number + 1) {
			at = &member->next;
		} else if (was_in_peak(member)) {
			member->kept_for = session_heap->tracker.peak_number + 1;
			at = &member->next;
		} else {
			*at = member->next;
			destroy_member(member);
		}
	}
}

void torsh_session_heap_settle(struct session_heap *session_heap, uint64_t stamp)
{
	if (stamp <= session_heap->settled)
		return;
	if (session_heap->n_logged) {
		if (may_break_record(session_heap, stamp))
			take_in_order(session_heap, stamp);
		else
			take_one_by_one(session_heap, stamp);
		for (struct session_member *member = session_heap->members; member;
		     member = member->next)
			shorten_log(member);
		forget_members(session_heap);
	}
	session_heap->settled = stamp;
}
