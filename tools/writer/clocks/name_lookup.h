/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Resolves the names of TORSH_PROFILER_CLOCK_PEERS on a thread of its own, as that may block for as
 * long as servers of names don't answer. The writer's end doesn't wait for it.
 */
#ifndef TORSH_WRITER_CLOCKS_NAME_LOOKUP_H
#define TORSH_WRITER_CLOCKS_NAME_LOOKUP_H

#include "tools/writer/clocks/clock_peer.h"

struct name_lookup;

/* Start with a copy of the names; wake_fd, an eventfd, is written to after each. NULL: it fails. */
struct name_lookup *torsh_name_lookup_start(const struct clock_peer_names *names, int wake_fd);

/* Set the peer's address if name i is resolved. */
void torsh_name_lookup_take(struct name_lookup *lookup, size_t i, struct clock_peer *peer);

/* Put why name i isn't resolved, and return true; false: it is, or nobody knows yet. */
bool torsh_name_lookup_trouble(struct name_lookup *lookup, size_t i, char *out, size_t n);

/* Leave it alone: its memory is freed once its thread has ended. NULL is ignored. */
void torsh_name_lookup_leave(struct name_lookup *lookup);

#endif
