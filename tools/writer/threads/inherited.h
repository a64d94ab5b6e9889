/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a process gets from the one that started it and the writer has no use for: signals that are
 * sent to a whole job, a real-time priority, few CPUs, the target's place in the order in which the
 * kernel kills when memory runs out.
 */
#ifndef TORSH_WRITER_THREADS_INHERITED_H
#define TORSH_WRITER_THREADS_INHERITED_H

/*
 * Drop all of that, as far as the process may. Called once, by the main thread, before other
 * threads are started.
 */
void torsh_inherited_drop(void);

#endif
