// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A C++ program that lives off its heap: containers THREADS ROUNDS. Each thread does ROUNDS of strings, maps, vectors
// and trees that are shared and thrown away; the total work does not depend on THREADS.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

struct Tree {
	std::unique_ptr<Tree> left, right;
	std::string name;
};

static std::unique_ptr<Tree> grow(int depth, unsigned seed)
{
	auto tree = std::make_unique<Tree>();

	tree->name = std::string(seed % 40, 't');
	if (depth) {
		tree->left = grow(depth - 1, seed * 5 + 1);
		tree->right = grow(depth - 1, seed * 7 + 3);
	}
	return tree;
}

static size_t count_words(unsigned seed)
{
	std::unordered_map<std::string, std::vector<int>> words;
	std::map<int, std::string> by_count;

	for (int i = 0; i < 400; i++)
		words["a word that is number " + std::to_string((i * seed) % 97)].push_back(i);
	for (const auto &word : words)
		by_count[static_cast<int>(word.second.size())] += word.first;
	return by_count.size();
}

static void run(int n_rounds, size_t *result)
{
	std::vector<std::shared_ptr<std::string>> kept;

	for (int i = 0; i < n_rounds; i++) {
		*result += count_words(static_cast<unsigned>(i) + 1);
		*result += grow(7, static_cast<unsigned>(i))->name.size();
		kept.push_back(std::make_shared<std::string>(200, 'k'));
		if (kept.size() > 1000)
			kept.erase(kept.begin(), kept.begin() + 500);
	}
}

int main(int argc, char **argv)
{
	int n_threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
	int n_rounds = argc > 2 ? std::atoi(argv[2]) : 1000;
	std::vector<std::thread> threads;
	std::vector<size_t> results(static_cast<size_t>(n_threads) * 64);
	size_t sum = 0;

	for (int i = 0; i < n_threads; i++)
		threads.emplace_back(run, n_rounds / n_threads, &results[static_cast<size_t>(i) * 64]);
	for (auto &thread : threads)
		thread.join();
	for (size_t result : results)
		sum += result;
	std::printf("%zu\n", sum);
	return 0;
}
