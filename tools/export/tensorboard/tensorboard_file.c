/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/tensorboard/tensorboard_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/utf8.h"

#define CRC_POLYNOMIAL 0x82f63b78u /* Castagnoli's, reflected */
#define CRC_MASK 0xa282ead8u

static void make_crc_table(uint32_t *table)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ CRC_POLYNOMIAL : crc >> 1;
		table[i] = crc;
	}
}

/* CRC-32C, rotated and offset as in TensorFlow's records. */
static uint32_t masked_crc(const struct tensorboard_file *tensorboard, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	uint32_t crc = UINT32_MAX;

	while (n--)
		crc = tensorboard->crc_table[(crc ^ *at++) & 0xff] ^ crc >> 8;
	crc = ~crc;
	return (crc >> 15 | crc << 17) + CRC_MASK;
}

/* A record is the length, its checksum, the message, its checksum. */
static void put_record(struct tensorboard_file *tensorboard, const Tensorboard__Event *event)
{
	uint64_t n = tensorboard__event__get_packed_size(event);
	uint8_t *bytes = torsh_need(malloc(n));
	uint32_t crc = masked_crc(tensorboard, &n, sizeof(n));

	tensorboard__event__pack(event, bytes);
	fwrite(&n, sizeof(n), 1, tensorboard->file);
	fwrite(&crc, sizeof(crc), 1, tensorboard->file);
	fwrite(bytes, 1, n, tensorboard->file);
	crc = masked_crc(tensorboard, bytes, n);
	fwrite(&crc, sizeof(crc), 1, tensorboard->file);
	free(bytes);
}

static Tensorboard__Event make_event(const struct tensorboard_file *tensorboard, uint64_t at_ns)
{
	Tensorboard__Event event = TENSORBOARD__EVENT__INIT;

	event.has_wall_time = 1;
	event.wall_time = (double)(tensorboard->start_realtime_ns + at_ns) / 1e9;
	return event;
}

/* value: all fields but the tag. */
static void put_value(struct tensorboard_file *tensorboard, const char *tag, uint64_t step,
		      uint64_t at_ns, Tensorboard__Summary__Value *value)
{
	Tensorboard__Event event = make_event(tensorboard, at_ns);
	Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;

	value->tag = torsh_utf8_clean(tag);
	summary.n_value = 1;
	summary.value = &value;
	event.has_step = 1;
	event.step = (int64_t)step;
	event.summary = &summary;
	put_record(tensorboard, &event);
	free(value->tag);
}

void torsh_tensorboard_scalar(struct tensorboard_file *tensorboard, const char *tag, uint64_t step,
			      uint64_t at_ns, double number)
{
	Tensorboard__Summary__Value value = TENSORBOARD__SUMMARY__VALUE__INIT;

	value.has_simple_value = 1;
	value.simple_value = (float)number;
	put_value(tensorboard, tag, step, at_ns, &value);
}

void torsh_tensorboard_histogram(struct tensorboard_file *tensorboard, const char *tag,
				 uint64_t step, uint64_t at_ns,
				 Tensorboard__HistogramProto *histogram)
{
	Tensorboard__Summary__Value value = TENSORBOARD__SUMMARY__VALUE__INIT;

	value.histo = histogram;
	put_value(tensorboard, tag, step, at_ns, &value);
}

void torsh_tensorboard_graph(struct tensorboard_file *tensorboard,
			     const Tensorboard__GraphDef *graph)
{
	Tensorboard__Event event = make_event(tensorboard, 0);

	event.has_graph_def = 1;
	event.graph_def.len = tensorboard__graph_def__get_packed_size(graph);
	event.graph_def.data = torsh_need(malloc(event.graph_def.len + 1));
	tensorboard__graph_def__pack(graph, event.graph_def.data);
	put_record(tensorboard, &event);
	free(event.graph_def.data);
}

int torsh_tensorboard_open(struct tensorboard_file *tensorboard, const char *directory,
			   uint64_t start_realtime_ns, const char *host)
{
	static char version[] = "brain.Event:2";
	char *path = torsh_need_text("%s/events.out.tfevents.%" PRIu64 ".%s", directory,
				     start_realtime_ns / 1000000000, host);
	Tensorboard__Event event;
	int rc;

	*tensorboard = (struct tensorboard_file){.start_realtime_ns = start_realtime_ns};
	rc = torsh_private_create(&tensorboard->place, path);
	free(path);
	if (rc)
		return rc;
	tensorboard->file = torsh_need(fdopen(tensorboard->place.fd, "wb"));
	make_crc_table(tensorboard->crc_table);
	event = make_event(tensorboard, 0);
	event.file_version = version;
	put_record(tensorboard, &event);
	return 0;
}

int torsh_tensorboard_close(struct tensorboard_file *tensorboard)
{
	int rc = ferror(tensorboard->file) ? -EIO : 0;

	if (fclose(tensorboard->file) != 0)
		rc = -errno;
	if (rc == 0)
		return torsh_private_keep(&tensorboard->place);
	torsh_private_drop(&tensorboard->place);
	return rc;
}
