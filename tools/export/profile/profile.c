/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Writes the operator profile. See tools/export/profile/profile.h. */
#include "tools/export/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

/* "name":value, and what follows. */
static void put_member(struct output_stream *output, const char *name, cJSON *value,
		       const char *end)
{
	char *text = torsh_need(cJSON_PrintUnformatted(value));

	torsh_stream_print(output, "\"%s\":", name);
	torsh_stream_text(output, text);
	torsh_stream_text(output, end);
	cJSON_free(text);
	cJSON_Delete(value);
}

static void put_operators(struct profile_json *profile)
{
	bool has_items = false;

	torsh_stream_text(profile->output, "\"operators\":[");
	for (size_t i = 0; i < profile->n_operators; i++) {
		if (!profile->operators[i].n)
			continue;
		torsh_stream_text(profile->output, has_items ? ",\n" : "\n");
		has_items = true;
		torsh_profile_put_operator(profile, &profile->operators[i]);
	}
	torsh_stream_text(profile->output, "],\n");
}

static void put_unattributed(struct profile_json *profile, const char *name, bool are_kernels)
{
	torsh_stream_print(profile->output, "\"%s\":[", name);
	torsh_profile_put_list(profile, profile->order + profile->n_work - profile->n_unattributed,
			       profile->n_unattributed, are_kernels);
	torsh_stream_text(profile->output, "],\n");
}

static void put_profile(struct profile_json *profile)
{
	torsh_stream_text(profile->output, "{\"schema_version\":\"1.0\",\n");
	put_member(profile->output, "capture_metadata", torsh_profile_metadata(profile), ",\n");
	put_operators(profile);
	put_unattributed(profile, "unattributed_kernels", true);
	put_unattributed(profile, "unattributed_copies", false);
	put_member(profile->output, "warnings", torsh_profile_warnings(profile), ",\n");
	put_member(profile->output, "layers", torsh_profile_layers(profile), ",\n");
	put_member(profile->output, "analysis", torsh_profile_analysis(profile), ",\n");
	put_member(profile->output, "unmeasured", torsh_profile_unmeasured(profile), "}\n");
}

static int collect(struct profile_json *profile, struct trace *trace)
{
	int rc;

	*profile = (struct profile_json){.trace = trace, .output = trace->output};
	rc = torsh_profile_collect(profile);
	if (rc == 0)
		torsh_profile_find_layers(profile);
	return rc;
}

static int write_profile(struct trace *trace)
{
	struct profile_json profile;
	int rc = collect(&profile, trace);

	if (rc == 0)
		put_profile(&profile);
	torsh_profile_free(&profile);
	return rc;
}

/*
 * The map of layers alone, as the operator profiler keeps it beside: {"duplicate":
 * "representative"}.
 */
static int write_part(struct trace *trace)
{
	struct profile_json profile;
	int rc = collect(&profile, trace);

	if (rc == 0) {
		cJSON *layers = torsh_profile_layers(&profile);
		char *text = torsh_need(cJSON_Print(layers));

		torsh_stream_text(trace->output, text);
		torsh_stream_text(trace->output, "\n");
		cJSON_free(text);
		cJSON_Delete(layers);
	}
	torsh_profile_free(&profile);
	return rc;
}

const struct trace_format torsh_trace_profile = {.name = "profile",
						 .ending = ".profile.json",
						 .is_of_one_rank = true,
						 .needs = TRACE_NEEDS_EVENTS,
						 .write = write_profile};
const struct trace_format torsh_trace_part = {.name = "part",
					      .ending = ".part.json",
					      .is_of_one_rank = true,
					      .needs = TRACE_NEEDS_EVENTS,
					      .write = write_part};
