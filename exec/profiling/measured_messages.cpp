#include "exec/profiling/measured_messages.h"

#include <cmath>
#include <numeric>

#include "exec/buffer.h"
#include "exec/profiling/measured_device.h"

namespace braid::exec {

using costmodel::Operator;
using costmodel::Pass;

namespace {

constexpr double kMostBytes = 32 * kMebibyte;

kernels::Matrix row_of(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), 1, std::ssize(bytes) / static_cast<std::int64_t>(sizeof(float))};
}
std::int64_t bytes_of(std::int64_t floats) {
  return floats * static_cast<std::int64_t>(sizeof(float));
}

/// Of `size` ranks each, as many as there are; null for ranks that are left over.
std::unique_ptr<CommunicatorGroup> group_of(int size, Communicator& communicator) {
  std::unique_ptr<CommunicatorGroup> mine;
  for (int first = 0; first + size <= communicator.size(); first += size) {
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), first);
    if (auto group = communicator.make_group(ranks)) mine = std::move(group);
  }
  return mine;
}

/// Shards and replicas meet in groups of these sizes.
std::vector<int> group_sizes(const Communicator& communicator) {
  constexpr int kAll = 8;
  std::vector<int> sizes;
  for (int size = 2; size <= communicator.size(); ++size) {
    const bool power = (size & (size - 1)) == 0;
    if (size <= kAll || power || size == communicator.size()) sizes.push_back(size);
  }
  return sizes;
}

/// Rank 0 and 1 play ball; half a round is one message.
void measure_message(std::int64_t count, Communicator& communicator, kernels::Device& device,
                     MeasuredSamples& samples) {
  for (const int from : {0, 1}) communicator.open_path(from, 1 - from, 0);
  if (communicator.rank() > 1) return;
  BufferPool pool(device);
  const Buffer numbers = pool.take_f32(count);
  device.kernels().fill(1, numbers.row());
  const MeasuredSamples::Key key{Operator::send_recv, Pass::forward, {}, bytes_of(count), 0, 0};
  const int other = 1 - communicator.rank();
  for (std::int64_t i = 0; i <= kMostPasses; ++i) {
    const double seconds = seconds_of(device, [&] {
      for (const bool mine : {communicator.rank() == 0, communicator.rank() == 1}) {
        follow(communicator, device, [&](const kernels::Event& after) {
          return mine ? communicator.send(numbers.numbers(), other, 0, after)
                      : communicator.receive(numbers.numbers(), other, 0, after);
        });
      }
    });
    if (i > 0) samples.add(key, seconds / 2);
  }
}

void measure_sum(CommunicatorGroup* group, std::int64_t ranks, std::int64_t count, Communicator& communicator,
                 kernels::Device& device, MeasuredSamples& samples) {
  BufferPool pool(device);
  const Buffer numbers = pool.take_f32(count);
  device.kernels().fill(0, numbers.row());
  communicator.barrier();
  if (!group) return;
  for (std::int64_t i = 0; i <= kMostPasses; ++i) {
    const double seconds = seconds_of(device, [&] {
      follow(communicator, device,
             [&](const kernels::Event& after) { return group->all_reduce(numbers.numbers(), after); });
    });
    if (i > 0) samples.add({Operator::all_reduce, Pass::forward, {ranks}, bytes_of(count), 0, 0}, seconds);
  }
}

}  // namespace

Messages::Messages(Communicator& communicator, kernels::Device& device) : communicator_(communicator), device_(device) {
  for (const int size : group_sizes(communicator)) groups_[size] = group_of(size, communicator);
  if (!communicator_.shares_memory()) return;
  memory_ = communicator_.share_memory(static_cast<std::size_t>(kMostBytes));
  device_.kernels().fill(1, row_of(memory_->mine()));
  memory_->publish();
}

void Messages::measure(MeasuredSamples& samples) {
  for (double bytes = 64; bytes <= kMostBytes; bytes *= kGridStep) {
    const std::int64_t count = std::llround(bytes / sizeof(float));
    measure_message(count, communicator_, device_, samples);
    for (const auto& [size, group] : groups_) {
      measure_sum(group.get(), size, count, communicator_, device_, samples);
      if (memory_) measure_gather(size, count, samples);
    }
  }
}

/// What a rank does that reads the shares of others beside its own, while as many others do.
void Messages::measure_gather(int ranks, std::int64_t count, MeasuredSamples& samples) {
  BufferPool pool(device_);
  const Buffer numbers = pool.take_f32(count);
  device_.kernels().fill(0, numbers.row());
  const std::span whole(reinterpret_cast<std::byte*>(numbers.row().data), static_cast<std::size_t>(bytes_of(count)));
  device_.wait();
  communicator_.barrier();
  const int first = communicator_.rank() / ranks * ranks;
  if (first + ranks > communicator_.size()) return;
  const std::size_t each = whole.size() / static_cast<std::size_t>(ranks);
  for (std::int64_t i = 0; i <= kMostPasses; ++i) {
    const double seconds = seconds_of(device_, [&] {
      for (int rank = 0; rank < ranks; ++rank)
        memory_->read(first + rank, 0, whole.subspan(static_cast<std::size_t>(rank) * each, each));
    });
    if (i > 0) samples.add({Operator::all_gather, Pass::forward, {ranks}, bytes_of(count), 0, 0}, seconds);
  }
}

void touch_messages(Communicator& communicator, kernels::Device& device) {
  MeasuredSamples untold;
  const std::unique_ptr<CommunicatorGroup> all = group_of(communicator.size(), communicator);
  for (const std::int64_t count : {std::int64_t{16}, kMebibyte}) {
    measure_message(count, communicator, device, untold);
    measure_sum(all.get(), communicator.size(), count, communicator, device, untold);
  }
}

}  // namespace braid::exec
