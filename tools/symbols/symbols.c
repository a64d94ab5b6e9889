/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/channel.h"
#include "tools/base/containers/array.h"
#include "tools/base/containers/intern.h"
#include "tools/base/die.h"
#include "tools/symbols/lines.h"
#include "tools/symbols/rust/rust.h"

#define INLINED_MAX 64

/* From the C++ run-time library; no C header declares it. */
char *__cxa_demangle(const char *name, char *out, size_t *n_out, int *status);

/* Each file is opened once, for all processes that mapped it. */
struct file {
	char *path;
	uint8_t *build_id;
	size_t n_build_id;
	struct object object; /* closed: only its state is there */
	bool is_closed;
};

struct known_process {
	const struct recorded_process *process;
	struct frames *frames; /* by address; n == 0: not looked up yet */
	size_t n_frames;
	struct file **files; /* by module; NULL: not looked up yet */
	size_t n_files;
};

struct symbols {
	bool with_lines;
	struct intern texts;
	struct file **files;
	size_t n_files, files_room;
	struct known_process *processes;
	size_t n_processes, processes_room;
};

struct symbols *torsh_symbols_create(bool with_lines)
{
	struct symbols *symbols = torsh_need(calloc(1, sizeof(*symbols)));

	symbols->with_lines = with_lines;
	/* A server that doesn't answer must not delay a report by minutes. */
	if (getenv("DEBUGINFOD_URLS"))
		setenv("DEBUGINFOD_TIMEOUT", "10", 0);
	return symbols;
}

void torsh_symbols_forget(struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->n_processes; i++) {
		struct known_process *known = &symbols->processes[i];

		for (size_t k = 0; k < known->n_frames; k++)
			free(known->frames[k].frames);
		free(known->frames);
		free(known->files);
	}
	symbols->n_processes = 0;
}

void torsh_symbols_destroy(struct symbols *symbols)
{
	if (!symbols)
		return;
	torsh_symbols_forget(symbols);
	free(symbols->processes);
	for (size_t i = 0; i < symbols->n_files; i++) {
		torsh_object_close(&symbols->files[i]->object);
		free(symbols->files[i]->path);
		free(symbols->files[i]->build_id);
		free(symbols->files[i]);
	}
	free(symbols->files);
	torsh_intern_free(&symbols->texts);
	free(symbols);
}

void torsh_symbols_close_files(struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->n_files; i++) {
		struct file *file = symbols->files[i];
		enum object_state state = file->object.state;

		torsh_object_close(&file->object);
		file->object.state = state;
		file->is_closed = true;
	}
}

static struct known_process *find_process(struct symbols *symbols,
					  const struct recorded_process *process)
{
	struct known_process *known;

	for (size_t i = symbols->n_processes; i-- > 0;) {
		if (torsh_recording_has_same_code(symbols->processes[i].process, process))
			return &symbols->processes[i];
	}
	symbols->processes =
		torsh_array_reserve(symbols->processes, symbols->n_processes,
				    &symbols->processes_room, sizeof(*symbols->processes));
	known = &symbols->processes[symbols->n_processes++];
	*known = (struct known_process){
		.process = process,
		.frames = torsh_need_items(NULL, 0, process->tables->n_addresses,
					   sizeof(*known->frames)),
		.n_frames = process->tables->n_addresses,
		.files = torsh_need_items(NULL, 0, process->tables->n_modules,
					  sizeof(*known->files)),
		.n_files = process->tables->n_modules,
	};
	return known;
}

static struct file *open_file(struct symbols *symbols, const struct recorded_module *module)
{
	struct file *file;

	for (size_t i = 0; i < symbols->n_files; i++) {
		file = symbols->files[i];
		if (strcmp(file->path, module->path) == 0 &&
		    file->n_build_id == module->n_build_id &&
		    (!file->n_build_id ||
		     memcmp(file->build_id, module->build_id, file->n_build_id) == 0))
			return file;
	}
	file = torsh_need(calloc(1, sizeof(*file)));
	file->path = torsh_need(strdup(module->path));
	file->build_id = torsh_need_items(NULL, 0, module->n_build_id, 1);
	if (module->n_build_id)
		memcpy(file->build_id, module->build_id, module->n_build_id);
	file->n_build_id = module->n_build_id;
	torsh_object_open(&file->object, file->path, file->build_id, file->n_build_id);
	symbols->files = torsh_array_reserve(symbols->files, symbols->n_files, &symbols->files_room,
					     sizeof(file));
	symbols->files[symbols->n_files++] = file;
	return file;
}

static struct object *open_object(struct file *file)
{
	if (file->is_closed && file->object.state == OBJECT_USABLE)
		torsh_object_open(&file->object, file->path, file->build_id, file->n_build_id);
	file->is_closed = false;
	return &file->object;
}

/* Returns the file of an address, or NULL: no module, or memory without a file. */
static struct object *object_of(struct symbols *symbols, const struct recorded_process *process,
				uint32_t address)
{
	const struct recorded_module *module = torsh_recording_module(process, address);
	struct known_process *known = find_process(symbols, process);
	struct file **file;

	if (!module || module->path[0] != '/')
		return NULL;
	file = &known->files[module - process->tables->modules];
	if (!*file)
		*file = open_file(symbols, module);
	return open_object(*file);
}

/*
 * Returns the address to look up: a call may be a function's last instruction, and then its return
 * address is in the next function.
 */
static uint64_t looked_up(const struct recorded_process *process, uint32_t address)
{
	const struct recorded_address *row = &process->tables->addresses[address];
	const struct recorded_module *module = torsh_recording_module(process, address);
	uint64_t ip = row->ip - (module ? module->bias : 0);

	return row->flags & (ADDRESS_EXACT | ADDRESS_SIGNAL_FRAME) ? ip : ip - 1;
}

const char *torsh_symbols_demangle(struct symbols *symbols, const char *name)
{
	char *demangled = name ? torsh_rust_demangle(name) : NULL;
	const char *text;
	int status;

	if (!demangled && name && name[0] == '_' && name[1] == 'Z')
		demangled = __cxa_demangle(name, NULL, NULL, &status);
	text = torsh_intern(&symbols->texts, demangled ? demangled : name);
	free(demangled);
	return text;
}

const char *torsh_symbols_name(struct symbols *symbols, const struct recorded_process *process,
			       uint32_t address)
{
	const char *name = torsh_recording_symbol(process, address);
	const struct elf_symbol *symbol;
	struct object *object;

	if (name || !symbols || address >= process->tables->n_addresses ||
	    process->tables->addresses[address].flags == ADDRESS_PYTHON)
		return name;
	object = object_of(symbols, process, address);
	if (!object)
		return NULL;
	symbol = torsh_object_symbol(object, looked_up(process, address));
	return symbol ? symbol->name : NULL;
}

/*
 * Initialisers of globals and clones of functions, "f.part.0", have one name. Libraries of a
 * framework have thousands of them, and a symbol table of 100 MB each.
 */
static bool is_made_by_compiler(const char *name)
{
	static const char *const prefixes[] = {"_GLOBAL__", "__cxx_global_var_init",
					       "__cudaRegister"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return strchr(name, '.');
}

/*
 * Returns the recorded name, or the name under which programs call the function if it has several:
 * "strdup", not "__strdup".
 */
static const char *public_name(struct symbols *symbols, const struct recorded_process *process,
			       uint32_t address, const char *name)
{
	const struct elf_symbol *symbol;
	struct object *object;

	if (name[0] != '_' || name[1] == 'Z' || name[1] == 'R' || !symbols->with_lines ||
	    is_made_by_compiler(name))
		return name;
	object = object_of(symbols, process, address);
	symbol = object ? torsh_object_symbol(object, looked_up(process, address)) : NULL;
	return symbol && symbol->name[0] != '_' ? symbol->name : name;
}

/* Set name and offset from ELF symbols, the recording's first. */
static void name_frame(struct symbols *symbols, const struct recorded_process *process,
		       uint32_t address, struct frame *frame)
{
	const char *name = torsh_recording_symbol(process, address);
	struct object *object;

	if (name) {
		frame->offset = process->tables->addresses[address].symbol_offset;
		name = public_name(symbols, process, address, name);
	} else if ((object = object_of(symbols, process, address))) {
		const struct elf_symbol *symbol =
			torsh_object_symbol(object, looked_up(process, address));

		if (!symbol)
			return;
		name = symbol->name;
		frame->offset = looked_up(process, address) - symbol->start + !frame->is_exact;
	}
	if (!name)
		return;
	frame->has_offset = true;
	frame->linkage_name = torsh_intern(&symbols->texts, name);
	frame->function = torsh_symbols_demangle(symbols, name);
}

/* Intern the path without "/./", which compilers leave in it. */
static const char *intern_path(struct symbols *symbols, const char *path)
{
	char *copy, *dot;
	const char *text;

	if (!path || !*path || !strstr(path, "/./"))
		return path && *path ? torsh_intern(&symbols->texts, path) : NULL;
	copy = torsh_need(strdup(path));
	while ((dot = strstr(copy, "/./")))
		memmove(dot, dot + 2, strlen(dot + 2) + 1);
	text = torsh_intern(&symbols->texts, copy);
	free(copy);
	return text;
}

/*
 * Returns whether DWARF's name is better than the linker's. Not for C functions: DWARF has the
 * library's internal name, and programs call another one. But for parts of functions, which the
 * linker calls "f.part.0".
 */
static bool is_better_name(const char *dwarf_name, const struct frame *elf)
{
	if (!dwarf_name)
		return false;
	return !elf->linkage_name || strncmp(dwarf_name, "_Z", 2) == 0 ||
	       strncmp(dwarf_name, "_R", 2) == 0 ||
	       (strncmp(elf->linkage_name, "_Z", 2) != 0 && strchr(elf->linkage_name, '.'));
}

static size_t add_lines(struct symbols *symbols, const struct recorded_process *process,
			uint32_t address, const struct frame *base, struct frame *frames)
{
	struct object *object = object_of(symbols, process, address);
	struct line_frame lines[INLINED_MAX];
	size_t n =
		object ? torsh_lines_find(object, looked_up(process, address), lines, INLINED_MAX)
		       : 0;

	for (size_t i = 0; i < n; i++) {
		frames[i] = *base;
		frames[i].is_inlined = lines[i].is_inlined;
		frames[i].file = intern_path(symbols, lines[i].file);
		frames[i].line = frames[i].file ? lines[i].line : 0;
		if (i + 1 == n && !lines[i].is_inlined && !is_better_name(lines[i].name, base))
			continue;
		frames[i].linkage_name = torsh_intern(&symbols->texts, lines[i].name);
		frames[i].function = torsh_symbols_demangle(symbols, lines[i].name);
		if (lines[i].is_inlined) {
			frames[i].has_offset = false;
			frames[i].offset = 0;
		}
	}
	return n;
}

static const char *cut_reason(uint32_t flags)
{
	switch (flags) {
	case ADDRESS_CUT_UNKNOWN_CODE:
		return "code without unwind information";
	case ADDRESS_CUT_BAD_FRAME:
		return "the frame makes no sense";
	case ADDRESS_CUT_TOO_DEEP:
		return "deeper than is recorded";
	case ADDRESS_CUT_TABLE_FULL:
		return "the table of addresses is full";
	case ADDRESS_CUT_NO_MEMORY:
		return "stacks of small blocks were left out, as memory was short";
	default:
		return "unknown reason";
	}
}

static void make_python_frame(struct symbols *symbols, const struct recorded_process *process,
			      uint32_t address, struct frame *frame)
{
	const struct recorded_function *function = torsh_recording_function(process, address);

	*frame = (struct frame){.is_python = true,
				.line = (int)process->tables->addresses[address].ip};
	if (!function)
		return;
	frame->function = torsh_intern(&symbols->texts, function->name);
	frame->file = torsh_intern(&symbols->texts, function->file);
}

static size_t make_frames(struct symbols *symbols, const struct recorded_process *process,
			  uint32_t address, struct frame *frames)
{
	const struct recorded_address *row = &process->tables->addresses[address];
	const struct recorded_module *module = torsh_recording_module(process, address);
	struct frame base = {
		.address = torsh_recording_ip(process, address),
		.module = module ? torsh_intern(&symbols->texts, module->path) : NULL,
		.module_offset = module ? row->ip - module->bias : 0,
		.is_exact = row->flags & (ADDRESS_EXACT | ADDRESS_SIGNAL_FRAME),
		.is_signal_frame = row->flags & ADDRESS_SIGNAL_FRAME,
		.has_no_unwind_info = row->flags & ADDRESS_NO_UNWIND_INFO,
	};
	size_t n = 0;

	if (row->flags == ADDRESS_PYTHON) {
		make_python_frame(symbols, process, address, frames);
		return 1;
	}
	frames[0] = base;
	if (row->flags >= ADDRESS_CUT_UNKNOWN_CODE) {
		frames[0] = (struct frame){.address = row->ip, .cut = cut_reason(row->flags)};
		return 1;
	}
	name_frame(symbols, process, address, &base);
	if (symbols->with_lines)
		n = add_lines(symbols, process, address, &base, frames);
	if (n == 0) {
		frames[0] = base;
		n = 1;
	}
	return n;
}

const struct frames *torsh_symbols_frames(struct symbols *symbols,
					  const struct recorded_process *process, uint32_t address)
{
	static struct frame unknown = {.cut = "an address that the recording doesn't have"};
	static const struct frames nothing = {.frames = &unknown, .n = 1};
	struct frame frames[INLINED_MAX];
	struct frames *known;
	size_t n;

	if (address >= process->tables->n_addresses)
		return &nothing;
	known = &find_process(symbols, process)->frames[address];
	if (known->n)
		return known;
	n = make_frames(symbols, process, address, frames);
	known->frames = torsh_need_items(NULL, 0, n, sizeof(*frames));
	memcpy(known->frames, frames, n * sizeof(*frames));
	known->n = n;
	return known;
}

static size_t count_state(const struct symbols *symbols, enum object_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < symbols->n_files; i++)
		n += symbols->files[i]->object.state == state;
	return n;
}

size_t torsh_symbols_n_missing(const struct symbols *symbols)
{
	return count_state(symbols, OBJECT_MISSING);
}

size_t torsh_symbols_n_changed(const struct symbols *symbols)
{
	return count_state(symbols, OBJECT_CHANGED);
}
