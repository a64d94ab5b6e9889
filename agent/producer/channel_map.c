/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Maps parts of the channel's file after its start, by mmap alone. A descriptor of the file is kept
 * above the numbers that programs use. The program may close it and open another file under its
 * number, so a mapping made from it counts only if the descriptor still refers to the channel.
 * Otherwise the header's mapping is duplicated and moved into place.
 */
#include "agent/producer/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

#define PAGE 4096u
#define FIRST_DESCRIPTOR 512 /* lower ones are the program's */

/*
 * Whether fd refers to this channel. The kernel is queried: reading a mapping of a shorter file
 * would be fatal.
 */
static bool is_own_file(const struct channel *channel)
{
	void *page = torsh_sys_mmap(NULL, PAGE, PROT_READ, MAP_SHARED, channel->fd, 0);
	const struct channel_header *header = page;
	long answer;

	if (torsh_sys_failed((long)page))
		return false;
	answer = torsh_sys_compare((uintptr_t)&header->key, channel->key);
	torsh_sys_munmap(page, PAGE);
	return answer == 0;
}

static long map_by_descriptor(const struct channel *channel, uint64_t offset, size_t n_bytes,
			      size_t n_again)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_NORESERVE;
	uint8_t *place =
		torsh_sys_mmap(NULL, n_bytes + n_again, prot, flags, channel->fd, (int64_t)offset);
	long result = (long)place;

	if (torsh_sys_failed(result))
		return result;
	if (n_again)
		result = (long)torsh_sys_mmap(place + n_bytes, n_again, prot, flags | MAP_FIXED,
					      channel->fd, (int64_t)offset);
	if (!torsh_sys_failed(result) && !is_own_file(channel))
		result = -EBADF;
	if (!torsh_sys_failed(result))
		return (long)place;
	torsh_sys_munmap(place, n_bytes + n_again);
	return result;
}

/*
 * With an old size of 0 mremap maps shared pages a second time, in any size; then they are remapped
 * to another offset.
 */
static long map_by_header(const struct channel *channel, uint64_t offset, size_t n_bytes,
			  size_t n_again)
{
	long place = TORSH_SYS(SYS_mremap, channel->header, 0, n_bytes + n_again, MREMAP_MAYMOVE, 0,
			       0),
	     result;

	if (torsh_sys_failed(place))
		return place;
	result = TORSH_SYS(SYS_remap_file_pages, place, n_bytes + n_again, 0, offset / PAGE, 0, 0);
	if (!torsh_sys_failed(result) && n_again)
		result = TORSH_SYS(SYS_remap_file_pages, place + (long)n_bytes, n_again, 0,
				   offset / PAGE, 0, 0);
	if (!torsh_sys_failed(result))
		return place;
	torsh_sys_munmap((void *)place, n_bytes + n_again);
	return result;
}

void *torsh_channel_map(const struct channel *channel, uint64_t offset, size_t n_bytes,
			size_t n_again)
{
	long place = -EBADF;

	if (channel->fd >= 0)
		place = map_by_descriptor(channel, offset, n_bytes, n_again);
	/* Limits apply to the other way too. */
	if (place != -ENOMEM && place != -EAGAIN && torsh_sys_failed(place))
		place = map_by_header(channel, offset, n_bytes, n_again);
	if (torsh_sys_failed(place))
		return NULL;
	TORSH_SYS(SYS_madvise, place, n_bytes + n_again, MADV_DONTDUMP, 0, 0, 0);
	return (void *)place;
}

void torsh_channel_keep(struct channel *channel, int fd)
{
	long kept = TORSH_SYS(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR, 0, 0, 0);

	channel->fd = torsh_sys_failed(kept) ? -1 : (int)kept;
}

bool torsh_channel_is_kept(const struct channel *channel)
{
	return channel->fd >= 0 && is_own_file(channel);
}

void torsh_channel_let_go(struct channel *channel)
{
	if (torsh_channel_is_kept(channel))
		TORSH_SYS(SYS_close, channel->fd, 0, 0, 0, 0, 0);
	channel->fd = -1;
}

void *torsh_channel_map_piece(const struct channel *channel, const struct channel_table *table,
			      uint32_t piece)
{
	uint64_t offset = table->offset + (uint64_t)piece * CHANNEL_PIECE_BYTES;
	void *mapped = torsh_channel_map(channel, offset, CHANNEL_PIECE_BYTES, 0), *other = NULL;

	/*
	 * The release pairs with the acquire in torsh_channel_piece. If another thread was first,
	 * its mapping stays.
	 */
	if (!mapped ||
	    atomic_compare_exchange_strong_explicit(&table->pieces[piece], &other, mapped,
						    memory_order_acq_rel, memory_order_acquire))
		return mapped;
	torsh_sys_munmap(mapped, CHANNEL_PIECE_BYTES);
	return other;
}
