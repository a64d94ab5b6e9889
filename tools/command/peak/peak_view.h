/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The data of `torsh peak` at the highest moment, and its two renderings. */
#ifndef TORSH_COMMAND_PEAK_PEAK_VIEW_H
#define TORSH_COMMAND_PEAK_PEAK_VIEW_H

#include "tools/command/peak/peak_moments.h"
#include "tools/command/reading.h"
#include "tools/device/owners/device_owners.h"
#include "tools/memory/leaks/kept_imports.h"
#include "tools/memory/moments.h"
#include "tools/memory/peak.h"
#include "tools/report/device_report.h"
#include "tools/report/device_shared_report.h"

/* The selection by --device. */
struct device_view {
	const char *name; /* NULL: the heap */
	bool is_all;
	struct device_reading reading;
	const struct device_process *process; /* the process with the shown peak */
	size_t place; /* the place's index; DEVICE_NO_PLACE with is_all */
	struct shared_devices shared;
	enum memory_moment_kind
		moment_kind; /* of what is shown: the peak, unless another one is requested */
	struct device_moment at;
	bool has_owners; /* it is a device, not another place */
	struct device_owners owners;
};

struct peak_view {
	const struct reading *reading;
	struct device_view device;
	struct peak peak;
	struct estimate_variance variance; /* of its bytes and blocks */
	/*
	 * The process with the shown address space: that of the peak, else the one that mapped
	 * most.
	 */
	const struct recorded_process *mapper;
	struct allocation_sites heap, mapped;
	size_t n_heap, n_mapped; /* number printed */
	/* held at the peak and left out of heap; empty in JSON and with --verbose or --depth */
	struct kept_imports imports;
	uint64_t arena_bytes; /* bytes of CPython's arenas, of all mapped */
	bool is_verbose;
	size_t max_rows; /* of frames per site; 0: all */
};

/*
 * Choose the processes to show: that of the peak, or all. Returns their number; one has space for
 * the process, shown is set to the array.
 */
size_t torsh_peak_shown(const struct peak_view *view, struct recorded_process *one[1],
			struct recorded_process *const **shown);

/* Returns the peak of process i of the reading: of its heap, or of the chosen device. */
struct peak torsh_peak_view_of(const struct peak_view *view, size_t i);

/*
 * Choose the process with the highest peak on the chosen device; ends the program if there is
 * none.
 */
void torsh_peak_device_choose(struct peak_view *view);

/*
 * Set the moment that is shown of the chosen device: its peak, or a requested one. Ends the program
 * if the process has no such moment.
 */
void torsh_peak_device_moment(struct peak_view *view, const struct moment_request *request);

/*
 * Collect the allocation sites that held memory of the chosen device at that moment, and its
 * owners.
 */
void torsh_peak_device_collect(struct peak_view *view);

void torsh_peak_device_close(struct device_view *device);

/* Returns the name of the shared device that is printed; NULL: all of them. */
const char *torsh_peak_device_shared(const struct device_view *device);

/* Print the view on stdout as text. */
void torsh_peak_text(const struct peak_view *view);

/* Print it on stdout as JSON: tools/schema/peak.json. */
void torsh_peak_json(const struct peak_view *view);

#endif
