/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the encoder of rings writes, its decoder reads; and nothing that anybody writes makes it
 * read beyond its end.
 */
#include <stdbool.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/wire/codec.h"
#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/same_event.h"

#define N_EVENTS 20000

/* What was encoded, field by field, as the test itself remembers it. */
struct sent {
	struct event event;
	struct codec_stack stack;
	uint8_t bytes[CODEC_EVENT_MAX + 64];
	size_t n_bytes;
};

static uint64_t some_address(uint64_t *random)
{
	static const uint64_t bases[] = {0x55d0c0000000, 0x7f1200000000, 0x10000,
					 0xffffffffffff0000};
	uint64_t base = bases[random_below(random, 4)];

	switch (random_below(random, 5)) {
	case 0:
		return random_wide(random) | 1;
	case 1:
		return base + random_below(random, 64); /* seldom a multiple of 16 */
	default:
		return base + 16 * random_below(random, UINT64_C(1) << random_below(random, 24));
	}
}

static void some_change(uint64_t *random, struct codec_stack *stack, uint32_t n_max,
			uint32_t pop_max)
{
	stack->pop = (uint32_t)random_below(random, pop_max + 1);
	stack->n = (uint32_t)random_below(random, random_below(random, 3) ? 4 : n_max + 1);
	for (uint32_t i = 0; i < stack->n; i++)
		stack->ids[i] =
			(uint32_t)random_below(random, random_below(random, 2) ? 3 : 1 << 24);
}

static uint8_t *encode_alloc(struct codec *codec, uint64_t *random, uint64_t stamp,
			     struct sent *sent)
{
	struct event_alloc *alloc = &sent->event.alloc;
	bool has_stack = random_below(random, 8) != 0;

	sent->event.id = EVENT_ALLOC;
	alloc->address = some_address(random);
	alloc->size = random_wide(random);
	alloc->entry = (uint32_t)random_below(random, N_ALLOC_ENTRIES);
	alloc->usable = torsh_codec_expected_usable(alloc->size);
	if (random_below(random, 4) == 0)
		alloc->usable = random_below(random, 3) ? alloc->size + random_wide(random) : 0;
	if (!has_stack) {
		sent->stack.form = CODEC_STACK_NONE;
	} else {
		if (random_below(random, 3))
			some_change(random, &sent->stack, CODEC_INLINE_IDS, 255);
		sent->stack.form =
			sent->stack.pop | sent->stack.n ? CODEC_STACK_GIVEN : CODEC_STACK_SAME;
	}
	return torsh_codec_put_alloc(codec, sent->bytes, stamp, alloc, has_stack, sent->stack.pop,
				     sent->stack.n, sent->stack.ids);
}

static uint8_t *encode_stack(struct codec *codec, uint64_t *random, uint64_t stamp,
			     struct sent *sent)
{
	uint8_t payload[8 + 3 * CODEC_STACK_IDS + 1];
	uint32_t n;

	sent->event.id = EVENT_STACK;
	some_change(random, &sent->stack, CODEC_STACK_IDS, 2000);
	if (random_below(random, 4) == 0)
		sent->stack.pop = CODEC_POP_ALL;
	sent->stack.form = CODEC_STACK_GIVEN;
	sent->event.stack.pop = sent->stack.pop;
	sent->event.stack.n_push = sent->stack.n;
	n = torsh_codec_pack_stack(sent->stack.pop, sent->stack.n, sent->stack.ids, payload);
	return torsh_codec_put_cold(codec, sent->bytes, stamp, EVENT_STACK, payload, n);
}

/* Cold, and with no meaning to the codec. */
#define IS_PLAIN(number) ((number) >= 8 && (number) != EVENT_STACK && (number) != EVENT_RESTART)

/* Every field of every cold event of the table, with random values. */
static void fill_cold(uint64_t *random, struct event *event, uint32_t wanted)
{
	uint32_t kind = 0;

#define EVENT(number, NAME, name, text)                \
	if (IS_PLAIN(number) && kind++ == wanted) {    \
		struct event_##name *e = &event->name; \
		event->id = (number);
#define FIELD(type, name) e->name = (torsh_wire_##type)random_wide(random);
#define END(NAME) }
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
}

static uint32_t count_cold(void)
{
	uint32_t n = 0;

#define EVENT(number, NAME, name, text) n += IS_PLAIN(number);
#define FIELD(type, name)
#define END(NAME)
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
	return n;
}

static uint8_t *encode_cold(struct codec *codec, uint64_t *random, uint64_t stamp,
			    struct sent *sent)
{
	uint8_t payload[CODEC_PAYLOAD_MAX];

	fill_cold(random, &sent->event, (uint32_t)random_below(random, count_cold()));
	sent->stack.form = CODEC_STACK_SAME;
	return torsh_codec_put_cold(codec, sent->bytes, stamp, sent->event.id, payload,
				    torsh_codec_pack(&sent->event, payload));
}

static void encode_some(struct codec *codec, uint64_t *random, uint64_t stamp, struct sent *sent)
{
	uint8_t *end;

	memset(sent, 0, sizeof(*sent));
	switch (random_below(random, 8)) {
	case 0:
		end = encode_cold(codec, random, stamp, sent);
		break;
	case 1:
		end = encode_stack(codec, random, stamp, sent);
		break;
	case 2:
	case 3:
	case 4:
		sent->event.id = random_below(random, 4) ? EVENT_FREE : EVENT_REALLOC_BEGIN;
		sent->event.free.address = some_address(random);
		end = torsh_codec_put_free(codec, sent->bytes, stamp, sent->event.free.address,
					   sent->event.id == EVENT_REALLOC_BEGIN);
		break;
	default:
		end = encode_alloc(codec, random, stamp, sent);
		break;
	}
	sent->event.stamp = stamp;
	sent->n_bytes = (size_t)(end - sent->bytes);
	assert_true(sent->n_bytes <= CODEC_EVENT_MAX);
}

static void assert_same_fields(const struct event *a, const struct event *b)
{
	assert_int_equal(a->stamp, b->stamp);
	expect_same_event(a, b);
}

static void assert_received(const struct sent *sent, const struct event *event,
			    const struct codec_stack *stack)
{
	assert_same_fields(&sent->event, event);
	assert_int_equal(stack->form, sent->stack.form);
	assert_int_equal(stack->pop, sent->stack.pop);
	assert_int_equal(stack->n, sent->stack.n);
	assert_memory_equal(stack->ids, sent->stack.ids, sent->stack.n * sizeof(stack->ids[0]));
}

static void what_is_encoded_is_decoded(void **state)
{
	static struct codec encoder, decoder;
	uint64_t random = 1, stamp = 1000;
	struct sent sent;

	(void)state;
	torsh_codec_start(&encoder, stamp);
	torsh_codec_start(&decoder, stamp);
	for (int i = 0; i < N_EVENTS; i++) {
		struct codec_stack stack;
		struct event event;

		stamp += random_below(&random, 4) ? random_below(&random, 300)
						  : random_wide(&random) >> 8;
		encode_some(&encoder, &random, stamp, &sent);
		assert_int_equal(
			torsh_codec_decode(&decoder, sent.bytes, sent.n_bytes, &event, &stack),
			sent.n_bytes);
		assert_received(&sent, &event, &stack);
		assert_memory_equal(&encoder, &decoder, sizeof(encoder));
	}
}

static uint8_t *encode_restart(struct codec *codec, uint64_t stamp, struct sent *sent)
{
	uint8_t payload[CODEC_PAYLOAD_MAX];

	memset(sent, 0, sizeof(*sent));
	sent->event = (struct event){
		.id = EVENT_RESTART, .stamp = stamp, .restart = {.base_stamp = stamp}};
	sent->stack.form = CODEC_STACK_SAME;
	torsh_codec_start(codec, stamp);
	return torsh_codec_put_cold(codec, sent->bytes, stamp, EVENT_RESTART, payload,
				    torsh_codec_pack(&sent->event, payload));
}

/* As after a jump out of the encoder: what it remembers has never been sent. */
static void an_encoder_that_was_left_begins_anew(void **state)
{
	static struct codec encoder, decoder;
	uint64_t random = 7, stamp = 1000;
	struct codec_stack stack;
	struct event event;
	struct sent sent;

	(void)state;
	torsh_codec_start(&encoder, stamp);
	torsh_codec_start(&decoder, stamp);
	for (int i = 0; i < 2000; i++) {
		stamp += random_below(&random, 300);
		encode_some(&encoder, &random, stamp, &sent);
		if (i % 50 == 49) {
			stamp += random_wide(&random) >> 8;
			sent.n_bytes =
				(size_t)(encode_restart(&encoder, stamp, &sent) - sent.bytes);
		}
		assert_int_equal(
			torsh_codec_decode(&decoder, sent.bytes, sent.n_bytes, &event, &stack),
			sent.n_bytes);
		assert_received(&sent, &event, &stack);
		assert_memory_equal(&encoder, &decoder, sizeof(encoder));
	}
}

static void a_restart_into_the_past_is_refused(void **state)
{
	static struct codec encoder, decoder;
	struct codec_stack stack;
	struct event event;
	struct sent sent;
	uint8_t *end;

	(void)state;
	torsh_codec_start(&decoder, 1000);
	end = encode_restart(&encoder, 999, &sent);
	assert_int_equal(torsh_codec_decode(&decoder, sent.bytes, (size_t)(end - sent.bytes),
					    &event, &stack),
			 -EPROTO);
}

/*
 * The cut copy lies at the end of its own memory, where AddressSanitizer sees a byte too much being
 * read.
 */
static void a_cut_event_waits_for_its_rest(void **state)
{
	static struct codec encoder, decoder, before;
	uint64_t random = 2, stamp = 1000;
	struct sent sent;

	(void)state;
	torsh_codec_start(&encoder, stamp);
	torsh_codec_start(&decoder, stamp);
	for (int i = 0; i < 400; i++) {
		struct codec_stack stack;
		struct event event;

		stamp += random_below(&random, 300);
		encode_some(&encoder, &random, stamp, &sent);
		before = decoder;
		for (size_t n = 0; n < sent.n_bytes; n++) {
			uint8_t *cut = malloc(n ? n : 1);

			memcpy(cut, sent.bytes, n);
			assert_int_equal(torsh_codec_decode(&decoder, cut, n, &event, &stack), 0);
			assert_memory_equal(&decoder, &before, sizeof(before));
			free(cut);
		}
		assert_int_equal(
			torsh_codec_decode(&decoder, sent.bytes, sent.n_bytes, &event, &stack),
			sent.n_bytes);
		assert_received(&sent, &event, &stack);
	}
}

static void any_bytes_are_decoded_or_refused(void **state)
{
	static struct codec decoder;
	uint64_t random = 3;

	(void)state;
	torsh_codec_start(&decoder, 0);
	for (int i = 0; i < 300000; i++) {
		uint8_t noise[64], *bytes;
		size_t n = random_below(&random, sizeof(noise) + 1);
		struct codec_stack stack;
		struct event event;
		long result;

		for (size_t k = 0; k < n; k++)
			noise[k] = (uint8_t)random_next(&random);
		bytes = malloc(n ? n : 1);
		memcpy(bytes, noise, n);
		result = torsh_codec_decode(&decoder, bytes, n, &event, &stack);
		assert_true(result == -EPROTO || (result >= 0 && result <= (long)n));
		if (result > 0) {
			assert_true(event.id && event.id < EVENT_ID_END);
			assert_true(stack.n <= CODEC_STACK_IDS);
		}
		free(bytes);
	}
}

static void an_event_of_a_later_version_is_skipped(void **state)
{
	struct codec encoder, decoder;
	uint8_t bytes[256];
	struct codec_stack stack;
	struct event event;
	uint8_t *end;

	(void)state;
	torsh_codec_start(&encoder, 5);
	torsh_codec_start(&decoder, 5);
	end = torsh_codec_put_cold(&encoder, bytes, 7, 60, "something new", 13);
	end = torsh_codec_put_free(&encoder, end, 9, 0x1230, 0);
	assert_int_equal(torsh_codec_decode(&decoder, bytes, (size_t)(end - bytes), &event, &stack),
			 4 + 1 + 13);
	assert_int_equal(event.id, 60);
	assert_int_equal(torsh_codec_decode(&decoder, bytes + 18, (size_t)(end - bytes) - 18,
					    &event, &stack),
			 (long)(end - bytes) - 18);
	assert_int_equal(event.id, EVENT_FREE);
	assert_int_equal(event.stamp, 9);
	assert_int_equal(event.free.address, 0x1230);
}

static void fields_that_an_earlier_version_did_not_send_are_0(void **state)
{
	struct codec encoder, decoder;
	const uint64_t address = 0x7000;
	uint8_t bytes[256];
	struct codec_stack stack;
	struct event event;
	uint8_t *end;

	(void)state;
	torsh_codec_start(&encoder, 0);
	torsh_codec_start(&decoder, 0);
	memset(&event, 0xff, sizeof(event));
	end = torsh_codec_put_cold(&encoder, bytes, 1, EVENT_UNMAP, &address, sizeof(address));
	assert_int_equal(torsh_codec_decode(&decoder, bytes, (size_t)(end - bytes), &event, &stack),
			 end - bytes);
	assert_int_equal(event.unmap.address, 0x7000);
	assert_int_equal(event.unmap.length, 0);
}

/*
 * DESIGN: at most 8 bytes an event. A program that allocates and frees in a loop with a few stacks.
 */
static void a_usual_event_takes_few_bytes(void **state)
{
	static struct codec codec;
	uint64_t random = 4, stamp = 0;
	size_t n_bytes = 0;
	uint8_t bytes[CODEC_EVENT_MAX];

	(void)state;
	torsh_codec_start(&codec, 0);
	for (int i = 0; i < 10000; i++) {
		uint32_t site = (uint32_t)random_below(&random, 20),
			 ids[CODEC_CHANGE_IDS] = {site, site + 1, site + 2};
		struct event_alloc alloc = {
			.address = 0x55d0c0000000 + 64 * random_below(&random, 1000),
			.size = 16 + site,
			.usable = torsh_codec_expected_usable(16 + site),
		};

		n_bytes += (size_t)(torsh_codec_put_alloc(&codec, bytes, stamp += 3, &alloc, 1, 3,
							  3, ids) -
				    bytes);
		n_bytes +=
			(size_t)(torsh_codec_put_free(&codec, bytes, stamp += 2, alloc.address, 0) -
				 bytes);
	}
	assert_true(n_bytes < 20000 * 8);
}

/* torsh dump puts the fields beside these. */
static void no_field_has_a_name_of_the_dumps_own(void **state)
{
	static const char *const own[] = {"event", "process", "at_ns", "thread", "stack"};
	static const char *const fields[] = {
#define EVENT(id, NAME, name, text)
#define FIELD(type, name) #name,
#define END(NAME)
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
	};

	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		for (size_t k = 0; k < sizeof(own) / sizeof(*own); k++)
			assert_string_not_equal(fields[i], own[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_encoded_is_decoded),
		cmocka_unit_test(an_encoder_that_was_left_begins_anew),
		cmocka_unit_test(a_restart_into_the_past_is_refused),
		cmocka_unit_test(a_cut_event_waits_for_its_rest),
		cmocka_unit_test(any_bytes_are_decoded_or_refused),
		cmocka_unit_test(an_event_of_a_later_version_is_skipped),
		cmocka_unit_test(fields_that_an_earlier_version_did_not_send_are_0),
		cmocka_unit_test(a_usual_event_takes_few_bytes),
		cmocka_unit_test(no_field_has_a_name_of_the_dumps_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
