/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/device_report.h"

#include <inttypes.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"

#define NAMES_SHOWN 32

static const char never_asked[] =
	"neither the program nor the agent queried the driver while the device was in use";
static const char asked_with_less[] =
	"the driver was queried when less was alive than at the peak: live_bytes has how much";
static const char not_at_end[] =
	"the driver was not queried at the end: live_bytes has how much was alive when it was";

void torsh_device_seen_json(struct json_writer *json, const struct device_process *process)
{
	if (!process->has_mode) {
		torsh_json_put_null(json, "seen_by");
		return;
	}
	torsh_json_put_text(json, "seen_by",
			    process->mode.mode == DEVICE_BY_CUPTI ? "CUPTI" : "entry points");
}

static uint64_t bytes_then(const struct device_process *process, size_t place,
			   enum device_when when)
{
	return when == DEVICE_AT_PEAK ? process->places[place].peak_bytes
				      : process->blocks.scopes[place].bytes;
}

static const struct device_framework *framework_then(const struct device_process *process,
						     size_t place, enum device_when when)
{
	return when == DEVICE_AT_PEAK ? &process->places[place].at_peak
				      : &process->places[place].at_end;
}

static const struct device_room *room_near(const struct device_process *process, size_t place,
					   enum device_when when)
{
	return when == DEVICE_AT_PEAK ? &process->places[place].near_peak
				      : &process->places[place].last_room;
}

void torsh_device_framework_json(struct json_writer *json, const struct device_process *process,
				 size_t place, enum device_when when)
{
	const struct device_framework *then = framework_then(process, place, when);

	if (!process->places[place].has_framework) {
		torsh_json_put_null(json, "framework");
		return;
	}
	torsh_json_begin_object(json, "framework");
	torsh_json_put_u64(json, "allocated_bytes", then->allocated);
	torsh_json_put_u64(json, "reserved_bytes", then->reserved);
	torsh_json_put_i64(json, "unmanaged_bytes",
			   (int64_t)(bytes_then(process, place, when) - then->reserved));
	torsh_json_end_object(json);
}

static uint64_t used_bytes(const struct device_room *room)
{
	return room->said.total_bytes - room->said.free_bytes;
}

/*
 * Returns what the driver counts as used beyond the program's memory: contexts, code, pools, other
 * processes.
 */
static int64_t others_bytes(const struct device_room *room)
{
	return (int64_t)(used_bytes(room) - room->live_bytes);
}

/* null: the program had no pools, or the driver was not queried. */
static void emit_pools(struct json_writer *json, const char *name, bool is_known, uint64_t reserved,
		       uint64_t reserved_high, uint64_t used, uint64_t used_high)
{
	if (!is_known) {
		torsh_json_put_null(json, name);
		return;
	}
	torsh_json_begin_object(json, name);
	torsh_json_put_u64(json, "reserved_bytes", reserved);
	torsh_json_put_u64(json, "reserved_high_bytes", reserved_high);
	torsh_json_put_u64(json, "used_bytes", used);
	torsh_json_put_u64(json, "used_high_bytes", used_high);
	torsh_json_end_object(json);
}

#define POOLS(json, said, of)                                                                      \
	emit_pools(json, #of, (said)->has_##of, (said)->of##_reserved, (said)->of##_reserved_high, \
		   (said)->of##_used, (said)->of##_used_high)

static const char *why_not_exact(const struct device_process *process, size_t place,
				 enum device_when when)
{
	const struct device_room *room = room_near(process, place, when);

	if (!room->is_known)
		return never_asked;
	if (when == DEVICE_AT_END)
		return room->said.is_asked == ROOM_AT_END ? NULL : not_at_end;
	return room->live_bytes == process->places[place].peak_bytes ? NULL : asked_with_less;
}

void torsh_device_room_json(struct json_writer *json, const struct device_process *process,
			    size_t place, enum device_when when)
{
	static const char *const moments[] = {
		[ROOM_AT_END] = "end", [ROOM_BY_PROGRAM] = NULL, [ROOM_AT_HIGH] = "high"};
	const struct device_room *room = room_near(process, place, when);
	const char *reason = why_not_exact(process, place, when);

	torsh_json_begin_object(json, "driver");
	if (!room->is_known) {
		static const char *const names[] = {
			"free_bytes", "total_bytes", "used_bytes", "live_bytes", "others_bytes",
			"at_ns",      "asked_by",    "asked_at",   "pools",	 "graphs"};

		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			torsh_json_put_null(json, names[i]);
		torsh_json_put_text(json, "reason", reason);
		torsh_json_end_object(json);
		return;
	}
	torsh_json_put_u64(json, "free_bytes", room->said.free_bytes);
	torsh_json_put_u64(json, "total_bytes", room->said.total_bytes);
	torsh_json_put_u64(json, "used_bytes", used_bytes(room));
	torsh_json_put_u64(json, "live_bytes", room->live_bytes);
	torsh_json_put_i64(json, "others_bytes", others_bytes(room));
	torsh_json_put_u64(json, "at_ns", room->at_ns);
	torsh_json_put_text(json, "asked_by",
			    room->said.is_asked == ROOM_BY_PROGRAM ? "program" : "agent");
	torsh_json_put_text(json, "asked_at",
			    room->said.is_asked <= ROOM_AT_HIGH ? moments[room->said.is_asked]
								: NULL);
	POOLS(json, &room->said, pools);
	POOLS(json, &room->said, graphs);
	torsh_json_put_text(json, "reason", reason);
	torsh_json_end_object(json);
}

void torsh_device_end_json(struct json_writer *json, const struct device_process *process,
			   size_t place)
{
	const struct device_scope *scope = &process->blocks.scopes[place];

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", process->process->pid);
	torsh_json_put_u64(json, "current_bytes", scope->bytes);
	torsh_json_put_u64(json, "current_blocks", scope->n);
	torsh_json_put_u64(json, "unsized_blocks", scope->n_unsized);
	torsh_json_put_u64(json, "allocs", scope->allocs);
	torsh_json_put_u64(json, "frees", scope->frees);
	torsh_json_put_u64(json, "unknown_frees", process->blocks.unknown_frees);
	torsh_json_put_u64(json, "failed_frees", process->blocks.failed_frees);
	torsh_device_seen_json(json, process);
	torsh_device_framework_json(json, process, place, DEVICE_AT_END);
	torsh_device_room_json(json, process, place, DEVICE_AT_END);
	torsh_json_end_object(json);
}

void torsh_device_joint_json(struct json_writer *json, const struct device_process *process)
{
	const struct device_joint *joint = &process->joint;

	if (!joint->is_known) {
		torsh_json_put_null(json, "joint");
		return;
	}
	torsh_json_begin_object(json, "joint");
	torsh_json_put_u64(json, "bytes", joint->bytes);
	torsh_json_put_u64(json, "at_ns", joint->at.at_ns);
	torsh_json_put_u64(json, "heap_bytes", joint->heap_bytes);
	torsh_json_begin_array(json, "devices");
	for (size_t i = 0; i < process->n_places; i++) {
		char name[DEVICE_SCOPE_NAME_BYTES];

		if (!torsh_device_is_joint(&process->blocks.scopes[i]))
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "device",
				    torsh_device_scope_name(&process->blocks.scopes[i], name));
		torsh_json_put_u64(json, "bytes", process->places[i].joint_bytes);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void print_framework(FILE *out, const struct device_process *process, size_t place,
			    enum device_when when)
{
	const struct device_framework *then = framework_then(process, place, when);
	uint64_t bytes = bytes_then(process, place, when);
	char allocated[SIZE_TEXT_BYTES], reserved[SIZE_TEXT_BYTES], unmanaged[SIZE_TEXT_BYTES];

	if (process->places[place].has_framework)
		fprintf(out,
			"of that the framework's allocator had reserved %s and given out %s; %s are not its own\n",
			torsh_size_human(then->reserved, reserved),
			torsh_size_human(then->allocated, allocated),
			torsh_size_human(bytes > then->reserved ? bytes - then->reserved : 0,
					 unmanaged));
}

static void print_pools(FILE *out, const char *whose, uint64_t reserved, uint64_t high,
			uint64_t used)
{
	char texts[3][SIZE_TEXT_BYTES];

	fprintf(out, "%s had reserved %s at most; then %s, of which %s were in use\n", whose,
		torsh_size_human(high, texts[0]), torsh_size_human(reserved, texts[1]),
		torsh_size_human(used, texts[2]));
}

/* Print "at the peak", or "12 ms before the peak, when 96 % of that was alive". */
static void print_moment(FILE *out, const struct device_process *process, size_t place,
			 enum device_when when)
{
	static const char *const moments[] = {[ROOM_AT_END] = "at the end",
					      [ROOM_BY_PROGRAM] =
						      "at the last query of the program",
					      [ROOM_AT_HIGH] = "when there was more than ever"};
	const struct device_room *room = room_near(process, place, when);
	const struct device_location *seen = &process->places[place];
	uint64_t peak_ns = seen->peak.at_ns;
	char apart[SIZE_TEXT_BYTES];

	if (when == DEVICE_AT_END)
		fputs(room->said.is_asked <= ROOM_AT_HIGH ? moments[room->said.is_asked]
							  : "at some time",
		      out);
	else if (room->live_bytes == seen->peak_bytes)
		fputs("at the peak", out);
	else
		fprintf(out, "%s %s the peak, when %.0f%% of that was alive",
			torsh_size_duration(room->at_ns > peak_ns ? room->at_ns - peak_ns
								  : peak_ns - room->at_ns,
					    apart),
			room->at_ns > peak_ns ? "after" : "before",
			(double)(room->live_bytes * 100 / seen->peak_bytes));
}

static void print_room(FILE *out, const struct device_process *process, size_t place,
		       enum device_when when)
{
	const struct device_room *room = room_near(process, place, when);
	char used[SIZE_TEXT_BYTES], total[SIZE_TEXT_BYTES], others[SIZE_TEXT_BYTES];

	if (process->blocks.scopes[place].kind != SCOPE_CUDA)
		return;
	if (!room->is_known) {
		fprintf(out, "what the driver counts as used is not known: %s\n", never_asked);
		return;
	}
	fputs("the driver's count ", out);
	print_moment(out, process, place, when);
	fprintf(out, ": %s used of %s", torsh_size_human(used_bytes(room), used),
		torsh_size_human(room->said.total_bytes, total));
	if (others_bytes(room) >= 0)
		fprintf(out,
			", of which %s are contexts, code, caches of pools, or other processes'",
			torsh_size_human((uint64_t)others_bytes(room), others));
	fputc('\n', out);
	if (room->said.has_pools && room->said.pools_reserved_high)
		print_pools(out, "the driver's pool", room->said.pools_reserved,
			    room->said.pools_reserved_high, room->said.pools_used);
	if (room->said.has_graphs && room->said.graphs_reserved_high)
		print_pools(out, "the driver's memory of CUDA graphs", room->said.graphs_reserved,
			    room->said.graphs_reserved_high, room->said.graphs_used);
}

static void print_joint(FILE *out, const struct device_process *process)
{
	const struct device_joint *joint = &process->joint;
	uint64_t start_ns = process->process->start_ns;
	char bytes[SIZE_TEXT_BYTES], at[SIZE_TEXT_BYTES], heap[SIZE_TEXT_BYTES],
		name[DEVICE_SCOPE_NAME_BYTES];

	if (!joint->is_known)
		return;
	fprintf(out,
		"heap and devices together were largest %s after the start: %s, of which heap %s",
		torsh_size_duration(joint->at.at_ns > start_ns ? joint->at.at_ns - start_ns : 0,
				    at),
		torsh_size_exact(joint->bytes, bytes), torsh_size_human(joint->heap_bytes, heap));
	for (size_t i = 0; i < process->n_places; i++) {
		if (process->places[i].joint_bytes &&
		    torsh_device_is_joint(&process->blocks.scopes[i]))
			fprintf(out, ", %s %s",
				torsh_device_scope_name(&process->blocks.scopes[i], name),
				torsh_size_human(process->places[i].joint_bytes, bytes));
	}
	fputc('\n', out);
}

static void print_seen(FILE *out, const struct device_process *process)
{
	if (process->has_mode && process->mode.mode != DEVICE_BY_CUPTI)
		fputs("seen at the driver's entry points: what its private tables give is not\n",
		      out);
}

void torsh_device_text(FILE *out, const struct device_process *process, size_t place,
		       enum device_when when)
{
	if (place != DEVICE_NO_PLACE) {
		print_framework(out, process, place, when);
		print_room(out, process, place, when);
		print_seen(out, process);
	}
	print_joint(out, process);
}

/* List "cuda:0, pinned", over all processes. Returns false if there are none. */
static bool list_names(const struct memory_of_devices *memory, char *out, size_t n_out)
{
	const char *seen[NAMES_SHOWN];
	char names[NAMES_SHOWN][DEVICE_SCOPE_NAME_BYTES];
	size_t n = 0, at = 0;

	for (size_t i = 0; i < memory->n; i++) {
		for (size_t k = 0; k < memory->items[i].n_places && n < NAMES_SHOWN; k++) {
			size_t same = 0;

			seen[n] = torsh_device_scope_name(&memory->items[i].blocks.scopes[k],
							  names[n]);
			while (same < n && strcmp(seen[same], seen[n]) != 0)
				same++;
			n += same == n;
		}
	}
	for (size_t i = 0; i < n && at < n_out; i++)
		at += (size_t)snprintf(out + at, n_out - at, "%s%s", i ? ", " : "", seen[i]);
	return n;
}

void torsh_device_missing(const struct memory_of_devices *memory, const char *name, char *out,
			  size_t n_out)
{
	char names[NAMES_SHOWN * (DEVICE_SCOPE_NAME_BYTES + 2)];
	const char *reason = NULL;

	if (name && list_names(memory, names, sizeof(names))) {
		snprintf(out, n_out, "%s has no memory of a device \"%s\"; it has that of %s",
			 memory->recording->path, name, names);
		return;
	}
	for (size_t i = 0; i < memory->n && !reason; i++) {
		if (memory->items[i].has_mode)
			reason = torsh_timeline_label(memory->items[i].process,
						      memory->items[i].mode.reason);
	}
	snprintf(out, n_out, "%s has no memory of devices%s%s", memory->recording->path,
		 reason ? ": " : "", reason ? reason : "");
}

void torsh_device_refuse(const struct memory_of_devices *memory, const char *name)
{
	char sentence[4096 + NAMES_SHOWN * (DEVICE_SCOPE_NAME_BYTES + 2)];

	torsh_device_missing(memory, name, sentence, sizeof(sentence));
	torsh_die("%s", sentence);
}
