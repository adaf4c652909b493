#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "kernels/device.h"

namespace braid::exec {

/// When something had run; nothing as long as it has not.
using LatePoint = std::shared_ptr<std::optional<SteadyClock::time_point>>;

/// What was called on a device and on its groups, and has not run: in each stream in the order of the calls.
class LateStreams {
 public:
  /// False where it cannot go on yet, and is asked again.
  using Work = std::function<bool()>;
  class Stream {
   public:
    void push(Work work) { waiting_.push_back(std::move(work)); }
    bool empty() const { return waiting_.empty(); }
    /// Whether it has come one further.
    bool advance() {
      if (waiting_.empty()) return false;
      const Work work = waiting_.front();
      if (!work()) return false;
      waiting_.pop_front();
      return true;
    }
    /// Now.
    LatePoint record() {
      auto point = std::make_shared<std::optional<SteadyClock::time_point>>();
      push([point] {
        *point = SteadyClock::now();
        return true;
      });
      return point;
    }
    void follow(LatePoint point) {
      push([point = std::move(point)] { return point->has_value(); });
    }

   private:
    std::deque<Work> waiting_;
  };

  explicit LateStreams(std::uint64_t seed) : random_(seed) {}
  Stream& compute() { return *streams_.front(); }
  std::shared_ptr<Stream> add() { return streams_.emplace_back(std::make_shared<Stream>()); }
  void remove(const std::shared_ptr<Stream>& stream) { std::erase(streams_, stream); }

  /// Of one stream.
  void run_a_few() {
    Stream& stream = *streams_[random_.next_below(streams_.size())];
    for (std::uint64_t count = random_.next_below(20); count > 0 && stream.advance(); --count) {
    }
  }
  /// Of the compute stream all; of the others as much as that takes.
  void run_all() {
    constexpr std::chrono::seconds kPatience{60};
    for (auto progress = SteadyClock::now(); !compute().empty();) {
      bool any = false;
      for (std::size_t i = 0; i < streams_.size(); ++i)
        while (streams_[i]->advance()) any = true;
      if (any) progress = SteadyClock::now();
      if (SteadyClock::now() - progress > kPatience) throw Failure("a late device waits for what never comes");
      if (!any) std::this_thread::yield();
    }
  }

 private:
  RandomStream random_;
  std::vector<std::shared_ptr<Stream>> streams_ = {std::make_shared<Stream>()};
};

/// Of this thread's device.
inline thread_local LateStreams* late_streams = nullptr;

class LateEvent final : public kernels::Event {
 public:
  explicit LateEvent(LatePoint at) : at_(std::move(at)) {}
  std::optional<SteadyClock::time_point> ended() override {
    if (!*at_ && late_streams) late_streams->run_a_few();
    return *at_;
  }
  const LatePoint& at() const { return at_; }

 private:
  LatePoint at_;
};

}  // namespace braid::exec
