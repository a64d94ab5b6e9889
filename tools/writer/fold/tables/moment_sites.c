/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/moment_sites.h"

#include <stdlib.h>

#include "tools/base/memory.h"

#define SITE_BYTES_MAX 25u

/*
 * A site is varints: the distance to the site before and, in the low bits, what it has; the number
 * of its blocks unless that is known; their bytes unless there are no blocks.
 */
enum usage { USAGE_NONE, USAGE_ONE_BLOCK, USAGE_ANY };
#define USAGE_BITS 2u
#define USAGE_MASK ((1u << USAGE_BITS) - 1)

static enum usage usage_of(const struct moment_site *site)
{
	if (!site->n && !site->bytes)
		return USAGE_NONE;
	return site->n == 1 ? USAGE_ONE_BLOCK : USAGE_ANY;
}

void torsh_moment_sites_add(struct moment_sites *sites, const struct moment_site *site)
{
	uint64_t distance = site->site - sites->last;
	enum usage usage = usage_of(site);

	if (torsh_bytes_reserve(&sites->bytes, SITE_BYTES_MAX))
		torsh_memory_or_die(NULL);
	torsh_bytes_put_varint(&sites->bytes, distance << USAGE_BITS | usage);
	if (usage == USAGE_ANY)
		torsh_bytes_put_varint(&sites->bytes, site->n);
	if (usage != USAGE_NONE)
		torsh_bytes_put_varint(&sites->bytes, site->bytes);
	sites->last = site->site;
	sites->n++;
}

void torsh_moment_sites_end(struct moment_sites *sites)
{
	uint8_t *shorter = sites->bytes.n ? realloc(sites->bytes.bytes, sites->bytes.n) : NULL;

	if (!shorter)
		return;
	sites->bytes.bytes = shorter;
	sites->bytes.capacity = sites->bytes.n;
}

void torsh_moment_sites_destroy(struct moment_sites *sites)
{
	free(sites->bytes.bytes);
	*sites = (struct moment_sites){0};
}

struct moment_sites_reader torsh_moment_sites_read(const struct moment_sites *sites)
{
	const uint8_t *bytes = sites->bytes.bytes;

	return (struct moment_sites_reader){
		.bytes = {.at = bytes, .end = bytes ? bytes + sites->bytes.n : NULL}};
}

bool torsh_moment_sites_next(struct moment_sites_reader *reader, struct moment_site *site)
{
	uint64_t first;
	enum usage usage;

	if (reader->bytes.at == reader->bytes.end)
		return false;
	first = torsh_bytes_take_varint(&reader->bytes);
	usage = first & USAGE_MASK;
	reader->site += (uint32_t)(first >> USAGE_BITS);
	*site = (struct moment_site){.site = reader->site, .n = usage == USAGE_ONE_BLOCK};
	if (usage == USAGE_ANY)
		site->n = (uint32_t)torsh_bytes_take_varint(&reader->bytes);
	if (usage != USAGE_NONE)
		site->bytes = torsh_bytes_take_varint(&reader->bytes);
	return true;
}
