/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/session_heap.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/memory.h"
#include "tools/writer/fold/heap_state.h"

static void destroy_member(struct joint_member *member)
{
	free(member->log);
	free(member->shares);
	free(member);
}

void torsh_joint_destroy(struct joint *joint)
{
	while (joint->members) {
		struct joint_member *member = joint->members;

		joint->members = member->next;
		destroy_member(member);
	}
	*joint = (struct joint){0};
}

static struct joint_share *share_of(struct joint_member *member, uint32_t site)
{
	while (member->n_shares <= site) {
		member->shares = torsh_memory_grow(member->shares, &member->share_capacity, member->n_shares,
						   sizeof(*member->shares));
		member->n_shares++;
	}
	return &member->shares[site];
}

/* The first process's sum so far is the session's. */
static void begin_with(struct joint *joint, struct joint_member *member, struct heap *heap)
{
	torsh_axis_settle(&heap->axis);
	joint->axis = heap->axis;
	joint->settled = heap->axis.last_stamp;
	for (uint32_t i = 0; i < heap->n_sites; i++)
		share_of(member, i)->share = heap->sites[i].live;
}

struct joint_member *torsh_joint_add(struct joint *joint, struct heap *heap, uint32_t process)
{
	struct joint_member *member = torsh_memory_new(1, sizeof(*member));

	*member = (struct joint_member){
		.next = joint->members, .joint = joint, .heap = heap, .process = process, .step_name = heap->step_name};
	if (!joint->n_added++)
		begin_with(joint, member, heap);
	joint->members = member;
	heap->joint = member;
	return member;
}

void torsh_joint_note(struct joint_member *member, uint64_t stamp, uint32_t site, int64_t n, int64_t bytes)
{
	struct joint *joint = member->joint;

	if (__builtin_expect(stamp < joint->settled, 0)) {
		stamp = joint->settled;
		joint->late_changes++;
	}
	member->log = torsh_memory_grow(member->log, &member->capacity, member->n, sizeof(*member->log));
	member->log[member->n++] = (struct joint_change){.stamp = stamp, .bytes = bytes, .site = site, .n = (int32_t)n};
	joint->n_logged++;
}

void torsh_joint_name_step(struct joint_member *member, uint64_t stamp, uint32_t name, int is_by_optimizer)
{
	torsh_joint_note(member, stamp, is_by_optimizer ? JOINT_STEP_BY_OPTIMIZER : JOINT_STEP, (int32_t)name, 0);
}

void torsh_joint_end(struct joint_member *member, uint64_t stamp)
{
	const struct heap *heap = member->heap;
	uint64_t last = member->n ? member->log[member->n - 1].stamp : 0;

	for (uint32_t i = 0; i < heap->n_sites; i++)
		share_of(member, i)->stack = heap->sites[i].stack;
	member->heap = NULL;
	torsh_joint_note(member, stamp > last ? stamp : last, JOINT_NO_SITE, 0, 0);
}

/* All that the process still had, as one change of the sum. */
static void take_end(struct joint *joint, struct joint_member *member, uint64_t stamp)
{
	int64_t n = 0, bytes = 0;

	for (uint32_t i = 0; i < member->n_shares; i++) {
		n += (int64_t)member->shares[i].share.n;
		bytes += (int64_t)member->shares[i].share.bytes;
	}
	torsh_axis_change(&joint->axis, stamp, -n, -bytes);
	for (uint32_t i = 0; i < member->n_shares; i++) {
		struct share *share = &member->shares[i].share;

		torsh_share_change(share, &joint->axis, 0, -(int64_t)share->n, -(int64_t)share->bytes);
	}
	member->has_ended = 1;
}

static void take(struct joint *joint, struct joint_member *member)
{
	const struct joint_change *change = &member->log[member->first++];

	joint->n_logged--;
	if (change->site == JOINT_NO_SITE) {
		take_end(joint, member, change->stamp);
		return;
	}
	if (change->site >= JOINT_STEP_BY_OPTIMIZER) {
		member->step_name = (uint32_t)change->n;
		member->is_by_optimizer = change->site == JOINT_STEP_BY_OPTIMIZER;
		return;
	}
	torsh_axis_change(&joint->axis, change->stamp, change->n, change->bytes);
	torsh_share_change(&share_of(member, change->site)->share, &joint->axis, member->step_name, change->n,
			   change->bytes);
}

static uint64_t first_stamp(const struct joint_member *member)
{
	return member->first < member->n ? member->log[member->first].stamp : UINT64_MAX;
}

static int is_due(const struct joint_member *member, uint64_t stamp)
{
	return first_stamp(member) < stamp;
}

/* The most that the member's changes below the stamp raise the sum by, at any moment. */
static uint64_t rise_of(const struct joint_member *member, uint64_t stamp)
{
	int64_t sum = 0, most = 0;

	for (uint32_t i = member->first; i < member->n && member->log[i].stamp < stamp; i++) {
		sum += member->log[i].bytes;
		most = sum > most ? sum : most;
	}
	return (uint64_t)most;
}

static int may_break_record(const struct joint *joint, uint64_t stamp)
{
	uint64_t bound = joint->axis.bytes;

	for (const struct joint_member *member = joint->members; member; member = member->next)
		bound += rise_of(member, stamp);
	return bound > joint->axis.peak_bytes;
}

/* No moment of the span is a peak, in whatever order its changes are taken. */
static void take_one_by_one(struct joint *joint, uint64_t stamp)
{
	uint64_t last = joint->axis.last_stamp;

	for (struct joint_member *member = joint->members; member; member = member->next) {
		while (is_due(member, stamp))
			take(joint, member);
		last = joint->axis.last_stamp > last ? joint->axis.last_stamp : last;
	}
	joint->axis.last_stamp = last;
}

/* The member with the oldest change, NULL when none is below the stamp; *until: another one's turn, or the stamp. */
static struct joint_member *next_in_order(const struct joint *joint, uint64_t stamp, uint64_t *until)
{
	struct joint_member *next = NULL;
	uint64_t first = stamp;

	*until = stamp;
	for (struct joint_member *member = joint->members; member; member = member->next) {
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

static void take_in_order(struct joint *joint, uint64_t stamp)
{
	struct joint_member *member;
	uint64_t until;

	while ((member = next_in_order(joint, stamp, &until))) {
		do
			take(joint, member);
		while (is_due(member, until));
	}
}

/* What was taken leaves the log. */
static void shorten_log(struct joint_member *member)
{
	uint32_t n_left = member->n - member->first;

	if (!member->first || n_left > member->first)
		return;
	memcpy(member->log, member->log + member->first, n_left * sizeof(*member->log));
	member->first = 0;
	member->n = n_left;
}

static int had_share(const struct joint *joint, const struct joint_member *member)
{
	for (uint32_t i = 0; i < member->n_shares; i++) {
		if (torsh_joint_peak_bytes(joint, &member->shares[i]) || torsh_joint_peak_n(joint, &member->shares[i]))
			return 1;
	}
	return 0;
}

/* A process that ended and had nothing at the peak will never be asked for. */
static void forget_members(struct joint *joint)
{
	struct joint_member **at = &joint->members;

	while (*at) {
		struct joint_member *member = *at;

		if (!member->has_ended || member->kept_for == joint->axis.peak_number + 1) {
			at = &member->next;
		} else if (had_share(joint, member)) {
			member->kept_for = joint->axis.peak_number + 1;
			at = &member->next;
		} else {
			*at = member->next;
			destroy_member(member);
		}
	}
}

void torsh_joint_settle(struct joint *joint, uint64_t stamp)
{
	if (stamp <= joint->settled)
		return;
	if (joint->n_logged) {
		if (may_break_record(joint, stamp))
			take_in_order(joint, stamp);
		else
			take_one_by_one(joint, stamp);
		for (struct joint_member *member = joint->members; member; member = member->next)
			shorten_log(member);
		forget_members(joint);
	}
	joint->settled = stamp;
}
