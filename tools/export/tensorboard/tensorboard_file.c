/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/tensorboard/tensorboard_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/json.h"

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

/* CRC-32C, turned and moved as TensorFlow's records want it. */
static uint32_t masked_crc(const struct tensorboard_file *board, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	uint32_t crc = UINT32_MAX;

	while (n--)
		crc = board->crc_table[(crc ^ *at++) & 0xff] ^ crc >> 8;
	crc = ~crc;
	return (crc >> 15 | crc << 17) + CRC_MASK;
}

/* Length, its checksum, the message, its checksum. */
static void put_record(struct tensorboard_file *board, const Tensorboard__Event *event)
{
	uint64_t n = tensorboard__event__get_packed_size(event);
	uint8_t *bytes = torsh_need(malloc(n));
	uint32_t crc = masked_crc(board, &n, sizeof(n));

	tensorboard__event__pack(event, bytes);
	fwrite(&n, sizeof(n), 1, board->file);
	fwrite(&crc, sizeof(crc), 1, board->file);
	fwrite(bytes, 1, n, board->file);
	crc = masked_crc(board, bytes, n);
	fwrite(&crc, sizeof(crc), 1, board->file);
	free(bytes);
}

static Tensorboard__Event make_event(const struct tensorboard_file *board, uint64_t at_ns)
{
	Tensorboard__Event event = TENSORBOARD__EVENT__INIT;

	event.has_wall_time = 1;
	event.wall_time = (double)(board->start_realtime_ns + at_ns) / 1e9;
	return event;
}

/* value has all but its tag. */
static void put_value(struct tensorboard_file *board, const char *tag, uint64_t step,
		      uint64_t at_ns, Tensorboard__Summary__Value *value)
{
	Tensorboard__Event event = make_event(board, at_ns);
	Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;

	value->tag = torsh_json_utf8(tag);
	summary.n_value = 1;
	summary.value = &value;
	event.has_step = 1;
	event.step = (int64_t)step;
	event.summary = &summary;
	put_record(board, &event);
	free(value->tag);
}

void torsh_tensorboard_scalar(struct tensorboard_file *board, const char *tag, uint64_t step,
			      uint64_t at_ns, double number)
{
	Tensorboard__Summary__Value value = TENSORBOARD__SUMMARY__VALUE__INIT;

	value.has_simple_value = 1;
	value.simple_value = (float)number;
	put_value(board, tag, step, at_ns, &value);
}

void torsh_tensorboard_histogram(struct tensorboard_file *board, const char *tag, uint64_t step,
				 uint64_t at_ns, Tensorboard__HistogramProto *histogram)
{
	Tensorboard__Summary__Value value = TENSORBOARD__SUMMARY__VALUE__INIT;

	value.histo = histogram;
	put_value(board, tag, step, at_ns, &value);
}

void torsh_tensorboard_graph(struct tensorboard_file *board, const Tensorboard__GraphDef *graph)
{
	Tensorboard__Event event = make_event(board, 0);

	event.has_graph_def = 1;
	event.graph_def.len = tensorboard__graph_def__get_packed_size(graph);
	event.graph_def.data = torsh_need(malloc(event.graph_def.len + 1));
	tensorboard__graph_def__pack(graph, event.graph_def.data);
	put_record(board, &event);
	free(event.graph_def.data);
}

int torsh_tensorboard_open(struct tensorboard_file *board, const char *directory,
			   uint64_t start_realtime_ns, const char *host)
{
	static char version[] = "brain.Event:2";
	char *path = torsh_need_text("%s/events.out.tfevents.%" PRIu64 ".%s", directory,
				     start_realtime_ns / 1000000000, host);
	Tensorboard__Event event;
	int rc;

	*board = (struct tensorboard_file){.start_realtime_ns = start_realtime_ns};
	rc = torsh_private_create(&board->place, path);
	free(path);
	if (rc)
		return rc;
	board->file = torsh_need(fdopen(board->place.fd, "wb"));
	make_crc_table(board->crc_table);
	event = make_event(board, 0);
	event.file_version = version;
	put_record(board, &event);
	return 0;
}

int torsh_tensorboard_close(struct tensorboard_file *board)
{
	int rc = ferror(board->file) ? -EIO : 0;

	if (fclose(board->file) != 0)
		rc = -errno;
	if (rc == 0)
		return torsh_private_keep(&board->place);
	torsh_private_drop(&board->place);
	return rc;
}
