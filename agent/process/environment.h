/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The environment of children: the agent preloaded by its absolute path, and the session to join,
 * even if the caller removed them.
 */
#ifndef TORSH_AGENT_PROCESS_ENVIRONMENT_H
#define TORSH_AGENT_PROCESS_ENVIRONMENT_H

#include <stddef.h>

/*
 * The LD_PRELOAD and TORSH_PROFILER_* entries of envp, copied at the first call: programs that
 * rewrite their process title overwrite their initial environment. The strings live as long as the
 * process. Start only.
 */
char *const *torsh_environment_own(char *const *envp);

/*
 * Set the variable name to path, here and in children, unless it has a value. Called before
 * torsh_environment_start, at most four times.
 */
void torsh_environment_inject(const char *name, const char *path);

/*
 * Store what children inherit (agent_path absolute, the session's socket or NULL, this process's
 * TORSH_PROFILER_* values), and set it in this process's environment. Called once.
 */
void torsh_environment_start(const char *agent_path, const char *session);

/*
 * Replace the session, which was "" at torsh_environment_start: the strings in this process's
 * environment and in children's change in place.
 */
void torsh_environment_set_session(const char *session);

/*
 * The slots, each a pointer, that torsh_environment_for_child needs for envp; 0: envp can be passed
 * on as it is.
 */
size_t torsh_environment_slots(char *const *envp);

/*
 * Like torsh_environment_slots, for torsh_environment_apart: the slots for a child that must not
 * load the agent.
 */
size_t torsh_environment_slots_apart(char *const *envp);

/*
 * Returns envp without the agent and the variables that load it, built in slots; other preloads
 * stay. Strings are owned as in torsh_environment_for_child. Async-signal-safe.
 */
char *const *torsh_environment_apart(char *const *envp, char **slots);

/*
 * The child's environment, made from envp in slots. Its strings are envp's, lie in slots, or live
 * as long as the process. Async-signal-safe.
 */
char *const *torsh_environment_for_child(char *const *envp, char **slots);

#endif
