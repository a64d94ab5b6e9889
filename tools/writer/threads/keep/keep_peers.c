/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/keep/keep_peers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

#define LOOK_EVERY_S 1
#define TEXT_BYTES 512u
#define NAMES_MAX 65536u /* in the directory; others are not looked at */

struct keep_peers {
	char *directory;
	struct mailbox *mailbox;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	bool is_stopping;
	char *to_announce, *announced;
	int error; /* errno of the directory, or 0 */
	bool has_reported;
	char problem[512];

	/* Used only by the thread. */
	char **seen; /* names in the directory, sorted */
	size_t n_seen, seen_capacity;
	bool has_looked; /* what was there before is nobody's news */
	uint32_t n_written;
};

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static bool has_seen(const struct keep_peers *peers, char *name)
{
	return peers->n_seen &&
	       bsearch(&name, peers->seen, peers->n_seen, sizeof(name), compare_names);
}

static void add_seen(struct keep_peers *peers, const char *name)
{
	peers->seen = torsh_array_reserve(peers->seen, peers->n_seen, &peers->seen_capacity,
					  sizeof(*peers->seen));
	peers->seen[peers->n_seen++] = torsh_memory_text(name);
	qsort(peers->seen, peers->n_seen, sizeof(*peers->seen), compare_names);
}

/* Returns the file's line, or NULL. */
static char *read_text(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char text[TEXT_BYTES];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return NULL;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	for (char *c = text; *c; c++)
		*c = (unsigned char)*c < ' ' ? '?' : *c;
	return torsh_memory_text(text);
}

/* Returns the text of a new file, or NULL; *error becomes an errno if that is why. */
static char *look(struct keep_peers *peers, int *error)
{
	DIR *directory = opendir(peers->directory);
	char *text = NULL;
	struct dirent *entry;

	if (!directory) {
		*error = errno;
		return NULL;
	}
	while ((entry = readdir(directory)) && peers->n_seen < NAMES_MAX) {
		if (strncmp(entry->d_name, KEEP_PREFIX, strlen(KEEP_PREFIX)) ||
		    has_seen(peers, entry->d_name))
			continue;
		if (peers->has_looked && !text) {
			text = read_text(dirfd(directory), entry->d_name);
			/* It may still be empty: it is looked at again. */
			if (!text)
				continue;
		}
		add_seen(peers, entry->d_name);
	}
	closedir(directory);
	peers->has_looked = true;
	return text;
}

/* The file appears with its text: it is renamed. */
static void put(struct keep_peers *peers, const char *text, int *error)
{
	char host[256] = "", name[400], hidden[416];
	int directory = open(peers->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	if (directory < 0) {
		*error = errno;
		return;
	}
	gethostname(host, sizeof(host) - 1);
	snprintf(name, sizeof(name), "%s%s-%d-%u", KEEP_PREFIX, host, (int)getpid(),
		 ++peers->n_written);
	snprintf(hidden, sizeof(hidden), ".%s", name);
	fd = openat(directory, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || dprintf(fd, "%s\n", text) < 0 || renameat(directory, hidden, directory, name))
		*error = errno;
	if (fd >= 0)
		close(fd);
	close(directory);
	add_seen(peers, name);
}

/* Without the lock: a call may take long. */
static void work(struct keep_peers *peers)
{
	char *to_announce = peers->to_announce, *announced;
	int error = 0;

	peers->to_announce = NULL;
	pthread_mutex_unlock(&peers->lock);
	if (to_announce)
		put(peers, to_announce, &error);
	announced = look(peers, &error);
	free(to_announce);
	pthread_mutex_lock(&peers->lock);
	peers->error = error;
	if (announced) {
		free(peers->announced);
		peers->announced = announced;
	}
	if (announced || (error && !peers->has_reported))
		torsh_mailbox_wake(peers->mailbox);
}

static void *run(void *argument)
{
	struct keep_peers *peers = argument;
	struct timespec until;

	pthread_mutex_lock(&peers->lock);
	while (!peers->is_stopping || peers->to_announce) {
		work(peers);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += LOOK_EVERY_S;
		while (!peers->is_stopping && !peers->to_announce &&
		       pthread_cond_timedwait(&peers->changed, &peers->lock, &until) != ETIMEDOUT)
			;
	}
	pthread_mutex_unlock(&peers->lock);
	return NULL;
}

static void destroy(struct keep_peers *peers)
{
	for (size_t i = 0; i < peers->n_seen; i++)
		free(peers->seen[i]);
	free(peers->seen);
	free(peers->announced);
	free(peers->to_announce);
	free(peers->directory);
	pthread_cond_destroy(&peers->changed);
	pthread_mutex_destroy(&peers->lock);
	free(peers);
}

struct keep_peers *torsh_keep_peers_start(const char *directory, struct mailbox *mailbox)
{
	struct keep_peers *peers = torsh_memory_new(1, sizeof(*peers));

	peers->directory = torsh_memory_text(directory);
	peers->mailbox = mailbox;
	pthread_mutex_init(&peers->lock, NULL);
	pthread_cond_init(&peers->changed, NULL);
	if (!pthread_create(&peers->thread, NULL, run, peers))
		return peers;
	destroy(peers);
	return NULL;
}

void torsh_keep_peers_announce(struct keep_peers *peers, const char *text)
{
	pthread_mutex_lock(&peers->lock);
	free(peers->to_announce);
	peers->to_announce = torsh_memory_text(text);
	pthread_cond_signal(&peers->changed);
	pthread_mutex_unlock(&peers->lock);
}

char *torsh_keep_peers_take(struct keep_peers *peers)
{
	char *announced;

	pthread_mutex_lock(&peers->lock);
	announced = peers->announced;
	peers->announced = NULL;
	pthread_mutex_unlock(&peers->lock);
	return announced;
}

const char *torsh_keep_peers_problem(struct keep_peers *peers)
{
	const char *problem = NULL;

	pthread_mutex_lock(&peers->lock);
	if (peers->error && !peers->has_reported) {
		snprintf(peers->problem, sizeof(peers->problem),
			 "other ranks are not informed of kept copies: %s: %s", peers->directory,
			 strerror(peers->error));
		peers->has_reported = true;
		problem = peers->problem;
	}
	pthread_mutex_unlock(&peers->lock);
	return problem;
}

void torsh_keep_peers_stop(struct keep_peers *peers)
{
	if (!peers)
		return;
	pthread_mutex_lock(&peers->lock);
	peers->is_stopping = true;
	pthread_cond_signal(&peers->changed);
	pthread_mutex_unlock(&peers->lock);
	pthread_join(peers->thread, NULL);
	destroy(peers);
}
