/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The results of torsh check per budget, in the formats of continuous integration, and the
 * comparison with an earlier recording.
 */
#ifndef TORSH_COMMAND_CHECK_OUTCOMES_H
#define TORSH_COMMAND_CHECK_OUTCOMES_H

#include "tools/base/json_writer.h"
#include "tools/command/diff/growth_limits.h"
#include "tools/command/reading.h"

struct outcome {
	const char *name;
	char *text; /* a sentence */
	bool is_kept;
	bool is_of_baseline;
	struct change change; /* there: before and after */
};

struct outcomes {
	struct outcome *items;
	size_t n, n_room;
	char *file; /* the line with the largest increase of leaks; NULL: unknown */
	int line;
};

/* Add an outcome; takes ownership of text. name must outlive it. */
void torsh_outcomes_add(struct outcomes *outcomes, const char *name, bool is_kept, char *text);

/* Compare with the recording at path, and add an outcome for each total that has a limit. */
void torsh_outcomes_compare(struct outcomes *outcomes, const struct growth_limits *limits,
			    const char *path, const struct reading *reading,
			    struct read_options *options);

bool torsh_outcomes_are_kept(const struct outcomes *outcomes);

/* Emit "baseline": [{"name", "before", "after", "passed"}]. */
void torsh_outcomes_emit(struct json_writer *json, const struct outcomes *outcomes);

/*
 * Print the baseline's outcomes as text; with is_github a workflow annotation for each one that
 * failed.
 */
void torsh_outcomes_print(const struct outcomes *outcomes);
void torsh_outcomes_print_github(const struct outcomes *outcomes);

/* Write a JUnit file. Ends the program if it cannot be written. */
void torsh_outcomes_write_junit(const struct outcomes *outcomes, const char *path);

/* Free the outcomes. */
void torsh_outcomes_free(struct outcomes *outcomes);

#endif
