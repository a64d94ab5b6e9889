/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/usage/cpu_supply.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_US 1000u
#define NS_PER_S UINT64_C(1000000000)

static const struct control_group_kind cpu_kind = {"cpu", "cpu.stat", "cpu.stat"};

/* Read the begin of a file as a text; returns false if there is none. */
static bool read_text(int fd, char *text, size_t n_text)
{
	ssize_t n = fd >= 0 ? read(fd, text, n_text - 1) : -1;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* ---- throttling ------------------------------------------------------------------------------ */

/* Get the number after a name at the begin of a line. */
static bool find_number(const char *text, const char *name, uint64_t *number)
{
	size_t n = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, n) == 0 && line[n] == ' ')
			return sscanf(line + n, "%" SCNu64, number) == 1;
	}
	return false;
}

static bool read_throttling(const struct control_group *group, struct cpu_throttling *throttling)
{
	char text[2048];

	if (!read_text(torsh_control_group_open(group, "cpu.stat"), text, sizeof(text)) ||
	    !find_number(text, "nr_periods", &throttling->periods) ||
	    !find_number(text, "nr_throttled", &throttling->throttled))
		return false;
	if (group->is_first)
		return find_number(text, "throttled_time", &throttling->ns);
	if (!find_number(text, "throttled_usec", &throttling->ns))
		return false;
	throttling->ns *= NS_PER_US;
	return true;
}

/* An ancestor's quota throttles the group too: the one that was throttled most counts. */
static void update_throttling(struct cpu_supply *supply)
{
	struct cpu_throttling most = {.ns = 0};

	for (uint32_t i = 0; i < supply->groups.n; i++) {
		const struct cpu_throttling *before = &supply->before[i];
		struct cpu_throttling now;

		if (!read_throttling(&supply->groups.groups[i], &now) || now.ns < before->ns)
			continue;
		supply->has_throttling = true;
		if (now.ns - before->ns < most.ns ||
		    (now.ns == before->ns && now.periods - before->periods < most.periods))
			continue;
		most = (struct cpu_throttling){.ns = now.ns - before->ns,
					       .periods = now.periods - before->periods,
					       .throttled = now.throttled - before->throttled};
	}
	most.ns += supply->left.ns;
	most.periods += supply->left.periods;
	most.throttled += supply->left.throttled;
	/* A group that was removed takes nothing back. */
	if (most.ns >= supply->throttling.ns && most.periods >= supply->throttling.periods)
		supply->throttling = most;
}

/* Find the groups again if the process has moved to others. */
static void follow_groups(struct cpu_supply *supply, const char *root, pid_t pid)
{
	char path[PATH_MAX], text[sizeof(supply->path)];

	snprintf(path, sizeof(path), "%s/proc/%d/cgroup", root, (int)pid);
	if (!read_text(open(path, O_RDONLY | O_CLOEXEC), text, sizeof(text)) ||
	    strcmp(text, supply->path) == 0)
		return;
	update_throttling(supply);
	supply->left = supply->throttling;
	memcpy(supply->path, text, sizeof(text));
	torsh_control_groups_free(&supply->groups);
	torsh_control_groups_find(&supply->groups, root, pid, &cpu_kind);
	for (uint32_t i = 0; i < supply->groups.n; i++) {
		if (!read_throttling(&supply->groups.groups[i], &supply->before[i]))
			supply->before[i] = (struct cpu_throttling){.ns = 0};
	}
}

uint32_t torsh_cpu_supply_quota(const struct cpu_supply *supply)
{
	uint32_t least = 0;

	for (uint32_t i = 0; i < supply->groups.n; i++) {
		const struct control_group *group = &supply->groups.groups[i];
		const char *names[] = {group->is_first ? "cpu.cfs_quota_us" : "cpu.max",
				       group->is_first ? "cpu.cfs_period_us" : NULL};
		char text[64], second[32] = "";
		uint64_t quota, period;
		uint32_t n;

		/* "max 100000", "50000 100000", or -1 where version 1 has no limit */
		if (!read_text(torsh_control_group_open(group, names[0]), text, 32))
			continue;
		if (read_text(torsh_control_group_open(group, names[1]), second, sizeof(second)))
			strcat(text, second);
		if (text[0] == '-' || sscanf(text, "%" SCNu64 " %" SCNu64, &quota, &period) != 2 ||
		    !period)
			continue;
		n = (uint32_t)((quota + period - 1) / period);
		least = n && (!least || n < least) ? n : least;
	}
	return least;
}

/* ---- stolen time ----------------------------------------------------------------------------- */

/*
 * Get the time stolen from a CPU, on average over a set: the eighth number of the lines "cpu0 ..."
 * of /proc/stat, in ticks.
 */
static bool read_stolen(const char *root, const cpu_set_t *cpus, uint64_t *ns)
{
	char path[PATH_MAX], *line = NULL;
	uint64_t sum = 0, ticks, hertz = (uint64_t)sysconf(_SC_CLK_TCK), n = 0;
	size_t n_line = 0;
	unsigned cpu;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/stat", root);
	file = fopen(path, "re");
	while (file && getline(&line, &n_line, file) > 0 && strncmp(line, "cpu", 3) == 0) {
		if (sscanf(line, "cpu%u %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &cpu, &ticks) != 2 ||
		    line[3] == ' ' || !CPU_ISSET(cpu, cpus))
			continue;
		sum += ticks;
		n++;
	}
	free(line);
	if (file)
		fclose(file);
	if (n)
		*ns = sum * (NS_PER_S / hertz) / n;
	return n != 0;
}

static void update_stolen(struct cpu_supply *supply, const char *root, const cpu_set_t *cpus)
{
	uint64_t now;

	/* What a former set lost since the sample before is left out. */
	if (supply->has_stolen_before && !CPU_EQUAL(cpus, &supply->cpus))
		supply->has_stolen_before = false;
	if (!read_stolen(root, cpus, &now))
		return;
	if (supply->has_stolen_before && now > supply->stolen_before)
		supply->stolen_ns += now - supply->stolen_before;
	supply->cpus = *cpus;
	supply->stolen_before = now;
	supply->has_stolen = supply->has_stolen_before = true;
}

/* ---- samples --------------------------------------------------------------------------------- */

void torsh_cpu_supply_sample(struct cpu_supply *supply, const char *root, pid_t pid,
			     const cpu_set_t *cpus)
{
	follow_groups(supply, root, pid);
	update_throttling(supply);
	update_stolen(supply, root, cpus);
}

void torsh_cpu_supply_end(struct cpu_supply *supply, const char *root)
{
	update_throttling(supply);
	if (supply->has_stolen)
		update_stolen(supply, root, &supply->cpus);
}

void torsh_cpu_supply_free(struct cpu_supply *supply)
{
	torsh_control_groups_free(&supply->groups);
}
