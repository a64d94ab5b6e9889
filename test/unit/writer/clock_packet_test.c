/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Packets of clocks: the code against its paper's vectors, and what is no packet of the job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/writer/clocks/clock_packet.h"
#include "tools/writer/clocks/clock_peers.h"

/* Of the paper's appendix, and the first and last one of its reference program. */
static void the_code_is_siphash(void **state)
{
	const struct siphash_key key = {
		{UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
	uint8_t bytes[63];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(torsh_siphash(&key, bytes, 15), UINT64_C(0xa129ca6149be45e5));
	assert_int_equal(torsh_siphash(&key, bytes, 0), UINT64_C(0x726fdb47dd0e0e31));
	assert_int_equal(torsh_siphash(&key, bytes, 63), UINT64_C(0x958a324ceb064572));
}

static void a_packet_is_read_as_it_was_written(void **state)
{
	const struct siphash_key key = torsh_siphash_key_of("secret", 6);
	const struct clock_packet request = {.kind = CLOCK_REQUEST, .nonce = 77};
	struct clock_packet reply, read;
	uint8_t bytes[CLOCK_PACKET_BYTES];

	(void)state;
	torsh_clock_packet_write(&request, &key, bytes);
	assert_true(torsh_clock_packet_answer(&reply, &key, bytes, sizeof(bytes), 5, 100));
	reply.replied_ns = 101;
	torsh_clock_packet_write(&reply, &key, bytes);
	assert_true(torsh_clock_packet_read(&read, &key, bytes, sizeof(bytes)));
	assert_int_equal(read.kind, CLOCK_REPLY);
	assert_int_equal(read.nonce, 77);
	assert_int_equal(read.clock, 5);
	assert_int_equal(read.received_ns, 100);
	assert_int_equal(read.replied_ns, 101);
	/* A reply is no request: two writers can't be made to answer each other. */
	assert_false(torsh_clock_packet_answer(&reply, &key, bytes, sizeof(bytes), 5, 100));
}

static void other_keys_lengths_and_bits_are_refused(void **state)
{
	const struct siphash_key key = torsh_siphash_key_of("secret", 6),
				 other = torsh_siphash_key_of("secreu", 6);
	const struct clock_packet request = {.kind = CLOCK_REQUEST, .nonce = 78};
	struct clock_packet read;
	uint8_t bytes[CLOCK_PACKET_BYTES + 1] = {0};

	(void)state;
	torsh_clock_packet_write(&request, &key, bytes);
	assert_false(torsh_clock_packet_read(&read, &other, bytes, CLOCK_PACKET_BYTES));
	for (size_t n = 0; n <= sizeof(bytes); n++)
		assert_int_equal(torsh_clock_packet_read(&read, &key, bytes, n),
				 n == CLOCK_PACKET_BYTES);
	for (size_t bit = 0; bit < 8 * CLOCK_PACKET_BYTES; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(torsh_clock_packet_read(&read, &key, bytes, CLOCK_PACKET_BYTES));
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void a_million_random_packets_are_refused(void **state)
{
	const struct siphash_key key = torsh_siphash_key_of("secret", 6);
	uint8_t bytes[CLOCK_PACKET_BYTES];
	struct clock_packet reply;
	uint64_t random = 3;

	(void)state;
	torsh_clock_packet_write(&(struct clock_packet){.kind = CLOCK_REQUEST}, &key, bytes);
	for (int i = 0; i < 1000000; i++) {
		/* Magic and version stay in half of them: only the code tells. */
		for (size_t k = i & 1 ? 0 : 16; k + 8 <= sizeof(bytes); k += 8) {
			uint64_t word = random_below(&random, UINT64_MAX);

			memcpy(bytes + k, &word, sizeof(word));
		}
		assert_false(torsh_clock_packet_answer(&reply, &key, bytes, sizeof(bytes), 1, 1));
	}
}

static void places_are_hosts_with_ports(void **state)
{
	static const char *const bad[] = {"",	",",	  "a,",	     "a:",	 "a:0",
					  ":1", "a:b",	  "a:65536", "a:123456", "[::1",
					  "[]", "[::1]x", "[::1]:",  "a b",	 "a,,b"};
	struct clock_peer_names names;

	(void)state;
	assert_true(torsh_clock_peers_parse(&names, "node0:1,10.0.0.1,fe80::1,[::1]:65535,[::2]"));
	assert_int_equal(names.n, 5);
	assert_string_equal(names.items[0].host, "node0");
	assert_string_equal(names.items[0].port, "1");
	assert_string_equal(names.items[1].port, CLOCK_PORT_DEFAULT);
	assert_string_equal(names.items[2].host, "fe80::1");
	assert_string_equal(names.items[3].host, "::1");
	assert_string_equal(names.items[3].port, "65535");
	assert_string_equal(names.items[4].host, "::2");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(torsh_clock_peers_parse(&names, bad[i]));
	assert_true(torsh_clock_peers_parse(&names, "a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a"));
	assert_false(torsh_clock_peers_parse(&names, "a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a"));
}

static void a_job_is_read_from_an_identity(void **state)
{
	static const char pairs[] = "launcher=torchrun\0world_size=8\0local_world_size=4\0"
				    "job=run\0master_addr=n0\0master_port=29500\0nothing";
	struct clock_job job;

	(void)state;
	torsh_clock_job_read(&job, pairs, sizeof(pairs));
	assert_int_equal(job.world_size, 8);
	assert_int_equal(job.local_world_size, 4);
	assert_string_equal(job.id, "run");
	assert_string_equal(job.master, "n0");
	assert_string_equal(job.port, "29500");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_code_is_siphash),
		cmocka_unit_test(a_packet_is_read_as_it_was_written),
		cmocka_unit_test(other_keys_lengths_and_bits_are_refused),
		cmocka_unit_test(a_million_random_packets_are_refused),
		cmocka_unit_test(places_are_hosts_with_ports),
		cmocka_unit_test(a_job_is_read_from_an_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
