/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <inttypes.h>

#include "tools/base/device.h"
#include "tools/base/size.h"
#include "tools/command/whatif/whatif_view.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

static const struct table_column columns[] = {
	{"", TABLE_NAME, .cut = CUT_END},
	{"reserved", TABLE_NUMBER, .drop = 0},
	{"allocated", TABLE_NUMBER, .drop = 0},
	{"", TABLE_NAME, .cut = CUT_END},
};

static void put_sums(struct table *table, const char *name, const struct tensor_sums *sums,
		     const char *what)
{
	torsh_table_cell(table, "%s", name);
	torsh_table_bytes(table, sums->reserved);
	torsh_table_bytes(table, sums->allocated);
	torsh_table_cell(table, "%s", what);
}

static void print_sums(const struct whatif_view *view, const struct whatif_answer *answer)
{
	struct table *table = torsh_table_create(columns, sizeof(columns) / sizeof(*columns));

	put_sums(table, "recorded", &answer->recorded, "peaks, as PyTorch reported them");
	put_sums(table, "replayed", &answer->replayed, "by the model, of the recorded run");
	if (torsh_whatif_has_change(view))
		put_sums(table, "predicted", &answer->predicted, "with the changes");
	torsh_table_print(table, stdout);
}

static void print_reliability(const struct whatif_answer *answer)
{
	if (torsh_whatif_is_reliable(answer))
		return;
	printf("The replay is %.1f %% off what was recorded: its predictions are not reliable.\n",
	       100 * answer->difference);
}

static void print_failure(const struct whatif_answer *answer)
{
	const struct trace_block *failed = &answer->failed;
	char bytes[SIZE_TEXT_BYTES], missing[SIZE_TEXT_BYTES], reserved[SIZE_TEXT_BYTES],
		allocated[SIZE_TEXT_BYTES], at[SIZE_TEXT_BYTES];

	printf("out of memory");
	if (answer->has_step)
		printf(" in step %" PRIu64, answer->step);
	printf(", %s after the start, in %s%s%s", torsh_size_duration(failed->at_ns, at),
	       failed->operator_name ? failed->operator_name : "no operator",
	       failed->module ? " in " : "", failed->module ? failed->module : "");
	if (failed->operator_name)
		printf(", %s", torsh_phase_names[failed->phase]);
	printf(": for %s there are %s too few\n", torsh_size_human(failed->bytes, bytes),
	       torsh_size_human(answer->missing_bytes, missing));
	printf("%s were reserved then, %s allocated\n",
	       torsh_size_human(answer->at_failure.reserved, reserved),
	       torsh_size_human(answer->at_failure.allocated, allocated));
}

static void print_capacity(const struct whatif_view *view, const struct whatif_answer *answer)
{
	uint64_t capacity = view->question.capacity_bytes, reserved = answer->predicted.reserved;
	char bytes[SIZE_TEXT_BYTES], other[SIZE_TEXT_BYTES];

	torsh_size_human(capacity, bytes);
	if (answer->is_out_of_memory) {
		printf("\n%s are not enough: ", bytes);
		print_failure(answer);
		return;
	}
	if (reserved <= capacity)
		printf("\n%s are enough, with %s to spare\n", bytes,
		       torsh_size_human(capacity - reserved, other));
	else
		printf("\n%s are enough, with cached memory released when it runs short\n", bytes);
}

static void print_assumptions(const struct assumptions *assumptions)
{
	puts("\nassumed:");
	for (size_t i = 0; i < assumptions->n; i++)
		printf("  %s\n", assumptions->items[i]);
}

static void print_device(const struct whatif_view *view, const struct whatif_answer *answer)
{
	char name[DEVICE_NAME_BYTES];

	putchar('\n');
	torsh_text_heading(stdout, "%s of pid %" PRIu32, torsh_device_name(answer->device, name),
			   answer->process->pid);
	print_sums(view, answer);
	print_reliability(answer);
	if (view->question.capacity_bytes)
		print_capacity(view, answer);
	print_assumptions(&answer->assumptions);
}

void torsh_whatif_text(const struct whatif_view *view)
{
	const struct reading *reading = view->reading;

	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	if (!view->whatif.n)
		puts("No tensors on a device with PyTorch's caching allocator were recorded: there "
		     "is nothing to replay.");
	for (size_t i = 0; i < view->whatif.n; i++)
		print_device(view, &view->whatif.items[i]);
}
