/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A profile and a process to put into it, made before each test and freed behind it. One test program includes it. */
#ifndef TORSH_TEST_PROFILE_FIXTURE_H
#define TORSH_TEST_PROFILE_FIXTURE_H

#include "recording_fixture.h"

static struct profile *profile;
static struct fixture fixture;

static int make_profile(void **state)
{
	(void)state;
	profile = torsh_profile_create("test");
	fixture_start(&fixture, 1, 100);
	return 0;
}

static int free_profile(void **state)
{
	(void)state;
	fixture_free(&fixture);
	torsh_profile_destroy(profile);
	return 0;
}

#endif
