#include "simt_on_cpu.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <boost/context/fiber.hpp>

#include "base/error.h"
#include "base/random.h"
#include "kernels/cuda/simt.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace braid::kernels::cuda {
namespace on_cpu {
namespace {

constexpr std::size_t kStack = 128 << 10;

enum class State { to_start, ready, at_barrier, at_phase, in_warp, ended };

struct Fiber {
  std::unique_ptr<boost::context::fiber> fiber;
  const void* stack = nullptr;  // its lowest address
};

/// Bytes on their way to shared memory.
struct Copy {
  const void* from;
  void* to;
  std::size_t bytes, room;
};

/// A barrier that counts arrivals and bytes.
struct Phases {
  unsigned arrivals = 0, missing = 0;  // of each phase, and of the one that goes on
  std::int64_t bytes = 0;              // that are still to come, or have come before they were told of
  unsigned parity = 0;                 // of the one that goes on
};

/// Bytes on their way that a barrier counts.
struct Brought {
  Phases* phases;
  unsigned bytes;
  std::function<void()> copy;
};

/// A thread of the block.
struct Thread {
  State state = State::to_start;
  const Phases* phases = nullptr;  // that it waits for the end of one of
  unsigned parity = 0;
  std::vector<std::function<void()>> products;  // of a group that is not closed
  std::deque<std::vector<std::function<void()>>> product_groups;
  Fiber* fiber = nullptr;         // that it goes on in, while it waits
  std::uint64_t brought[2] = {};  // to the shuffles, by turns: a lane may be one ahead of the others
  unsigned turn = 0;
  std::vector<Copy> copies;  // of a group that is not closed
  std::deque<std::vector<Copy>> groups;
};

/// Thrown where a thread waits whose block has failed.
struct Abandoned {};

/// Tells AddressSanitizer, where it is, of changes of the stack.
class Sanitizer {
 public:
  /// From the scheduler's stack to a fiber's, and back on it.
  void leave_scheduler([[maybe_unused]] const void* stack) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&kept_, stack, kStack);
#endif
  }
  void back_in_scheduler() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(kept_, nullptr, nullptr);
#endif
  }
  /// On a fiber's stack, from the scheduler's; and to that, for good where nothing is kept.
  void enter_fiber([[maybe_unused]] void* kept) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(kept, &stack_, &size_);
#endif
  }
  void leave_fiber([[maybe_unused]] void** kept) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(kept, stack_, size_);
#endif
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  void* kept_ = nullptr;
  const void* stack_ = nullptr;
  std::size_t size_ = 0;
#endif
};

/// Stacks that fibers leave are the next ones'.
class Stacks {
 public:
  using Free = std::vector<std::unique_ptr<std::byte[]>>;
  explicit Stacks(Free& free) : free_(&free) {}
  boost::context::stack_context allocate() {
    if (free_->empty()) free_->push_back(std::make_unique<std::byte[]>(kStack));
    boost::context::stack_context stack;
    stack.size = kStack;
    stack.sp = free_->back().release() + kStack;
    free_->pop_back();
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) {
    free_->emplace_back(static_cast<std::byte*>(stack.sp) - kStack);
  }

 private:
  Free* free_;
};

/// A block under way. Threads run in fibers; one that ends without having waited leaves its fiber to the next of its
/// warp.
class Block {
 public:
  void run(unsigned threads, const std::function<void()>& thread) {
    thread_ = &thread;
    count_ = threads;
    threads_.assign(threads, {});
    phases_.clear();
    brought_.clear();
    waiting_ = ended_ = 0;
    while (ended_ < count_) {
      if (const std::optional<unsigned> next = choose()) {
        go_on(*next);
        if (failure_) abandon(std::exchange(failure_, nullptr));
      } else if (waiting_ == count_) {
        for (Thread& each : threads_) each.state = State::ready;
        waiting_ = 0;
      } else if (!brought_.empty()) {
        finish(static_cast<std::size_t>(random_.next_below(brought_.size())));
      } else {
        abandon(std::make_exception_ptr(InternalError(
            fmt::format("of {} threads {} wait at a barrier, {} have ended, and the others wait for their warp, or for "
                        "what others arrive at",
                        count_, waiting_, ended_))));
      }
    }
    fibers_.clear();
    BRAID_CHECK(brought_.empty(), "the block ends before {} copies have come", brought_.size());
  }

  void wait(State state) {
    Thread& thread = threads_[current_];
    thread.state = state;
    if (state == State::at_barrier) ++waiting_;
    thread.fiber = own_fiber_;
    void* kept = nullptr;
    sanitizer_.leave_fiber(&kept);
    scheduler_ = std::move(scheduler_).resume();
    sanitizer_.enter_fiber(kept);
    if (abandoned_) throw Abandoned();
  }

  std::uint64_t exchange(std::uint64_t mine, unsigned from) {
    const unsigned turn = bring(mine), lane = current_ / kWarp * kWarp + from;
    BRAID_CHECK(lane < count_, "lane {} of {} threads", lane, count_);
    return threads_[lane].brought[turn];
  }
  void exchange_all(std::uint64_t mine, std::uint64_t (&all)[32]) {
    const unsigned turn = bring(mine), first = current_ / kWarp * kWarp;
    BRAID_CHECK(first + kWarp <= count_, "a warp of {} threads", count_ - first);
    for (unsigned lane = 0; lane < kWarp; ++lane) all[lane] = threads_[first + lane].brought[turn];
  }

  void copy_later(const Copy& copy) { threads_[current_].copies.push_back(copy); }
  void close_copies() { threads_[current_].groups.push_back(std::exchange(threads_[current_].copies, {})); }
  void await_copies(std::size_t groups_left) {
    std::deque<std::vector<Copy>>& groups = threads_[current_].groups;
    for (; groups.size() > groups_left; groups.pop_front()) {
      for (const Copy& copy : groups.front()) {
        std::memset(copy.to, 0, copy.room);
        std::memcpy(copy.to, copy.from, copy.bytes);
      }
    }
  }

  void begin_barrier(const void* barrier, unsigned arrivals) { phases_[barrier] = {arrivals, arrivals, 0, 0}; }
  void arrive(const void* barrier, unsigned bytes_to_come) {
    Phases& phases = phases_of(barrier);
    BRAID_CHECK(phases.missing > 0, "more than {} threads arrive at a barrier", phases.arrivals);
    --phases.missing;
    phases.bytes += bytes_to_come;
    end_phase(phases);
  }
  void await_phase(const void* barrier, unsigned parity) {
    threads_[current_].phases = &phases_of(barrier);
    threads_[current_].parity = parity;
    wait(State::at_phase);
  }
  void bring_later(const void* barrier, unsigned bytes, std::function<void()> copy) {
    brought_.push_back({&phases_of(barrier), bytes, std::move(copy)});
    if (random_.next_below(2) == 0) finish(brought_.size() - 1);
  }

  void multiply_later(std::function<void()> product) {
    Thread& thread = threads_[current_];
    thread.products.push_back(std::move(product));
    if (random_.next_below(2) != 0) return;
    for (std::vector<std::function<void()>>& group : thread.product_groups) make(group);
    make(thread.products);
  }
  void close_products() { threads_[current_].product_groups.push_back(std::exchange(threads_[current_].products, {})); }
  void await_products(std::size_t groups_left) {
    std::deque<std::vector<std::function<void()>>>& groups = threads_[current_].product_groups;
    for (; groups.size() > groups_left; groups.pop_front()) make(groups.front());
  }

  RandomStream random_{1};

 private:
  Phases& phases_of(const void* barrier) {
    const auto found = phases_.find(barrier);
    BRAID_CHECK(found != phases_.end(), "a barrier that is not begun");
    return found->second;
  }
  static void end_phase(Phases& phases) {
    if (phases.missing > 0 || phases.bytes != 0) return;
    phases.missing = phases.arrivals;
    phases.parity ^= 1U;
  }
  void finish(std::size_t which) {
    const Brought brought = brought_[which];
    brought_.erase(brought_.begin() + static_cast<std::ptrdiff_t>(which));
    brought.copy();
    brought.phases->bytes -= brought.bytes;
    end_phase(*brought.phases);
  }
  static void make(std::vector<std::function<void()>>& products) {
    for (const std::function<void()>& product : products) product();
    products.clear();
  }

  /// To the warp, which meets; tells which of its turns it is.
  unsigned bring(std::uint64_t mine) {
    Thread& thread = threads_[current_];
    const unsigned turn = thread.turn++ % 2;
    thread.brought[turn] = mine;
    wait(State::in_warp);
    return turn;
  }

  /// Until it waits or ends.
  void go_on(unsigned place) {
    enter(place);
    own_fiber_ = threads_[place].fiber ? std::exchange(threads_[place].fiber, nullptr) : &new_fiber();
    sanitizer_.leave_scheduler(own_fiber_->stack);
    boost::context::fiber& fiber = *own_fiber_->fiber;
    fiber = std::move(fiber).resume();
    sanitizer_.back_in_scheduler();
  }

  Fiber& new_fiber() {
    Stacks stacks(free_stacks_);
    const boost::context::stack_context stack = stacks.allocate();
    const auto body = [this](boost::context::fiber&& scheduler) {
      sanitizer_.enter_fiber(nullptr);
      scheduler_ = std::move(scheduler);
      run_threads();
      sanitizer_.leave_fiber(nullptr);
      return std::move(scheduler_);
    };
    fibers_.push_back({std::make_unique<boost::context::fiber>(
                           std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), stacks, body),
                       static_cast<std::byte*>(stack.sp) - kStack});
    return fibers_.back();
  }

  /// Ends all threads that wait, and the block.
  [[noreturn]] void abandon(const std::exception_ptr& failure) {
    abandoned_ = true;
    for (unsigned i = 0; i < count_; ++i)
      if (threads_[i].fiber) go_on(i);
    abandoned_ = false;
    failure_ = nullptr;
    fibers_.clear();
    std::rethrow_exception(failure);
  }

  void enter(unsigned place) {
    current_ = place;
    threadIdx = dim3(place);
    threads_[place].state = State::ready;
  }

  void run_threads() {
    while (true) {
      try {
        (*thread_)();
        const Thread& thread = threads_[current_];
        BRAID_CHECK(thread.copies.empty() && thread.groups.empty(), "thread {} ends before its copies have come",
                    current_);
        BRAID_CHECK(thread.products.empty() && thread.product_groups.empty(),
                    "thread {} ends before its products are made", current_);
      } catch (const Abandoned&) {
        return;
      } catch (...) {
        failure_ = std::current_exception();
        return;
      }
      threads_[current_].state = State::ended;
      ++ended_;
      const unsigned first = current_ / kWarp * kWarp, last = std::min(first + kWarp, count_);
      const auto next = std::find_if(threads_.begin() + first, threads_.begin() + last,
                                     [](const Thread& thread) { return thread.state == State::to_start; });
      if (next == threads_.begin() + last) return;
      enter(static_cast<unsigned>(next - threads_.begin()));
    }
  }

  /// A thread that can go on: mostly of the warp that went on last, so that warps run ahead of one another as far as
  /// barriers let them.
  std::optional<unsigned> choose() {
    const unsigned warps = (count_ + kWarp - 1) / kWarp;
    if (random_.next_below(64) == 0) {
      warp_ = static_cast<unsigned>(random_.next_below(warps));
      if (!brought_.empty()) finish(static_cast<std::size_t>(random_.next_below(brought_.size())));
    }
    for (unsigned i = 0; i < warps; ++i, ++warp_) {
      warp_ %= warps;
      const unsigned first = warp_ * kWarp, last = std::min(first + kWarp, count_);
      const auto in_warp = [](const Thread& thread) { return thread.state == State::in_warp; };
      if (std::all_of(threads_.begin() + first, threads_.begin() + last, in_warp))
        for (unsigned lane = first; lane < last; ++lane) threads_[lane].state = State::ready;
      const auto start = static_cast<unsigned>(random_.next_below(last - first));
      for (unsigned lane = 0; lane < last - first; ++lane) {
        const unsigned place = first + (start + lane) % (last - first);
        const Thread& thread = threads_[place];
        if (thread.state == State::ready || thread.state == State::to_start) return place;
        if (thread.state == State::at_phase && thread.phases->parity != thread.parity) return place;
      }
    }
    return std::nullopt;
  }

  std::vector<Thread> threads_;
  std::map<const void*, Phases> phases_;
  std::vector<Brought> brought_;
  Stacks::Free free_stacks_;
  std::deque<Fiber> fibers_;
  boost::context::fiber scheduler_;  // where to go on when a thread waits
  Fiber* own_fiber_ = nullptr;       // that runs
  Sanitizer sanitizer_;
  unsigned count_ = 0, current_ = 0, warp_ = 0;
  unsigned waiting_ = 0, ended_ = 0;  // at the barrier, and for good
  const std::function<void()>* thread_ = nullptr;
  std::exception_ptr failure_;
  bool abandoned_ = false;
};

thread_local Block block;
thread_local std::vector<std::byte>* shared = nullptr;

struct Held {
  bool holds = false;
  std::vector<std::function<void()>> calls;
  std::vector<std::unique_ptr<std::byte[]>> scratch;
};
thread_local Held held;
std::atomic<std::int64_t> held_calls{0};

}  // namespace

void set_order(std::uint64_t seed) {
  block.random_ = RandomStream(seed);
}

std::uint64_t exchange(std::uint64_t mine, unsigned from) {
  return block.exchange(mine, from);
}

void exchange_all(std::uint64_t mine, std::uint64_t (&all)[32]) {
  block.exchange_all(mine, all);
}

void copy_later(const void* from, void* to, std::size_t bytes, std::size_t room) {
  block.copy_later({from, to, bytes, room});
}
void close_copies() {
  block.close_copies();
}
void await_copies(std::size_t groups_left) {
  block.await_copies(groups_left);
}

void begin_barrier(const void* barrier, unsigned arrivals) {
  block.begin_barrier(barrier, arrivals);
}
void arrive(const void* barrier, unsigned bytes_to_come) {
  block.arrive(barrier, bytes_to_come);
}
void await_phase(const void* barrier, unsigned parity) {
  block.await_phase(barrier, parity);
}
void bring_later(const void* barrier, unsigned bytes, std::function<void()> copy) {
  block.bring_later(barrier, bytes, std::move(copy));
}

void multiply_later(std::function<void()> product) {
  block.multiply_later(std::move(product));
}
void close_products() {
  block.close_products();
}
void await_products(std::size_t groups_left) {
  block.await_products(groups_left);
}

void* shared_bytes() {
  return shared->data();
}

void run(dim3 blocks, unsigned threads, std::size_t shared_bytes, const std::function<void()>& thread) {
  gridDim = blocks;
  blockDim = dim3(threads);
  for (unsigned z = 0; z < blocks.z; ++z) {
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x; ++x) {
        std::vector<std::byte> bytes(shared_bytes, std::byte{0xFF});
        shared = &bytes;
        blockIdx = dim3(x, y, z);
        block.run(threads, thread);
      }
    }
  }
}

void hold() {
  held.holds = true;
}
bool holds() {
  return held.holds;
}
void run_held() {
  const Held now = std::exchange(held, {});
  for (const std::function<void()>& call : now.calls) call();
  held_calls += std::ssize(now.calls);
}
std::int64_t calls_held() {
  return held_calls;
}
void drop_held() {
  held = {};
}
void call(std::function<void()> work) {
  if (!held.holds) return work();
  held.calls.push_back(std::move(work));
}

}  // namespace on_cpu

Scratch::Scratch(std::int64_t bytes) : memory_(new std::byte[static_cast<std::size_t>(bytes)]) {
  std::memset(memory_, 0xFF, static_cast<std::size_t>(bytes));
}
Scratch::Scratch(const void* host, std::int64_t bytes) : Scratch(bytes) {
  if (bytes > 0) std::memcpy(memory_, host, static_cast<std::size_t>(bytes));
}
Scratch::~Scratch() {
  std::unique_ptr<std::byte[]> memory(static_cast<std::byte*>(memory_));
  if (on_cpu::held.holds) on_cpu::held.scratch.push_back(std::move(memory));
}

}  // namespace braid::kernels::cuda

void __syncthreads() {
  braid::kernels::cuda::on_cpu::block.wait(braid::kernels::cuda::on_cpu::State::at_barrier);
}
void __syncwarp(unsigned) {
  braid::kernels::cuda::on_cpu::block.wait(braid::kernels::cuda::on_cpu::State::in_warp);
}
