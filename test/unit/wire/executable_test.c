/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which programs the agent can be preloaded into: files of every kind, #! lines that lead to them,
 * and the rights that a process gets by executing them.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agent/wire/executable.h"

#define N_FILES 8u
#define FILE_BYTES 1024u
#define PROGRAM "/bin/program"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#define LOADER "/lib64/ld-linux-x86-64.so.2"
#else
#define OWN_MACHINE EM_AARCH64
#define LOADER "/lib/ld-linux-aarch64.so.1"
#endif

struct file {
	const char *path;
	char bytes[FILE_BYTES];
	size_t n;
	struct executable_rights rights;
};

struct disk {
	struct executable_source source;
	struct file files[N_FILES];
	unsigned n;
	const char *opened; /* last */
	int n_open;
};

static struct disk disk;

static long open_file(struct executable_source *source, const char *path, unsigned n_scripts)
{
	assert_ptr_equal(source, &disk.source);
	assert_true(n_scripts <= EXECUTABLE_SCRIPTS_MAX);
	for (unsigned i = 0; i < disk.n; i++) {
		if (strcmp(disk.files[i].path, path) != 0)
			continue;
		disk.opened = disk.files[i].path;
		disk.n_open++;
		return i;
	}
	return -ENOENT;
}

static long read_file(long fd, void *out, size_t n_bytes, uint64_t offset)
{
	const struct file *file = &disk.files[fd];
	size_t n = offset < file->n ? file->n - (size_t)offset : 0;

	n = n < n_bytes ? n : n_bytes;
	memcpy(out, file->bytes + (n ? offset : 0), n);
	return (long)n;
}

static long read_rights(struct executable_source *source, long fd, struct executable_rights *rights)
{
	(void)source;
	*rights = disk.files[fd].rights;
	return 0;
}

static void close_file(long fd)
{
	(void)fd;
	disk.n_open--;
}

static void empty_disk(void)
{
	disk = (struct disk){
		.source = {.open = open_file,
			   .read = read_file,
			   .read_rights = read_rights,
			   .close = close_file},
	};
}

static struct file *put_file(const char *path, const char *bytes, size_t n)
{
	struct file *file = &disk.files[disk.n++];

	assert_true(disk.n <= N_FILES && n <= FILE_BYTES);
	file->path = path;
	memcpy(file->bytes, bytes, n);
	file->n = n;
	file->rights.mode = S_IFREG | 0755;
	return file;
}

static struct file *put_text(const char *path, const char *text)
{
	return put_file(path, text, strlen(text));
}

/* An ELF file with the loader's name in its second program header; NULL: none. */
static struct file *put_elf(const char *path, const char *loader)
{
	struct {
		ElfW(Ehdr) header;
		ElfW(Phdr) segments[2];
		char loader[EXECUTABLE_LINE_BYTES + 8];
	} elf = {
		.header =
			{
				.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					    ELFDATA2LSB, EV_CURRENT},
				.e_type = ET_DYN,
				.e_machine = OWN_MACHINE,
				.e_phoff = sizeof(elf.header),
				.e_phentsize = sizeof(elf.segments[0]),
				.e_phnum = 2,
			},
		.segments = {{.p_type = PT_LOAD}, {.p_type = loader ? PT_INTERP : PT_NOTE}},
	};

	if (loader) {
		elf.segments[1].p_offset = offsetof(__typeof__(elf), loader);
		elf.segments[1].p_filesz = strlen(loader) + 1;
		snprintf(elf.loader, sizeof(elf.loader), "%s", loader);
	}
	return put_file(path, (const char *)&elf, sizeof(elf));
}

static ElfW(Ehdr) * header_of(struct file *file)
{
	return (void *)file->bytes;
}

static void expect(long problem)
{
	assert_int_equal(torsh_executable_inspect(&disk.source, PROGRAM), problem);
	assert_int_equal(disk.n_open, 0);
}

static void loaders(void **state)
{
	static const struct {
		const char *loader;
		long problem;
	} rows[] = {
		{LOADER, PROGRAM_FINE},
		{"/gnu/store/glibc-2.35" LOADER, PROGRAM_FINE},
		{"/lib64/ld-lsb-x86-64.so.3", PROGRAM_FINE},
		{NULL, PROGRAM_STATIC},
		{"/lib/ld-musl-x86_64.so.1", PROGRAM_OTHER_LIBC},
		{"/lib/ld-uClibc.so.0", PROGRAM_OTHER_LIBC},
		{"/system/bin/linker64", PROGRAM_OTHER_LIBC},
		{"/libexec/ld-elf.so.1", PROGRAM_OTHER_LIBC},
		{"x", PROGRAM_OTHER_LIBC},
		{"", -ENOEXEC},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		empty_disk();
		put_elf(PROGRAM, rows[i].loader);
		expect(rows[i].problem);
	}
}

/* "ld.so PROGRAM": the GNU one preloads into what it starts, another would die of the agent. */
static void a_loader_run_as_a_command(void **state)
{
	static const struct {
		const char *path;
		long problem;
	} rows[] = {
		{LOADER, PROGRAM_FINE},
		{"/usr/bin/ld.so", PROGRAM_FINE},
		{"/lib/x86_64-linux-gnu/ld-2.31.so", PROGRAM_FINE},
		{"/lib/ld-musl-x86_64.so.1", PROGRAM_OTHER_LIBC},
		{"/lib/x86_64-linux-musl/libc.so", PROGRAM_OTHER_LIBC},
		{"/bin/ldconfig", PROGRAM_STATIC},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		empty_disk();
		put_elf(rows[i].path, NULL);
		assert_int_equal(torsh_executable_inspect(&disk.source, rows[i].path),
				 rows[i].problem);
	}
}

static void other_machines(void **state)
{
	(void)state;
	empty_disk();
	header_of(put_elf(PROGRAM, LOADER))->e_machine = EM_386;
	expect(PROGRAM_FOREIGN);
	empty_disk();
	header_of(put_elf(PROGRAM, LOADER))->e_ident[EI_CLASS] = ELFCLASS32;
	expect(PROGRAM_FOREIGN);
	empty_disk();
	header_of(put_elf(PROGRAM, LOADER))->e_ident[EI_DATA] = ELFDATA2MSB;
	expect(PROGRAM_FOREIGN);
}

/* No claim is made of what the kernel won't start. */
static void damaged_programs(void **state)
{
	struct file *file;

	(void)state;
	empty_disk();
	expect(-ENOENT);
	put_text(PROGRAM, "");
	expect(-ENOEXEC);
	empty_disk();
	put_text(PROGRAM, "echo a script that only a shell takes for one\n");
	expect(-ENOEXEC);
	for (size_t n = 1; n < sizeof(ElfW(Ehdr)) + 2 * sizeof(ElfW(Phdr)); n++) {
		empty_disk();
		put_elf(PROGRAM, LOADER)->n = n;
		expect(-ENOEXEC);
	}
	empty_disk();
	header_of(put_elf(PROGRAM, LOADER))->e_type = ET_REL;
	expect(-ENOEXEC);
	empty_disk();
	header_of(put_elf(PROGRAM, NULL))->e_phnum = UINT16_MAX;
	expect(-ENOEXEC);
	empty_disk();
	header_of(put_elf(PROGRAM, NULL))->e_phoff = UINT64_MAX - 60;
	expect(-ENOEXEC);
	empty_disk();
	file = put_elf(PROGRAM, LOADER);
	((ElfW(Phdr) *)(file->bytes + sizeof(ElfW(Ehdr))))[1].p_filesz = UINT64_MAX;
	expect(-ENOEXEC);
}

static void scripts(void **state)
{
	static const struct {
		const char *line;
		long problem;
	} rows[] = {
		{"#!/bin/other\n", PROGRAM_OTHER_LIBC},
		{"#!/bin/other", PROGRAM_OTHER_LIBC},
		{"#! \t /bin/other -e argument\necho\n", PROGRAM_OTHER_LIBC},
		{"#!/bin/other\targument", PROGRAM_OTHER_LIBC},
		{"#!/bin/own\n", PROGRAM_FINE},
		/*
		 * As the kernel: an interpreter isn't searched, and a carriage return is a part of
		 * its name.
		 */
		{"#!other\n", -ENOENT},
		{"#!/bin/other\r\n", -ENOENT},
		{"#!\n/bin/other\n", -ENOEXEC},
		{"#! \t \n", -ENOEXEC},
		{"#!", -ENOEXEC},
		{"#", -ENOEXEC},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		empty_disk();
		put_elf("/bin/other", "/lib/ld-musl-x86_64.so.1");
		put_elf("/bin/own", LOADER);
		put_text(PROGRAM, rows[i].line);
		expect(rows[i].problem);
	}
}

static void a_line_longer_than_the_kernel_reads(void **state)
{
	char line[EXECUTABLE_LINE_BYTES + 16];

	(void)state;
	memset(line, 'x', sizeof(line) - 1);
	memcpy(line, "#!", 2);
	line[sizeof(line) - 1] = '\0';
	empty_disk();
	put_text(PROGRAM, line);
	expect(-ENOEXEC);
	/* Its argument may be cut. */
	memcpy(line, "#!/bin/other ", 13);
	empty_disk();
	put_elf("/bin/other", NULL);
	put_text(PROGRAM, line);
	expect(PROGRAM_STATIC);
}

static void chains_of_scripts(void **state)
{
	static const char *const paths[] = {PROGRAM, "/1", "/2", "/3", "/4", "/5"};

	(void)state;
	for (unsigned n = 1; n <= EXECUTABLE_SCRIPTS_MAX + 1; n++) {
		char line[64];

		empty_disk();
		for (unsigned i = 0; i < n; i++) {
			snprintf(line, sizeof(line), "#!%s\n",
				 i + 1 < n ? paths[i + 1] : "/bin/other");
			put_text(paths[i], line);
		}
		put_elf("/bin/other", "/lib/ld-musl-x86_64.so.1");
		expect(n <= EXECUTABLE_SCRIPTS_MAX ? PROGRAM_OTHER_LIBC : -ELOOP);
		assert_string_equal(disk.opened,
				    n <= EXECUTABLE_SCRIPTS_MAX ? "/bin/other" : paths[n - 1]);
	}
	empty_disk();
	put_text(PROGRAM, "#!" PROGRAM "\n");
	expect(-ELOOP);
}

enum { ROOT, USER, OTHER };

static const struct {
	uint32_t mode, owner, group;
	const char *capabilities; /* v2: flags, permitted, inheritable */
	bool is_nosuid;
	struct executable_caller caller;
	bool gains;
} gains[] = {
	{0755, OTHER, OTHER, NULL, false, {USER, USER, USER, USER, false}, false},
	{04755, ROOT, ROOT, NULL, false, {USER, USER, USER, USER, false}, true},
	{04755, OTHER, ROOT, NULL, false, {ROOT, ROOT, ROOT, ROOT, false}, true},
	{04755, USER, ROOT, NULL, false, {USER, USER, USER, USER, false}, false},
	{04755, ROOT, ROOT, NULL, false, {USER, USER, USER, USER, true}, false},
	{04755, ROOT, ROOT, NULL, true, {USER, USER, USER, USER, false}, false},
	{02755, ROOT, ROOT, NULL, false, {USER, USER, USER, USER, false}, true},
	{02755, ROOT, USER, NULL, false, {USER, USER, USER, USER, false}, false},
	/* Without the right to execute this bit means locks. */
	{02745, ROOT, ROOT, NULL, false, {USER, USER, USER, USER, false}, false},
	/*
	 * The real numbers count: a process that took on others has more rights for its children,
	 * too.
	 */
	{0755, ROOT, ROOT, NULL, false, {ROOT, USER, ROOT, ROOT, false}, true},
	{0755, ROOT, ROOT, NULL, false, {USER, USER, USER, OTHER, false}, true},
	{0755, ROOT, ROOT, NULL, false, {ROOT, USER, ROOT, ROOT, true}, true},
	{04755, ROOT, ROOT, NULL, false, {ROOT, USER, ROOT, ROOT, false}, false},
	{0755,
	 ROOT,
	 ROOT,
	 "\1\0\0\2\0\x20\0\0\0\0\0\0",
	 false,
	 {USER, USER, USER, USER, false},
	 true},
	{0755,
	 ROOT,
	 ROOT,
	 "\0\0\0\2\0\x20\0\0\0\0\0\0",
	 false,
	 {USER, USER, USER, USER, true},
	 true},
	{0755,
	 ROOT,
	 ROOT,
	 "\1\0\0\2\0\x20\0\0\0\0\0\0",
	 true,
	 {USER, USER, USER, USER, false},
	 false},
	{0755,
	 ROOT,
	 ROOT,
	 "\1\0\0\2\0\x20\0\0\0\0\0\0",
	 false,
	 {ROOT, ROOT, ROOT, ROOT, false},
	 false},
	{0755,
	 ROOT,
	 ROOT,
	 "\0\0\0\2\0\0\0\0\0\x20\0\0",
	 false,
	 {USER, USER, USER, USER, false},
	 false},
};

static void rights(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(gains) / sizeof(*gains); i++) {
		struct executable_rights file = {
			.mode = S_IFREG | gains[i].mode,
			.owner = gains[i].owner,
			.group = gains[i].group,
			.n_capabilities = gains[i].capabilities ? 12 : -ENODATA,
			.is_nosuid = gains[i].is_nosuid,
		};

		if (gains[i].capabilities)
			memcpy(file.capabilities, gains[i].capabilities, 12);
		for (int is_static = 0; is_static < 2; is_static++) {
			empty_disk();
			put_elf(PROGRAM, is_static ? NULL : LOADER)->rights = file;
			disk.source.caller = gains[i].caller;
			expect(gains[i].gains ? PROGRAM_PRIVILEGED
			       : is_static    ? PROGRAM_STATIC
					      : PROGRAM_FINE);
		}
	}
}

/* Those of the script itself mean nothing to the kernel. */
static void rights_are_the_interpreters(void **state)
{
	(void)state;
	empty_disk();
	disk.source.caller = (struct executable_caller){USER, USER, USER, USER, false};
	put_text(PROGRAM, "#!/bin/own\n")->rights =
		(struct executable_rights){.mode = S_IFREG | 04755};
	put_elf("/bin/own", LOADER);
	expect(PROGRAM_FINE);
	disk.files[1].rights.mode = S_IFREG | 04755;
	expect(PROGRAM_PRIVILEGED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loaders),
		cmocka_unit_test(a_loader_run_as_a_command),
		cmocka_unit_test(other_machines),
		cmocka_unit_test(damaged_programs),
		cmocka_unit_test(scripts),
		cmocka_unit_test(a_line_longer_than_the_kernel_reads),
		cmocka_unit_test(chains_of_scripts),
		cmocka_unit_test(rights),
		cmocka_unit_test(rights_are_the_interpreters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
