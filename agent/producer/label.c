/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/producer/label.h"

#include <stdbool.h>
#include <string.h>

#include "agent/modules/module_registry.h"
#include "agent/process/process.h"
#include "agent/producer/counter.h"
#include "agent/producer/key_map.h"

static struct key_map texts; /* hash of the bytes -> offset << 32 | length */
static struct key_map labels; /* hash of the bytes -> label */

static uint64_t hash_bytes(const char *bytes, size_t n)
{
	uint64_t hash = n;

	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = 0;

		memcpy(&word, bytes + i, n - i < 8 ? n - i : 8);
		hash = torsh_key_map_mix(hash, word);
	}
	return hash | 1;
}

static bool is_same_text(struct channel_text text, const char *bytes, size_t n)
{
	const char *there =
		text.length == n ? torsh_channel_text(&torsh_process->channel, text.offset) : NULL;

	return there && !memcmp(there, bytes, n);
}

static struct channel_text text_of(uint64_t key, const char *bytes, size_t n)
{
	uint64_t value = torsh_key_map_find(&texts, key);
	struct channel_text text = {.offset = (uint32_t)(value >> 32), .length = (uint32_t)value};

	if (value && is_same_text(text, bytes, n))
		return text;
	text = torsh_channel_add_text(&torsh_process->channel, bytes, n);
	if (n && !text.length)
		torsh_count(COUNTER_names_lost);
	if (!value && text.length)
		torsh_key_map_add(&texts, key, (uint64_t)text.offset << 32 | text.length);
	return text;
}

struct channel_text torsh_label_text(const char *bytes, size_t n)
{
	return text_of(hash_bytes(bytes, n), bytes, n);
}

/*
 * If two texts have the same hash, the second one gets a new label at each call, which is still
 * correct.
 */
uint32_t torsh_label(const char *bytes, size_t n)
{
	struct channel *channel = &torsh_process->channel;
	const struct channel_code *known;
	struct channel_text text;
	uint64_t key, value;
	uint32_t index;

	if (!n)
		return 0;
	if (n > LABEL_MAX) {
		torsh_count(COUNTER_names_cut);
		n = LABEL_MAX;
	}
	key = hash_bytes(bytes, n);
	value = torsh_key_map_find(&labels, key);
	known = value ? torsh_channel_code(channel, (uint32_t)value - 1) : NULL;
	if (known && is_same_text(known->name, bytes, n))
		return (uint32_t)value;
	text = text_of(key, bytes, n);
	if (!text.length)
		return 0;
	index = torsh_registry_add_code(text, (struct channel_text){0}, 0);
	if (index == REGISTRY_NO_CODE)
		return 0;
	if (!value)
		torsh_key_map_add(&labels, key, (uint64_t)index + 1);
	return index + 1;
}
