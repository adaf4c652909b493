#pragma once

#include <cstdint>
#include <exception>
#include <future>
#include <map>
#include <mutex>
#include <vector>

namespace braid::sim {

/// Answers by sets of tasks, each made once: by whichever thread asks first, while others that want the same wait.
template <typename Answer>
class OnceEach {
 public:
  /// Throws what make() throws, whoever asks.
  template <typename Make>
  Answer of(const std::vector<std::int32_t>& counts, const Make& make) {
    std::promise<Answer> promise;
    std::shared_future<Answer> answer;
    bool is_new = false;
    {
      const std::lock_guard lock(mutex_);
      const auto known = answers_.try_emplace(counts);
      is_new = known.second;
      if (is_new) known.first->second = promise.get_future().share();
      answer = known.first->second;
    }
    if (!is_new) return answer.get();
    try {
      promise.set_value(make());
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
    return answer.get();
  }

 private:
  std::mutex mutex_;
  std::map<std::vector<std::int32_t>, std::shared_future<Answer>> answers_;
};

}  // namespace braid::sim
