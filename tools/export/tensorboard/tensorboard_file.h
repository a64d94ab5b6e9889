/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* TensorBoard's event files: records of protobuf messages, each with its length and checksums. */
#ifndef TORSH_EXPORT_TENSORBOARD_TENSORBOARD_FILE_H
#define TORSH_EXPORT_TENSORBOARD_TENSORBOARD_FILE_H

#include <stdint.h>
#include <stdio.h>

#include "tensorboard.pb-c.h"
#include "tools/base/private_file.h"

struct tensorboard_file {
	struct private_file place;
	FILE *file;
	uint64_t start_realtime_ns; /* times of events are since then */
	uint32_t crc_table[256];
};

/*
 * Make DIRECTORY/events.out.tfevents.SECONDS.HOST, replacing what is there, with the version that
 * it begins with. Returns 0 or -errno.
 */
int torsh_tensorboard_open(struct tensorboard_file *tensorboard, const char *directory,
			   uint64_t start_realtime_ns, const char *host);
/* Returns 0 or -errno, also of what was written. */
int torsh_tensorboard_close(struct tensorboard_file *tensorboard);

/* A tag that is no UTF-8 gets U+FFFD for each byte that is none. */
void torsh_tensorboard_scalar(struct tensorboard_file *tensorboard, const char *tag, uint64_t step,
			      uint64_t at_ns, double number);

/* Append a histogram, as the scalar above; it stays the caller's. */
void torsh_tensorboard_histogram(struct tensorboard_file *tensorboard, const char *tag,
				 uint64_t step, uint64_t at_ns,
				 Tensorboard__HistogramProto *histogram);

/* Append the graph of the model, which stays the caller's. */
void torsh_tensorboard_graph(struct tensorboard_file *tensorboard,
			     const Tensorboard__GraphDef *graph);

#endif
