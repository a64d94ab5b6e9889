/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Resets inherited process attributes that the writer must not keep: signals sent to a whole job,
 * real-time priority, a restricted CPU affinity, and the target's OOM score.
 */
#ifndef TORSH_WRITER_THREADS_INHERITED_H
#define TORSH_WRITER_THREADS_INHERITED_H

/*
 * Reset all of them, as far as permitted. Called once, by the main thread, before other threads are
 * started.
 */
void torsh_inherited_drop(void);

#endif
