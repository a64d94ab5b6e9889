/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Functions and state that the parts of the exporter for the Firefox Profiler share. Its processed
 * profile format has columns: samples and markers are held until all are known.
 */
#ifndef TORSH_EXPORT_FIREFOX_FIREFOX_H
#define TORSH_EXPORT_FIREFOX_FIREFOX_H

#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/export/sampled_stacks.h"
#include "tools/export/trace.h"

/* CATEGORY(NAME, name, color): of the code that a frame is in, and of markers. */
#define FIREFOX_CATEGORIES                              \
	CATEGORY(OTHER, "Other", "grey")                \
	CATEGORY(PROGRAM, "Program", "green")           \
	CATEGORY(PACKAGE, "Python packages", "yellow")  \
	CATEGORY(LIBRARY, "Native libraries", "blue")   \
	CATEGORY(INTERPRETER, "Interpreter", "orange")  \
	CATEGORY(SYSTEM, "C and C++ library", "purple") \
	CATEGORY(AGENT, "torsh", "darkgrey")            \
	CATEGORY(OPERATOR, "Operators", "magenta")      \
	CATEGORY(MODULE, "Modules", "lightblue")        \
	CATEGORY(RANGE, "Ranges and steps", "brown")    \
	CATEGORY(COLLECTOR, "Python GC", "red")         \
	CATEGORY(WAIT, "Waits", "lightred")

enum firefox_category {
#define CATEGORY(NAME, name, color) FIREFOX_##NAME,
	FIREFOX_CATEGORIES
#undef CATEGORY
		N_FIREFOX_CATEGORIES
};

/* MARKER(NAME, type, field, label, field, label): each type has two fields that are texts. */
#define FIREFOX_MARKERS                                                                      \
	MARKER(OPERATOR, "Operator", "module", "Module", "phase", "Phase")                   \
	MARKER(MODULE, "Module", "module", "Within module", "phase", "Phase")                \
	MARKER(RANGE, "Range", "domain", "Domain", "category", "Category")                   \
	MARKER(STEP, "Step", "rule", "By", "of", "Of")                                       \
	MARKER(GC, "PythonGC", "generation", "Generation", "collected", "Objects collected") \
	MARKER(WAIT, "Wait", "kind", "Kind", "for", "Waited for")                            \
	MARKER(MARK, "Mark", "domain", "Domain", "category", "Category")

enum firefox_marker_type {
#define MARKER(NAME, type, first, first_label, second, second_label) FIREFOX_MARKER_##NAME,
	FIREFOX_MARKERS
#undef MARKER
		N_FIREFOX_MARKERS
};

struct firefox_sample {
	uint64_t at_ns, cpu_ns;
	uint32_t node; /* 0: it has no stack */
};

/* Texts are numbers among the profile's strings, from 1; 0: none. */
struct firefox_marker {
	uint64_t begin_ns, end_ns;
	uint32_t name, fields[2];
	uint32_t node; /* 0: it has no stack */
	uint8_t type, category;
	bool is_instant;
};

/* A thread that has samples or markers. */
struct firefox_thread {
	const struct recorded_process *process;
	uint32_t row;
	struct firefox_sample *samples;
	size_t n_samples, samples_room;
	struct firefox_marker *markers;
	size_t n_markers, markers_room;
};

struct firefox {
	struct trace *trace;
	struct json_writer json;
	struct sampled_stacks stacks;
	struct hash_map texts; /* numbers, from 1 */
	const char **strings; /* by number - 1; owned by texts */
	size_t n_strings, strings_room;
	struct firefox_thread *threads; /* of a process one after the other */
	size_t n_threads, threads_room;
	struct hash_map index; /* of threads, by process and row */
	uint64_t period_ns; /* of the first sampler; 0: unknown */
};

/* Returns the number of a text; 0 for NULL. */
uint32_t torsh_firefox_text(struct firefox *firefox, const char *text);

/*
 * Put the members libs, the files of native frames, and shared: the tables of stacks, frames,
 * functions and strings. No text is added afterwards.
 */
void torsh_firefox_put_tables(struct firefox *firefox);

/* Put the member threads, each with its samples and markers. */
void torsh_firefox_put_threads(struct firefox *firefox);

#endif
