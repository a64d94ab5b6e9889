// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// C++ new in its forms, each from a function that keeps what it got, and deletes that give all of it back.
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace shop {

struct alignas(128) Wide {
	char bytes[256];
};

void *leak_new()
{
	return new char[2001];
}

void *leak_one()
{
	return new double;
}

void *leak_nothrow()
{
	return new (std::nothrow) char[2003];
}

void *leak_aligned()
{
	return new Wide;
}

template <typename T> void *leak_vector(size_t n)
{
	return new std::vector<T>(n);
}

void give_back()
{
	for (int i = 0; i < 1000; i++) {
		auto shared = std::make_shared<std::string>(100 + i, 'x');
		auto wide = std::make_unique<Wide[]>(3);
		delete new Wide;
		::operator delete(::operator new(50), 50);
		::operator delete[](::operator new[](50, std::align_val_t(64)), std::align_val_t(64));
		std::vector<int> growing;
		for (int j = 0; j < 100; j++)
			growing.push_back(j);
	}
}

} // namespace shop

void *volatile kept[5];

int main()
{
	kept[0] = shop::leak_new();
	kept[1] = shop::leak_one();
	kept[2] = shop::leak_nothrow();
	kept[3] = shop::leak_aligned();
	kept[4] = shop::leak_vector<int>(300);
	shop::give_back();
	try {
		kept[0] = ::operator new(size_t(1) << 60);
	} catch (const std::bad_alloc &) {
		std::quick_exit(0);
	}
	return 1;
}
