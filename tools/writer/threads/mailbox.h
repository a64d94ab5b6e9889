/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the control thread and the drain thread exchange: new targets and the text that an exiting
 * process prints in one direction, processes to watch in the other. The control thread wakes the
 * drain thread through a futex, the drain thread notifies the control thread through an eventfd.
 */
#ifndef TORSH_WRITER_THREADS_MAILBOX_H
#define TORSH_WRITER_THREADS_MAILBOX_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/input/target.h"
#include "tools/writer/input/unfollowed.h"

struct mailbox {
	/* incremented by each wake; the drain thread reads it before it looks, and sleeps on it */
	_Atomic uint32_t wake_word;
	int done_fd; /* an eventfd, owned by the caller */
	pthread_mutex_t lock; /* guards the following fields */
	struct target **targets;
	uint32_t n_targets;
	size_t target_capacity;
	struct unfollowed **unfollowed;
	uint32_t n_unfollowed;
	size_t unfollowed_capacity;
	char *exit_text; /* NULL: none yet */
};

/* An empty mailbox; done_fd stays the caller's. */
void torsh_mailbox_create(struct mailbox *mailbox, int done_fd);

/* Free the mailbox, but not its targets and processes. */
void torsh_mailbox_destroy(struct mailbox *mailbox);

/* Wake the drain thread: something has changed. */
void torsh_mailbox_wake(struct mailbox *mailbox);

/* Write to done_fd: the control thread has something to do. */
void torsh_mailbox_notify(struct mailbox *mailbox);

/* Control thread: hand a new target over. */
void torsh_mailbox_put_target(struct mailbox *mailbox, struct target *target);

/* Drain thread: all new targets, in an array that the caller frees. Returns their number. */
uint32_t torsh_mailbox_take_targets(struct mailbox *mailbox, struct target ***targets);

/* Drain thread: request that the process be watched. */
void torsh_mailbox_put_unfollowed(struct mailbox *mailbox, struct unfollowed *unfollowed);

/* Control thread: a process to watch, or NULL. */
struct unfollowed *torsh_mailbox_take_unfollowed(struct mailbox *mailbox);

/* Control thread: set what the exiting process prints; the text is copied. */
void torsh_mailbox_put_exit_text(struct mailbox *mailbox, const char *text);

/* Drain thread: that text, which the caller frees, or NULL. */
char *torsh_mailbox_take_exit_text(struct mailbox *mailbox);

#endif
