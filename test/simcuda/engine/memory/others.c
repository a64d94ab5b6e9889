/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "test/simcuda/engine/memory/others.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/device.h"

enum { MAX_PROCESSES = SIM_USERS_MAX, MAX_DEVICES = 16 };

struct users {
	struct user {
		_Atomic int pid; /* 0: nobody's */
		_Atomic uint64_t bytes[MAX_DEVICES]; /* by the device's number in the machine */
	} items[MAX_PROCESSES];
};

static struct users *open_users(void)
{
	int fd = open(sim_config()->shared, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct users *users = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, sizeof(*users)))
		users = mmap(NULL, sizeof(*users), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (users == MAP_FAILED) {
		perror("SIMCUDA_SHARED");
		exit(2);
	}
	close(fd);
	return users;
}

static struct user *own_user(struct users *users)
{
	static struct user *own;

	for (int i = 0; !own && i < MAX_PROCESSES; i++) {
		int nobody = 0;

		if (atomic_compare_exchange_strong(&users->items[i].pid, &nobody, getpid()))
			own = &users->items[i];
	}
	return own;
}

/* What a process used is gone with it. */
static bool has_ended(int pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

static struct users *users;

uint64_t sim_memory_left(const struct sim_device *device)
{
	uint64_t left = device->free_memory.free_bytes, others = 0;
	int number = sim_config()->first_device + device->ordinal;

	if (!sim_config()->shared || number >= MAX_DEVICES)
		return left;
	if (!users)
		users = open_users();
	struct user *own = own_user(users);
	if (own)
		own->bytes[number] = sim_config()->device_bytes - sim_config()->other_bytes - left;
	for (int i = 0; i < MAX_PROCESSES; i++) {
		int pid = users->items[i].pid;

		if (pid && &users->items[i] != own && !has_ended(pid))
			others += users->items[i].bytes[number];
	}
	return left > others ? left - others : 0;
}

int sim_users_list(int ordinal, struct sim_user found[SIM_USERS_MAX])
{
	int number = sim_config()->first_device + ordinal, n = 0;

	if (!sim_config()->shared || number >= MAX_DEVICES)
		return -1;
	if (!users)
		users = open_users();
	for (int i = 0; i < MAX_PROCESSES; i++) {
		int pid = users->items[i].pid;
		uint64_t bytes = users->items[i].bytes[number];

		if (pid && bytes && !has_ended(pid))
			found[n++] = (struct sim_user){pid, bytes};
	}
	return n;
}
