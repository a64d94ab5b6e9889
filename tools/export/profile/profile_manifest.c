/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The files that the operator profiler (yottalabsai/Profiler) makes on its way to a profile: the
 * manifest, each kernel with the evidence for its operator, and the map from the n-th kernel of a
 * name to its operator. Kernels have their demangled names there, as in that profiler's.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/hash_map.h"
#include "tools/base/die.h"
#include "tools/export/profile/profile.h"

#define PATH_OPERATORS_MAX 64u

/* Returns whether the name is that of an operator that launches kernels: NAMESPACE::NAME. */
static bool is_operator_name(const char *name)
{
	return name && torsh_attribution_operator_in(name) == strlen(name);
}

/* Returns the operator of a kernel, or NULL. */
static const struct profile_operator *operator_of(const struct profile_json *profile,
						  const struct profile_work *work)
{
	return work->op != NO_OPERATOR ? &profile->operators[work->op] : NULL;
}

/* ---- the manifest ---------------------------------------------------------------------------- */

/* Put the operators around its launch, the innermost first: readers take that one. */
static void put_path(struct profile_json *profile, const struct profile_work *work, size_t *n_put)
{
	uint32_t labels[PATH_OPERATORS_MAX];
	size_t n = torsh_attribution_path(profile->attributor, work->process, work->by.path, labels,
					  PATH_OPERATORS_MAX);

	for (size_t i = n; i; i--) {
		if (!is_operator_name(torsh_timeline_label(work->process, labels[i - 1])))
			continue;
		torsh_json_put_escaped(&profile->json, NULL,
				       torsh_profile_text(profile, work->process, labels[i - 1]));
		++*n_put;
	}
}

static void put_fused(struct profile_json *profile, const struct profile_work *work)
{
	const struct inductor_kernel *fused = work->by.fused;

	for (size_t i = 0; fused && i < fused->n_operators; i++)
		torsh_json_put_text(&profile->json, NULL, fused->operators[i]);
}

static void put_sources(struct profile_json *profile, const struct profile_work *work)
{
	const struct profile_operator *op = operator_of(profile, work);
	size_t n = 0;

	torsh_json_begin_array(&profile->json, "source_operators");
	if (work->by.method == ATTRIBUTION_BY_INDUCTOR)
		put_fused(profile, work);
	else if (op && op->is_operator)
		put_path(profile, work, &n);
	/* A range, a family, or an operator of torch.compile's, which has no namespace. */
	if (op && !n && work->by.method != ATTRIBUTION_BY_INDUCTOR)
		torsh_json_put_text(&profile->json, NULL, op->id.name);
	torsh_json_end_array(&profile->json);
}

static void put_attribution(struct profile_json *profile, const struct profile_work *work)
{
	const struct attribution_words *words = &torsh_attribution_words[work->by.method];
	const struct profile_operator *op = operator_of(profile, work);
	struct json_writer *json = &profile->json;

	torsh_json_begin_object(json, "attribution");
	torsh_json_put_text(json, "method", words->method);
	put_sources(profile, work);
	torsh_profile_put_range(profile, op);
	torsh_json_put_text(json, "confidence", words->confidence);
	torsh_json_put_bool(json, "is_fused", work->by.fused && work->by.fused->n_operators > 1);
	torsh_json_begin_array(json, "all_enclosing_ranges");
	torsh_json_end_array(json);
	torsh_json_begin_array(json, "fused_ops");
	put_fused(profile, work);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void put_entry(struct profile_json *profile, const struct profile_work *work)
{
	const struct profile_operator *op = operator_of(profile, work);
	const char *label = op ? torsh_profile_layer_label(profile, op) : NULL;
	struct json_writer *json = &profile->json;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_format(json, "kernel_id", "k_%05" PRIu64, work->number);
	torsh_json_put_escaped(json, "kernel_name",
			       torsh_profile_demangled(profile, work->process, work->record.name));
	torsh_profile_put_place(profile, work);
	put_attribution(profile, work);
	torsh_json_put_text(json, "layer_partition", label);
	torsh_json_put_bool(json, "is_unique_partition", label && op->is_representative);
	torsh_json_end_object(json);
}

void torsh_profile_put_manifest(struct profile_json *profile)
{
	struct json_writer *json = &profile->json;

	torsh_json_begin_report(json);
	torsh_json_put_text(json, "schema_version", "1.0");
	torsh_profile_put_manifest_metadata(profile);
	torsh_json_begin_lines(json, "kernels");
	for (size_t i = 0; i < profile->n_work; i++) {
		if (profile->work[i].record.what == DEVICE_KERNEL)
			put_entry(profile, &profile->work[i]);
	}
	torsh_json_end_array(json);
	torsh_profile_put_warnings(profile);
	torsh_json_end_object(json);
}

/* ---- the map --------------------------------------------------------------------------------- */

/* Numbers of kernels by demangled name. */
struct name_counts {
	struct hash_map indices;
	uint64_t *counts;
	size_t n, n_room;
};

/* Returns the number of the name's kernels before this one. */
static uint64_t count(struct name_counts *names, const char *name)
{
	size_t index = torsh_hash_map_put_text(&names->indices, name, names->n)->value;

	if (index == names->n) {
		names->counts = torsh_array_reserve(names->counts, names->n, &names->n_room,
						    sizeof(*names->counts));
		names->counts[names->n++] = 0;
	}
	return names->counts[index]++;
}

static void put_mapped(struct profile_json *profile, const struct profile_work *work,
		       struct name_counts *names)
{
	const struct profile_operator *op = operator_of(profile, work);
	const char *name = torsh_profile_demangled(profile, work->process, work->record.name);
	uint64_t invocation = count(names, name);
	struct json_writer *json = &profile->json;

	if (!op || !op->is_operator || !is_operator_name(op->id.name))
		return;
	torsh_json_begin_object(json, NULL);
	torsh_json_put_escaped(json, "kernel_name", name);
	torsh_json_put_u64(json, "invocation", invocation);
	torsh_json_put_text(json, "op_name", op->id.name);
	torsh_json_end_object(json);
}

void torsh_profile_put_corr(struct profile_json *profile)
{
	struct json_writer *json = &profile->json;
	struct name_counts names = {0};

	torsh_json_begin_report(json);
	torsh_json_put_text(json, "schema_version", "1.0");
	torsh_json_begin_lines(json, "entries");
	for (size_t i = 0; i < profile->n_work; i++) {
		if (profile->work[i].record.what == DEVICE_KERNEL)
			put_mapped(profile, &profile->work[i], &names);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
	torsh_hash_map_free(&names.indices);
	free(names.counts);
}
