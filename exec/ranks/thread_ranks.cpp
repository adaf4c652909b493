#include "exec/ranks/thread_ranks.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "exec/data_type.h"

namespace braid::exec {
namespace {

/// Somebody waits for a rank that has ended with an error.
class RankEnded final : public Failure {
 public:
  explicit RankEnded(int rank) : Failure(fmt::format("rank {} has ended with an error", rank)) {}
};

/// What each member gave to one meeting of a group, in the order of its ranks.
struct Meeting {
  std::vector<std::string> given;
  std::size_t came = 0;
  std::size_t left = 0;
};

/// What ranks have of a group together. Each member's meetings count from 0.
struct GroupState {
  std::vector<int> ranks;
  std::map<std::int64_t, Meeting> meetings;
};

/// All that ranks have together; the mutex guards it.
struct World {
  explicit World(int count)
      : size(count),
        groups_made(static_cast<std::size_t>(count), 0),
        memories_made(static_cast<std::size_t>(count), 0) {}

  int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<int> ended;  // the first that threw
  /// By sender, receiver and tag; byte messages have none of the tags of numbers.
  std::map<std::tuple<int, int, int>, std::deque<std::string>> mail;
  std::map<std::int64_t, std::shared_ptr<GroupState>> groups;  // by the number of the call that made them
  std::vector<std::int64_t> groups_made;                       // per rank
  std::map<std::int64_t, std::shared_ptr<std::vector<std::vector<std::byte>>>> memories;  // likewise
  std::vector<std::int64_t> memories_made;

  void check() const {
    if (ended) throw RankEnded(*ended);
  }
  template <typename Condition>
  void wait(std::unique_lock<std::mutex>& lock, const Condition& condition) {
    changed.wait(lock, [&] { return ended || condition(); });
    if (!condition()) check();
  }
};

constexpr int kBytesTag = -1;

/// A message that is awaited. Of one path, messages are taken in the order in which they were asked for.
class Receiving final : public Request {
 public:
  Receiving(World& world, std::tuple<int, int, int> path, Numbers numbers,
            std::shared_ptr<std::deque<Receiving*>> waiting)
      : world_(world), path_(path), numbers_(numbers), waiting_(std::move(waiting)) {
    waiting_->push_back(this);
  }
  ~Receiving() override { std::erase(*waiting_, this); }

  bool done() override {
    if (done_) return true;
    const std::scoped_lock lock(world_.mutex);
    std::deque<std::string>& mail = world_.mail[path_];
    while (!mail.empty() && !waiting_->empty()) {
      waiting_->front()->take(mail.front());
      mail.pop_front();
      waiting_->pop_front();
    }
    if (!done_) world_.check();
    return done_;
  }

 private:
  void take(const std::string& bytes) {
    BRAID_CHECK(bytes.size() == numbers_.bytes(), "a message of {} bytes has come for {}", bytes.size(),
                numbers_.bytes());
    std::memcpy(numbers_.data, bytes.data(), bytes.size());
    done_ = true;
  }

  World& world_;
  std::tuple<int, int, int> path_;
  Numbers numbers_;
  std::shared_ptr<std::deque<Receiving*>> waiting_;  // of this rank's on this path
  bool done_ = false;
};

/// A collective: `finish` makes of what all gave what this member gets.
class Collective final : public Request {
 public:
  using Finish = std::function<void(std::span<const std::string> given)>;

  Collective(World& world, std::shared_ptr<GroupState> group, std::int64_t number, std::size_t member, std::string mine,
             Finish finish)
      : world_(world), group_(std::move(group)), number_(number), finish_(std::move(finish)) {
    const std::scoped_lock lock(world_.mutex);
    Meeting& meeting = group_->meetings[number_];
    meeting.given.resize(group_->ranks.size());
    meeting.given[member] = std::move(mine);
    ++meeting.came;
    world_.changed.notify_all();
  }

  bool done() override {
    if (done_) return true;
    const std::scoped_lock lock(world_.mutex);
    if (!all_came()) world_.check();
    if (all_came()) leave();
    return done_;
  }
  void wait() {
    std::unique_lock lock(world_.mutex);
    world_.wait(lock, [&] { return all_came(); });
    leave();
  }

 private:
  bool all_came() const { return group_->meetings.at(number_).came == group_->ranks.size(); }
  void leave() {
    Meeting& meeting = group_->meetings.at(number_);
    finish_(meeting.given);
    done_ = true;
    if (++meeting.left == group_->ranks.size()) group_->meetings.erase(number_);
  }

  World& world_;
  std::shared_ptr<GroupState> group_;
  std::int64_t number_;
  Finish finish_;
  bool done_ = false;
};

template <typename T>
std::string bytes_of(std::span<const T> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

std::string bytes_of(const Numbers& numbers) {
  return {static_cast<const char*>(numbers.data), numbers.bytes()};
}

template <typename T>
void sum_up(std::span<const std::string> given, std::span<T> numbers) {
  std::fill(numbers.begin(), numbers.end(), T{0});
  for (const std::string& bytes : given) {
    BRAID_CHECK(bytes.size() == numbers.size_bytes(), "ranks sum up {} bytes and {}", bytes.size(),
                numbers.size_bytes());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      T number;
      std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
      numbers[i] += number;
    }
  }
}

/// Summed in f32.
void sum_up_bf16(std::span<const std::string> given, Numbers numbers) {
  std::vector<float> sums(static_cast<std::size_t>(numbers.count)), each(sums.size());
  for (const std::string& bytes : given) {
    widen(DataType::bf16, std::as_bytes(std::span(bytes)), each);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += each[i];
  }
  narrow(DataType::bf16, sums, {static_cast<std::byte*>(numbers.data), numbers.bytes()});
}

class ThreadGroup final : public CommunicatorGroup {
 public:
  ThreadGroup(World& world, std::shared_ptr<GroupState> group, int rank)
      : world_(world),
        group_(std::move(group)),
        member_(static_cast<std::size_t>(std::find(group_->ranks.begin(), group_->ranks.end(), rank) -
                                         group_->ranks.begin())) {}

  std::unique_ptr<Request> all_reduce(Numbers numbers, const kernels::Event&) override {
    return meet(bytes_of(numbers), [numbers](std::span<const std::string> given) {
      if (numbers.type == costmodel::DataType::bf16) return sum_up_bf16(given, numbers);
      sum_up<float>(given, {static_cast<float*>(numbers.data), static_cast<std::size_t>(numbers.count)});
    });
  }

  std::unique_ptr<Request> all_gather(std::span<const double> mine, std::span<const int> counts,
                                      std::span<double> all) override {
    BRAID_CHECK(static_cast<int>(mine.size()) == counts[member_], "{} numbers, not {}", mine.size(), counts[member_]);
    return meet(bytes_of(mine), [all](std::span<const std::string> given) {
      char* to = reinterpret_cast<char*>(all.data());
      for (const std::string& bytes : given) to = std::copy(bytes.begin(), bytes.end(), to);
    });
  }

  std::unique_ptr<Collective> meet(std::string mine, Collective::Finish finish) {
    return std::make_unique<Collective>(world_, group_, next_++, member_, std::move(mine), std::move(finish));
  }

 private:
  World& world_;
  std::shared_ptr<GroupState> group_;
  std::size_t member_;
  std::int64_t next_ = 0;  // meeting
};

/// Of all ranks.
using AllMemory = std::vector<std::vector<std::byte>>;

/// Threads read each other's.
class ThreadMemory final : public SharedMemory {
 public:
  ThreadMemory(std::shared_ptr<AllMemory> all, int rank, Communicator& communicator)
      : all_(std::move(all)), rank_(rank), communicator_(communicator) {}
  std::span<std::byte> mine() override { return (*all_)[static_cast<std::size_t>(rank_)]; }
  void publish() override { communicator_.barrier(); }
  void read(int rank, std::size_t first, std::span<std::byte> to) override {
    const std::vector<std::byte>& theirs = (*all_)[static_cast<std::size_t>(rank)];
    BRAID_CHECK(first + to.size() <= theirs.size(), "{} bytes from {} of {}", to.size(), first, theirs.size());
    std::copy_n(theirs.begin() + static_cast<std::ptrdiff_t>(first), to.size(), to.begin());
  }

 private:
  std::shared_ptr<AllMemory> all_;
  int rank_;
  Communicator& communicator_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(World& world, std::shared_ptr<GroupState> all, int rank)
      : world_(world), rank_(rank), all_(world, std::move(all), rank) {}

  int rank() const override { return rank_; }
  int size() const override { return world_.size; }
  bool one_host() const override { return true; }

  std::unique_ptr<Request> send(Numbers numbers, int to, int tag, const kernels::Event&) override {
    post(bytes_of(numbers), to, tag);
    return std::make_unique<DoneRequest>();
  }
  std::unique_ptr<Request> receive(Numbers numbers, int from, int tag, const kernels::Event&) override {
    std::shared_ptr<std::deque<Receiving*>>& waiting = waiting_[{from, tag}];
    if (!waiting) waiting = std::make_shared<std::deque<Receiving*>>();
    return std::make_unique<Receiving>(world_, std::tuple(from, rank_, tag), numbers, waiting);
  }
  std::unique_ptr<Request> send_bytes(std::string bytes, int to) override {
    post(std::move(bytes), to, kBytesTag);
    return std::make_unique<DoneRequest>();
  }
  std::string receive_bytes(int from) override {
    std::unique_lock lock(world_.mutex);
    std::deque<std::string>& mail = world_.mail[{from, rank_, kBytesTag}];
    world_.wait(lock, [&] { return !mail.empty(); });
    std::string bytes = std::move(mail.front());
    mail.pop_front();
    return bytes;
  }

  std::unique_ptr<CommunicatorGroup> make_group(std::span<const int> ranks) override {
    std::vector<int> members(ranks.begin(), ranks.end());
    std::sort(members.begin(), members.end());
    std::shared_ptr<GroupState> state;
    {
      const std::scoped_lock lock(world_.mutex);
      std::shared_ptr<GroupState>& made = world_.groups[world_.groups_made[static_cast<std::size_t>(rank_)]++];
      if (!made) made = std::make_shared<GroupState>(GroupState{members, {}});
      BRAID_CHECK(made->ranks == members, "ranks make unlike groups");
      state = made;
    }
    if (std::find(members.begin(), members.end(), rank_) == members.end()) return nullptr;
    return std::make_unique<ThreadGroup>(world_, std::move(state), rank_);
  }

  std::unique_ptr<SharedMemory> share_memory(std::size_t bytes) override {
    std::shared_ptr<AllMemory> all;
    {
      const std::scoped_lock lock(world_.mutex);
      std::shared_ptr<AllMemory>& made = world_.memories[world_.memories_made[static_cast<std::size_t>(rank_)]++];
      if (!made) made = std::make_shared<AllMemory>(static_cast<std::size_t>(size()));
      all = made;
    }
    (*all)[static_cast<std::size_t>(rank_)].resize(bytes);
    return std::make_unique<ThreadMemory>(std::move(all), rank_, *this);
  }

  void sum(std::span<double> numbers) override {
    all_.meet(bytes_of<double>(numbers),
              [numbers](std::span<const std::string> given) { sum_up<double>(given, numbers); })
        ->wait();
  }
  void barrier() override {
    all_.meet("", [](std::span<const std::string>) {})->wait();
  }
  void broadcast(std::span<std::byte> bytes) override {
    all_.meet(rank_ == 0 ? bytes_of<std::byte>(bytes) : std::string(),
              [bytes](std::span<const std::string> given) {
                BRAID_CHECK(given[0].size() == bytes.size(), "{} bytes are broadcast to {}", given[0].size(),
                            bytes.size());
                if (!bytes.empty()) std::memcpy(bytes.data(), given[0].data(), bytes.size());
              })
        ->wait();
  }
  std::vector<std::string> gather(const std::string& bytes) override {
    std::vector<std::string> all;
    all_.meet(bytes,
              [&](std::span<const std::string> given) {
                if (rank_ == 0) all.assign(given.begin(), given.end());
              })
        ->wait();
    return all;
  }

 private:
  void post(std::string bytes, int to, int tag) {
    const std::scoped_lock lock(world_.mutex);
    world_.check();
    world_.mail[{rank_, to, tag}].push_back(std::move(bytes));
    world_.changed.notify_all();
  }

  World& world_;
  int rank_;
  ThreadGroup all_;
  std::map<std::pair<int, int>, std::shared_ptr<std::deque<Receiving*>>> waiting_;
};

}  // namespace

void run_on_threads(int ranks, const std::function<void(Communicator&)>& work) {
  World world(ranks);
  const auto all = std::make_shared<GroupState>();
  all->ranks.resize(static_cast<std::size_t>(ranks));
  std::iota(all->ranks.begin(), all->ranks.end(), 0);
  std::vector<std::exception_ptr> own(static_cast<std::size_t>(ranks)), told(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ThreadCommunicator communicator(world, all, rank);
        work(communicator);
      } catch (const RankEnded&) {
        told[static_cast<std::size_t>(rank)] = std::current_exception();
      } catch (...) {
        own[static_cast<std::size_t>(rank)] = std::current_exception();
      }
      const std::scoped_lock lock(world.mutex);
      const bool failed = own[static_cast<std::size_t>(rank)] || told[static_cast<std::size_t>(rank)];
      if (failed && !world.ended) world.ended = rank;
      world.changed.notify_all();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& thrown : {own, told}) {
    for (const std::exception_ptr& one : thrown) {
      if (one) std::rethrow_exception(one);
    }
  }
}

}  // namespace braid::exec
