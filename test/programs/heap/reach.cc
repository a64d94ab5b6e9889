// SPDX-License-Identifier: Apache-2.0 OR MIT
// What a program can still reach when it ends, and what it can not: a case for each argument.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#define NOINLINE __attribute__((noinline))

struct node {
	node *next, *other;
	char rest[48];
};

static node *make(node *next = nullptr, node *other = nullptr)
{
	node *made = static_cast<node *>(calloc(1, sizeof(node)));

	made->next = next;
	made->other = other;
	return made;
}

// Old values on the stack keep blocks reachable for any tool.
static NOINLINE void clear_stack()
{
	volatile char bytes[16384];

	memset(const_cast<char *>(bytes), 0, sizeof(bytes));
}

void *uninitialized; // not static: the stores would be left out
void *initialized = &uninitialized;
thread_local void *of_thread;
static pthread_key_t keys[40];
static pthread_barrier_t both;

static NOINLINE void global_data() { initialized = make(); }
static NOINLINE void global_zero() { uninitialized = make(make(make())); }
static NOINLINE void lost_one() { make(); }
static NOINLINE void lost_list() { make(make(make(make()))); }
static NOINLINE void lost_tree() { make(make(make(), make()), make(make(), make())); }

static NOINLINE void lost_cycle()
{
	node *first = make();

	first->next = make(first);
}

static NOINLINE void lost_self()
{
	node *self = make();

	self->next = self;
}

static NOINLINE void shared_by_lost_and_kept()
{
	node *shared = make();

	make(shared);
	uninitialized = make(shared);
}

static NOINLINE void inside() { uninitialized = static_cast<char *>(calloc(1, 4000)) + 1000; }

char place[2 * sizeof(void *)] __attribute__((aligned(16)));

static NOINLINE void unaligned()
{
	void *made = make();

	memcpy(place + 1, &made, sizeof(made));
}

static NOINLINE void large() { uninitialized = calloc(1, 40 << 20); }
static NOINLINE void lost_large() { memset(malloc(3 << 20), 1, 3 << 20); }
static NOINLINE void kept_by_large()
{
	void **table = static_cast<void **>(calloc(1, 8 << 20));

	table[900000] = make();
	uninitialized = table;
}

static NOINLINE void zero_bytes() { uninitialized = malloc(0); }
static NOINLINE void aligned() { uninitialized = aligned_alloc(4096, 8192); }
static NOINLINE void moved() { uninitialized = realloc(malloc(100), 100000); }
static NOINLINE void thread_local_value() { of_thread = make(); }

static NOINLINE void thread_specific()
{
	for (size_t i = 0; i < 40; i++) {
		pthread_key_create(&keys[i], nullptr);
		pthread_setspecific(keys[i], make());
	}
}

static void *wait_with_block(void *)
{
	node *volatile mine = make(make());

	of_thread = make();
	pthread_barrier_wait(&both);
	for (;;)
		pause();
	return mine;
}

static NOINLINE void waiting_thread()
{
	pthread_t thread;

	pthread_barrier_init(&both, nullptr, 2);
	pthread_create(&thread, nullptr, wait_with_block, nullptr);
	pthread_detach(thread);
	pthread_barrier_wait(&both);
}

static void *lose_block(void *)
{
	lost_one();
	clear_stack();
	return nullptr;
}

static NOINLINE void ended_threads()
{
	for (int i = 0; i < 10; i++) {
		pthread_t thread;

		pthread_create(&thread, nullptr, lose_block, nullptr);
		pthread_join(thread, nullptr);
	}
}

static NOINLINE void mapped()
{
	void **page = static_cast<void **>(
		mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	page[7] = make();
}

static ucontext_t outer, inner;

static void swap_out()
{
	node *volatile mine = make();

	swapcontext(&inner, &outer);
	free(mine);
}

static NOINLINE void other_stack()
{
	const size_t size = 64 << 10;

	getcontext(&inner);
	inner.uc_stack.ss_sp = uninitialized = calloc(1, size);
	inner.uc_stack.ss_size = size;
	makecontext(&inner, swap_out, 0);
	swapcontext(&outer, &inner);
}

struct counted {
	long value = 3;
	~counted() { value = 0; }
};

struct base_a {
	virtual ~base_a() = default;
	long a = 1;
};
struct base_b {
	virtual ~base_b() = default;
	long b = 2;
};
struct both_bases : base_a, base_b {
	node *held = make();
};

static NOINLINE void array_with_count() { uninitialized = new counted[20]; }
static NOINLINE void second_base() { uninitialized = static_cast<base_b *>(new both_bases); }
static NOINLINE void lost_object() { new both_bases; }

static NOINLINE void containers()
{
	static auto *map = new std::map<std::string, std::vector<node *>>;

	initialized = map;

	for (int i = 0; i < 20; i++)
		(*map)["a key that is not short: " + std::to_string(i)].push_back(make());
}

static NOINLINE void lost_shared_cycle()
{
	struct link {
		std::shared_ptr<link> next;
		char rest[80] = {};
	};
	auto one = std::make_shared<link>();

	one->next = std::make_shared<link>();
	one->next->next = one;
}

static NOINLINE void function_object()
{
	static std::function<node *()> call;

	initialized = &call;
	node *first = make(), *second = make(), *third = make();

	call = [=] { return first ? second : third; };
}

// Its destructor frees what it holds, but not what that points to.
static NOINLINE void destroyed_owner()
{
	static std::vector<node *> owner;

	for (int i = 0; i < 10; i++)
		owner.push_back(make());
}

static const struct {
	const char *name;
	void (*run)();
} cases[] = {
#define CASE(name) {#name, name}
	CASE(global_data), CASE(global_zero), CASE(lost_one), CASE(lost_list), CASE(lost_tree),
	CASE(lost_cycle), CASE(lost_self), CASE(shared_by_lost_and_kept), CASE(inside), CASE(unaligned),
	CASE(large), CASE(lost_large), CASE(kept_by_large), CASE(zero_bytes), CASE(aligned), CASE(moved),
	CASE(thread_local_value), CASE(thread_specific), CASE(waiting_thread), CASE(ended_threads),
	CASE(mapped), CASE(other_stack), CASE(array_with_count), CASE(second_base), CASE(lost_object),
	CASE(containers), CASE(lost_shared_cycle), CASE(function_object), CASE(destroyed_owner),
#undef CASE
};

int main(int argc, char **argv)
{
	for (const auto &one : cases) {
		if (argc < 2)
			puts(one.name);
		else if (!strcmp(one.name, argv[1]))
			one.run();
	}
	clear_stack();
	return 0;
}
