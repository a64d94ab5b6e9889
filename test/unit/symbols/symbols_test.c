/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Names, lines and inlined functions of addresses in this program, with its source at hand. */
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/recording_fixture.h"
#include "tools/memory/allocation_sites.h"

static struct recording *recording;
static struct fixture fixture;
static char own_path[4096];
static uint8_t own_build_id[64];
static size_t n_own_build_id;
static uint64_t own_bias;

static void read_notes(const char *at, const char *end)
{
	while (at + sizeof(ElfW(Nhdr)) <= end) {
		const ElfW(Nhdr) *note = (const void *)at;
		const char *name = at + sizeof(*note),
			   *bytes = name + ((note->n_namesz + 3u) & ~3u);

		if (note->n_type == NT_GNU_BUILD_ID && strcmp(name, "GNU") == 0 &&
		    note->n_descsz <= sizeof(own_build_id)) {
			memcpy(own_build_id, bytes, note->n_descsz);
			n_own_build_id = note->n_descsz;
		}
		at = bytes + ((note->n_descsz + 3u) & ~3u);
	}
}

static int read_own_module(struct dl_phdr_info *info, size_t n, void *data)
{
	(void)n, (void)data;
	own_bias = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const char *at = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type == PT_NOTE && info->dlpi_phdr[i].p_align <= 4)
			read_notes(at, at + info->dlpi_phdr[i].p_memsz);
	}
	return 1; /* the program itself comes first */
}

static int make_profile(void **state)
{
	ssize_t n = readlink("/proc/self/exe", own_path, sizeof(own_path) - 1);

	(void)state;
	own_path[n > 0 ? n : 0] = '\0';
	dl_iterate_phdr(read_own_module, NULL);
	recording = torsh_recording_new("test");
	fixture_start(&fixture, 1, 100);
	return n > 0 ? 0 : -1;
}

static int free_profile(void **state)
{
	(void)state;
	fixture_free(&fixture);
	torsh_recording_destroy(recording);
	return 0;
}

/* An address in this program, under the name given. */
static uint32_t own_address(const char *symbol, uint64_t ip, uint32_t flags)
{
	char frame[4200];
	uint32_t address;

	snprintf(frame, sizeof(frame), "%s@%s", symbol, own_path);
	address = fixture_address(&fixture, frame, flags);
	fixture.ip[address] = ip;
	fixture.bias[fixture.module[address]] = own_bias;
	return address;
}

static __attribute__((noinline)) uint64_t called_from(void)
{
	/* Otherwise two calls with the same result may be merged. */
	__asm__ volatile("" ::: "memory");
	return (uint64_t)__builtin_return_address(0);
}

static int inlined_line, outer_line;

static inline __attribute__((always_inline)) uint64_t inlined_function(void)
{
	uint64_t ip = called_from(); /* the line of inlined_line */

	inlined_line = __LINE__ - 2;
	return ip;
}

static __attribute__((noinline)) uint64_t outer_function(void)
{
	uint64_t ip = inlined_function(); /* the line of outer_line */

	outer_line = __LINE__ - 2;
	return ip;
}

static void lines_and_inlined_functions_come_from_dwarf(void **state)
{
	struct symbols *symbols = torsh_symbols_create(true);
	uint32_t address = own_address("outer_function", outer_function(), ADDRESS_RETURN);
	const struct frames *frames;

	(void)state;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	frames = torsh_symbols_frames(symbols, recording->processes[0], address);
	assert_int_equal(frames->n, 2);
	assert_string_equal(frames->frames[0].function, "inlined_function");
	assert_true(frames->frames[0].is_inlined);
	assert_int_equal(frames->frames[0].line, inlined_line);
	assert_non_null(strstr(frames->frames[0].file, "symbols_test.c"));
	assert_false(frames->frames[0].has_offset);
	assert_string_equal(frames->frames[1].function, "outer_function");
	assert_false(frames->frames[1].is_inlined);
	assert_int_equal(frames->frames[1].line, outer_line);
	assert_string_equal(frames->frames[1].module, own_path);
	assert_int_equal(frames->frames[1].address, fixture.ip[address]);
	assert_ptr_equal(torsh_symbols_frames(symbols, recording->processes[0], address), frames);
	torsh_symbols_destroy(symbols);
}

static void without_lines_only_the_linkers_name_is_given(void **state)
{
	struct symbols *symbols = torsh_symbols_create(false);
	uint32_t recorded = own_address("name_in_the_recording", outer_function(), ADDRESS_RETURN);
	uint32_t unrecorded = own_address("?", (uint64_t)outer_function, ADDRESS_EXACT);
	const struct frames *frames;

	(void)state;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	frames = torsh_symbols_frames(symbols, recording->processes[0], recorded);
	assert_int_equal(frames->n, 1);
	assert_string_equal(frames->frames[0].function, "name_in_the_recording");
	assert_null(frames->frames[0].file);
	assert_int_equal(frames->frames[0].line, 0);
	assert_int_equal(frames->frames[0].offset, 0x10);
	frames = torsh_symbols_frames(symbols, recording->processes[0], unrecorded);
	assert_int_equal(frames->n, 1);
	assert_string_equal(frames->frames[0].function, "outer_function");
	assert_int_equal(frames->frames[0].offset, 0);
	assert_string_equal(torsh_symbols_name(symbols, recording->processes[0], unrecorded),
			    "outer_function");
	torsh_symbols_destroy(symbols);
}

static void a_file_with_another_build_id_is_not_believed(void **state)
{
	static uint8_t other[20] = {1, 2, 3};
	ProtobufCBinaryData ids[1] = {{.len = sizeof(other), .data = other}};
	struct symbols *symbols = torsh_symbols_create(true);
	uint32_t address = own_address("name_in_the_recording", outer_function(), ADDRESS_RETURN);
	const struct frames *frames;

	(void)state;
	fixture.modules.n_build_id = 1;
	fixture.modules.build_id = ids;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	frames = torsh_symbols_frames(symbols, recording->processes[0], address);
	assert_int_equal(frames->n, 1);
	assert_string_equal(frames->frames[0].function, "name_in_the_recording");
	assert_null(frames->frames[0].file);
	assert_int_equal(torsh_symbols_n_changed(symbols), 1);
	torsh_symbols_destroy(symbols);
}

static void a_file_with_the_recorded_build_id_is_used(void **state)
{
	ProtobufCBinaryData ids[1] = {{.len = n_own_build_id, .data = own_build_id}};
	struct symbols *symbols = torsh_symbols_create(true);
	uint32_t address = own_address("outer_function", outer_function(), ADDRESS_RETURN);

	(void)state;
	if (!n_own_build_id)
		skip();
	fixture.modules.n_build_id = 1;
	fixture.modules.build_id = ids;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	assert_int_equal(torsh_symbols_frames(symbols, recording->processes[0], address)->n, 2);
	assert_int_equal(torsh_symbols_n_changed(symbols), 0);
	torsh_symbols_destroy(symbols);
}

static void a_file_that_is_gone_leaves_what_was_recorded(void **state)
{
	struct symbols *symbols = torsh_symbols_create(true);
	uint32_t named = fixture_address(&fixture, "_ZN2ns4leakEi@/nowhere/lib.so", ADDRESS_RETURN);
	uint32_t unnamed = fixture_address(&fixture, "?@/nowhere/lib.so", ADDRESS_RETURN);
	const struct frames *frames;

	(void)state;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	frames = torsh_symbols_frames(symbols, recording->processes[0], named);
	assert_string_equal(frames->frames[0].function, "ns::leak(int)");
	assert_string_equal(frames->frames[0].linkage_name, "_ZN2ns4leakEi");
	frames = torsh_symbols_frames(symbols, recording->processes[0], unnamed);
	assert_null(frames->frames[0].function);
	assert_string_equal(frames->frames[0].module, "/nowhere/lib.so");
	assert_int_equal(frames->frames[0].module_offset, fixture.ip[unnamed] - FIXTURE_BASE);
	assert_int_equal(torsh_symbols_n_missing(symbols), 1);
	torsh_symbols_destroy(symbols);
}

static void a_cut_is_no_frame(void **state)
{
	struct symbols *symbols = torsh_symbols_create(true);
	uint32_t cut = fixture_address(&fixture, "?cut", ADDRESS_CUT_TOO_DEEP);

	(void)state;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	assert_string_equal(
		torsh_symbols_frames(symbols, recording->processes[0], cut)->frames[0].cut,
		"deeper than is recorded");
	assert_non_null(
		torsh_symbols_frames(symbols, recording->processes[0], 12345)->frames[0].cut);
	torsh_symbols_destroy(symbols);
}

static void names_are_demangled_and_interned(void **state)
{
	struct symbols *symbols = torsh_symbols_create(false);
	const char *name = torsh_symbols_demangle(symbols, "_ZNSt6vectorIiSaIiEE9push_backERKi");

	(void)state;
	assert_string_equal(name, "std::vector<int, std::allocator<int> >::push_back(int const&)");
	assert_ptr_equal(torsh_symbols_demangle(symbols, "_ZNSt6vectorIiSaIiEE9push_backERKi"),
			 name);
	assert_string_equal(torsh_symbols_demangle(symbols, "_Znonsense"), "_Znonsense");
	assert_string_equal(torsh_symbols_demangle(symbols, "i"), "i");
	assert_null(torsh_symbols_demangle(symbols, NULL));
	torsh_symbols_destroy(symbols);
}

/* Two calls on one line, which are two return addresses. */
static __attribute__((noinline)) void call_twice(uint64_t *ips)
{
	/* clang-format off */
	ips[0] = called_from(); ips[1] = called_from();
	/* clang-format on */
}

static void calls_on_the_same_line_are_one_holder(void **state)
{
	struct symbols *symbols = torsh_symbols_create(true);
	struct allocation_sites sites = {0};
	uint64_t ips[2];

	(void)state;
	call_twice(ips);
	assert_int_not_equal(ips[0], ips[1]);
	own_address("?first", ips[0], ADDRESS_RETURN);
	own_address("?second", ips[1], ADDRESS_RETURN);
	for (uint32_t i = 0; i < 2; i++) {
		fixture.node[i] = i;
		fixture_live(&fixture, i + 1, 1, 100);
	}
	fixture.stacks.n_parent = fixture.stacks.n_address = 2;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	torsh_sites_collect(&sites, recording->processes[0], SITES_LIVE);
	torsh_sites_name(&sites, symbols, sites.n);
	assert_int_equal(sites.n, 1);
	assert_int_equal(sites.items[0].blocks, 2);
	assert_int_equal(sites.items[0].bytes, 200);
	assert_string_equal(sites.items[0].frames[0]->function, "call_twice");
	torsh_sites_free(&sites);
	torsh_symbols_destroy(symbols);
}

int main(void)
{
#define SYMBOLS_TEST(name) cmocka_unit_test_setup_teardown(name, make_profile, free_profile)
	const struct CMUnitTest tests[] = {
		SYMBOLS_TEST(lines_and_inlined_functions_come_from_dwarf),
		SYMBOLS_TEST(without_lines_only_the_linkers_name_is_given),
		SYMBOLS_TEST(a_file_with_another_build_id_is_not_believed),
		SYMBOLS_TEST(a_file_with_the_recorded_build_id_is_used),
		SYMBOLS_TEST(a_file_that_is_gone_leaves_what_was_recorded),
		SYMBOLS_TEST(a_cut_is_no_frame),
		SYMBOLS_TEST(names_are_demangled_and_interned),
		SYMBOLS_TEST(calls_on_the_same_line_are_one_holder),
	};
#undef SYMBOLS_TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
