/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The metadata of an operator profile: its source, what is missing, where the time went. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/analysis/findings_json.h"
#include "tools/base/die.h"
#include "tools/export/profile/profile.h"

#define BOTTLENECKS_MAX 10u
#define NS_PER_S UINT64_C(1000000000)

static cJSON *make_number(bool is_known, uint64_t number)
{
	return is_known ? torsh_json_u64(number) : torsh_json_text(NULL);
}

/* ---- capture_metadata ------------------------------------------------------------------------ */

/* The process that it is about: the first with a device. */
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

/* The class of its outermost module; else what the program is called. */
static cJSON *make_model(const struct profile_json *profile)
{
	const char *class = profile->model ? strrchr(profile->model, ':') : NULL;

	return torsh_json_text(class ? class + 1
				     : torsh_recording_program_name(main_process(profile)));
}

/* By the surest sign of it. */
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

static cJSON *make_time(uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / NS_PER_S);
	struct tm utc;
	char text[64] = "1970-01-01T00:00:00";

	if (gmtime_r(&seconds, &utc))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), ".%06" PRIu64 "+00:00",
		 realtime_ns % NS_PER_S / 1000);
	return torsh_json_text(text);
}

/* Of the first device that did anything. */
static const char *find_device_name(const struct profile_json *profile)
{
	const struct profile_work *first = profile->n_work ? &profile->work[0] : NULL;
	const struct event_device *device =
		first ? torsh_profile_device(profile, first->process, first->record.device) : NULL;

	return device ? torsh_timeline_label(first->process, device->name) : NULL;
}

/* What the published models have. */
static void set_published(cJSON *object, const struct profile_json *profile)
{
	const char *torch = find_fact(profile, "torch_version");

	torsh_json_set(object, "model_name", make_model(profile));
	torsh_json_set(object, "torch_version", torsh_json_text(torch ? torch : "unknown"));
	torsh_json_set(object, "cuda_version",
		       torsh_json_text(find_fact(profile, "torch_cuda_version")));
	torsh_json_set(object, "compile_mode", torsh_json_text(compile_mode(profile)));
	torsh_json_set(object, "nsys_report_path", torsh_json_text(NULL));
	torsh_json_set(object, "ncu_report_path", torsh_json_text(NULL));
	torsh_json_set(object, "capture_timestamp_utc",
		       make_time(profile->trace->recording->start_realtime_ns));
	torsh_json_set(object, "device_name", torsh_json_text(find_device_name(profile)));
}

static void set_process(cJSON *object, const struct profile_json *profile)
{
	const struct recorded_process *process = main_process(profile);
	const struct prepass_process *of = torsh_prepass_of(profile->trace->prepass, process);
	uint32_t rank;
	bool has_rank = torsh_recording_rank(process->rank, &rank);

	torsh_json_set(object, "agent_version",
		       torsh_json_text(profile->trace->recording->agent_version));
	torsh_json_set(object, "host", torsh_json_text(profile->trace->recording->host));
	torsh_json_set(object, "pid", torsh_json_u64(process->pid));
	torsh_json_set(object, "rank", make_number(has_rank, has_rank ? rank : 0));
	torsh_json_set(object, "world_size", torsh_json_text(NULL));
	torsh_json_set(object, "batch", torsh_json_text(NULL));
	torsh_json_set(object, "steps",
		       of && of->steps.rule != STEPS_BY_NONE ? torsh_json_u64(of->steps.n)
							     : torsh_json_text(NULL));
}

/* Of all processes: what is missing, and the widest bracket around a reading of a clock. */
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

static void set_capture(cJSON *object, const struct profile_json *profile)
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

	torsh_json_set(object, "clock_source", torsh_json_text(main_process(profile)->clock));
	torsh_json_set(object, "clock_uncertainty_ns",
		       make_number(losses.is_known, losses.clock_width_ns));
	torsh_json_set(object, "capture_mode", torsh_json_text(mode));
	torsh_json_set(object, "capture_mode_reason",
		       torsh_json_text(of ? torsh_timeline_label(of, profile->mode.reason)
					  : "no device was seen in the process"));
	torsh_json_set(object, "counter_mode",
		       torsh_json_text(torsh_counter_mode_name(counters.mode)));
	torsh_json_set(object, "chip",
		       torsh_json_text(torsh_timeline_label(main_process(profile), counters.chip)));
	torsh_json_set(object, "driver_version", torsh_json_text(NULL));
	torsh_json_set(object, "dropped_events", make_number(losses.is_known, losses.dropped));
	torsh_json_set(object, "overhead_ns", torsh_json_text(NULL));
}

cJSON *torsh_profile_metadata(const struct profile_json *profile)
{
	cJSON *object = torsh_json_object();

	set_published(object, profile);
	set_process(object, profile);
	set_capture(object, profile);
	return object;
}

/* ---- analysis -------------------------------------------------------------------------------- */

/* Time in which something of it was at work; work is in the order of its starts. */
struct busy {
	uint64_t until_ns, busy_ns;
};

static void add_busy(struct busy *busy, uint64_t begin_ns, uint64_t end_ns)
{
	begin_ns = begin_ns > busy->until_ns ? begin_ns : busy->until_ns;
	busy->busy_ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
	busy->until_ns = end_ns > busy->until_ns ? end_ns : busy->until_ns;
}

static cJSON *make_devices(const struct profile_json *profile, uint32_t n_devices)
{
	cJSON *list = torsh_json_list();

	for (uint32_t device = 0; device < n_devices; device++) {
		cJSON *object;
		struct busy busy = {0};

		for (size_t i = 0; i < profile->n_work; i++) {
			const struct activity_record *record = &profile->work[i].record;

			if (record->device == device)
				add_busy(&busy, record->begin_ns,
					 record->begin_ns + record->duration_ns);
		}
		if (!busy.busy_ns)
			continue;
		object = torsh_json_object();
		torsh_json_set(object, "device_id", torsh_json_u64(device));
		torsh_json_set(object, "busy_ns", torsh_json_u64(busy.busy_ns));
		torsh_json_add(list, object);
	}
	return list;
}

struct budget {
	uint64_t ns[N_DEVICE_WHATS], attributed_ns, first_ns, last_ns;
	uint32_t n_devices; /* numbers below it */
	bool has_graphs, has_streams, has_fused;
};

#define DEVICES_MAX 1024u /* a number beyond is made up */

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

static cJSON *make_budget(const struct profile_json *profile, const struct budget *budget)
{
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "window_ns", torsh_json_u64(budget->last_ns - budget->first_ns));
	torsh_json_set(object, "kernels_ns", torsh_json_u64(budget->ns[DEVICE_KERNEL]));
	torsh_json_set(object, "copies_ns", torsh_json_u64(budget->ns[DEVICE_COPY]));
	torsh_json_set(object, "memsets_ns", torsh_json_u64(budget->ns[DEVICE_MEMSET]));
	torsh_json_set(object, "attributed_ns", torsh_json_u64(budget->attributed_ns));
	torsh_json_set(object, "devices", make_devices(profile, budget->n_devices));
	return object;
}

static cJSON *make_flags(const struct budget *budget)
{
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "has_cuda_graphs", torsh_json_bool(budget->has_graphs));
	torsh_json_set(object, "has_several_streams", torsh_json_bool(budget->has_streams));
	torsh_json_set(object, "has_several_devices", torsh_json_bool(budget->n_devices > 1));
	torsh_json_set(object, "has_fused_kernels", torsh_json_bool(budget->has_fused));
	return object;
}

/* Of all spans of a name. */
struct name_total {
	const char *name;
	uint64_t total_ns, n_calls;
};

static int compare_by_name(const void *a, const void *b)
{
	const struct name_total *x = a, *y = b;

	/* Names are there once each. */
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

/* The operators that devices were at work for longest. */
static cJSON *make_bottlenecks(const struct profile_json *profile, uint64_t all_ns)
{
	struct name_total *totals =
		torsh_need_items(NULL, 0, profile->n_operators + 1, sizeof(*totals));
	size_t n = total_names(profile, totals);
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < n && i < BOTTLENECKS_MAX; i++) {
		cJSON *object = torsh_json_object();

		torsh_json_set(object, "operator_name", torsh_json_text(totals[i].name));
		torsh_json_set(object, "calls", torsh_json_u64(totals[i].n_calls));
		torsh_json_set(object, "total_ns", torsh_json_u64(totals[i].total_ns));
		torsh_json_set(object, "share_pct",
			       all_ns ? torsh_json_double(100.0 * (double)totals[i].total_ns /
							  (double)all_ns)
				      : torsh_json_text(NULL));
		torsh_json_add(list, object);
	}
	free(totals);
	return list;
}

/* The value of the one member that was written. */
static cJSON *take_member(struct json_writer *json)
{
	char *text = torsh_json_close_memory(json);
	cJSON *value = torsh_need(cJSON_CreateRaw(strchr(text, ':') + 1));

	free(text);
	return value;
}

static void set_findings(cJSON *object, const struct trace *trace)
{
	const struct analysis_request request = {.recording = trace->recording,
						 .processes = trace->processes,
						 .n_processes = trace->n_processes,
						 .prepass = trace->prepass,
						 .from_ns = trace->from_ns,
						 .to_ns = trace->to_ns};
	struct analysis analysis;
	struct json_writer json;

	torsh_analysis_make(&analysis, &request);
	torsh_json_open_members(&json);
	torsh_findings_json(&json, &analysis, trace->symbols);
	torsh_json_set(object, "inefficiencies", take_member(&json));
	torsh_json_open_members(&json);
	torsh_rules_json(&json, &analysis);
	torsh_json_set(object, "rules", take_member(&json));
	torsh_analysis_free(&analysis);
}

cJSON *torsh_profile_analysis(struct profile_json *profile)
{
	struct budget budget = {.first_ns = profile->n_work ? profile->work[0].record.begin_ns : 0};
	cJSON *object = torsh_json_object();

	budget.last_ns = budget.first_ns;
	for (size_t i = 0; i < profile->n_work; i++)
		add_budget(&budget, &profile->work[i], &profile->work[0]);
	torsh_json_set(object, "flags", make_flags(&budget));
	torsh_json_set(object, "time_budget", make_budget(profile, &budget));
	torsh_json_set(object, "bottlenecks",
		       make_bottlenecks(profile, budget.ns[DEVICE_KERNEL] + budget.ns[DEVICE_COPY] +
							 budget.ns[DEVICE_MEMSET]));
	set_findings(object, profile->trace);
	torsh_json_set(object, "roofline", torsh_profile_roofline(profile));
	return object;
}

/* ---- what is missing ------------------------------------------------------------------------- */

/* One sentence for each reason, with how many and an example. */
cJSON *torsh_profile_warnings(struct profile_json *profile)
{
	uint64_t dropped = sum_losses(profile).dropped;
	cJSON *list = torsh_json_list();

	for (int reason = KERNEL_NONE + 1; reason < N_KERNEL_REASONS; reason++) {
		const struct profile_work *example = NULL;
		uint64_t n = 0;
		char *text;

		for (size_t i = 0; i < profile->n_work; i++) {
			if (profile->work[i].record.what != DEVICE_KERNEL ||
			    (int)profile->work[i].by.reason != reason)
				continue;
			example = example ? example : &profile->work[i];
			n++;
		}
		if (!n)
			continue;
		text = torsh_need_text(
			"%" PRIu64 " kernels have no operator: %s (%s)", n,
			torsh_kernel_reasons[reason],
			torsh_timeline_label(example->process, example->record.name));
		torsh_json_add(list, torsh_json_text(text));
		free(text);
	}
	if (dropped) {
		char *text = torsh_need_text("%" PRIu64 " records of devices are missing", dropped);

		torsh_json_add(list, torsh_json_text(text));
		free(text);
	}
	return list;
}

struct missing {
	const char *what, *reason;
};

static void add_missing(cJSON *list, const struct missing *missing, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cJSON *object = torsh_json_object();

		torsh_json_set(object, "what", torsh_json_text(missing[i].what));
		torsh_json_set(object, "reason", torsh_json_text(missing[i].reason));
		torsh_json_add(list, object);
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

cJSON *torsh_profile_unmeasured(const struct profile_json *profile)
{
	static const struct missing always[] = {
		{"capture_metadata.driver_version", "it was not recorded"},
		{"capture_metadata.world_size",
		 "launchers' variables are not recorded beside the rank"},
		{"capture_metadata.batch", "nothing says which size of a tensor is the batch"},
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
	static const struct missing without_torch = {
		"capture_metadata.torch_version", "no PyTorch with Python was seen in the process"};
	cJSON *list = torsh_json_list();

	add_missing(list, always, sizeof(always) / sizeof(*always));
	if (torsh_profile_counter_mode(profile, main_process(profile)).mode !=
	    COUNTERS_OF_OPERATORS)
		add_missing(list, without_counters,
			    sizeof(without_counters) / sizeof(*without_counters));
	if (!has_devices(profile->trace))
		add_missing(list, without_device, sizeof(without_device) / sizeof(*without_device));
	if (!find_fact(profile, "torch_version"))
		add_missing(list, &without_torch, 1);
	return list;
}
