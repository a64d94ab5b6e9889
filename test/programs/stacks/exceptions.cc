// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Throws through many frames, catches, allocates again: exceptions work, and stacks after them are right.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

void *volatile kept;

struct Guard {
	~Guard()
	{
		unwound++;
	}
	static thread_local int unwound;
};

thread_local int Guard::unwound;

void leak_before_throw()
{
	kept = malloc(201);
}

void leak_after_catch()
{
	kept = malloc(202);
}

void dive(int depth)
{
	Guard guard;

	if (depth)
		dive(depth - 1);
	else {
		leak_before_throw();
		throw std::runtime_error("from below");
	}
}

void leak_in_handler()
{
	kept = malloc(203);
}

void try_once(int depth)
{
	try {
		dive(depth);
	} catch (const std::runtime_error &error) {
		leak_in_handler();
		std::printf("%s %d\n", error.what(), Guard::unwound);
	}
	leak_after_catch();
}

int main()
{
	for (int depth = 0; depth < 5; depth++)
		try_once(depth * 10);
	std::thread([] { try_once(3); }).join();
	return 0;
}
