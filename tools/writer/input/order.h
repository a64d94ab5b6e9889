/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An event is folded when no older event of its process can still arrive. Each ring gives a bound:
 * a lower limit for the stamp of its next unseen event.
 *
 *	events are at hand		the stamp of the first
 *	the ring was seen busy		the stamp of its last event: an event with that stamp or a
 *					later one is being written. Also if the ring was not
 *					copied completely
 *	the ring was seen idle		the time before it was looked at, minus ORDER_SLACK_NS
 *	the thread did not exist yet	the same
 *
 * The slack: a producer marks its ring busy by an ordinary store and then reads the counter. The
 * store may still be in the store buffer when the counter is read, so a ring that looks idle at T
 * may be about to receive an event with a stamp slightly below T. A store buffer drains in about a
 * microsecond, whatever happens to the thread: if the counter read has not retired, it is repeated
 * after an interrupt; if it has, the store before it has retired too. The time T itself is taken
 * before any ring is looked at.
 *
 * A thread may be stopped between the two (a debugger, more runnable threads than CPUs). Events of
 * other threads wait for it, and their rings fill, which frees the CPU for it. After
 * ORDER_TIMEOUT_NS without progress the writer stops waiting: events that arrive later are folded
 * late and counted in Heap.late_events.
 *
 * Within a ring stamps never decrease. Equal stamps of two threads are folded in any order.
 *
 * The counter may be set back, by a suspend or a move to another machine. The time is then the
 * counter plus a lift: the target's own (agent/producer/stamp.h), or before any of its threads has
 * stamped again the writer's (clock_conversion.h), which is the lower of the two. A thread that
 * stamps without the target's lift is the last one that stamped at all, and its stamps are above
 * its last event: all events in the rings are older.
 */
#ifndef TORSH_WRITER_INPUT_ORDER_H
#define TORSH_WRITER_INPUT_ORDER_H

#define ORDER_SLACK_NS 50000u
#define ORDER_TIMEOUT_NS 1000000000u
#define ORDER_NO_BOUND UINT64_MAX /* no event can arrive any more */

#endif
