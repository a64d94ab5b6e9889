/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The other ranks of a job: what makes one writer keep a copy makes all of them keep one. They meet
 * in a directory that all hosts share; one that keeps a copy puts a file there, whose name begins
 * with KEEP_PREFIX and which has the reason, and the others look for it once a second. A thread of
 * its own does that: a network's file system may not answer.
 */
#ifndef TORSH_WRITER_THREADS_KEEP_KEEP_PEERS_H
#define TORSH_WRITER_THREADS_KEEP_KEEP_PEERS_H

#include "tools/writer/threads/mailbox.h"

#define KEEP_PREFIX "torsh-keep-"

struct keep_peers;

/*
 * Start to look into the directory; mailbox is woken when another writer keeps a copy. Returns NULL
 * if the thread could not be started.
 */
struct keep_peers *torsh_keep_peers_start(const char *directory, struct mailbox *mailbox);

/* Inform the others, by a text of one line. */
void torsh_keep_peers_announce(struct keep_peers *peers, const char *text);

/* Returns the text of another one, which the caller frees, or NULL. */
char *torsh_keep_peers_take(struct keep_peers *peers);

/* Returns why the directory can't be used, which peers owns, or NULL; once. */
const char *torsh_keep_peers_problem(struct keep_peers *peers);

/* Stop the thread and free it. NULL: nothing. */
void torsh_keep_peers_stop(struct keep_peers *peers);

#endif
