#pragma once

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>

#include "exec/late_streams.h"

namespace braid::exec {

/// Ranks' late devices that meet, each a thread. Memory is read when all have come, and not before: whoever changes it
/// until its event has ended is found out.
class LateGroup final : public kernels::DeviceGroup {
 public:
  /// As many as join under that name.
  LateGroup(LateStreams& streams, const std::string& name, int size, int place)
      : streams_(streams), stream_(streams.add()), place_(static_cast<std::size_t>(place)) {
    const std::scoped_lock lock(registry().mutex);
    std::shared_ptr<Shared>& shared = registry().groups[name];
    if (!shared) shared = std::make_shared<Shared>(static_cast<std::size_t>(size));
    shared_ = shared;
  }
  ~LateGroup() override { streams_.remove(stream_); }

  std::unique_ptr<kernels::Event> all_reduce(void* numbers, std::int64_t count, costmodel::DataType type,
                                             const kernels::Event& after) override {
    BRAID_CHECK(type == costmodel::DataType::f32, "late devices sum f32 alone");
    stream_->follow(static_cast<const LateEvent&>(after).at());
    const std::int64_t number = next_++;
    auto* const floats = static_cast<float*>(numbers);
    stream_->push([=, this] {
      const std::scoped_lock lock(shared_->mutex);
      Meeting& meeting = shared_->meetings[number];
      meeting.came.insert(place_);
      return meeting.came.size() == shared_->size;
    });
    stream_->push([=, this] {
      const std::scoped_lock lock(shared_->mutex);
      shared_->meetings[number].given[place_].assign(floats, floats + count);
      return true;
    });
    stream_->push([=, this] {
      const std::scoped_lock lock(shared_->mutex);
      Meeting& meeting = shared_->meetings[number];
      if (meeting.given.size() < shared_->size) return false;
      std::vector<float> sums(static_cast<std::size_t>(count));
      for (const auto& [place, given] : meeting.given)
        std::transform(sums.begin(), sums.end(), given.begin(), sums.begin(), std::plus<>());
      std::ranges::copy(sums, floats);
      return true;
    });
    return std::make_unique<LateEvent>(stream_->record());
  }

  std::unique_ptr<kernels::Event> send(const void* numbers, Bytes bytes, int to, const kernels::Event& after) override {
    stream_->follow(static_cast<const LateEvent&>(after).at());
    stream_->push([=, this] {
      const std::scoped_lock lock(shared_->mutex);
      Mail& mail = shared_->mail[{place_, static_cast<std::size_t>(to)}];
      if (!mail.awaited || mail.content) return false;
      const auto* const from = static_cast<const char*>(numbers);
      mail.content.emplace(from, from + bytes);
      return true;
    });
    return std::make_unique<LateEvent>(stream_->record());
  }
  std::unique_ptr<kernels::Event> receive(void* numbers, Bytes bytes, int from, const kernels::Event& after) override {
    stream_->follow(static_cast<const LateEvent&>(after).at());
    stream_->push([=, this] {
      const std::scoped_lock lock(shared_->mutex);
      Mail& mail = shared_->mail[{static_cast<std::size_t>(from), place_}];
      mail.awaited = true;
      if (!mail.content) return false;
      BRAID_CHECK(std::ssize(*mail.content) == bytes, "a message of {} bytes for {}", mail.content->size(), bytes);
      std::memcpy(numbers, mail.content->data(), mail.content->size());
      mail = {};
      return true;
    });
    return std::make_unique<LateEvent>(stream_->record());
  }

  static std::string new_name() {
    static std::atomic<std::int64_t> next = 0;
    return std::to_string(next++);
  }

 private:
  struct Meeting {
    std::set<std::size_t> came;
    std::map<std::size_t, std::vector<float>> given;  // by place
  };
  struct Mail {
    bool awaited = false;
    std::optional<std::string> content;
  };
  struct Shared {
    explicit Shared(std::size_t members) : size(members) {}
    std::size_t size;
    std::mutex mutex;
    std::map<std::int64_t, Meeting> meetings;
    std::map<std::pair<std::size_t, std::size_t>, Mail> mail;  // from, to
  };
  struct Registry {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Shared>> groups;
  };
  static Registry& registry() {
    static Registry registry;
    return registry;
  }

  LateStreams& streams_;
  std::shared_ptr<LateStreams::Stream> stream_;
  std::shared_ptr<Shared> shared_;
  std::size_t place_;
  std::int64_t next_ = 0;  // meeting
};

}  // namespace braid::exec
