// Mutexes of objects that outlive a fork.
//
// A child has only the thread that forked. A mutex that another thread held at that moment would stay locked
// in the child for ever, and what it protects half changed. So whoever forks first waits for all of these;
// they are held for the time of parsing a batch at most, and nobody waits for a second one or for the GIL
// while holding one.
#pragma once

#ifndef _WIN32  // where processes do not fork
#include <pthread.h>
#endif

#include <algorithm>
#include <mutex>
#include <vector>

namespace skn {

class ForkSafeMutex {
 public:
  ForkSafeMutex() {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    all.members.push_back(this);
  }
  ~ForkSafeMutex() {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    all.members.erase(std::find(all.members.begin(), all.members.end(), this));
  }
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  struct Registry {
    std::mutex mutex;
    std::vector<ForkSafeMutex*> members;
    Registry() {
#ifndef _WIN32
      pthread_atfork(&lock_all, &unlock_all, &unlock_all);
#endif
    }
  };

  // Never destroyed: objects may outlive everything else.
  static Registry& registry() {
    static Registry& only = *new Registry;
    return only;
  }

  [[maybe_unused]] static void lock_all() {
    registry().mutex.lock();
    for (ForkSafeMutex* member : registry().members) member->lock();
  }

  [[maybe_unused]] static void unlock_all() {
    for (ForkSafeMutex* member : registry().members) member->unlock();
    registry().mutex.unlock();
  }

  std::mutex mutex_;
};

}  // namespace skn
