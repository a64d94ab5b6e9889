/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/clocks/clock_probes.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/clocks/name_lookup.h"

/* Packets in a tick, at most: 12,800 a second, which are as many as 1,500 hosts send. */
#define TICK_NS UINT64_C(10000000)
#define TICK_PACKETS 128u
#define SAMPLES_MAX 65536u /* that wait to be taken */

struct place {
	struct clock_peer peer;
	struct clock_sample *samples;
	size_t n_samples, samples_room;
	bool was_taken;
};

struct clock_probes {
	struct clock_own own;
	struct clock_peer_names names;
	bool is_auto, has_names, has_key, has_begun;
	const char *bad; /* a sentence; NULL: the variables are good */
	pthread_t thread;
	int wake_fd; /* an eventfd: stop, or names were resolved */
	struct name_lookup *lookup;
	_Atomic bool must_stop;
	pthread_mutex_t lock; /* guards the places */
	struct place places[CLOCK_PEERS_MAX];
};

/* ---- the thread ------------------------------------------------------------------------------ */

static void keep_sample(struct place *place, const struct clock_sample *sample)
{
	if (!sample->clock || place->n_samples >= SAMPLES_MAX)
		return;
	place->samples = torsh_array_reserve(place->samples, place->n_samples, &place->samples_room,
					     sizeof(*place->samples));
	place->samples[place->n_samples++] = *sample;
}

/* Take packets of all places in turns, as long as there are any and the budget lasts. */
static void receive_all(struct clock_probes *probes, unsigned *budget)
{
	bool has_more = true;

	while (has_more && *budget) {
		has_more = false;
		for (size_t i = 0; i < probes->names.n && *budget; i++) {
			struct place *place = &probes->places[i];
			struct clock_sample sample;

			if (place->peer.fd < 0 ||
			    !torsh_clock_peer_receive(&place->peer, &probes->own, &sample))
				continue;
			keep_sample(place, &sample);
			has_more = true;
			--*budget;
		}
	}
}

/* Returns when the next place has something to do. */
static uint64_t work_all(struct clock_probes *probes, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	for (size_t i = 0; i < probes->names.n; i++) {
		struct clock_peer *peer = &probes->places[i].peer;
		uint64_t own_ns;

		if (!peer->n_address)
			torsh_name_lookup_take(probes->lookup, i, peer);
		own_ns = torsh_clock_peer_work(peer, &probes->own, now_ns);
		next_ns = own_ns < next_ns ? own_ns : next_ns;
	}
	return next_ns;
}

/* Sleep until then, a wake, or, unless the tick's budget is spent, a packet. */
static void rest(struct clock_probes *probes, uint64_t until_ns, bool is_spent)
{
	uint64_t now_ns = torsh_clock_own_ns(&probes->own), left_ns, count;
	struct pollfd fds[1 + CLOCK_PEERS_MAX] = {{.fd = probes->wake_fd, .events = POLLIN}};
	nfds_t n = 1;
	struct timespec left;

	for (size_t i = 0; !is_spent && i < probes->names.n; i++) {
		if (probes->places[i].peer.fd >= 0)
			fds[n++] =
				(struct pollfd){.fd = probes->places[i].peer.fd, .events = POLLIN};
	}
	left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	left.tv_sec = (time_t)(left_ns / 1000000000u);
	left.tv_nsec = (long)(left_ns % 1000000000u);
	ppoll(fds, n, until_ns == UINT64_MAX ? NULL : &left, NULL);
	if (fds[0].revents)
		(void)!read(probes->wake_fd, &count, sizeof(count));
}

static void *run(void *argument)
{
	struct clock_probes *probes = argument;
	uint64_t tick = 0, next_ns;
	unsigned budget = 0;

	while (!atomic_load_explicit(&probes->must_stop, memory_order_acquire)) {
		uint64_t now_ns = torsh_clock_own_ns(&probes->own);

		if (now_ns / TICK_NS != tick) {
			tick = now_ns / TICK_NS;
			budget = TICK_PACKETS;
		}
		pthread_mutex_lock(&probes->lock);
		next_ns = work_all(probes, now_ns);
		receive_all(probes, &budget);
		pthread_mutex_unlock(&probes->lock);
		if (!budget && (tick + 1) * TICK_NS < next_ns)
			next_ns = (tick + 1) * TICK_NS;
		rest(probes, next_ns, !budget);
	}
	return NULL;
}

/* ---- start and end --------------------------------------------------------------------------- */

static void begin(struct clock_probes *probes)
{
	if (probes->has_begun || !probes->has_names || !probes->has_key || probes->bad)
		return;
	for (size_t i = 0; i < probes->names.n; i++)
		probes->places[i].peer =
			(struct clock_peer){.name = probes->names.items[i], .fd = -1};
	probes->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (probes->wake_fd < 0) {
		probes->bad = "the writer has no descriptor left for them";
		return;
	}
	probes->lookup = torsh_name_lookup_start(&probes->names, probes->wake_fd);
	if (!probes->lookup || pthread_create(&probes->thread, NULL, run, probes)) {
		probes->bad = "the writer can't start a thread for them";
		return;
	}
	probes->has_begun = true;
}

static void set_key(struct clock_probes *probes, const char *text, const char *more)
{
	char *whole = torsh_memory_alloc(strlen(text) + strlen(more) + 2);

	sprintf(whole, "%s\n%s", text, more);
	probes->own.key = torsh_siphash_key_of(whole, strlen(whole));
	probes->has_key = true;
	free(whole);
}

struct clock_probes *torsh_clock_probes_start(const struct clock_probes_options *options)
{
	struct clock_probes *probes;

	if (!options->peers || !*options->peers)
		return NULL;
	probes = torsh_memory_new(1, sizeof(*probes));
	pthread_mutex_init(&probes->lock, NULL);
	probes->wake_fd = -1;
	probes->own.zero_ns = options->zero_ns;
	probes->own.clock = options->clock;
	probes->is_auto = !strcmp(options->peers, "auto");
	if (!probes->is_auto) {
		probes->has_names = torsh_clock_peers_parse(&probes->names, options->peers);
		if (!probes->has_names)
			probes->bad = "TORSH_PROFILER_CLOCK_PEERS takes auto, or a comma list of "
				      "HOST[:PORT], 16 at most";
	}
	if (options->key && *options->key)
		set_key(probes, "key", options->key);
	begin(probes);
	return probes;
}

void torsh_clock_probes_see(struct clock_probes *probes, const char *pairs, size_t n)
{
	struct clock_job job;
	char text[CLOCK_NAME_BYTES + 16];

	if (!probes || probes->has_begun || probes->bad)
		return;
	torsh_clock_job_read(&job, pairs, n);
	/* All ranks on this host have its clock. */
	if (probes->is_auto &&
	    (!job.master || !job.port || job.world_size < 2 ||
	     job.world_size == job.local_world_size || strlen(job.master) >= CLOCK_NAME_BYTES))
		return;
	if (probes->is_auto) {
		snprintf(text, sizeof(text), strchr(job.master, ':') ? "[%s]:%.5s" : "%s:%.5s",
			 job.master, job.port);
		probes->has_names = torsh_clock_peers_parse(&probes->names, text);
	}
	if (!probes->has_key && (job.id || probes->is_auto))
		set_key(probes, job.id ? job.id : "", job.port ? job.port : "");
	begin(probes);
}

void torsh_clock_probes_stop(struct clock_probes *probes)
{
	uint64_t one = 1;

	if (!probes || !probes->has_begun)
		return;
	atomic_store_explicit(&probes->must_stop, true, memory_order_release);
	(void)!write(probes->wake_fd, &one, sizeof(one));
	pthread_join(probes->thread, NULL);
	for (size_t i = 0; i < probes->names.n; i++)
		torsh_clock_peer_close(&probes->places[i].peer);
}

void torsh_clock_probes_destroy(struct clock_probes *probes)
{
	if (!probes)
		return;
	torsh_name_lookup_leave(probes->lookup);
	if (probes->wake_fd >= 0)
		close(probes->wake_fd);
	for (size_t i = 0; i < probes->names.n; i++)
		free(probes->places[i].samples);
	pthread_mutex_destroy(&probes->lock);
	free(probes);
}

/* ---- what was found -------------------------------------------------------------------------- */

bool torsh_clock_probes_take(struct clock_probes *probes, size_t i, bool is_last,
			     struct clock_found *found)
{
	struct place *place;

	if (!probes || !probes->has_begun || i >= probes->names.n)
		return false;
	place = &probes->places[i];
	pthread_mutex_lock(&probes->lock);
	if (is_last)
		keep_sample(place, &place->peer.best);
	*found = (struct clock_found){.is_here = place->peer.is_here,
				      .is_new = !place->was_taken,
				      .counts = place->peer.counts,
				      .samples = place->samples,
				      .n_samples = place->n_samples};
	place->was_taken = true;
	place->samples = NULL;
	place->n_samples = place->samples_room = 0;
	pthread_mutex_unlock(&probes->lock);
	snprintf(found->name, sizeof(found->name), "%s:%s", place->peer.name.host,
		 place->peer.name.port);
	return true;
}

static bool find_trouble(struct clock_probes *probes, char *out, size_t n)
{
	uint64_t now_ns = torsh_clock_own_ns(&probes->own);
	bool is_found = false;

	pthread_mutex_lock(&probes->lock);
	for (size_t i = 0; i < probes->names.n && !is_found; i++)
		is_found = torsh_name_lookup_trouble(probes->lookup, i, out, n) ||
			   torsh_clock_peer_trouble(&probes->places[i].peer, now_ns, out, n);
	pthread_mutex_unlock(&probes->lock);
	return is_found;
}

bool torsh_clock_probes_trouble(struct clock_probes *probes, char out[CLOCK_SENTENCE_BYTES])
{
	char why[CLOCK_SENTENCE_BYTES - 64];

	if (!probes)
		return false;
	if (probes->bad)
		snprintf(why, sizeof(why), "%s", probes->bad);
	else if (!probes->has_begun && probes->has_names && !probes->has_key)
		snprintf(why, sizeof(why),
			 "there is no key: neither TORSH_PROFILER_CLOCK_KEY nor a job's id is set");
	else if (!probes->has_begun || !find_trouble(probes, why, sizeof(why)))
		return false;
	snprintf(out, CLOCK_SENTENCE_BYTES, "clocks of hosts were not compared: %s", why);
	return true;
}
