/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The leaks that a program itself suppresses: the return value of its function
 * __lsan_default_suppressions, which LeakSanitizer calls. It is read from the program's file,
 * because the agent must not run code that would not run without it.
 */
#include <errno.h>
#include <string.h>

#include "tools/writer/output/elf_text.h"
#include "tools/writer/output/rows/rows_parts.h"

static const struct code_module *module_of(const struct code_table *code, const char *path)
{
	for (uint32_t i = 0; i < code->n_modules; i++)
		if (!strcmp(code->modules[i].path, path))
			return &code->modules[i];
	return NULL;
}

void torsh_rows_put_lsan(Torsh__Process *row, const struct target *target)
{
	static char unread[] =
		"leaks: the program's __lsan_default_suppressions does more than return a constant text: it was "
		"not read; TORSH_PROFILER_SUPPRESS takes its rules as a file";
	struct target_lsan *lsan = target->lsan;
	const struct code_module *module =
		lsan->is_known ? NULL : module_of(&target->state.tables->code, row->program);

	if (module) {
		lsan->is_known = true;
		lsan->is_unread =
			torsh_elf_returned_text(module->path, module->build_id, module->n_build_id,
						"__lsan_default_suppressions",
						&lsan->suppressions) == -ENOTSUP;
	}
	row->lsan_suppressions = lsan->suppressions;
	if (lsan->is_unread)
		row->notes[row->n_notes++] = unread;
}
