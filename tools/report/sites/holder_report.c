/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/sites/holder_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/json_writer.h"
#include "tools/base/size.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/frame_kind.h"
#include "tools/frames/short_name.h"
#include "tools/report/parts.h"
#include "tools/symbols/data_symbol.h"

#define NS_IN_S 1e9

/* How much a stack is like the site's: with the same lines of Python, with its own line, or not. */
enum likeness { UNLIKE, OF_ONE_LINE, OF_ONE_PATH };

static size_t next_of_python(const struct frame *const *frames, size_t n, size_t i)
{
	while (i < n && !frames[i]->is_python)
		i++;
	return i;
}

static bool has_same_path(const struct frame *const *x, size_t n_x, const struct frame *const *y,
			  size_t n_y)
{
	size_t i = next_of_python(x, n_x, 0), k = next_of_python(y, n_y, 0);
	bool has_any = i < n_x;

	while (i < n_x && k < n_y && x[i]->file == y[k]->file && x[i]->line == y[k]->line) {
		i = next_of_python(x, n_x, i + 1);
		k = next_of_python(y, n_y, k + 1);
	}
	return has_any && i == n_x && k == n_y;
}

static enum likeness compare_stacks(const struct frame **frames, size_t n,
				    const struct allocation_site *site)
{
	struct blamed_line a = torsh_blamed_line(frames, n, torsh_working_directory());
	struct blamed_line b =
		torsh_blamed_line(site->frames, site->n_frames, torsh_working_directory());

	if (!n || !site->n_frames || a.where == FRAME_NONE || b.where == FRAME_NONE ||
	    frames[a.where]->file != site->frames[b.where]->file ||
	    frames[a.where]->line != site->frames[b.where]->line)
		return UNLIKE;
	return has_same_path(frames, n, site->frames, site->n_frames) ? OF_ONE_PATH : OF_ONE_LINE;
}

/*
 * Stacks of one line were merged: the way to the one that keeps most will do, which comes first, of
 * those with the same callers if there is one.
 */
const struct recorded_holder *torsh_holder_of(const struct holder_view *view,
					      const struct allocation_site *site)
{
	const struct recorded_verdicts *verdicts = &site->process->verdicts;
	const struct recorded_holder *found = NULL;
	enum likeness best = UNLIKE;

	for (size_t i = 0; i < verdicts->n_holders; i++) {
		if (verdicts->holders[i].stack == site->stack)
			return &verdicts->holders[i];
	}
	for (size_t i = 0; best < OF_ONE_PATH && i < verdicts->n_holders; i++) {
		size_t n;
		const struct frame **frames = torsh_stack_frames(
			site->process, verdicts->holders[i].stack, view->symbols, view->stacks, &n);
		enum likeness likeness = compare_stacks(frames, n, site);

		if (likeness > best) {
			best = likeness;
			found = &verdicts->holders[i];
		}
		free(frames);
	}
	return found;
}

static const char *kind_of(const struct recorded_holder *holder)
{
	switch (holder->root) {
	case ROOT_IN_MODULE:
		return "global";
	case ROOT_ON_STACK:
		return "stack";
	case ROOT_IN_REGISTER:
		return "register";
	case ROOT_OF_PYTHON:
		return "modules";
	case ROOT_IN_FRAME:
		return "local";
	default:
		return "mapping";
	}
}

/* As "local 'rows' of train() in train.py:12, thread 4243". The caller frees it. */
static char *name_of_local(const struct recorded_holder *holder, uint32_t pid)
{
	const char *file =
		holder->file ? torsh_frame_path(holder->file, torsh_working_directory()) : NULL;
	char *place = !file	     ? torsh_need_text("%s", "")
		      : holder->line ? torsh_need_text(" in %s:%" PRIu32, file, holder->line)
				     : torsh_need_text(" in %s", file);
	char *thread = holder->tid && holder->tid != pid
			       ? torsh_need_text(", thread %" PRIu32, holder->tid)
			       : torsh_need_text("%s", "");
	char *name =
		torsh_need_text("local '%s' of %s()%s%s", holder->variable ? holder->variable : "?",
				holder->function ? holder->function : "?", place, thread);

	free(place);
	free(thread);
	return name;
}

/* The caller frees it. */
static char *name_of(const struct holder_view *view, const struct recorded_holder *holder,
		     uint32_t pid)
{
	char *symbol, *name;

	if (holder->root == ROOT_ON_STACK)
		return torsh_need_text("thread %" PRIu32, holder->tid);
	if (holder->root == ROOT_IN_REGISTER)
		return torsh_need_text("a register");
	if (holder->root == ROOT_OF_PYTHON)
		return torsh_need_text("sys.modules");
	if (holder->root == ROOT_IN_FRAME)
		return name_of_local(holder, pid);
	if (holder->root != ROOT_IN_MODULE)
		return torsh_need_text("memory mapped by %s",
				       holder->path ? holder->path : "the program");
	symbol = torsh_data_symbol(holder->path, holder->address);
	name = symbol ? torsh_need_text("%s in %s", torsh_symbols_demangle(view->symbols, symbol),
					holder->path)
		      : torsh_need_text("data of %s at %#" PRIx64, holder->path, holder->address);
	free(symbol);
	return name;
}

/* The line that allocated a block of the way; the caller frees it. */
static char *line_of(const struct holder_view *view, const struct allocation_site *site,
		     uint32_t stack)
{
	size_t n;
	const struct frame **frames =
		torsh_stack_frames(site->process, stack, view->symbols, view->stacks, &n);
	struct blamed_line blamed = torsh_blamed_line(frames, n, torsh_working_directory());
	char *place = blamed.where == FRAME_NONE
			      ? torsh_need_text("(no stack)")
			      : torsh_short_place(frames[blamed.where], torsh_working_directory());

	free(frames);
	return place;
}

static void emit_root(struct json_writer *json, const struct holder_view *view,
		      const struct recorded_holder *holder, uint32_t pid)
{
	char *name = name_of(view, holder, pid);

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "kind", kind_of(holder));
	torsh_json_put_text(json, "name", name);
	torsh_json_put_null(json, "type");
	torsh_json_put_null(json, "bytes");
	torsh_json_put_null(json, "stack");
	torsh_json_end_object(json);
	free(name);
}

/* The class of an object of C++ by its table of virtual functions, interned, or NULL. */
static const char *class_of(const struct holder_view *view, const struct held_block *block)
{
	static const char before[] = "vtable for ";
	char *symbol =
		block->table_module ? torsh_data_symbol(block->table_module, block->table) : NULL;
	const char *name = symbol ? torsh_symbols_demangle(view->symbols, symbol) : NULL;
	bool is_table = name && !strncmp(name, before, strlen(before));

	free(symbol);
	return is_table ? name + strlen(before) : NULL;
}

static const char *kind_of_block(const struct held_block *block)
{
	if (!block->type)
		return "block";
	return strcmp(block->type, "module") ? "object" : "module";
}

static void emit_block(struct json_writer *json, const struct holder_view *view,
		       const struct allocation_site *site, const struct held_block *block)
{
	char *line = block->name || !block->stack ? NULL : line_of(view, site, block->stack);

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "kind", kind_of_block(block));
	torsh_json_put_text(json, "name", line ? line : block->name);
	torsh_json_put_text(json, "type", block->type ? block->type : class_of(view, block));
	torsh_json_put_u64(json, "bytes", block->bytes);
	if (block->stack)
		torsh_parts_emit_recorded_stack(json, site->process, block->stack, view->symbols,
						view->stacks);
	else
		torsh_json_put_null(json, "stack");
	torsh_json_end_object(json);
	free(line);
}

/* ---- use ------------------------------------------------------------------------------------- */

/* Why it is not known what read the block last; NULL: it is. */
static const char *why_no_read(const struct recorded_use *use)
{
	if (!use->is_tensor)
		return "it is no memory of a tensor";
	if (!use->has_reads)
		return "inputs of operators were not recorded, or not all";
	return use->operator? NULL : "no recorded operator read it";
}

/* How many steps ago; false: that is not known. */
static bool steps_since(const struct recorded_use *use, uint32_t step, uint32_t *n)
{
	*n = use->step - step;
	return step && use->step >= step;
}

static void emit_use(struct json_writer *json, const struct recorded_holder *holder, uint64_t at_ns)
{
	const struct recorded_use *use = &holder->use;
	const char *reason = why_no_read(use);
	uint32_t steps;
	bool is_known = steps_since(use, use->allocated_step, &steps);

	torsh_json_put_known(json, "alive_ns", use->allocated_ns, at_ns - use->allocated_ns);
	torsh_json_put_known(json, "alive_steps", is_known, steps);
	torsh_json_put_text(json, "last_read_reason", reason);
	if (reason) {
		torsh_json_put_null(json, "last_read");
		return;
	}
	torsh_json_begin_object(json, "last_read");
	torsh_json_put_text(json, "operator", use->operator);
	torsh_json_put_known(json, "step", use->read_step, use->read_step - 1);
	torsh_json_put_u64(json, "ns_ago", at_ns - use->read_ns);
	torsh_json_end_object(json);
}

static void emit_no_use(struct json_writer *json)
{
	torsh_json_put_null(json, "alive_ns");
	torsh_json_put_null(json, "alive_steps");
	torsh_json_put_text(json, "last_read_reason", "no way to it is known");
	torsh_json_put_null(json, "last_read");
}

static void print_use(const struct recorded_holder *holder, uint64_t at_ns)
{
	const struct recorded_use *use = &holder->use;
	const char *reason = why_no_read(use);
	char number[SIZE_TEXT_BYTES];
	uint32_t steps;

	if (!use->is_tensor || !use->allocated_ns)
		return;
	if (steps_since(use, use->allocated_step, &steps))
		printf("Alive for %s, ", torsh_size_counted(steps, "step", number));
	else
		printf("Alive for %.1f s, ", (double)(at_ns - use->allocated_ns) / NS_IN_S);
	if (reason)
		printf("last read: %s.\n", reason);
	else if (use->read_step)
		printf("last read by %s in step %" PRIu32 ".\n", use->operator, use->read_step - 1);
	else
		printf("last read by %s %.1f s ago.\n",
		       use->operator, (double)(at_ns - use->read_ns) / NS_IN_S);
}

void torsh_holder_json(const struct holder_view *view, const struct allocation_site *site)
{
	const struct recorded_holder *holder = torsh_holder_of(view, site);
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_text(&json, "class", torsh_block_class_name(torsh_block_class_of(site)));
	torsh_json_put_known(&json, "left_out", holder, holder ? holder->left_out : 0);
	torsh_json_begin_array(&json, "why");
	if (holder)
		emit_root(&json, view, holder, site->process->pid);
	for (size_t i = 0; holder && i < holder->n_blocks; i++)
		emit_block(&json, view, site, &holder->blocks[i]);
	torsh_json_end_array(&json);
	if (holder)
		emit_use(&json, holder, site->process->verdicts.at_ns);
	else
		emit_no_use(&json);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}

static void print_block(const struct holder_view *view, const struct allocation_site *site,
			const struct held_block *block)
{
	char bytes[SIZE_TEXT_BYTES];
	char *line = block->stack ? line_of(view, site, block->stack) : NULL;
	const char *type = block->type ? block->type : class_of(view, block);

	printf("  -> ");
	if (type)
		printf("%s%s%s, ", block->name ? block->name : "", block->name ? ": " : "", type);
	printf("%s%s%s\n", torsh_size_human(block->bytes, bytes), line ? " from " : "",
	       line ? line : "");
	free(line);
}

void torsh_holder_text(const struct holder_view *view, const struct allocation_site *site)
{
	const struct recorded_holder *holder = torsh_holder_of(view, site);
	char *name;

	if (!holder) {
		printf("Nothing is known of what keeps it: it is %s.\n",
		       torsh_block_class_name(torsh_block_class_of(site)));
		return;
	}
	name = name_of(view, holder, site->process->pid);
	printf("%s\n", name);
	for (size_t i = 0; i < holder->n_blocks; i++) {
		if (holder->left_out && i == holder->n_blocks / 2)
			printf("  ... and %" PRIu32 " more\n", holder->left_out);
		print_block(view, site, &holder->blocks[i]);
	}
	print_use(holder, site->process->verdicts.at_ns);
	free(name);
}

char *torsh_holder_name(const struct holder_view *view, const struct allocation_site *site)
{
	const struct recorded_holder *holder = torsh_holder_of(view, site);
	const char *name = NULL;

	for (size_t i = 0; holder && i < holder->n_blocks; i++) {
		const char *of = holder->blocks[i].name;

		/* "[3]" names nothing that a variable leads to. */
		if (of && *of != '[' && *of != '{')
			name = of;
	}
	if (name && holder->root == ROOT_IN_FRAME)
		return torsh_need_text("%s of %s()", name,
				       holder->function ? holder->function : "?");
	if (name)
		return torsh_need_text("%s", name);
	return holder ? name_of(view, holder, site->process->pid) : NULL;
}
