/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/program/process_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

void torsh_process_code_create(struct process_code *code, const struct channel_view *view,
			       struct code_table *table, uint32_t process)
{
	*code = (struct process_code){.view = view, .table = table, .process = process};
	code->numbers = torsh_memory_new(view->n_addresses, sizeof(*code->numbers));
	code->module_numbers = torsh_memory_new(view->n_modules, sizeof(*code->module_numbers));
	code->function_numbers = torsh_memory_new(view->n_codes, sizeof(*code->function_numbers));
}

void torsh_process_code_destroy(struct process_code *code)
{
	free(code->function_numbers);
	free(code->module_numbers);
	free(code->numbers);
	free(code->placements);
	*code = (struct process_code){0};
}

/*
 * Memory without a file, and files that only this process may have under that name, are the
 * process's own.
 */
static bool is_own(const struct code_module *module)
{
	const char *path = module->path;
	size_t n = strlen(path);
	static const char deleted[] = " (deleted)";

	if (module->n_build_id)
		return false;
	return path[0] != '/' || !strncmp(path, "/memfd:", 7) || !strncmp(path, "/dev/", 5) ||
	       !strncmp(path, "/proc/", 6) ||
	       (n >= sizeof(deleted) - 1 && !strcmp(path + n - (sizeof(deleted) - 1), deleted));
}

static void place(struct process_code *code, uint32_t number, uint64_t bias)
{
	while (code->n_placements <= number) {
		code->placements =
			torsh_array_reserve(code->placements, code->n_placements,
					    &code->placement_capacity, sizeof(*code->placements));
		code->placements[code->n_placements++] = (struct code_placement){0};
	}
	code->placements[number] = (struct code_placement){.bias = bias, .is_there = true};
	code->n_placed++;
}

/* Returns true if the process has that module of the table nowhere else. */
static bool can_be(const struct process_code *code, uint32_t number, uint64_t bias)
{
	return number >= code->n_placements || !code->placements[number].is_there ||
	       code->placements[number].bias == bias;
}

/*
 * A process may have a file more than once: each time is a module. A linear search over a few
 * hundred modules is faster than an index.
 */
static uint32_t number_module(struct process_code *code, struct code_module *module)
{
	struct code_table *table = code->table;
	uint32_t number = 0;

	while (number < table->n_modules &&
	       !(torsh_code_is_same_file(&table->modules[number], module) &&
		 (!module->process || table->modules[number].bias == module->bias) &&
		 can_be(code, number, module->bias)))
		number++;
	if (number < table->n_modules)
		free(module->path);
	else
		number = torsh_code_add_module(table, module);
	if (number != CHANNEL_NO_MODULE)
		place(code, number, module->bias);
	return number;
}

static uint32_t module_number(struct process_code *code, uint32_t index)
{
	struct channel_module module;
	struct code_module row;
	size_t n_path;

	if (torsh_view_module(code->view, index, &module))
		return CHANNEL_NO_MODULE;
	if (code->module_numbers[index])
		return code->module_numbers[index] - 1;
	row = (struct code_module){
		.bias = module.bias,
		.start = module.start,
		.end = module.end,
		.path = torsh_view_text(code->view, module.path, -1, &n_path),
		.n_build_id = module.n_build_id,
	};
	memcpy(row.build_id, module.build_id, row.n_build_id);
	row.process = is_own(&row) ? code->process : 0;
	/* A CHANNEL_NO_MODULE becomes 0: it is asked for again. */
	code->module_numbers[index] = number_module(code, &row) + 1;
	return code->module_numbers[index] - 1;
}

/* The agent gives a function one index, however often its code object is recreated. */
static uint32_t function_number(struct process_code *code, uint32_t index)
{
	struct channel_code row;
	size_t n;

	if (torsh_view_code(code->view, index, &row))
		return CHANNEL_NO_MODULE;
	if (!code->function_numbers[index])
		code->function_numbers[index] =
			torsh_code_function(
				code->table,
				&(struct code_function){
					.name = torsh_view_text(code->view, row.name, -1, &n),
					.file = torsh_view_text(code->view, row.file, -1, &n),
					.first_line = row.first_line,
				}) +
			1;
	return code->function_numbers[index] - 1;
}

uint32_t torsh_process_code_label(struct process_code *code, uint32_t label)
{
	/* Maps CHANNEL_NO_MODULE + 1 back to none. */
	return label ? function_number(code, label - 1) + 1 : 0;
}

/* The address where the module was loaded by the first process that had it. */
static void move_to_table(const struct process_code *code, struct code_address *address)
{
	if (address->module == CHANNEL_NO_MODULE)
		address->process = address->ip ? code->process & 0xffffff : 0;
	else
		address->ip += code->table->modules[address->module].bias -
			       code->placements[address->module].bias;
}

int64_t torsh_process_code_add(struct process_code *code, uint32_t id)
{
	struct view_address sent;
	struct code_address address;

	if (id >= code->view->n_addresses || torsh_view_address(code->view, id, &sent))
		return -ENOENT;
	address = (struct code_address){.ip = sent.ip, .flags = (uint8_t)sent.flags};
	if (sent.flags == ADDRESS_PYTHON) {
		address.module = function_number(code, sent.module);
	} else {
		address.module = module_number(code, sent.module);
		move_to_table(code, &address);
	}
	code->numbers[id] = torsh_code_address(code->table, &address) + 1;
	if (code->n_ids <= id)
		code->n_ids = id + 1;
	return code->numbers[id] - 1;
}

void torsh_process_code_mark(const struct process_code *code, bool *is_used)
{
	for (uint32_t id = 0; id < code->n_ids; id++) {
		if (code->numbers[id])
			is_used[code->numbers[id] - 1] = true;
	}
}
