/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/clocks/siphash.h"

#include <endian.h>
#include <string.h>

#define ROUNDS_OF_WORD 2
#define ROUNDS_AT_END 4

struct state {
	uint64_t v[4];
};

static uint64_t rotated(uint64_t word, unsigned n)
{
	return word << n | word >> (64 - n);
}

static void add_rotated(uint64_t *sum, uint64_t *other, unsigned n)
{
	*sum += *other;
	*other = rotated(*other, n) ^ *sum;
}

static void make_rounds(struct state *state, int n)
{
	uint64_t *v = state->v;

	for (int i = 0; i < n; i++) {
		add_rotated(&v[0], &v[1], 13);
		v[0] = rotated(v[0], 32);
		add_rotated(&v[2], &v[3], 16);
		add_rotated(&v[0], &v[3], 21);
		add_rotated(&v[2], &v[1], 17);
		v[2] = rotated(v[2], 32);
	}
}

static void take_word(struct state *state, uint64_t word)
{
	state->v[3] ^= word;
	make_rounds(state, ROUNDS_OF_WORD);
	state->v[0] ^= word;
}

uint64_t torsh_siphash(const struct siphash_key *key, const void *bytes, size_t n)
{
	/* The paper's constants: "somepseudorandomlygeneratedbytes". */
	struct state state = {{key->words[0] ^ UINT64_C(0x736f6d6570736575),
			       key->words[1] ^ UINT64_C(0x646f72616e646f6d),
			       key->words[0] ^ UINT64_C(0x6c7967656e657261),
			       key->words[1] ^ UINT64_C(0x7465646279746573)}};
	const uint8_t *at = bytes;
	uint64_t word, last = (uint64_t)n << 56;

	for (; n >= sizeof(word); n -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		take_word(&state, le64toh(word));
	}
	for (size_t i = 0; i < n; i++)
		last |= (uint64_t)at[i] << (8 * i);
	take_word(&state, last);
	state.v[2] ^= 0xff;
	make_rounds(&state, ROUNDS_AT_END);
	return state.v[0] ^ state.v[1] ^ state.v[2] ^ state.v[3];
}

struct siphash_key torsh_siphash_key_of(const void *text, size_t n)
{
	static const struct siphash_key first = {{1, 0}}, second = {{2, 0}};

	return (struct siphash_key){
		{torsh_siphash(&first, text, n), torsh_siphash(&second, text, n)}};
}
