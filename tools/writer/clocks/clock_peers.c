/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/clocks/clock_peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool set_port(struct clock_peer_name *name, const char *port, size_t n)
{
	unsigned long number = 0;

	if (!n || n >= sizeof(name->port))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (port[i] < '0' || port[i] > '9')
			return false;
		number = number * 10 + (unsigned long)(port[i] - '0');
	}
	memcpy(name->port, port, n);
	name->port[n] = '\0';
	return number > 0 && number <= UINT16_MAX;
}

static bool set_host(struct clock_peer_name *name, const char *host, size_t n)
{
	if (!n || n >= sizeof(name->host))
		return false;
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)host[i] <= ' ' || host[i] == 127)
			return false;
	}
	memcpy(name->host, host, n);
	name->host[n] = '\0';
	return true;
}

/* n bytes: HOST, HOST:PORT, an address of IPv6, or one in brackets and a port. */
static bool parse_name(struct clock_peer_name *name, const char *text, size_t n)
{
	const char *colon = memchr(text, ':', n), *end = memchr(text, ']', n);
	bool is_bracketed = n && *text == '[';

	strcpy(name->port, CLOCK_PORT_DEFAULT);
	if (is_bracketed) {
		size_t n_host = end ? (size_t)(end - text) : 0, n_rest = n - n_host - 1;

		return end && set_host(name, text + 1, n_host - 1) &&
		       (!n_rest || (end[1] == ':' && set_port(name, end + 2, n_rest - 1)));
	}
	if (!colon || memchr(colon + 1, ':', n - (size_t)(colon + 1 - text)))
		return set_host(name, text, n);
	return set_host(name, text, (size_t)(colon - text)) &&
	       set_port(name, colon + 1, n - (size_t)(colon + 1 - text));
}

bool torsh_clock_peers_parse(struct clock_peer_names *names, const char *text)
{
	names->n = 0;
	for (;;) {
		size_t n = strcspn(text, ",");

		if (names->n == CLOCK_PEERS_MAX || !parse_name(&names->items[names->n], text, n))
			return false;
		names->n++;
		if (!text[n])
			return true;
		text += n + 1;
	}
}

static uint64_t number_of(const char *text)
{
	return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : 0;
}

void torsh_clock_job_read(struct clock_job *job, const char *pairs, size_t n)
{
	const struct {
		const char *name, **text;
	} texts[] = {{"master_addr", &job->master}, {"master_port", &job->port}, {"job", &job->id}};

	*job = (struct clock_job){0};
	for (size_t i = 0; i < n; i += strlen(pairs + i) + 1) {
		const char *pair = pairs + i, *equals = strchr(pair, '=');
		size_t n_name = equals ? (size_t)(equals - pair) : 0;

		for (size_t k = 0; equals && k < sizeof(texts) / sizeof(*texts); k++) {
			if (strlen(texts[k].name) == n_name &&
			    !strncmp(pair, texts[k].name, n_name))
				*texts[k].text = equals + 1;
		}
		if (equals && !strncmp(pair, "world_size=", n_name + 1))
			job->world_size = number_of(equals + 1);
		if (equals && !strncmp(pair, "local_world_size=", n_name + 1))
			job->local_world_size = number_of(equals + 1);
	}
}
