/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/device_refusals_report.h"

#include <inttypes.h>

#include "tools/base/size.h"
#include "tools/report/parts.h"
#include "tools/report/text.h"
#include "tools/symbols/cuda_frames.h"

static const char not_asked[] =
	"the agent sends no query while another tool measures, after a failure of the driver's events, and at the end";
static const char last_error[] = "the driver did not answer: CUDA's error";

static const char *label_of(const struct device_process *process, uint32_t label)
{
	return label ? torsh_timeline_label(process->process, label) : NULL;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void emit_driver(struct json_writer *json, const struct event_device_refused *said)
{
	bool is_known = !said->asked, has_pools = is_known && said->has_pools,
	     has_graphs = is_known && said->has_graphs;
	char error[64];

	snprintf(error, sizeof(error), "%s %" PRIi32, last_error, said->asked);
	torsh_json_begin_object(json, "driver");
	torsh_json_put_known(json, "free_bytes", is_known, said->free_bytes);
	torsh_json_put_known(json, "total_bytes", is_known, said->total_bytes);
	torsh_json_put_known(json, "used_bytes", is_known, said->total_bytes - said->free_bytes);
	torsh_json_put_known(json, "pools_reserved_bytes", has_pools, said->pools_reserved);
	torsh_json_put_known(json, "pools_used_bytes", has_pools, said->pools_used);
	torsh_json_put_known(json, "graphs_reserved_bytes", has_graphs, said->graphs_reserved);
	torsh_json_put_known(json, "graphs_used_bytes", has_graphs, said->graphs_used);
	torsh_json_put_text(json, "reason",
			    is_known			    ? NULL
			    : said->asked == ROOM_NOT_ASKED ? not_asked
							    : error);
	torsh_json_end_object(json);
}

static void emit_framework(struct json_writer *json, const struct device_refusal *refusal)
{
	if (!refusal->has_framework) {
		torsh_json_put_null(json, "framework");
		return;
	}
	torsh_json_begin_object(json, "framework");
	torsh_json_put_u64(json, "allocated_bytes", refusal->framework.allocated);
	torsh_json_put_u64(json, "reserved_bytes", refusal->framework.reserved);
	torsh_json_end_object(json);
}

static void emit_refusal(struct json_writer *json, const char *name,
			 const struct device_process *process, const struct device_refusal *refusal,
			 struct symbols *symbols, enum stack_view view)
{
	const struct device_origin *origin = &refusal->origin;
	const struct event_device_refused *said = &refusal->said;
	uint32_t stack = torsh_cuda_frames_shown(process->process, origin->stack);

	torsh_json_begin_object(json, name);
	torsh_json_put_text(json, "api", label_of(process, said->api));
	torsh_json_put_known(json, "bytes", !(said->flags & BLOCK_IS_UNSIZED), said->bytes);
	torsh_json_put_u64(json, "at_ns", origin->at_ns);
	torsh_json_put_u64(json, "live_bytes", refusal->live_bytes);
	emit_framework(json, refusal);
	emit_driver(json, said);
	torsh_json_put_text(json, "operator", label_of(process, origin->operator));
	torsh_json_put_text(json, "module", label_of(process, origin->module));
	torsh_json_put_known(json, "step", origin->step, origin->step - 1);
	torsh_parts_emit_recorded_stack(json, process->process, stack, symbols, view);
	torsh_json_end_object(json);
}

void torsh_device_refusals_json(struct json_writer *json, const struct device_process *process,
				size_t place, struct symbols *symbols, enum stack_view view)
{
	const struct device_refusals *refusals = &process->places[place].refusals;

	torsh_json_begin_object(json, "refused");
	torsh_json_put_u64(json, "count", refusals->n);
	torsh_json_put_u64(json, "given_up", refusals->n_given_up);
	if (refusals->n)
		emit_refusal(json, "largest", process, &refusals->largest, symbols, view);
	else
		torsh_json_put_null(json, "largest");
	torsh_json_begin_array(json, "latest");
	for (size_t i = 0; i < refusals->n_latest; i++)
		emit_refusal(json, NULL, process, &refusals->latest[i], symbols, view);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_unused(FILE *out, const char *whose, uint64_t reserved, uint64_t used)
{
	char text[SIZE_TEXT_BYTES];

	if (reserved > used)
		fprintf(out, "    %s had reserved %s more than it had given out\n", whose,
			torsh_size_human(reserved - used, text));
}

static void print_where(FILE *out, const struct device_process *process,
			const struct device_origin *origin, struct symbols *symbols)
{
	const struct frame *frame =
		torsh_cuda_frames_line(process->process, origin->stack, symbols);
	const char *operator= label_of(process, origin->operator);

	if (operator)
		fprintf(out, "    in %s\n", operator);
	if (frame) {
		fputs("    ", out);
		torsh_text_frame(out, frame);
	}
}

/* Print "the largest: 2 GiB by cudaMalloc, 1.2 s after the start, when 6.8 GiB were alive; ...". */
static void print_refusal(FILE *out, const char *which, const struct device_process *process,
			  const struct device_refusal *refusal, struct symbols *symbols)
{
	const struct event_device_refused *said = &refusal->said;
	uint64_t start_ns = process->process->start_ns, at_ns = refusal->origin.at_ns;
	char texts[3][SIZE_TEXT_BYTES];
	const char *api = label_of(process, said->api);

	fprintf(out, "  %s: %s by %s, %s after the start, when %s of this process were alive\n",
		which,
		said->flags & BLOCK_IS_UNSIZED ? "memory" : torsh_size_human(said->bytes, texts[0]),
		api ? api : "?",
		torsh_size_duration(at_ns > start_ns ? at_ns - start_ns : 0, texts[1]),
		torsh_size_human(refusal->live_bytes, texts[2]));
	if (said->asked == 0)
		fprintf(out, "    the driver had %s in use of %s\n",
			torsh_size_human(said->total_bytes - said->free_bytes, texts[0]),
			torsh_size_human(said->total_bytes, texts[1]));
	else
		fprintf(out, "    what the driver had in use is not known: %s\n",
			said->asked == ROOM_NOT_ASKED ? not_asked : "it did not answer");
	if (refusal->has_framework)
		print_unused(out, "the framework's allocator", refusal->framework.reserved,
			     refusal->framework.allocated);
	if (said->has_pools)
		print_unused(out, "the driver's pool", said->pools_reserved, said->pools_used);
	if (said->has_graphs)
		print_unused(out, "the driver's memory of CUDA graphs", said->graphs_reserved,
			     said->graphs_used);
	print_where(out, process, &refusal->origin, symbols);
}

void torsh_device_refusals_text(FILE *out, const struct device_process *process, size_t place,
				struct symbols *symbols)
{
	const struct device_refusals *refusals = &process->places[place].refusals;
	const struct device_refusal *last;

	if (!refusals->n && !refusals->n_given_up)
		return;
	fprintf(out, "allocations that the driver refused: %" PRIu64, refusals->n);
	if (refusals->n_given_up == 1)
		fputs("; the framework's allocator gave up once", out);
	else if (refusals->n_given_up)
		fprintf(out, "; the framework's allocator gave up %" PRIu64 " times",
			refusals->n_given_up);
	fputc('\n', out);
	if (!refusals->n)
		return;
	last = &refusals->latest[refusals->n_latest - 1];
	if (last->origin.at_ns != refusals->largest.origin.at_ns)
		print_refusal(out, "the largest", process, &refusals->largest, symbols);
	print_refusal(out, "the last", process, last, symbols);
}
