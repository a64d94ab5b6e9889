/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Writes the operator profile. */
#include "tools/export/profile/profile.h"

static void put_operators(struct profile_json *profile)
{
	torsh_json_begin_lines(&profile->json, "operators");
	for (size_t i = 0; i < profile->n_operators; i++) {
		if (profile->operators[i].n)
			torsh_profile_put_operator(profile, &profile->operators[i]);
	}
	torsh_json_end_array(&profile->json);
}

static void put_unattributed(struct profile_json *profile)
{
	const uint32_t *order = profile->order + profile->n_work - profile->n_unattributed;

	torsh_profile_put_list(profile, "unattributed_kernels", order, profile->n_unattributed,
			       true);
	torsh_profile_put_list(profile, "unattributed_copies", order, profile->n_unattributed,
			       false);
}

static void put_profile(struct profile_json *profile)
{
	struct json_writer *json = &profile->json;

	torsh_json_begin_report(json);
	torsh_json_put_text(json, "schema_version", "1.0");
	torsh_profile_put_metadata(profile);
	put_operators(profile);
	put_unattributed(profile);
	torsh_profile_put_warnings(profile);
	torsh_json_begin_object(json, "layers");
	torsh_profile_put_layers(profile);
	torsh_json_end_object(json);
	torsh_profile_put_analysis(profile);
	torsh_profile_put_unmeasured(profile);
	torsh_json_end_object(json);
}

static void put_part(struct profile_json *profile)
{
	static const struct json_layout indented = JSON_LAYOUT("\n\t", ",\n\t", "\n", ":\t");

	torsh_json_begin_with(&profile->json, NULL, true, &indented);
	torsh_profile_put_layers(profile);
	torsh_json_end_object(&profile->json);
}

static int write_with(struct trace *trace, void (*put)(struct profile_json *profile))
{
	struct profile_json profile = {.trace = trace};
	int rc = torsh_profile_collect(&profile);

	if (rc == 0) {
		torsh_profile_find_layers(&profile);
		torsh_stream_begin_json(trace->output, &profile.json);
		put(&profile);
		torsh_stream_end_json(trace->output, &profile.json);
	}
	torsh_profile_free(&profile);
	return rc;
}

static int write_profile(struct trace *trace)
{
	return write_with(trace, put_profile);
}

/*
 * Write the map of layers alone, which the operator profiler stores in a separate file:
 * {"duplicate": "representative"}.
 */
static int write_part(struct trace *trace)
{
	return write_with(trace, put_part);
}

static int write_manifest(struct trace *trace)
{
	return write_with(trace, torsh_profile_put_manifest);
}

static int write_corr(struct trace *trace)
{
	return write_with(trace, torsh_profile_put_corr);
}

#define PROFILE_FORMAT(format, has_name, put)              \
	const struct trace_format torsh_trace_##format = { \
		.name = #format,                           \
		.ending = "." #format ".json",             \
		.is_of_one_rank = true,                    \
		.needs_heap = true,                        \
		.takes_names = has_name,                   \
		.needs = TRACE_NEEDS_EVENTS,               \
		.write = put,                              \
	}

PROFILE_FORMAT(profile, true, write_profile);
PROFILE_FORMAT(manifest, true, write_manifest);
PROFILE_FORMAT(corr, false, write_corr);
PROFILE_FORMAT(part, false, write_part);
#undef PROFILE_FORMAT
