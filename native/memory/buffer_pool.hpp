// Memory of parsed batches, kept for the batches to come.
//
// Every batch needs blocks of about the same sizes, taken by the thread that parses and given back by the one
// that learns. Fresh pages for each would cost a good part of the time of parsing, and how much of what was
// given back a process still holds would depend on how the two threads take turns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "memory/fork_safe_mutex.hpp"

namespace skn {

class BufferPool {
 public:
  // At least so many bytes, whose content is whatever it was.
  void* take(std::size_t bytes) {
    if (bytes >= kLeast) {
      const std::lock_guard lock(mutex_);
      // The smallest that fits; one of more than twice the size is left to those who need it.
      auto best = kept_.end();
      for (auto it = kept_.begin(); it != kept_.end(); ++it) {
        const bool fits = (*it)->capacity >= bytes && (*it)->capacity / 2 <= bytes;
        if (fits && (best == kept_.end() || (*it)->capacity < (*best)->capacity)) best = it;
      }
      if (best != kept_.end()) {
        Block* const block = *best;
        kept_.erase(best);
        kept_bytes_ -= block->capacity;
        return block + 1;
      }
    }
    // Some room above, which costs nothing until it is written to: the next batch may be a little larger.
    const std::size_t capacity = bytes + bytes / 8;
    return new (::operator new(sizeof(Block) + capacity)) Block{capacity} + 1;
  }

  // What `take` gave.
  void give(void* memory) noexcept {
    Block* const block = static_cast<Block*>(memory) - 1;
    if (block->capacity < kLeast || block->capacity > kMost) return ::operator delete(block);
    const std::lock_guard lock(mutex_);
    while (!kept_.empty() && (kept_.size() == kCount || kept_bytes_ + block->capacity > kMost)) {
      kept_bytes_ -= kept_.front()->capacity;  // the one that was of no use for longest
      ::operator delete(kept_.front());
      kept_.erase(kept_.begin());
    }
    kept_.push_back(block);  // there is room for kCount: nothing is thrown
    kept_bytes_ += block->capacity;
  }

  BufferPool() { kept_.reserve(kCount); }

 private:
  struct alignas(std::max_align_t) Block {  // as aligned as what `operator new` gives
    std::size_t capacity;
  };

  static constexpr std::size_t kLeast = 1 << 16;  // smaller ones are the allocator's daily bread
  static constexpr std::size_t kMost = 1 << 24;   // bytes kept
  static constexpr std::size_t kCount = 32;       // blocks kept

  ForkSafeMutex mutex_;
  std::vector<Block*> kept_;  // the one given back last is last
  std::size_t kept_bytes_ = 0;
};

// The one of this process. It is never destroyed: arrays may outlive everything else.
inline BufferPool& buffer_pool() {
  static BufferPool& only = *new BufferPool;
  return only;
}

struct GiveBack {
  void operator()(void* memory) const noexcept {
    if (memory != nullptr) buffer_pool().give(memory);
  }
};

template <class T>
using Pooled = std::unique_ptr<T[], GiveBack>;

// Room for so many numbers, not set to anything.
template <class T>
Pooled<T> pooled(std::size_t size) {
  return Pooled<T>(static_cast<T*>(buffer_pool().take(size * sizeof(T))));
}

}  // namespace skn
