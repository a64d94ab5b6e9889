/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/clocks/name_lookup.h"

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/memory.h"

struct resolved {
	struct sockaddr_storage address;
	socklen_t n_address; /* 0: not resolved */
	bool is_numeric;
	const char *error; /* NULL: none so far */
};

struct name_lookup {
	struct clock_peer_names names;
	int wake_fd; /* its own */
	pthread_mutex_t lock; /* guards what follows */
	struct resolved items[CLOCK_PEERS_MAX];
	unsigned n_users; /* the thread, and who started it */
};

/* Called with the lock; the last user frees it. */
static void leave(struct name_lookup *lookup)
{
	bool is_last = !--lookup->n_users;

	pthread_mutex_unlock(&lookup->lock);
	if (!is_last)
		return;
	close(lookup->wake_fd);
	pthread_mutex_destroy(&lookup->lock);
	free(lookup);
}

static struct resolved resolve(const struct clock_peer_name *name)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST}, *found;
	struct resolved resolved = {.is_numeric = true};
	int rc = getaddrinfo(name->host, name->port, &hints, &found);

	if (rc == EAI_NONAME) {
		resolved.is_numeric = false;
		hints.ai_flags = 0;
		rc = getaddrinfo(name->host, name->port, &hints, &found);
	}
	if (rc) {
		resolved.error = gai_strerror(rc);
		return resolved;
	}
	memcpy(&resolved.address, found->ai_addr, found->ai_addrlen);
	resolved.n_address = found->ai_addrlen;
	freeaddrinfo(found);
	return resolved;
}

static void *run(void *argument)
{
	struct name_lookup *lookup = argument;
	uint64_t one = 1;

	for (size_t i = 0; i < lookup->names.n; i++) {
		struct resolved resolved = resolve(&lookup->names.items[i]);
		bool is_left;

		pthread_mutex_lock(&lookup->lock);
		lookup->items[i] = resolved;
		is_left = lookup->n_users == 1;
		pthread_mutex_unlock(&lookup->lock);
		(void)!write(lookup->wake_fd, &one, sizeof(one));
		if (is_left)
			break;
	}
	pthread_mutex_lock(&lookup->lock);
	leave(lookup);
	return NULL;
}

struct name_lookup *torsh_name_lookup_start(const struct clock_peer_names *names, int wake_fd)
{
	struct name_lookup *lookup = torsh_memory_new(1, sizeof(*lookup));
	pthread_attr_t detached;
	pthread_t thread;

	lookup->names = *names;
	lookup->n_users = 2;
	lookup->wake_fd = dup(wake_fd);
	pthread_mutex_init(&lookup->lock, NULL);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	if (lookup->wake_fd >= 0 && !pthread_create(&thread, &detached, run, lookup))
		return lookup;
	if (lookup->wake_fd >= 0)
		close(lookup->wake_fd);
	pthread_mutex_destroy(&lookup->lock);
	free(lookup);
	return NULL;
}

void torsh_name_lookup_take(struct name_lookup *lookup, size_t i, struct clock_peer *peer)
{
	const struct resolved *item = &lookup->items[i];

	pthread_mutex_lock(&lookup->lock);
	if (item->n_address) {
		peer->address = item->address;
		peer->n_address = item->n_address;
		/* Some systems give a host's own name an address of loopback. */
		peer->is_any = !item->is_numeric && torsh_clock_is_loopback(&item->address) &&
			       strcmp(peer->name.host, "localhost") != 0;
	}
	pthread_mutex_unlock(&lookup->lock);
}

bool torsh_name_lookup_trouble(struct name_lookup *lookup, size_t i, char *out, size_t n)
{
	const char *error;

	pthread_mutex_lock(&lookup->lock);
	error = lookup->items[i].error;
	pthread_mutex_unlock(&lookup->lock);
	if (error)
		snprintf(out, n, "%s: %s", lookup->names.items[i].host, error);
	return error != NULL;
}

void torsh_name_lookup_leave(struct name_lookup *lookup)
{
	if (!lookup)
		return;
	pthread_mutex_lock(&lookup->lock);
	leave(lookup);
}
