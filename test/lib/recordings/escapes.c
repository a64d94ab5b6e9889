/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Copies a recording and adds to every text in it what terminals obey, for tests of the readers:
 *
 *	escapes FROM TO [TEXT]
 *
 * TEXT is added in place of that.
 * Prints how many texts that were.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/store/recording_read.h"
#include "tools/store/recording_write.h"

/* A title, a colour, C1's CSI as a character, a turn of direction, a carriage return, DEL. */
#define ADDED                              \
	"\033]0;owned\007\033[31m\xc2\x9b" \
	"41m\xe2\x80\xae\r\x7f"

static const char *added = ADDED;
static unsigned long n_texts;

static void add_to_text(char **text)
{
	char *longer;

	if (!*text || !**text)
		return;
	if (asprintf(&longer, "%s%s", *text, added) < 0)
		abort();
	*text = longer;
	n_texts++;
}

static void add_to_message(ProtobufCMessage *message);

static void add_to_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	char *at = (char *)message + field->offset;
	size_t n = field->label == PROTOBUF_C_LABEL_REPEATED
			   ? *(size_t *)((char *)message + field->quantifier_offset)
			   : 1;
	void **items = field->label == PROTOBUF_C_LABEL_REPEATED ? *(void ***)at : (void **)at;

	for (size_t i = 0; i < n; i++) {
		if (field->type == PROTOBUF_C_TYPE_STRING)
			add_to_text((char **)&items[i]);
		else if (items[i])
			add_to_message(items[i]);
	}
}

static void add_to_message(ProtobufCMessage *message)
{
	for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];

		if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE)
			add_to_field(message, field);
	}
}

int main(int argc, char **argv)
{
	const struct recording_limits limits = {0};
	struct recording_reader *reader;
	struct recording_file *file;
	Torsh__Chunk *chunk;
	char error[256];
	int fd;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: escapes FROM TO [TEXT]\n");
		return 2;
	}
	added = argc == 4 ? argv[3] : ADDED;
	if (torsh_recording_open(&reader, argv[1], error, sizeof(error))) {
		fprintf(stderr, "%s: %s\n", argv[1], error);
		return 1;
	}
	fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	file = fd < 0 ? NULL : torsh_recording_create(fd, &limits, 0);
	if (!file) {
		perror(argv[2]);
		return 1;
	}
	/*
	 * Texts that were replaced are left to the process's end, and so are the chunks that hold
	 * them.
	 */
	while (torsh_recording_next(reader, &chunk) > 0) {
		add_to_message(&chunk->base);
		if (torsh_recording_append(file, chunk, RECORDING_LAST)) {
			perror(argv[2]);
			return 1;
		}
	}
	torsh_recording_finish(file);
	printf("%lu\n", n_texts);
	return 0;
}
