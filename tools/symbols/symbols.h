/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/symbols finds names, lines and inlined functions for addresses. Read this file first.
 *
 * Names of a recording's addresses. Sources, best first: DWARF of the module's file, if its
 * build-id is the recorded one (lines, inlined functions); the symbols in the recording; the file's
 * ELF symbols; module and offset. Files are opened at the first query and every answer is cached:
 * query only what is printed.
 *
 * Strings are interned: the same text is the same pointer, for as long as the symbols live.
 */
#ifndef TORSH_SYMBOLS_SYMBOLS_H
#define TORSH_SYMBOLS_SYMBOLS_H

#include "tools/recording/recording.h"

/* Unknown values are NULL, or 0 for a line. */
struct frame {
	const char *function; /* demangled */
	const char *linkage_name; /* as in the symbol table, perhaps mangled */
	const char *file;
	int line;
	const char *module; /* path of the file, or "[vdso]" */
	uint64_t address; /* as recorded: a return address unless is_exact */
	uint64_t module_offset; /* address in the module's program headers; 0 without module */
	uint64_t offset; /* bytes from the start of the function */
	bool has_offset;
	bool is_inlined; /* into the next frame */
	bool is_exact;
	bool is_signal_frame;
	bool is_python; /* a Python line: it has no address and no module */
	bool has_no_unwind_info; /* its caller was found by the frame pointer */
	const char *cut; /* not a frame: why the frames further out are unknown */
};

/* The frames at one address: several if functions were inlined there; innermost first. */
struct frames {
	struct frame *frames;
	size_t n;
};

/* Create the symbols of a recording. with_lines: also lines and inlined functions from DWARF. */
struct symbols *torsh_symbols_create(bool with_lines);

/* Free the symbols. */
void torsh_symbols_destroy(struct symbols *symbols);

/* Drop processes that are about to be freed; files and texts stay. */
void torsh_symbols_forget(struct symbols *symbols);

/*
 * Close the files of modules, until one is needed again: their lines take more memory than a
 * recording. Names from torsh_symbols_name are gone; frames and their texts stay.
 */
void torsh_symbols_close_files(struct symbols *symbols);

/* Addresses of a process that are asked for. */
struct used_addresses {
	const struct recorded_process *process;
	bool *is_used; /* by address */
};

/*
 * Find the frames of the used addresses of n processes, before they are asked for: file by file,
 * each closed before the next one is opened.
 */
void torsh_symbols_name_used(struct symbols *symbols, const struct used_addresses *used, size_t n);

/* Find the frames of all stacks that allocated or mapped, likewise. */
void torsh_symbols_name_stacks(struct symbols *symbols, struct recorded_process *const *processes,
			       size_t n_processes);

/*
 * Returns the frames at an address of a process: never NULL, at least one frame. Owned by the
 * symbols.
 */
const struct frames *torsh_symbols_frames(struct symbols *symbols,
					  const struct recorded_process *process, uint32_t address);

/*
 * Returns the name from the symbol tables, without DWARF: cheap. NULL: unknown. symbols NULL: the
 * recorded name.
 */
const char *torsh_symbols_name(struct symbols *symbols, const struct recorded_process *process,
			       uint32_t address);

/*
 * Returns the number of module files that cannot be used because they are missing. Query after
 * printing.
 */
size_t torsh_symbols_n_missing(const struct symbols *symbols);

/* Returns the number of files that have changed. */
size_t torsh_symbols_n_changed(const struct symbols *symbols);

/* Returns the demangled name, interned; name itself if it is not mangled. */
const char *torsh_symbols_demangle(struct symbols *symbols, const char *name);

#endif
