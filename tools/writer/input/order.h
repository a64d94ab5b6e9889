/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When may an event be folded? When no older event of its process can still come. Each ring gives a
 * bound: the stamp that its next unseen event can't be below.
 *
 *	events are at hand		the stamp of the first
 *	the ring was seen busy		the stamp of its last event: an event with that stamp or a
 *					later one is being written. So is the case when not all of
 *					the ring was copied
 *	the ring was seen idle		the time before it was looked at, less ORDER_SLACK_NS
 *	the thread didn't exist yet	the same
 *
 * The slack: a producer marks its ring busy by an ordinary store and then reads the counter. The
 * store may sit in the store buffer while the counter is read already, so that a ring that looks
 * idle at T may have an event with a stamp somewhat below T on its way. A store buffer drains in a
 * microsecond or so, whatever happens to the thread: a stamp that is not retired is read anew after
 * an interrupt, one that is has its store retired before it. The time T itself is taken before any
 * ring is looked at.
 *
 * A thread may be stopped between the two (a debugger, more runnable threads than CPUs). The
 * others' events wait for it, and their rings fill, so that the CPU comes free for it. After
 * ORDER_TIMEOUT_NS without progress it is not waited for any more: what comes after all is folded
 * when it comes, and counted in Heap.late_events.
 *
 * Within a ring stamps never go back. Equal stamps of two threads: any order.
 *
 * The counter may be set back, by a suspend or a move to another machine. The time is then the
 * counter and a lift: the target's own (agent/producer/stamp.h), or before any of its threads has
 * stamped again the writer's (clock_conversion.h), which is the lower of the two. A thread that
 * stamps without the target's lift is the last that stamped at all, and stamps above its last
 * event: all that is at hand is older.
 */
#ifndef TORSH_WRITER_INPUT_ORDER_H
#define TORSH_WRITER_INPUT_ORDER_H

#define ORDER_SLACK_NS 50000u
#define ORDER_TIMEOUT_NS 1000000000u
#define ORDER_NO_BOUND UINT64_MAX /* nothing can come any more */

#endif
