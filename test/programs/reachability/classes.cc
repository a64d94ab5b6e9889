// SPDX-License-Identifier: Apache-2.0 OR MIT
// Programs that have blocks of all classes when they end: lost ones, what is lost with these, some
// to whose inside alone something points, and reachable ones.
#include <csetjmp>
#include <cstdint>
#include <deque>
#include <dlfcn.h>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#include "test/programs/reachability/cases.h"

struct node {
	node *next, *other;
	char rest[48];
};

// A root each, which nothing else overwrites.
void *kept, *also_kept, *into;
thread_local void *of_thread;
static const char *library_path;

static NOINLINE node *make(node *next = nullptr, node *other = nullptr)
{
	node *made = static_cast<node *>(calloc(1, sizeof(node)));

	made->next = next;
	made->other = other;
	return made;
}

// Possibly lost: only its middle is pointed to.
static NOINLINE void point_inside(void *block, size_t offset)
{
	into = static_cast<char *>(block) + offset;
}

// What is stored there happens, though nothing reads it.
static NOINLINE void lose(void *block) { asm volatile("" : : "r"(block) : "memory"); }

static NOINLINE void lose_pair() { make(make()); }

static NOINLINE void plain_blocks()
{
	kept = make(make());
	lose_pair();
	point_inside(calloc(1, 500), 100);
}

static NOINLINE void vectors()
{
	auto *mine = new std::vector<node *>(10), *lost = new std::vector<node *>(20);
	auto *numbers = new std::vector<long>(100);

	(*mine)[3] = make();
	(*lost)[4] = make();
	kept = mine;
	into = &(*numbers)[50];
	lose(lost);
}

static NOINLINE void maps()
{
	auto *mine = new std::map<int, node *>, *lost = new std::map<int, node *>;

	for (int i = 0; i < 10; i++) {
		(*mine)[i] = make();
		(*lost)[i] = make();
	}
	kept = mine;
	point_inside(make(), 24);
}

static NOINLINE void hash_tables()
{
	auto *mine = new std::unordered_map<std::string, node *>;
	auto *lost = new std::unordered_map<std::string, node *>;

	for (int i = 0; i < 30; i++) {
		(*mine)["a key that has a block of its own " + std::to_string(i)] = make();
		(*lost)["another key that has a block of its own " + std::to_string(i)] = make();
	}
	kept = mine;
	point_inside(calloc(10, 64), 64);
}

static NOINLINE void lists()
{
	auto *mine = new std::list<node *>, *lost = new std::list<node *>;

	for (int i = 0; i < 5; i++) {
		mine->push_back(make());
		lost->push_back(make());
	}
	kept = mine;
	point_inside(make(), 8);
}

static NOINLINE void queues()
{
	auto *mine = new std::deque<node *>, *lost = new std::deque<node *>;

	for (int i = 0; i < 200; i++) {
		mine->push_back(nullptr);
		lost->push_back(nullptr);
	}
	mine->back() = make();
	lost->back() = make();
	kept = mine;
	point_inside(make(), 40);
}

// A pointer behind the length of a string is one to its begin; one to its text is not.
static NOINLINE void texts()
{
	auto *mine = new std::string(1000, 'm'), *lost = new std::string(2000, 'l');
	auto *text = new std::string(3000, 't');

	kept = mine;
	into = &(*text)[1500];
	lose(lost);
}

static NOINLINE void shared_pointers()
{
	auto *mine = new std::shared_ptr<node>(make(), free);
	auto *lost = new std::shared_ptr<node>(make(), free);

	kept = mine;
	lose(lost);
	point_inside(make(), 16);
}

static NOINLINE void functions()
{
	node *first = make(), *second = make(), *third = make();
	auto *mine = new std::function<node *()>([=] { return first ? second : third; });
	node *fourth = make(), *fifth = make(), *sixth = make();
	auto *lost = new std::function<node *()>([=] { return fourth ? fifth : sixth; });

	kept = mine;
	lose(lost);
	point_inside(make(), 32);
}

struct base_a {
	virtual ~base_a() = default;
	long a = 1;
};
struct base_b {
	virtual ~base_b() = default;
	long b = 2;
	node *held = nullptr;
};
struct both_bases : base_a, base_b {
	both_bases(node *mine) { held = mine; }
};

// A pointer to a later base keeps the object; one to a member does not.
static NOINLINE void several_bases()
{
	kept = static_cast<base_b *>(new both_bases(make()));
	lose(new both_bases(make()));
	into = &(new both_bases(nullptr))->a;
}

struct with_destructor {
	node *held = nullptr;
	~with_destructor() { held = nullptr; }
};

// A pointer behind the number of items keeps the array.
static NOINLINE void arrays_with_counts()
{
	auto *mine = new with_destructor[10], *lost = new with_destructor[20];
	auto *other = new with_destructor[30];

	mine[5].held = make();
	lost[5].held = make();
	kept = mine;
	into = other + 3;
	lose(lost);
}

static pthread_barrier_t both;

static void *stay_with_blocks(void *)
{
	node *volatile mine = make(make());

	lose_pair();
	of_thread = make();
	clear_stack();
	pthread_barrier_wait(&both);
	for (;;)
		pause();
	return mine;
}

static NOINLINE void threads()
{
	pthread_t thread;

	pthread_barrier_init(&both, nullptr, 2);
	pthread_create(&thread, nullptr, stay_with_blocks, nullptr);
	pthread_detach(thread);
	pthread_barrier_wait(&both);
	point_inside(make(), 24);
}

static NOINLINE void thread_local_values()
{
	of_thread = make(make());
	lose_pair();
	static thread_local void *inside;
	inside = static_cast<char *>(calloc(1, 300)) + 200;
	asm volatile("" : : "r"(&inside) : "memory");
}

static NOINLINE void keys()
{
	pthread_key_t one, two;

	pthread_key_create(&one, nullptr);
	pthread_key_create(&two, nullptr);
	pthread_setspecific(one, make(make()));
	pthread_setspecific(two, static_cast<char *>(calloc(1, 700)) + 300);
	lose_pair();
}

static NOINLINE void library_globals()
{
	void *library = dlopen(library_path, RTLD_NOW);
	auto keep = reinterpret_cast<void (*)(void *)>(dlsym(library, "keep_in_data"));

	keep(make(make()));
	lose_pair();
	point_inside(make(), 24);
}

static NOINLINE void moved_blocks()
{
	void *mine = malloc(8), *lost = malloc(8), *inside = malloc(8);

	for (size_t size = 16; size <= 4096; size *= 2) {
		mine = realloc(mine, size);
		lost = realloc(lost, size);
		inside = realloc(inside, size);
	}
	memset(mine, 0, 4096);
	memset(lost, 0, 4096);
	memset(inside, 0, 4096);
	static_cast<node *>(lost)->next = make();
	static_cast<node *>(mine)->next = make();
	kept = mine;
	into = static_cast<char *>(inside) + 1000;
}

// An arena of the program's own: its parts are no blocks, and what these point to is reachable.
static NOINLINE void mapped_arena()
{
	node **arena = static_cast<node **>(
		mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	arena[100] = make(make());
	arena[200] = reinterpret_cast<node *>(reinterpret_cast<char *>(make()) + 32);
	lose_pair();
}

static jmp_buf back;

static NOINLINE void give_up(int depth)
{
	node *volatile mine = make(make());

	if (!depth)
		longjmp(back, 1);
	if (depth > 0)
		give_up(depth - 1);
	free(mine);
}

// The frames that would have freed are gone.
static NOINLINE void jumps()
{
	kept = make();
	if (!setjmp(back))
		give_up(5);
	memset(&back, 0, sizeof(back));
	point_inside(make(), 24);
}

static NOINLINE void cycles()
{
	node *mine = make(), *lost = make();

	mine->next = make(make(mine));
	kept = mine;
	make(lost)->other = lost; // a block behind which nothing is, and the tail of it
	point_inside(make(), 24);
}

// Low bits are the program's; a word that is complemented is no pointer.
static NOINLINE void tagged_pointers()
{
	into = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(make(make())) | 1);
	kept = make();
	also_kept = reinterpret_cast<void *>(~reinterpret_cast<uintptr_t>(make(make())));
}

static const reach_case cases[] = {
#define CASE(name) {#name, name}
	CASE(plain_blocks), CASE(vectors), CASE(maps), CASE(hash_tables), CASE(lists), CASE(queues),
	CASE(texts), CASE(shared_pointers), CASE(functions), CASE(several_bases),
	CASE(arrays_with_counts), CASE(threads), CASE(thread_local_values), CASE(keys),
	CASE(library_globals), CASE(moved_blocks), CASE(mapped_arena), CASE(jumps), CASE(cycles),
	CASE(tagged_pointers),
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
