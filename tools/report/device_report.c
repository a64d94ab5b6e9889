/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/device_report.h"

#include <inttypes.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"

#define NAMES_SHOWN 32

static const char never_asked[] =
	"neither the program nor the agent asked the driver while the device was in use";
static const char asked_with_less[] =
	"the driver was asked when less was alive than at the peak: live_bytes says how much";
static const char not_at_end[] =
	"the driver was not asked at the end: live_bytes says how much was alive when it was";

cJSON *torsh_device_seen_json(const struct device_process *process)
{
	if (!process->has_mode)
		return torsh_json_text(NULL);
	return torsh_json_text(process->mode.mode == DEVICE_BY_CUPTI ? "CUPTI" : "entry points");
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

cJSON *torsh_device_framework_json(const struct device_process *process, size_t place,
				   enum device_when when)
{
	const struct device_framework *then = framework_then(process, place, when);
	cJSON *object;

	if (!process->places[place].has_framework)
		return torsh_json_text(NULL);
	object = torsh_json_object();
	torsh_json_set(object, "allocated_bytes", torsh_json_u64(then->allocated));
	torsh_json_set(object, "reserved_bytes", torsh_json_u64(then->reserved));
	torsh_json_set(
		object, "unmanaged_bytes",
		torsh_json_i64((int64_t)(bytes_then(process, place, when) - then->reserved)));
	return object;
}

static uint64_t used_bytes(const struct device_room *room)
{
	return room->said.total_bytes - room->said.free_bytes;
}

/*
 * What the driver counts as used and the program did not get: contexts, code, pools, other
 * processes.
 */
static int64_t others_bytes(const struct device_room *room)
{
	return (int64_t)(used_bytes(room) - room->live_bytes);
}

/* null: the program had none of it, or the driver was not asked for it. */
static cJSON *make_pools(bool is_known, uint64_t reserved, uint64_t reserved_high, uint64_t used,
			 uint64_t used_high)
{
	cJSON *object;

	if (!is_known)
		return torsh_json_text(NULL);
	object = torsh_json_object();
	torsh_json_set(object, "reserved_bytes", torsh_json_u64(reserved));
	torsh_json_set(object, "reserved_high_bytes", torsh_json_u64(reserved_high));
	torsh_json_set(object, "used_bytes", torsh_json_u64(used));
	torsh_json_set(object, "used_high_bytes", torsh_json_u64(used_high));
	return object;
}

#define POOLS(said, of)                                                                 \
	make_pools((said)->has_##of, (said)->of##_reserved, (said)->of##_reserved_high, \
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

cJSON *torsh_device_room_json(const struct device_process *process, size_t place,
			      enum device_when when)
{
	static const char *const moments[] = {
		[ROOM_AT_END] = "end", [ROOM_BY_PROGRAM] = NULL, [ROOM_AT_HIGH] = "high"};
	const struct device_room *room = room_near(process, place, when);
	const char *reason = why_not_exact(process, place, when);
	cJSON *object = torsh_json_object();
	cJSON *(*number)(uint64_t) = torsh_json_u64;

	if (!room->is_known) {
		static const char *const names[] = {
			"free_bytes", "total_bytes", "used_bytes", "live_bytes", "others_bytes",
			"at_ns",      "asked_by",    "asked_at",   "pools",	 "graphs"};

		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			torsh_json_set(object, names[i], torsh_json_text(NULL));
		torsh_json_set(object, "reason", torsh_json_text(reason));
		return object;
	}
	torsh_json_set(object, "free_bytes", number(room->said.free_bytes));
	torsh_json_set(object, "total_bytes", number(room->said.total_bytes));
	torsh_json_set(object, "used_bytes", number(used_bytes(room)));
	torsh_json_set(object, "live_bytes", number(room->live_bytes));
	torsh_json_set(object, "others_bytes", torsh_json_i64(others_bytes(room)));
	torsh_json_set(object, "at_ns", number(room->at_ns));
	torsh_json_set(
		object, "asked_by",
		torsh_json_text(room->said.is_asked == ROOM_BY_PROGRAM ? "program" : "agent"));
	torsh_json_set(object, "asked_at",
		       torsh_json_text(room->said.is_asked <= ROOM_AT_HIGH
					       ? moments[room->said.is_asked]
					       : NULL));
	torsh_json_set(object, "pools", POOLS(&room->said, pools));
	torsh_json_set(object, "graphs", POOLS(&room->said, graphs));
	torsh_json_set(object, "reason", torsh_json_text(reason));
	return object;
}

cJSON *torsh_device_end_json(const struct device_process *process, size_t place)
{
	const struct device_scope *scope = &process->blocks.scopes[place];
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "pid", torsh_json_u64(process->process->pid));
	torsh_json_set(object, "current_bytes", torsh_json_u64(scope->bytes));
	torsh_json_set(object, "current_blocks", torsh_json_u64(scope->n));
	torsh_json_set(object, "unsized_blocks", torsh_json_u64(scope->n_unsized));
	torsh_json_set(object, "allocs", torsh_json_u64(scope->allocs));
	torsh_json_set(object, "frees", torsh_json_u64(scope->frees));
	torsh_json_set(object, "unknown_frees", torsh_json_u64(process->blocks.unknown_frees));
	torsh_json_set(object, "failed_frees", torsh_json_u64(process->blocks.failed_frees));
	torsh_json_set(object, "seen_by", torsh_device_seen_json(process));
	torsh_json_set(object, "framework",
		       torsh_device_framework_json(process, place, DEVICE_AT_END));
	torsh_json_set(object, "driver", torsh_device_room_json(process, place, DEVICE_AT_END));
	return object;
}

cJSON *torsh_device_joint_json(const struct device_process *process)
{
	const struct device_joint *joint = &process->joint;
	cJSON *object, *list;

	if (!joint->is_known)
		return torsh_json_text(NULL);
	object = torsh_json_object();
	list = torsh_json_list();
	torsh_json_set(object, "bytes", torsh_json_u64(joint->bytes));
	torsh_json_set(object, "at_ns", torsh_json_u64(joint->at.at_ns));
	torsh_json_set(object, "heap_bytes", torsh_json_u64(joint->heap_bytes));
	for (size_t i = 0; i < process->n_places; i++) {
		char name[DEVICE_SCOPE_NAME_BYTES];
		cJSON *device;

		if (!torsh_device_is_joint(&process->blocks.scopes[i]))
			continue;
		device = torsh_json_object();
		torsh_json_set(
			device, "device",
			torsh_json_text(torsh_device_scope_name(&process->blocks.scopes[i], name)));
		torsh_json_set(device, "bytes", torsh_json_u64(process->places[i].joint_bytes));
		torsh_json_add(list, device);
	}
	torsh_json_set(object, "devices", list);
	return object;
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

/* "at the peak", "12 ms before the peak, when 96 % of that was alive". */
static void print_moment(FILE *out, const struct device_process *process, size_t place,
			 enum device_when when)
{
	static const char *const moments[] = {[ROOM_AT_END] = "at the end",
					      [ROOM_BY_PROGRAM] = "when the program asked last",
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
		fprintf(out, "%s %s the peak, when %.0f %% of that was alive",
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

/* "cuda:0, pinned", of all processes. Returns false where there are none. */
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
