/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/owners/owners_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/size.h"

#define NAMES_SHOWN 2

static void emit_owner(struct json_writer *json, const struct device_owner *owner)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "kind", torsh_owner_names[owner->kind]);
	torsh_json_put_text(json, "name", owner->name);
	torsh_json_put_i64(json, "bytes", owner->bytes);
	torsh_json_put_known(json, "blocks", owner->n, owner->n);
	torsh_json_put_text(json, "reason", owner->reason);
	torsh_json_end_object(json);
}

static void emit_free_blocks(struct json_writer *json, const struct free_blocks *blocks)
{
	torsh_json_put_u64(json, "free_bytes", blocks->bytes);
	torsh_json_put_u64(json, "free_blocks", blocks->n);
	torsh_json_put_u64(json, "largest_free_bytes", blocks->largest_bytes);
	torsh_json_put_double(json, "fragmentation", torsh_free_blocks_fragmentation(blocks));
}

static void emit_growth(struct json_writer *json, const struct cache_growth *growth)
{
	if (!growth->is_known) {
		torsh_json_put_null(json, "last_growth");
		return;
	}
	torsh_json_begin_object(json, "last_growth");
	torsh_json_put_u64(json, "at_ns", growth->at_ns);
	torsh_json_put_u64(json, "requested_bytes", growth->requested_bytes);
	emit_free_blocks(json, &growth->before);
	torsh_json_end_object(json);
}

static void emit_users(struct json_writer *json, const struct device_owners *owners)
{
	const struct recorded_device_use *use = owners->users;

	torsh_json_put_text(json, "users_reason", owners->users_reason);
	if (!use) {
		torsh_json_put_null(json, "users");
		return;
	}
	torsh_json_begin_object(json, "users");
	torsh_json_put_u64(json, "at_ns", use->end_ns);
	torsh_json_put_known(json, "total_bytes", use->has_memory, use->total_bytes);
	torsh_json_put_known(json, "used_bytes", use->has_memory, use->used_bytes);
	torsh_json_begin_array(json, "processes");
	for (size_t i = 0; i < use->n_users; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "pid", use->users[i].pid);
		torsh_json_put_text(json, "name", use->users[i].name);
		torsh_json_put_u64(json, "bytes", use->users[i].bytes);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void emit_limits(struct json_writer *json, const struct device_owners *owners)
{
	const struct event_device_limits *limits = &owners->limits;

	if (!limits->stack_bytes && !limits->printf_bytes && !limits->heap_bytes) {
		torsh_json_put_null(json, "context_limits");
		return;
	}
	torsh_json_begin_object(json, "context_limits");
	torsh_json_put_u64(json, "stack_bytes", limits->stack_bytes);
	torsh_json_put_known(json, "local_bytes", owners->local_bytes, owners->local_bytes);
	torsh_json_put_u64(json, "printf_bytes", limits->printf_bytes);
	torsh_json_put_u64(json, "heap_bytes", limits->heap_bytes);
	torsh_json_end_object(json);
}

void torsh_owners_json(struct json_writer *json, const struct device_owners *owners)
{
	torsh_json_put_known(json, "driver_bytes", owners->has_driver, owners->driver_bytes);
	torsh_json_put_known(json, "driver_ns", owners->has_driver, owners->driver_ns);
	torsh_json_put_text(json, "driver_reason", owners->driver_reason);
	torsh_json_begin_lines(json, "owners");
	for (size_t i = 0; i < owners->n; i++)
		emit_owner(json, &owners->items[i]);
	torsh_json_end_array(json);
	emit_users(json, owners);
	emit_limits(json, owners);
	torsh_json_put_u64(json, "modules_unmeasured", owners->n_modules_unmeasured);
	if (!owners->has_framework) {
		torsh_json_put_null(json, "cache");
		return;
	}
	torsh_json_begin_object(json, "cache");
	emit_free_blocks(json, &owners->cache);
	emit_growth(json, &owners->growth);
	torsh_json_end_object(json);
}

static int compare_sums(const void *a, const void *b)
{
	const struct owner_sum *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

size_t torsh_owners_sums(const struct device_owners *owners, struct owner_sum sums[N_OWNER_KINDS])
{
	size_t n = 0;

	for (int kind = 0; kind < N_OWNER_KINDS; kind++) {
		sums[n].kind = (enum owner_kind)kind;
		sums[n].bytes = torsh_device_owners_sum(owners, sums[n].kind);
		n += sums[n].bytes != 0;
	}
	qsort(sums, n, sizeof(*sums), compare_sums);
	return n;
}

void torsh_owners_kinds_json(struct json_writer *json, const struct device_owners *owners)
{
	struct owner_sum sums[N_OWNER_KINDS];
	size_t n = torsh_owners_sums(owners, sums);

	torsh_json_begin_array(json, "kinds");
	for (size_t i = 0; i < n; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "kind", torsh_owner_names[sums[i].kind]);
		torsh_json_put_i64(json, "bytes", sums[i].bytes);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Print the largest names of a kind, whose items follow each other. */
static void print_names(FILE *out, const struct device_owners *owners, enum owner_kind kind)
{
	char bytes[SIZE_TEXT_BYTES];
	size_t n_shown = 0, n_left = 0;

	for (size_t i = 0; i < owners->n; i++) {
		const struct device_owner *owner = &owners->items[i];

		if (owner->kind != kind || !owner->name)
			continue;
		if (n_shown == NAMES_SHOWN) {
			n_left++;
			continue;
		}
		fprintf(out, "%s%s %s", n_shown++ ? ", " : ": ", owner->name,
			torsh_size_human((uint64_t)owner->bytes, bytes));
	}
	if (n_left)
		fprintf(out, " and %zu more", n_left);
}

static void print_cache(FILE *out, const struct device_owners *owners)
{
	char texts[3][SIZE_TEXT_BYTES];

	fprintf(out, "; the largest block %s",
		torsh_size_human(owners->cache.largest_bytes, texts[0]));
	if (owners->growth.is_known)
		fprintf(out, ", and %s of %s free when it grew last, for %s",
			torsh_size_human(owners->growth.before.largest_bytes, texts[0]),
			torsh_size_human(owners->growth.before.bytes, texts[1]),
			torsh_size_human(owners->growth.requested_bytes, texts[2]));
}

static void print_kind(FILE *out, const struct device_owners *owners, enum owner_kind kind,
		       int indent)
{
	int64_t bytes = torsh_device_owners_sum(owners, kind);
	uint64_t whole = owners->has_driver ? owners->driver_bytes : owners->live_bytes;
	char size[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES], text[SIZE_TEXT_BYTES + 1];

	if (!bytes)
		return;
	torsh_size_human((uint64_t)(bytes < 0 ? -bytes : bytes), size);
	snprintf(text, sizeof(text), "%s%s", bytes < 0 ? "-" : "", size);
	fprintf(out, "%*s%10s  %6s  %s", indent, "", text,
		bytes < 0 ? "" : torsh_size_percent((double)bytes, (double)whole, share),
		torsh_owner_texts[kind]);
	print_names(out, owners, kind);
	if (kind == OWNER_CACHE)
		print_cache(out, owners);
	fputc('\n', out);
}

void torsh_owners_text(FILE *out, const struct device_owners *owners, int indent)
{
	char bytes[SIZE_TEXT_BYTES], texts[2][SIZE_TEXT_BYTES];

	if (owners->has_driver)
		fprintf(out, "%*sowners of all that the driver counts as used: %s\n", indent, "",
			torsh_size_exact(owners->driver_bytes, bytes));
	else
		fprintf(out, "%*sowners of what was allocated: %s (%s)\n", indent, "",
			torsh_size_exact(owners->live_bytes, bytes), owners->driver_reason);
	for (int kind = 0; kind < N_OWNER_KINDS; kind++)
		print_kind(out, owners, (enum owner_kind)kind, indent);
	if (owners->users_reason && owners->has_driver)
		fprintf(out, "%*sother processes are those of the session: %s\n", indent, "",
			owners->users_reason);
	if (owners->n_modules_unmeasured)
		fprintf(out,
			"%*s%" PRIu64
			" modules were loaded while other threads changed the memory, or "
			"the driver could not be queried: their code is in other lines\n",
			indent, "", owners->n_modules_unmeasured);
	if (owners->local_bytes)
		fprintf(out,
			"%*sthe context may use %s for stacks, %s for printf, %s for malloc of "
			"kernels\n",
			indent, "", torsh_size_human(owners->local_bytes, bytes),
			torsh_size_human(owners->limits.printf_bytes, texts[0]),
			torsh_size_human(owners->limits.heap_bytes, texts[1]));
}
