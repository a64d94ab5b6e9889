/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/python/python_text.h"

#include <limits.h>
#include <string.h>
#include <sys/types.h>

#include "tools/base/memory.h"

#define WORD sizeof(uint64_t)

static bool read_at(const struct python_types *types, uint64_t address, void *bytes, size_t n)
{
	return torsh_memory_copy(types->reader, address, bytes, n) == n;
}

static bool read_text(const struct python_types *types, uint64_t address, char *text, size_t n_text)
{
	size_t n = torsh_memory_copy(types->reader, address, text, n_text - 1);

	text[n] = '\0';
	return n;
}

/* ---- str ------------------------------------------------------------------------------------- */

static bool read_str(struct python_types *types, uint64_t object, char *text, size_t n_text)
{
	/* PyASCIIObject: since 3.12 the characters are where a pointer was before. */
	static const uint64_t offsets[] = {40, 48};
	uint64_t words[3];
	uint32_t type;

	*text = '\0';
	if (!read_at(types, object, words, sizeof(words)) || !words[2] || words[2] >= n_text)
		return false;
	type = torsh_python_types_at(types, words[1]);
	if (type == NO_PYTHON_TYPE || types->items[type]->kind != PYTHON_STR)
		return false;
	for (size_t i = 0; i < 2; i++) {
		if (read_text(types, object + offsets[i], text, n_text) && strlen(text) == words[2])
			return true;
	}
	*text = '\0';
	return false;
}

bool torsh_python_str(struct python_types *types, uint64_t object, char text[PYTHON_TEXT_BYTES])
{
	return read_str(types, object, text, PYTHON_TEXT_BYTES);
}

char *torsh_python_long_str(struct python_types *types, uint64_t object)
{
	char text[PATH_MAX];

	return read_str(types, object, text, sizeof(text)) ? torsh_memory_text(text) : NULL;
}

/* ---- dict ------------------------------------------------------------------------------------ */

enum { DICT_KEYS = 32 }; /* offset in PyDictObject */

/* Where the entries of PyDictKeysObject are. */
struct entries {
	uint64_t first; /* address */
	uint32_t bytes; /* of each */
	uint32_t key, value; /* offsets in an entry */
	bool is_split; /* the values are elsewhere, in the order of the keys */
};

static uint64_t index_bytes(uint64_t n_slots)
{
	if (n_slots <= UINT8_MAX)
		return n_slots;
	if (n_slots <= UINT16_MAX)
		return 2 * n_slots;
	return (n_slots <= UINT32_MAX ? 4 : 8) * n_slots;
}

static bool find_entries(const struct python_types *types, uint64_t keys, struct entries *entries)
{
	uint64_t words[5];
	uint8_t head[3]; /* since 3.11: log2 of slots, log2 of bytes of their index, kind */

	if (!read_at(types, keys, words, sizeof(words)))
		return false;
	memcpy(head, &words[1], sizeof(head));
	*entries = (struct entries){.bytes = 24, .key = 8, .value = 16};
	/* Before 3.11 the number of slots is there, a power of 2 from 8 on. */
	if (head[0] >= 3 && head[0] < 40 && head[1] >= head[0] && head[1] < 44) {
		entries->first = keys + 32 + (UINT64_C(1) << head[1]);
		if (head[2])
			entries->bytes = 16, entries->key = 0, entries->value = 8;
		entries->is_split = head[2] == 2;
		return true;
	}
	entries->first = keys + 40 + index_bytes(words[1]);
	return words[1] >= 8 && !(words[1] & (words[1] - 1));
}

bool torsh_python_key_at(struct python_types *types, uint64_t keys, uint64_t place,
			 char text[PYTHON_TEXT_BYTES])
{
	struct entries entries;

	*text = '\0';
	if (!find_entries(types, keys, &entries) || place < entries.first ||
	    (place - entries.first) % entries.bytes != entries.value)
		return false;
	return torsh_python_str(
		types, torsh_memory_word(types->reader, place - entries.value + entries.key), text);
}

bool torsh_python_key(struct python_types *types, uint64_t keys, uint64_t number,
		      char text[PYTHON_TEXT_BYTES])
{
	struct entries entries;

	*text = '\0';
	return find_entries(types, keys, &entries) &&
	       torsh_python_str(
		       types,
		       torsh_memory_word(types->reader,
					 entries.first + number * entries.bytes + entries.key),
		       text);
}

bool torsh_python_dict_str(struct python_types *types, uint64_t dict, const char *key,
			   char text[PYTHON_TEXT_BYTES])
{
	enum { N_FIRST = 12 };
	uint64_t keys = torsh_memory_word(types->reader, dict + DICT_KEYS);
	struct entries entries;

	if (!keys || !find_entries(types, keys, &entries) || entries.is_split)
		return *text = '\0', false;
	for (uint64_t i = 0; i < N_FIRST; i++) {
		uint64_t value = entries.first + i * entries.bytes + entries.value;

		if (torsh_python_key(types, keys, i, text) && !strcmp(text, key))
			return torsh_python_str(types, torsh_memory_word(types->reader, value),
						text);
	}
	*text = '\0';
	return false;
}

bool torsh_python_module_of_dict(struct python_types *types, uint64_t dict,
				 char text[PYTHON_TEXT_BYTES])
{
	uint64_t keys = torsh_memory_word(types->reader, dict + DICT_KEYS);

	return keys && torsh_python_key(types, keys, 0, text) && !strcmp(text, "__name__") &&
	       torsh_python_dict_str(types, dict, "__name__", text);
}

/* ---- types ----------------------------------------------------------------------------------- */

uint64_t torsh_python_shared_keys(struct python_types *types, const struct python_type *type)
{
	/* PyHeapTypeObject has them behind the tables of slots, whose sizes differ by version. */
	enum { FROM = 50, TO = 130 };
	uint64_t words[TO];
	struct entries entries;
	char text[PYTHON_TEXT_BYTES];

	if (!read_at(types, type->address, words, sizeof(words)))
		return 0;
	for (int i = FROM; i < TO; i++) {
		if (words[i] >> 16 && words[i] >> 47 == 0 && words[i] % WORD == 0 &&
		    find_entries(types, words[i], &entries) && entries.is_split &&
		    torsh_python_key(types, words[i], 0, text))
			return words[i];
	}
	return 0;
}

bool torsh_python_member(const struct python_types *types, const struct python_type *type,
			 uint64_t offset, char text[PYTHON_TEXT_BYTES])
{
	enum { N_MEMBERS = 64 };
	uint64_t member[5]; /* PyMemberDef: name, type, offset, flags, text */

	*text = '\0';
	for (uint64_t i = 0; type->members && i < N_MEMBERS; i++) {
		if (!read_at(types, type->members + i * sizeof(member), member, sizeof(member)) ||
		    !member[0])
			return false;
		if (member[2] == offset)
			return read_text(types, member[0], text, PYTHON_TEXT_BYTES) && *text;
	}
	return false;
}
