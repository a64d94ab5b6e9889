/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/live/stacks/python_stacks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "agent/wire/cpython/python_lines.h"
#include "tools/base/die.h"
#include "tools/base/elf_file.h"

#define INTERPRETERS_MAX 64u
#define THREADS_MAX 16384u
#define LINE_TABLE_BYTES (1u << 20)
#define OBJECT_BITS (~UINT64_C(7)) /* references carry low tag bits from 3.14 on */

static bool read_bytes(const struct python_process *process, uint64_t address, void *bytes,
		       size_t n)
{
	struct iovec local = {.iov_base = bytes, .iov_len = n};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = n};

	return process_vm_readv((pid_t)process->pid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

/* 0 if it can't be read. */
static uint64_t word_at(const struct python_process *process, uint64_t address)
{
	uint64_t word;

	return read_bytes(process, address, &word, sizeof(word)) ? word : 0;
}

/* ---- the interpreter ------------------------------------------------------------------------- */

static const char *const signs[] = {"_PyRuntime",
				    "Py_Version",
				    "Py_NewRef",
				    "PyThreadState_GetFrame",
				    "PyCode_NewWithPosOnlyArgs",
				    "PyCode_Type"};
enum sign { RUNTIME, VERSION, SINCE_3_10, SINCE_3_9, SINCE_3_8, CODE_TYPE, N_SIGNS };

struct sign_search {
	Elf *elf;
	uint64_t address[N_SIGNS]; /* 0: not found */
};

static bool take_symbol(void *context, const GElf_Sym *symbol, size_t strings)
{
	struct sign_search *search = context;
	const char *name =
		symbol->st_shndx == SHN_UNDEF || GELF_ST_BIND(symbol->st_info) == STB_LOCAL
			? NULL
			: elf_strptr(search->elf, strings, symbol->st_name);

	for (int i = 0; name && *name && i < N_SIGNS; i++) {
		if (!strcmp(name, signs[i]))
			search->address[i] = symbol->st_value;
	}
	return false;
}

static uint32_t version_of(const struct python_process *process, const struct sign_search *search)
{
	if (search->address[VERSION])
		return CPYTHON_VERSION_OF_HEX((uint32_t)word_at(process, search->address[VERSION]));
	if (search->address[SINCE_3_10])
		return CPYTHON_FIRST_VERSION + 2;
	if (search->address[SINCE_3_9])
		return CPYTHON_FIRST_VERSION + 1;
	return search->address[SINCE_3_8] ? CPYTHON_FIRST_VERSION : 0;
}

static bool read_layout(struct python_process *process, uint32_t version)
{
	union {
		struct cpython_published published;
		char bytes[CPYTHON_PUBLISHED_BYTES];
	} runtime;

	if (version < CPYTHON_FIRST_PUBLISHED)
		return torsh_cpython_layout_of(&process->at, version);
	return version <= CPYTHON_LAST_PUBLISHED &&
	       read_bytes(process, process->runtime, &runtime, sizeof(runtime)) &&
	       !runtime.published.is_free_threaded &&
	       torsh_cpython_layout_read(&process->at, version, &runtime.published);
}

static int look_at_module(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr start,
			  void *context)
{
	struct python_process *process = context;
	struct sign_search search = {0};
	const char *base = strrchr(name, '/');
	GElf_Addr bias;

	(void)data, (void)start;
	/* "libpython3.11.so.1.0", "python3.11" */
	if (!base || !strstr(base, "python") || strstr(base, "cpython"))
		return DWARF_CB_OK;
	search.elf = dwfl_module_getelf(module, &bias);
	if (!search.elf)
		return DWARF_CB_OK;
	torsh_elf_visit_symbols(search.elf, take_symbol, &search);
	for (int i = 0; i < N_SIGNS; i++)
		search.address[i] += search.address[i] ? bias : 0;
	if (!search.address[RUNTIME])
		return DWARF_CB_OK;
	process->runtime = search.address[RUNTIME];
	process->code_type = search.address[CODE_TYPE];
	process->is_known = read_layout(process, version_of(process, &search));
	return process->is_known ? DWARF_CB_ABORT : DWARF_CB_OK;
}

void torsh_python_process_find(struct python_process *process, uint32_t pid, Dwfl *dwfl)
{
	*process = (struct python_process){.pid = pid};
	dwfl_getmodules(dwfl, look_at_module, process, 0);
}

/* ---- names and lines ------------------------------------------------------------------------- */

static bool is_text(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] < ' ' || bytes[i] > '~')
			return false;
	}
	return n > 0;
}

/* The text of a str of ASCII; of a long one the end. "": it is another one, or none. */
static void read_text(const struct python_process *process, uint64_t object,
		      char text[PYTHON_NAME_BYTES])
{
	const uint16_t places[] = {process->at.text_ascii, process->at.text_other};
	uint64_t length = word_at(process, object + process->at.text_length), skipped = 0;

	*text = '\0';
	if (!object || !length || length > 1u << 16)
		return;
	if (length >= PYTHON_NAME_BYTES) {
		skipped = length - (PYTHON_NAME_BYTES - 1);
		length = PYTHON_NAME_BYTES - 1;
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (read_bytes(process, object + places[i] + skipped, text, length) &&
		    is_text(text, length)) {
			text[length] = '\0';
			return;
		}
	}
	*text = '\0';
}

static int32_t offset_of(const struct python_process *process, uint64_t frame, uint64_t code)
{
	uint64_t word = word_at(process, frame + process->at.frame_instruction);
	uint64_t start = code + process->at.code_bytes;

	switch (process->at.instruction) {
	case CPYTHON_BYTES:
		return (int32_t)word;
	case CPYTHON_UNITS:
		return (int32_t)word * 2;
	default:
		return word < start || word - start > INT32_MAX ? -1 : (int32_t)(word - start);
	}
}

static uint32_t line_of(const struct python_process *process, uint64_t frame, uint64_t code)
{
	uint64_t table = word_at(process, code + process->at.code_lines);
	uint64_t n = table ? word_at(process, table + process->at.bytes_length) : 0;
	struct python_lines lines = {
		.first_line = (uint32_t)word_at(process, code + process->at.code_first_line)};
	uint8_t *bytes;
	uint32_t line = 0;

	if (!n || n > LINE_TABLE_BYTES)
		return 0;
	bytes = torsh_need_items(NULL, 0, n, 1);
	lines.table = bytes;
	lines.n_bytes = (uint32_t)n;
	if (read_bytes(process, table + process->at.bytes_data, bytes, n))
		line = torsh_python_line(process->at.lines, &lines,
					 offset_of(process, frame, code));
	free(bytes);
	return line;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* The state of the thread; 0: it has none. */
static uint64_t find_thread(const struct python_process *process, uint32_t tid,
			    uint64_t thread_pointer)
{
	const struct cpython_layout *at = &process->at;
	uint16_t place = at->tstate_native_id ? at->tstate_native_id : at->tstate_thread_id;
	uint64_t wanted = at->tstate_native_id ? tid : thread_pointer;
	uint64_t interpreter = word_at(process, process->runtime + at->runtime_interpreters);
	uint32_t n = 0;

	for (uint32_t i = 0; wanted && interpreter && i < INTERPRETERS_MAX; i++) {
		for (uint64_t state = word_at(process, interpreter + at->interpreter_threads);
		     state && n < THREADS_MAX; n++) {
			if (word_at(process, state + place) == wanted)
				return state;
			state = word_at(process, state + at->tstate_next);
		}
		interpreter = word_at(process, interpreter + at->interpreter_next);
	}
	return 0;
}

static uint64_t innermost_of(const struct python_process *process, uint64_t state)
{
	uint64_t record;

	if (process->at.tstate_frame)
		return word_at(process, state + process->at.tstate_frame);
	record = word_at(process, state + process->at.tstate_cframe);
	return record ? word_at(process, record + process->at.cframe_frame) : 0;
}

static bool is_code(const struct python_process *process, uint64_t object)
{
	return object && process->code_type &&
	       word_at(process, object + process->at.object_type) == process->code_type;
}

/* Until 3.10 each frame has a native one; in 3.11 it says so; from 3.12 on a frame of no code. */
static bool is_entry(const struct python_process *process, uint64_t frame)
{
	if (process->at.activations == CPYTHON_BY_FRAME)
		return false;
	return !process->at.frame_is_entry ||
	       (uint8_t)word_at(process, frame + process->at.frame_is_entry);
}

size_t torsh_python_frames_take(const struct python_process *process, uint32_t tid,
				uint64_t thread_pointer,
				struct python_stack_frame frames[PYTHON_FRAMES_MAX])
{
	uint64_t state = process->is_known ? find_thread(process, tid, thread_pointer) : 0;
	uint64_t frame = state ? innermost_of(process, state) : 0;
	size_t n = 0;

	for (uint32_t i = 0; frame && n < PYTHON_FRAMES_MAX && i < 4 * PYTHON_FRAMES_MAX; i++) {
		uint64_t code = word_at(process, frame + process->at.frame_code) & OBJECT_BITS;

		if (is_code(process, code)) {
			struct python_stack_frame *taken = &frames[n++];

			read_text(process, word_at(process, code + process->at.code_name),
				  taken->function);
			read_text(process, word_at(process, code + process->at.code_file),
				  taken->file);
			taken->line = line_of(process, frame, code);
			taken->ends_activation = is_entry(process, frame);
		} else if (n) {
			frames[n - 1].ends_activation = true;
		}
		frame = word_at(process, frame + process->at.frame_previous);
	}
	if (n)
		frames[n - 1].ends_activation = true;
	return n;
}
