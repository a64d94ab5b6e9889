/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Buffers: requested at the first record, returned when full or flushed. While CUPTI owns a buffer
 * the client finds a pattern in it, and records are kept aside until it is returned: a client that
 * writes to it meanwhile, or reads from it too early, is detected.
 */
#include "test/simcuda/cupti/cupti.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/log/log.h"

enum { ALIGNMENT = 8, POISON = 0xc5 };

/* A thread's buffer; with PER_THREAD_ACTIVITY_BUFFER=0 all threads share the first. */
struct channel {
	pthread_mutex_t lock;
	uint8_t *buffer; /* the client's */
	size_t bytes, used, n_most, n_records;
	uint8_t *aside; /* the records until then */
	size_t aside_bytes;
	bool is_free; /* its thread has ended: another may have it once its buffer is handed back */
	struct channel *next;
};

/* guards the list, and the client's functions */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct channel *channels;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static _Atomic size_t n_dropped;
static _Thread_local struct channel *own;
static _Thread_local bool is_in_callback;
static pthread_key_t key;

CUptiResult do_cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
					      CUpti_BuffersCallbackCompleteFunc funcBufferCompleted)
{
	if (!funcBufferRequested || !funcBufferCompleted)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	request = funcBufferRequested;
	complete = funcBufferCompleted;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t streamId,
						 size_t *dropped)
{
	if (!dropped)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*dropped = atomic_exchange(&n_dropped, 0);
	return CUPTI_SUCCESS;
}

CUptiResult do_cuptiActivityGetNextRecord(uint8_t *buffer, size_t validBufferSizeBytes,
					  CUpti_Activity **record)
{
	uint8_t *at = record && *record ? (uint8_t *)*record : buffer,
		*end = buffer + validBufferSizeBytes;

	if (!buffer || !record)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*record)
		at += cupti_record_bytes(*record);
	if (at >= end)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	if (!cupti_record_bytes((CUpti_Activity *)at))
		return CUPTI_ERROR_INVALID_KIND;
	*record = (CUpti_Activity *)at;
	return CUPTI_SUCCESS;
}

static void leave_channel(void *channel)
{
	((struct channel *)channel)->is_free = true;
}

static void make_key(void)
{
	pthread_key_create(&key, leave_channel);
}

static struct channel *join_channel(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct channel *channel;

	pthread_once(&once, make_key);
	pthread_mutex_lock(&lock);
	for (channel = channels; channel && !(channel->is_free && !channel->buffer);
	     channel = channel->next)
		;
	if (!channel) {
		channel = calloc(1, sizeof(*channel));
		pthread_mutex_init(&channel->lock, NULL);
		channel->next = channels;
		channels = channel;
	}
	channel->is_free = false;
	pthread_mutex_unlock(&lock);
	pthread_setspecific(key, channel);
	return channel;
}

/* Since 12.3, by default; before there was no such attribute, and all threads shared. */
static bool is_per_thread(void)
{
#if CUPTI_API_VERSION >= CUPTI_12_3
	size_t value = 1, size = sizeof(value);

	do_cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &value);
	return value != 0;
#else
	return false;
#endif
}

static struct channel *find_channel(void)
{
	if (!is_per_thread() && channels)
		return channels;
	if (!own)
		own = join_channel();
	return own;
}

/* Not from the heap, where it would be the largest leak of a small program. */
static void make_room_aside(struct channel *channel, size_t bytes)
{
	void *aside;

	if (channel->aside_bytes >= bytes)
		return;
	if (channel->aside)
		munmap(channel->aside, channel->aside_bytes);
	aside = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	channel->aside = aside == MAP_FAILED ? NULL : aside;
	channel->aside_bytes = channel->aside ? bytes : 0;
}

/* Returns false where the client gives no buffer that can be used. */
static bool request_buffer(struct channel *channel)
{
	uint8_t *buffer = NULL;
	size_t bytes = 0, n_most = 0;

	if (!request)
		return false;
	is_in_callback = true;
	request(&buffer, &bytes, &n_most);
	is_in_callback = false;
	if ((uintptr_t)buffer % ALIGNMENT)
		sim_violation("an activity buffer at %p is not aligned to %d bytes", (void *)buffer,
			      ALIGNMENT);
	if (!buffer || !bytes)
		return false;
	memset(buffer, POISON, bytes);
	make_room_aside(channel, bytes);
	channel->buffer = channel->aside ? buffer : NULL;
	channel->bytes = bytes;
	channel->n_most = n_most;
	channel->used = channel->n_records = 0;
	return channel->buffer != NULL;
}

static void check_poison(const struct channel *channel)
{
	const uint8_t *buffer = channel->buffer;
	size_t i = 0;

	/* All bytes are the first one. */
	if (buffer[0] == POISON && !memcmp(buffer, buffer + 1, channel->bytes - 1))
		return;
	while (buffer[i] == POISON)
		i++;
	sim_violation(
		"byte %zu of the activity buffer at %p was written before the buffer was completed",
		i, (const void *)buffer);
}

static bool is_lost(void)
{
	static _Atomic int n_buffers;
	int every = sim_config()->lost_buffers;

	return every && ++n_buffers % every == 0;
}

static void complete_buffer(struct channel *channel)
{
	uint8_t *buffer = channel->buffer;

	check_poison(channel);
	memcpy(buffer, channel->aside, channel->used);
	channel->buffer = NULL;
	if (is_lost())
		return;
	is_in_callback = true;
	complete(NULL, 0, buffer, channel->bytes, channel->used);
	is_in_callback = false;
}

static bool has_room(const struct channel *channel, size_t bytes)
{
	bool is_below = !channel->n_most || channel->n_records < channel->n_most;

	return channel->buffer && is_below && channel->bytes - channel->used >= bytes;
}

void cupti_append(const void *record, size_t bytes)
{
	struct channel *channel;

	/* Calls of CUDA from a buffer callback would wait for the lock that is held there. */
	if (is_in_callback) {
		sim_violation(
			"CUDA was called from a buffer callback, where the real CUPTI may deadlock");
		return;
	}
	channel = find_channel();
	pthread_mutex_lock(&channel->lock);
	if (channel->buffer && !has_room(channel, bytes))
		complete_buffer(channel);
	if (!channel->buffer)
		request_buffer(channel);
	if (has_room(channel, bytes)) {
		memcpy(channel->aside + channel->used, record, bytes);
		channel->used += bytes;
		channel->n_records++;
	} else {
		n_dropped++;
	}
	pthread_mutex_unlock(&channel->lock);
}

void cupti_complete_all(void)
{
	struct channel *channel;

	if (is_in_callback) {
		sim_violation("activities were flushed from a buffer callback");
		return;
	}
	pthread_mutex_lock(&lock);
	channel = channels;
	pthread_mutex_unlock(&lock);
	/* Channels are added in front and never taken out. */
	for (; channel; channel = channel->next) {
		pthread_mutex_lock(&channel->lock);
		if (channel->buffer && channel->used)
			complete_buffer(channel);
		pthread_mutex_unlock(&channel->lock);
	}
}
