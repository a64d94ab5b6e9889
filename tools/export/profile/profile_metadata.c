/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The metadata of an operator profile: its source, what is missing, and how the time divides. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/analysis/findings_json.h"
#include "tools/base/die.h"
#include "tools/export/profile/profile.h"

#define BOTTLENECKS_MAX 10u
#define NS_PER_S UINT64_C(1000000000)

/* ---- capture_metadata ------------------------------------------------------------------------ */

/* Returns the process that the profile describes: the first one with a device. */
static const struct recorded_process *main_process(const struct profile_json *profile)
{
	static const struct recorded_process nobody = {.program = ""};

	if (profile->mode_of)
		return profile->mode_of;
	return profile->trace->n_processes ? profile->trace->processes[0] : &nobody;
}

static const char *find_fact(const struct profile_json *profile, const char *name)
{
	const struct prepass_process *of =
		torsh_prepass_of(profile->trace->prepass, main_process(profile));

	return of ? torsh_process_attributes_find(&of->facts, name) : NULL;
}

/* Returns the name that was given, else the class of the outermost module, else the program's. */
static const char *find_model(const struct profile_json *profile)
{
	const char *class = profile->model ? strrchr(profile->model, ':') : NULL;

	if (profile->trace->model_name)
		return profile->trace->model_name;
	return class ? class + 1 : torsh_recording_program_name(main_process(profile));
}

/* Decided by the most reliable sign. */
static const char *compile_mode(const struct profile_json *profile)
{
	bool has_graphs = false;

	for (size_t i = 0; i < profile->n_work; i++) {
		const struct profile_work *work = &profile->work[i];
		const char *name = torsh_timeline_label(work->process, work->record.name);

		if (work->record.what == DEVICE_KERNEL && name && strncmp(name, "triton_", 7) == 0)
			return "inductor";
		has_graphs = has_graphs || work->record.graph;
	}
	return has_graphs ? "cudagraphs" : "eager";
}

static void put_time(struct json_writer *json, const char *name, uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / NS_PER_S);
	struct tm utc;
	char text[64] = "1970-01-01T00:00:00";

	if (gmtime_r(&seconds, &utc))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	torsh_json_put_format(json, name, "%s.%06" PRIu64 "+00:00", text,
			      realtime_ns % NS_PER_S / 1000);
}

/* Returns the name that was given, else that of the first device with activity. */
static const char *find_device_name(const struct profile_json *profile)
{
	const struct profile_work *first = profile->n_work ? &profile->work[0] : NULL;
	const struct event_device *device =
		first ? torsh_profile_device(profile, first->process, first->record.device) : NULL;

	if (profile->trace->device_name)
		return profile->trace->device_name;
	return device ? torsh_timeline_label(first->process, device->name) : NULL;
}

/* Put the fields that published profiles of models have. */
static void put_published(struct profile_json *profile)
{
	const char *torch = find_fact(profile, "torch_version");
	struct json_writer *json = &profile->json;

	torsh_json_put_text(json, "model_name", find_model(profile));
	torsh_json_put_text(json, "torch_version", torch ? torch : "unknown");
	torsh_json_put_text(json, "cuda_version", find_fact(profile, "torch_cuda_version"));
	torsh_json_put_text(json, "compile_mode", compile_mode(profile));
	torsh_json_put_null(json, "nsys_report_path");
	torsh_json_put_null(json, "ncu_report_path");
	put_time(json, "capture_timestamp_utc", profile->trace->recording->start_realtime_ns);
	torsh_json_put_text(json, "device_name", find_device_name(profile));
}

static void put_process(struct profile_json *profile)
{
	const struct recorded_process *process = main_process(profile);
	const struct prepass_process *of = torsh_prepass_of(profile->trace->prepass, process);
	bool has_steps = of && of->steps.rule != STEPS_BY_NONE;
	struct json_writer *json = &profile->json;
	uint32_t rank = 0;
	bool has_rank = torsh_recording_rank(process->rank, &rank);

	torsh_json_put_text(json, "agent_version", profile->trace->recording->agent_version);
	torsh_json_put_text(json, "host", profile->trace->recording->host);
	torsh_json_put_u64(json, "pid", process->pid);
	torsh_json_put_known(json, "rank", has_rank, rank);
	torsh_json_put_known(json, "world_size", process->identity.has_world_size,
			     process->identity.world_size);
	torsh_json_put_null(json, "batch");
	torsh_json_put_known(json, "steps", has_steps, has_steps ? of->steps.n : 0);
}

/* Sums over all processes: what is missing, and the largest uncertainty of a clock reading. */
struct losses {
	bool is_known;
	uint64_t dropped, clock_width_ns;
};

static struct losses sum_losses(const struct profile_json *profile)
{
	struct losses sums = {0};

	for (size_t i = 0; i < profile->trace->n_processes; i++) {
		const struct event_device_loss *losses = &profile->strings[i].losses;

		sums.is_known = sums.is_known || profile->strings[i].has_losses;
		sums.dropped += losses->dropped + losses->without_room + losses->invalid;
		if (losses->clock_width_ns > sums.clock_width_ns)
			sums.clock_width_ns = losses->clock_width_ns;
	}
	return sums;
}

static void put_capture(struct profile_json *profile)
{
	static const char *const modes[] = {[DEVICE_HOST_ONLY] = "HOST_ONLY",
					    [DEVICE_BY_EVENTS] = "EVENTS",
					    [DEVICE_BY_CUPTI] = "CUPTI"};
	const struct recorded_process *of = profile->mode_of;
	struct losses losses = sum_losses(profile);
	struct event_counter_mode counters =
		torsh_profile_counter_mode(profile, main_process(profile));
	const char *mode = of && profile->mode.mode < sizeof(modes) / sizeof(*modes)
				   ? modes[profile->mode.mode]
				   : NULL;
	struct json_writer *json = &profile->json;

	torsh_json_put_text(json, "clock_source", main_process(profile)->clock);
	torsh_json_put_known(json, "clock_uncertainty_ns", losses.is_known, losses.clock_width_ns);
	torsh_json_put_text(json, "capture_mode", mode);
	torsh_json_put_text(json, "capture_mode_reason",
			    of ? torsh_timeline_label(of, profile->mode.reason)
			       : "no device was seen in the process");
	torsh_json_put_text(json, "counter_mode", torsh_counter_mode_name(counters.mode));
	torsh_json_put_text(json, "chip",
			    torsh_timeline_label(main_process(profile), counters.chip));
	torsh_json_put_null(json, "driver_version");
	torsh_json_put_known(json, "dropped_events", losses.is_known, losses.dropped);
	torsh_json_put_null(json, "overhead_ns");
}

void torsh_profile_put_metadata(struct profile_json *profile)
{
	torsh_json_begin_object(&profile->json, "capture_metadata");
	put_published(profile);
	put_process(profile);
	put_capture(profile);
	torsh_json_end_object(&profile->json);
}

void torsh_profile_put_manifest_metadata(struct profile_json *profile)
{
	torsh_json_begin_object(&profile->json, "capture_metadata");
	put_published(profile);
	/* By name: the program's inputs have none. */
	torsh_json_begin_object(&profile->json, "input_shapes");
	torsh_json_end_object(&profile->json);
	torsh_json_end_object(&profile->json);
}

/* ---- analysis -------------------------------------------------------------------------------- */

/*
 * The time in which at least one activity ran; activities are added in the order of their starts.
 */
struct busy {
	uint64_t until_ns, busy_ns;
};

static void add_busy(struct busy *busy, uint64_t begin_ns, uint64_t end_ns)
{
	begin_ns = begin_ns > busy->until_ns ? begin_ns : busy->until_ns;
	busy->busy_ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
	busy->until_ns = end_ns > busy->until_ns ? end_ns : busy->until_ns;
}

static void put_devices(struct profile_json *profile, uint32_t n_devices)
{
	struct json_writer *json = &profile->json;

	torsh_json_begin_array(json, "devices");
	for (uint32_t device = 0; device < n_devices; device++) {
		struct busy busy = {0};

		for (size_t i = 0; i < profile->n_work; i++) {
			const struct activity_record *record = &profile->work[i].record;

			if (record->device == device)
				add_busy(&busy, record->begin_ns,
					 record->begin_ns + record->duration_ns);
		}
		if (!busy.busy_ns)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "device_id", device);
		torsh_json_put_u64(json, "busy_ns", busy.busy_ns);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

struct budget {
	uint64_t ns[N_DEVICE_WHATS], attributed_ns, first_ns, last_ns;
	uint32_t n_devices; /* one more than the largest device number */
	bool has_graphs, has_streams, has_fused;
};

#define DEVICES_MAX 1024u /* a larger number means a damaged recording */

static void add_budget(struct budget *budget, const struct profile_work *work,
		       const struct profile_work *first)
{
	const struct activity_record *record = &work->record;
	uint64_t end_ns = record->begin_ns + record->duration_ns;

	budget->ns[record->what] += record->duration_ns;
	budget->attributed_ns += work->by.reason ? 0 : record->duration_ns;
	budget->last_ns = end_ns > budget->last_ns ? end_ns : budget->last_ns;
	if (record->device >= budget->n_devices && record->device < DEVICES_MAX)
		budget->n_devices = record->device + 1;
	budget->has_graphs = budget->has_graphs || record->graph;
	budget->has_fused = budget->has_fused || work->by.fused;
	budget->has_streams = budget->has_streams || record->stream != first->record.stream;
}

static void put_budget(struct profile_json *profile, const struct budget *budget)
{
	struct json_writer *json = &profile->json;

	torsh_json_begin_object(json, "time_budget");
	torsh_json_put_u64(json, "window_ns", budget->last_ns - budget->first_ns);
	torsh_json_put_u64(json, "kernels_ns", budget->ns[DEVICE_KERNEL]);
	torsh_json_put_u64(json, "copies_ns", budget->ns[DEVICE_COPY]);
	torsh_json_put_u64(json, "memsets_ns", budget->ns[DEVICE_MEMSET]);
	torsh_json_put_u64(json, "attributed_ns", budget->attributed_ns);
	put_devices(profile, budget->n_devices);
	torsh_json_end_object(json);
}

static void put_flags(struct json_writer *json, const struct budget *budget)
{
	torsh_json_begin_object(json, "flags");
	torsh_json_put_bool(json, "has_cuda_graphs", budget->has_graphs);
	torsh_json_put_bool(json, "has_several_streams", budget->has_streams);
	torsh_json_put_bool(json, "has_several_devices", budget->n_devices > 1);
	torsh_json_put_bool(json, "has_fused_kernels", budget->has_fused);
	torsh_json_end_object(json);
}

/* The sums of all spans with one name. */
struct name_total {
	const char *name;
	uint64_t total_ns, n_calls;
};

static int compare_by_name(const void *a, const void *b)
{
	const struct name_total *x = a, *y = b;

	/* Names are unique. */
	return (x->name > y->name) - (x->name < y->name);
}

static int compare_by_time(const void *a, const void *b)
{
	const struct name_total *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

static uint64_t work_ns(const struct profile_json *profile, const struct profile_operator *op)
{
	uint64_t total_ns = 0;

	for (size_t i = 0; i < op->n; i++)
		total_ns += profile->work[profile->order[op->first + i]].record.duration_ns;
	return total_ns;
}

static size_t total_names(const struct profile_json *profile, struct name_total *totals)
{
	size_t n = 0;

	for (size_t i = 0; i < profile->n_operators; i++) {
		const struct profile_operator *op = &profile->operators[i];

		totals[i] = (struct name_total){
			.name = op->id.name, .total_ns = work_ns(profile, op), .n_calls = 1};
	}
	if (profile->n_operators)
		qsort(totals, profile->n_operators, sizeof(*totals), compare_by_name);
	for (size_t i = 0; i < profile->n_operators; i++) {
		if (n && totals[n - 1].name == totals[i].name) {
			totals[n - 1].total_ns += totals[i].total_ns;
			totals[n - 1].n_calls++;
		} else {
			totals[n++] = totals[i];
		}
	}
	if (n)
		qsort(totals, n, sizeof(*totals), compare_by_time);
	return n;
}

/* Put the operators with most device time. */
static void put_bottlenecks(struct profile_json *profile, uint64_t all_ns)
{
	struct name_total *totals =
		torsh_need_items(NULL, 0, profile->n_operators + 1, sizeof(*totals));
	size_t n = total_names(profile, totals);
	struct json_writer *json = &profile->json;

	torsh_json_begin_array(json, "bottlenecks");
	for (size_t i = 0; i < n && i < BOTTLENECKS_MAX; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "operator_name", totals[i].name);
		torsh_json_put_u64(json, "calls", totals[i].n_calls);
		torsh_json_put_u64(json, "total_ns", totals[i].total_ns);
		torsh_json_put_double(json, "share_pct",
				      all_ns ? 100.0 * (double)totals[i].total_ns / (double)all_ns
					     : NAN);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	free(totals);
}

static void put_findings(struct json_writer *json, const struct trace *trace)
{
	const struct analysis_request request = {.recording = trace->recording,
						 .processes = trace->processes,
						 .n_processes = trace->n_processes,
						 .prepass = trace->prepass,
						 .from_ns = trace->from_ns,
						 .to_ns = trace->to_ns};
	struct analysis analysis;

	torsh_analysis_make(&analysis, &request);
	torsh_findings_json(json, &analysis, trace->symbols);
	torsh_rules_json(json, &analysis);
	torsh_analysis_free(&analysis);
}

void torsh_profile_put_analysis(struct profile_json *profile)
{
	struct budget budget = {.first_ns = profile->n_work ? profile->work[0].record.begin_ns : 0};

	budget.last_ns = budget.first_ns;
	for (size_t i = 0; i < profile->n_work; i++)
		add_budget(&budget, &profile->work[i], &profile->work[0]);
	torsh_json_begin_object(&profile->json, "analysis");
	put_flags(&profile->json, &budget);
	put_budget(profile, &budget);
	put_bottlenecks(profile, budget.ns[DEVICE_KERNEL] + budget.ns[DEVICE_COPY] +
					 budget.ns[DEVICE_MEMSET]);
	put_findings(&profile->json, profile->trace);
	torsh_profile_put_roofline(profile);
	torsh_json_end_object(&profile->json);
}

/* ---- what is missing ------------------------------------------------------------------------- */

/* Put one sentence per reason, with the number of cases and an example. */
void torsh_profile_put_warnings(struct profile_json *profile)
{
	uint64_t dropped = sum_losses(profile).dropped;
	struct json_writer *json = &profile->json;

	torsh_json_begin_array(json, "warnings");
	for (int reason = KERNEL_NONE + 1; reason < N_KERNEL_REASONS; reason++) {
		const struct profile_work *example = NULL;
		uint64_t n = 0;

		for (size_t i = 0; i < profile->n_work; i++) {
			if (profile->work[i].record.what != DEVICE_KERNEL ||
			    (int)profile->work[i].by.reason != reason)
				continue;
			example = example ? example : &profile->work[i];
			n++;
		}
		if (n)
			torsh_json_put_format(
				json, NULL, "%" PRIu64 " kernels have no operator: %s (%s)", n,
				torsh_kernel_reasons[reason],
				torsh_timeline_label(example->process, example->record.name));
	}
	if (dropped)
		torsh_json_put_format(json, NULL, "%" PRIu64 " records of devices are missing",
				      dropped);
	torsh_json_end_array(json);
}

struct missing {
	const char *what, *reason;
};

static void put_missing(struct json_writer *json, const struct missing *missing, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "what", missing[i].what);
		torsh_json_put_text(json, "reason", missing[i].reason);
		torsh_json_end_object(json);
	}
}

static bool has_devices(const struct trace *trace)
{
	for (size_t i = 0; i < trace->n_processes; i++) {
		if (torsh_prepass_of(trace->prepass, trace->processes[i])->devices.n)
			return true;
	}
	return false;
}

void torsh_profile_put_unmeasured(struct profile_json *profile)
{
	static const struct missing always[] = {
		{"capture_metadata.driver_version", "it was not recorded"},
		{"capture_metadata.batch", "it is unknown which size of a tensor is the batch"},
		{"capture_metadata.overhead_ns", "it was not measured in this run"},
	};
	const char *reason = torsh_profile_uncounted(profile, main_process(profile));
	const struct missing without_counters[] = {
		{"operators[].kernels[].metrics.raw", reason},
		{"operators[].aggregated", reason},
		{"operators[].roofline", reason},
		{"operators[].mem_bytes", reason},
		{"capture_metadata.chip", reason},
	};
	static const struct missing without_device[] = {
		{"operators[].kernels[].theoretical_occupancy_pct",
		 "the devices' properties were not recorded"},
		{"operators[].kernels[].waves_per_sm", "the devices' properties were not recorded"},
		{"capture_metadata.device_name", "the devices' properties were not recorded"},
	};
	static const struct missing without_world = {
		"capture_metadata.world_size",
		"neither a launcher nor torch.distributed set it in the process"};
	static const struct missing without_torch = {
		"capture_metadata.torch_version", "no PyTorch with Python was seen in the process"};
	struct json_writer *json = &profile->json;

	torsh_json_begin_array(json, "unmeasured");
	put_missing(json, always, sizeof(always) / sizeof(*always));
	if (torsh_profile_counter_mode(profile, main_process(profile)).mode !=
	    COUNTERS_OF_OPERATORS)
		put_missing(json, without_counters,
			    sizeof(without_counters) / sizeof(*without_counters));
	if (!has_devices(profile->trace))
		put_missing(json, without_device, sizeof(without_device) / sizeof(*without_device));
	if (!main_process(profile)->identity.has_world_size)
		put_missing(json, &without_world, 1);
	if (!find_fact(profile, "torch_version"))
		put_missing(json, &without_torch, 1);
	torsh_json_end_array(json);
}
