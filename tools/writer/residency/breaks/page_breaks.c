/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/breaks/page_breaks.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/input/target.h"

#define SAMPLES_WANTED 4096u /* if it broke every page that it has */
#define SAMPLES_STEP 2048u /* after so many they get half as frequent: new memory faults, too */

void torsh_page_breaks_begin(struct page_breaks *breaks, pid_t pid, uint64_t resident_bytes)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);

	breaks->every = resident_bytes / page_bytes / SAMPLES_WANTED | 1; /* odd: no rhythm */
	breaks->n_until_rarer = SAMPLES_STEP;
	breaks->error = -torsh_fault_samples_open(&breaks->samples, pid, breaks->every);
	breaks->is_open = !breaks->error;
}

void torsh_page_breaks_find_code(struct page_breaks *breaks, pid_t pid,
				 const struct memory_look *look)
{
	struct python_layout layout;

	if (!breaks->is_open)
		return;
	torsh_python_layout_find(&layout, &look->areas, &look->reader);
	torsh_code_lines_create(&breaks->code, pid, &layout);
}

void torsh_page_breaks_end(struct page_breaks *breaks)
{
	if (breaks->is_open)
		torsh_fault_samples_close(&breaks->samples);
	torsh_code_lines_destroy(&breaks->code);
	free(breaks->sums.lines);
	*breaks = (struct page_breaks){.error = breaks->error};
}

static bool is_inherited(const struct page_runs *inherited, uint64_t address)
{
	uint32_t i = torsh_page_runs_from(inherited, address);

	return i < inherited->n && inherited->items[i].begin <= address;
}

/* ---- where ----------------------------------------------------------------------------------- */

static char *copy_of(const char *text)
{
	return torsh_memory_text(text ? text : "");
}

/* Returns the number of a line of Python in the tables of the program, or CHANNEL_NO_MODULE. */
static uint32_t python_address(struct code_table *table, const struct code_object *code,
			       uint32_t line)
{
	struct code_address address = {.ip = line, .flags = ADDRESS_PYTHON};

	address.module =
		torsh_code_function(table, &(struct code_function){.name = copy_of(code->function),
								   .file = copy_of(code->file),
								   .first_line = code->first_line});
	return address.module == CHANNEL_NO_MODULE ? CHANNEL_NO_MODULE
						   : torsh_code_address(table, &address);
}

/* Likewise of an instruction in a module that the process is known to have. */
static uint32_t native_address(struct process_code *code, uint64_t ip)
{
	for (uint32_t i = 0; i < code->n_placements && i < code->table->n_modules; i++) {
		const struct code_module *module = &code->table->modules[i];
		uint64_t offset = ip - code->placements[i].bias;

		if (code->placements[i].is_there && offset >= module->start - module->bias &&
		    offset < module->end - module->bias)
			return torsh_code_address(
				code->table, &(struct code_address){.ip = offset + module->bias,
								    .module = i,
								    .flags = ADDRESS_EXACT});
	}
	return CHANNEL_NO_MODULE;
}

/* Returns the stack of the line alone; 0: it is not known. */
static uint32_t stack_of(struct page_breaks *breaks, struct target *target,
			 const struct fault_sample *sample)
{
	struct process_state *state = &target->state;
	uint32_t line = 0, address;
	const struct code_object *object =
		torsh_code_lines_find(&breaks->code, sample->words, sample->n_words, &line);

	address = object ? python_address(&state->tables->code, object, line)
			 : native_address(&state->code, sample->ip);
	return address == CHANNEL_NO_MODULE
		       ? 0
		       : torsh_stacks_below(&state->tables->stacks, 0, address);
}

/* ---- counts ---------------------------------------------------------------------------------- */

static struct broken_line *line_of(struct account_breaks *sums, uint32_t stack)
{
	for (uint32_t i = 0; i < sums->n_lines; i++) {
		if (sums->lines[i].stack == stack)
			return &sums->lines[i];
	}
	if (stack && sums->n_lines >= BROKEN_LINES_MAX)
		return line_of(sums, 0);
	sums->lines = torsh_array_reserve(sums->lines, sums->n_lines, &sums->capacity,
					  sizeof(*sums->lines));
	sums->lines[sums->n_lines] = (struct broken_line){.stack = stack};
	return &sums->lines[sums->n_lines++];
}

static void count(struct page_breaks *breaks, struct target *target,
		  const struct fault_sample *sample)
{
	struct broken_line *line = line_of(&breaks->sums, stack_of(breaks, target, sample));

	line->samples++;
	line->pages += breaks->every;
	breaks->sums.samples++;
	breaks->sums.pages += breaks->every;
}

static void sample_rarer(struct page_breaks *breaks)
{
	uint64_t every = breaks->every * 2 + 1;

	breaks->n_until_rarer += SAMPLES_STEP;
	if (!ioctl(breaks->samples.fd, PERF_EVENT_IOC_PERIOD, &every))
		breaks->every = every;
}

void torsh_page_breaks_take(struct page_breaks *breaks, struct target *target,
			    const struct page_runs *inherited)
{
	struct fault_sample sample;

	if (!breaks->is_open)
		return;
	while (torsh_fault_samples_next(&breaks->samples, &sample)) {
		breaks->n_taken++;
		if (is_inherited(inherited, sample.address))
			count(breaks, target, &sample);
	}
	breaks->sums.lost = breaks->samples.n_lost;
	torsh_code_lines_settle(&breaks->code);
	if (breaks->n_taken >= breaks->n_until_rarer)
		sample_rarer(breaks);
}
