/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How a thread's flow is born at its first event and ends with the thread.
 */
#ifndef TORSH_AGENT_BIRTH_H
#define TORSH_AGENT_BIRTH_H

/* One time in a process image, before the first flow: makes the key whose destructor ends flows. 0 or -errno. */
int torsh_birth_start(void);

/* Make the calling thread's flow. NULL when it can't have one; its events are then counted as lost. */
struct flow *torsh_birth_flow(void);

#endif
