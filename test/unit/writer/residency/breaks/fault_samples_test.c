/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Samples of page faults in a ring as the kernel fills it, and in damaged ones. */
#include <asm/perf_regs.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/writer/residency/breaks/fault_samples.h"

#define RING_BYTES 8192u
#define PAGE_BYTES 4096u

#if defined(__x86_64__)
#define N_REGISTERS 7u
#define NUMBER_OF_IP 2u /* in the order of bits: after BX and BP */
#else
#define N_REGISTERS 12u
#define NUMBER_OF_IP 11u
#endif
#define N_PRESERVED (N_REGISTERS - 1)

/* What the kernel and the reader share. */
static struct {
	_Alignas(PAGE_BYTES) char page[PAGE_BYTES];
	unsigned char data[RING_BYTES];
} ring;

static unsigned char record[65536];

static struct fault_samples samples;

static struct perf_event_mmap_page *page(void)
{
	return (struct perf_event_mmap_page *)ring.page;
}

static int begin_at(uint64_t at)
{
	memset(&ring, 0, sizeof(ring));
	page()->data_head = page()->data_tail = at;
	samples = (struct fault_samples){
		.fd = -1,
		.ring = &ring,
		.ring_bytes = RING_BYTES,
		.page_bytes = PAGE_BYTES,
		.record = record,
	};
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	return begin_at(0);
}

static void put(const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ring.data[(page()->data_head + i) % RING_BYTES] = ((const unsigned char *)bytes)[i];
	page()->data_head += n;
}

static void put_word(uint64_t word)
{
	put(&word, sizeof(word));
}

static void put_header(uint32_t type, size_t n_bytes)
{
	struct perf_event_header header = {.type = type, .size = (uint16_t)n_bytes};

	put(&header, sizeof(header));
}

static size_t sample_bytes(uint32_t n_stack)
{
	return sizeof(struct perf_event_header) + (4 + N_REGISTERS + 1 + n_stack + !!n_stack) * 8;
}

/* Registers have 100 and more, the stack's words 1000 and more, of which n_used are the stack's. */
static void put_sample(uint64_t address, uint32_t n_stack, uint32_t n_used)
{
	put_header(PERF_RECORD_SAMPLE, sample_bytes(n_stack));
	put_word(0xffff); /* where the kernel was */
	put_word(77);
	put_word(address);
	put_word(2); /* registers of 64 bits */
	for (uint32_t i = 0; i < N_REGISTERS; i++)
		put_word(i == NUMBER_OF_IP ? 55 : 100 + i);
	put_word(n_stack * UINT64_C(8));
	for (uint32_t i = 0; i < n_stack; i++)
		put_word(1000 + i);
	if (n_stack)
		put_word(n_used * UINT64_C(8));
}

static void check_sample(uint64_t address, uint32_t n_used)
{
	struct fault_sample sample;
	uint32_t n = 0;

	assert_true(torsh_fault_samples_next(&samples, &sample));
	assert_int_equal(sample.address, address);
	assert_int_equal(sample.ip, 55);
	assert_int_equal(sample.n_words, N_PRESERVED + n_used);
	for (uint32_t i = 0; i < N_REGISTERS; i++) {
		if (i != NUMBER_OF_IP)
			assert_int_equal(sample.words[n++], 100 + i);
	}
	for (uint32_t i = 0; i < n_used; i++)
		assert_int_equal(sample.words[n++], 1000 + i);
}

static void check_nothing(void)
{
	struct fault_sample sample;

	assert_false(torsh_fault_samples_next(&samples, &sample));
}

static void an_empty_ring_has_none(void **state)
{
	(void)state;
	check_nothing();
	assert_int_equal(samples.n_lost, 0);
}

static void samples_have_what_the_kernel_has_put(void **state)
{
	(void)state;
	put_sample(0x1000, 0, 0);
	put_sample(0x2000, 16, 16);
	put_sample(0x3000, 16, 3);
	put_sample(0x4000, 16, 100); /* more than there is */
	check_sample(0x1000, 0);
	check_sample(0x2000, 16);
	check_sample(0x3000, 3);
	check_sample(0x4000, 16);
	check_nothing();
	assert_int_equal(page()->data_tail, page()->data_head);
}

static void a_sample_may_lie_across_the_end(void **state)
{
	(void)state;
	for (uint64_t at = RING_BYTES - 512; at <= RING_BYTES; at += 8) {
		begin_at(at);
		put_sample(at, 32, 32);
		check_sample(at, 32);
		check_nothing();
	}
	/* The positions wrap around. */
	begin_at(UINT64_MAX - 63);
	put_sample(0x5000, 32, 32);
	check_sample(0x5000, 32);
}

static void no_more_words_are_taken_than_there_is_room_for(void **state)
{
	struct fault_sample sample;

	(void)state;
	put_sample(0x1000, 500, 500);
	assert_true(torsh_fault_samples_next(&samples, &sample));
	assert_int_equal(sample.n_words, FAULT_WORDS_MAX);
}

static void lost_samples_are_counted(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		put_header(PERF_RECORD_LOST, 24);
		put_word(1);
		put_word(500);
	}
	put_sample(0x1000, 0, 0);
	put_header(PERF_RECORD_LOST, 8); /* without a number */
	put_header(PERF_RECORD_THROTTLE, 32);
	put_word(0);
	put_word(0);
	put_word(0);
	check_sample(0x1000, 0);
	check_nothing();
	assert_int_equal(samples.n_lost, 1000);
	assert_int_equal(page()->data_tail, page()->data_head);
}

static void a_sample_that_is_cut_is_none(void **state)
{
	(void)state;
	for (size_t n_bytes = 8; n_bytes < sample_bytes(0); n_bytes += 8) {
		begin_at(0);
		put_sample(0x1000, 0, 0);
		((struct perf_event_header *)ring.data)->size = (uint16_t)n_bytes;
		page()->data_head = n_bytes;
		put_sample(0x2000, 4, 4);
		/* Without its stack it has registers at least. */
		if (n_bytes + 8 == sample_bytes(0))
			check_sample(0x1000, 0);
		check_sample(0x2000, 4);
		check_nothing();
	}
}

static void a_stack_that_is_longer_than_its_record_is_none(void **state)
{
	(void)state;
	put_sample(0x1000, 0, 0);
	memset(ring.data + sample_bytes(0) - 8, 0xff, 8);
	check_sample(0x1000, 0);
	check_nothing();
}

static void a_length_that_can_not_be_ends_the_reading(void **state)
{
	static const uint16_t lengths[] = {0, 1, 7, 4096, UINT16_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		begin_at(0);
		put_sample(0x1000, 4, 4);
		((struct perf_event_header *)ring.data)->size = lengths[i];
		check_nothing();
		assert_int_equal(page()->data_tail, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_empty_ring_has_none, set_up),
		cmocka_unit_test_setup(samples_have_what_the_kernel_has_put, set_up),
		cmocka_unit_test_setup(a_sample_may_lie_across_the_end, set_up),
		cmocka_unit_test_setup(no_more_words_are_taken_than_there_is_room_for, set_up),
		cmocka_unit_test_setup(lost_samples_are_counted, set_up),
		cmocka_unit_test_setup(a_sample_that_is_cut_is_none, set_up),
		cmocka_unit_test_setup(a_stack_that_is_longer_than_its_record_is_none, set_up),
		cmocka_unit_test_setup(a_length_that_can_not_be_ends_the_reading, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
