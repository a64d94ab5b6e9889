/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A process that was dormant rests once its writer has ended by `torsh stop`: it keeps its channel,
 * of which nobody reads, and sends nothing until it is armed again (agent/session/dormant.h). Then
 * the channel is used anew, with the same modules, codes and addresses: what the agent knows by
 * their numbers stays true. Each thread opens its producer again at its next event.
 */
#ifndef TORSH_AGENT_SESSION_REST_H
#define TORSH_AGENT_SESSION_REST_H

/* Begin to rest if the channel has ended. Any thread, in a hook or not. */
void torsh_rest_if_ended(void);

/* Record a dormant process from now on if it is armed, the first time or again. Likewise. */
void torsh_rest_arm(void);

#endif
