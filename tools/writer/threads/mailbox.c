/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/mailbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/threads/drain/sleep.h"

void torsh_mailbox_create(struct mailbox *mailbox, int done_fd)
{
	*mailbox = (struct mailbox){.done_fd = done_fd};
	pthread_mutex_init(&mailbox->lock, NULL);
}

void torsh_mailbox_destroy(struct mailbox *mailbox)
{
	pthread_mutex_destroy(&mailbox->lock);
	free(mailbox->targets);
	free(mailbox->unfollowed);
	free(mailbox->exit_text);
}

void torsh_mailbox_wake(struct mailbox *mailbox)
{
	torsh_sleep_wake(&mailbox->wake_word);
}

void torsh_mailbox_notify(struct mailbox *mailbox)
{
	if (write(mailbox->done_fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
		fprintf(stderr, "torsh: the writer's threads can't be notified: %s\n",
			strerror(errno));
}

void torsh_mailbox_put_target(struct mailbox *mailbox, struct target *target)
{
	pthread_mutex_lock(&mailbox->lock);
	mailbox->targets =
		torsh_array_reserve(mailbox->targets, mailbox->n_targets, &mailbox->target_capacity,
				    sizeof(*mailbox->targets));
	mailbox->targets[mailbox->n_targets++] = target;
	pthread_mutex_unlock(&mailbox->lock);
	torsh_mailbox_wake(mailbox);
}

uint32_t torsh_mailbox_take_targets(struct mailbox *mailbox, struct target ***targets)
{
	uint32_t n;

	pthread_mutex_lock(&mailbox->lock);
	*targets = mailbox->targets;
	n = mailbox->n_targets;
	mailbox->targets = NULL;
	mailbox->n_targets = mailbox->target_capacity = 0;
	pthread_mutex_unlock(&mailbox->lock);
	return n;
}

void torsh_mailbox_put_unfollowed(struct mailbox *mailbox, struct unfollowed *unfollowed)
{
	pthread_mutex_lock(&mailbox->lock);
	mailbox->unfollowed =
		torsh_array_reserve(mailbox->unfollowed, mailbox->n_unfollowed,
				    &mailbox->unfollowed_capacity, sizeof(*mailbox->unfollowed));
	mailbox->unfollowed[mailbox->n_unfollowed++] = unfollowed;
	pthread_mutex_unlock(&mailbox->lock);
	torsh_mailbox_notify(mailbox);
}

struct unfollowed *torsh_mailbox_take_unfollowed(struct mailbox *mailbox)
{
	struct unfollowed *unfollowed = NULL;

	pthread_mutex_lock(&mailbox->lock);
	if (mailbox->n_unfollowed)
		unfollowed = mailbox->unfollowed[--mailbox->n_unfollowed];
	pthread_mutex_unlock(&mailbox->lock);
	return unfollowed;
}

void torsh_mailbox_put_exit_text(struct mailbox *mailbox, const char *text)
{
	pthread_mutex_lock(&mailbox->lock);
	free(mailbox->exit_text);
	mailbox->exit_text = torsh_memory_text(text);
	pthread_mutex_unlock(&mailbox->lock);
	torsh_mailbox_wake(mailbox);
}

char *torsh_mailbox_take_exit_text(struct mailbox *mailbox)
{
	char *text;

	pthread_mutex_lock(&mailbox->lock);
	text = mailbox->exit_text;
	mailbox->exit_text = NULL;
	pthread_mutex_unlock(&mailbox->lock);
	return text;
}
