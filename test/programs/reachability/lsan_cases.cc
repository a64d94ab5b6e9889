// SPDX-License-Identifier: Apache-2.0 OR MIT
// What the test cases of LeakSanitizer (compiler-rt/test/lsan/TestCases) show, each under the name
// that it has there, with the sizes of its blocks. Where one of them starts a check by a call, the
// check at the exit comes instead.
#include <climits>
#include <dlfcn.h>
#include <pthread.h>

#include "test/programs/reachability/cases.h"

void *zeroed;
void *with_value = &zeroed;
char unaligned_place[2 * sizeof(void *)] __attribute__((aligned(16)));
uintptr_t numbers[1024];
thread_local void *of_thread;
thread_local void *five_of_thread[5];
static const char *library_path;
// ---- roots ----

static NOINLINE void use_globals_initialized() { with_value = malloc(1337); }
static NOINLINE void use_globals_uninitialized() { zeroed = malloc(1337); }
static NOINLINE void use_tls_static() { of_thread = malloc(1337); }

static NOINLINE void use_tls_dynamic()
{
	void *library = dlopen(library_path, RTLD_LAZY);
	auto keep = reinterpret_cast<void (*)(void *)>(dlsym(library, "keep_in_thread"));

	keep(malloc(1337));
}

static NOINLINE void use_tls_pthread_specific_static()
{
	pthread_key_t key;

	if (!pthread_key_create(&key, nullptr))
		pthread_setspecific(key, malloc(1337));
}

// The C library's first 32 values are in the thread's descriptor, the others in a table.
static NOINLINE void use_tls_pthread_specific_dynamic()
{
	pthread_key_t key;

	for (int i = 0; i < 33; i++)
		pthread_key_create(&key, nullptr);
	pthread_setspecific(key, malloc(1337));
}

static pthread_key_t all_keys[PTHREAD_KEYS_MAX];
static int n_keys;

static void *set_all_keys(void *)
{
	for (int i = 0; i < n_keys; i++)
		pthread_setspecific(all_keys[i], malloc(123));
	clear_stack();
	n_ready++;
	stay();
}

static NOINLINE void many_tls_keys_pthread()
{
	while (n_keys < PTHREAD_KEYS_MAX && !pthread_key_create(&all_keys[n_keys], nullptr))
		n_keys++;
	for (int i = 0; i < 10; i++)
		start(set_all_keys);
	await(10);
}

static void *set_five(void *)
{
	for (size_t i = 0; i < 5; i++)
		five_of_thread[i] = malloc(1111 * (i + 1));
	clear_stack();
	n_ready++;
	stay();
}

static NOINLINE void many_tls_keys_thread()
{
	for (int i = 0; i < 10; i++)
		start(set_five);
	await(10);
}

[[noreturn]] static NOINLINE void use_stacks()
{
	void *volatile mine = malloc(1337);

	(void)mine;
	exit(0);
}

// Without AddressSanitizer the variable with an address is on the stack itself.
[[noreturn]] static NOINLINE void use_after_return()
{
	void *mine = malloc(1337);

	asm volatile("" : : "r"(&mine) : "memory");
	exit(0);
}

static void *hold_on_stack(void *)
{
	void *volatile mine = malloc(1337);

	(void)mine;
	n_ready++;
	for (;;)
		sched_yield();
}

static NOINLINE void use_stacks_threaded()
{
	start(hold_on_stack);
	await(1);
}

#ifdef __x86_64__
static NOINLINE void *block_of_register() { return malloc(1337); }

// What calls left below the stack pointer is cleared: the register alone has the pointer.
#define CLEAR_BELOW                                                                                \
	"leaq -8192(%%rsp), %%rdi\n\tmovl $1024, %%ecx\n\txorl %%eax, %%eax\n\trep stosq\n\t"

static void *hold_in_register(void *ready)
{
	asm volatile("movq %%rax, %%r15\n\t" CLEAR_BELOW "lock incl (%0)\n1:\tpause\n\tjmp 1b"
		     :
		     : "r"(ready), "a"(block_of_register())
		     : "rdi", "rcx", "r15", "memory");
	return nullptr;
}

static void *hold_in_vector(void *ready)
{
	asm volatile("movq %%rax, %%xmm7\n\t" CLEAR_BELOW "lock incl (%0)\n1:\tpause\n\tjmp 1b"
		     :
		     : "r"(ready), "a"(block_of_register())
		     : "rdi", "rcx", "xmm7", "memory");
	return nullptr;
}

static NOINLINE void use_registers()
{
	start(hold_in_register, &n_ready);
	await(1);
}

static NOINLINE void use_registers_extra()
{
	start(hold_in_vector, &n_ready);
	await(1);
}
#endif

static NOINLINE void user_pointer()
{
	for (uintptr_t &number : numbers)
		number = reinterpret_cast<uintptr_t>(malloc(sizeof(int *)));
}

static NOINLINE void use_unaligned()
{
	void *made = malloc(1337);

	memcpy(unaligned_place + 1, &made, sizeof(made));
}

// ---- what no root has ----

static NOINLINE void leak_check_at_exit() { malloc(1337); }
static NOINLINE void large_allocation_leak() { malloc(1 << 25); }
static NOINLINE void malloc_zero() { malloc(0); }
static NOINLINE void realloc_zero() { free(realloc(nullptr, 0)); }

static NOINLINE void pointer_to_self()
{
	void **self = static_cast<void **>(malloc(1337));

	*self = self;
}

static NOINLINE void realloc_too_big()
{
	volatile size_t too_much = PTRDIFF_MAX;
	void *nine = malloc(9);

	if (realloc(nine, too_much))
		abort();
}

// Far enough below what follows that it stays there.
static NOINLINE void put_on_stale_stack(void *pointer)
{
	void *locals[2048] = {pointer};

	asm volatile("" : : "r"(locals) : "memory");
}

[[noreturn]] static NOINLINE void stale_stack_leak()
{
	put_on_stale_stack(malloc(1337));
	exit(0);
}

#ifdef __x86_64__
// At places of a dead frame, some of which the functions that exit() calls leave as they are.
static NOINLINE void leak_to_dead_frame()
{
	void *volatile places[64];
	void *made = malloc(100);

	for (void *volatile &place : places)
		place = made;
}

[[noreturn]] static NOINLINE void exit_atexit_stale_stack()
{
	leak_to_dead_frame();
	exit(0);
}
#endif

struct leaky_global {
	void *volatile p;
	~leaky_global() { p = nullptr; }
} leaky;

static NOINLINE void do_leak_check_override()
{
	leaky.p = malloc(1337);
	malloc(666);
}

static const reach_case cases[] = {
#define CASE(name) {#name, name}
	CASE(use_globals_initialized), CASE(use_globals_uninitialized), CASE(use_tls_static),
	CASE(use_tls_dynamic), CASE(use_tls_pthread_specific_static),
	CASE(use_tls_pthread_specific_dynamic), CASE(many_tls_keys_pthread),
	CASE(many_tls_keys_thread), CASE(use_stacks), CASE(use_after_return),
	CASE(use_stacks_threaded), CASE(user_pointer), CASE(use_unaligned),
	CASE(leak_check_at_exit), CASE(large_allocation_leak), CASE(malloc_zero),
	CASE(realloc_zero), CASE(pointer_to_self), CASE(realloc_too_big), CASE(stale_stack_leak),
	CASE(do_leak_check_override),
#ifdef __x86_64__
	CASE(use_registers), CASE(use_registers_extra), CASE(exit_atexit_stale_stack),
#endif
#undef CASE
};

int main(int argc, char **argv)
{
	int status;

	library_path = argc > 2 ? argv[2] : nullptr;
	status = run_cases(cases, sizeof(cases) / sizeof(*cases), argc, argv);
	clear_registers();
	return status;
}
