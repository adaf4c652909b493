#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "exec/ranks/communicator.h"

namespace braid::exec {
namespace {

class EventRequest final : public Request {
 public:
  explicit EventRequest(std::unique_ptr<kernels::Event> event) : event_(std::move(event)) {}
  bool done() override { return event_->ended().has_value(); }
  kernels::Event* event() override { return event_.get(); }

 private:
  std::unique_ptr<kernels::Event> event_;
};

/// Of whose members the devices meet, and the hosts.
class GroupOfDevices final : public CommunicatorGroup {
 public:
  GroupOfDevices(std::unique_ptr<CommunicatorGroup> hosts, std::unique_ptr<kernels::DeviceGroup> devices)
      : hosts_(std::move(hosts)), devices_(std::move(devices)) {}
  std::unique_ptr<Request> all_reduce(Numbers numbers, const kernels::Event& after) override {
    return std::make_unique<EventRequest>(devices_->all_reduce(numbers.data, numbers.count, numbers.type, after));
  }
  std::unique_ptr<Request> all_gather(std::span<const double> mine, std::span<const int> counts,
                                      std::span<double> all) override {
    return hosts_->all_gather(mine, counts, all);
  }

 private:
  std::unique_ptr<CommunicatorGroup> hosts_;
  std::unique_ptr<kernels::DeviceGroup> devices_;
};

/// Rank 0's, on every rank.
void broadcast_text(Communicator& ranks, std::string& text) {
  auto size = std::ssize(text);
  ranks.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  text.resize(static_cast<std::size_t>(size));
  ranks.broadcast(std::as_writable_bytes(std::span(text)));
}

/// Text of every rank, on all of them.
std::vector<std::string> tell_all(Communicator& ranks, const std::string& mine) {
  std::vector<std::string> all = ranks.gather(mine);
  all.resize(static_cast<std::size_t>(ranks.size()));
  for (std::string& one : all) broadcast_text(ranks, one);
  return all;
}

/// Each rank's on its own device, which the others' devices read.
class MemoryOfDevices final : public SharedMemory {
 public:
  MemoryOfDevices(Communicator& control, kernels::Device& device, std::size_t bytes)
      : control_(control),
        device_(device),
        bytes_(bytes),
        mine_(device.allocate(std::max<Bytes>(1, static_cast<Bytes>(bytes))),
              [&device](void* memory) { device.free(memory); }) {
    if (!control.one_host())
      throw error(
          "the devices of several hosts do not read each other's memory, as weights in shares need; "
          "plan with a policy that does not shard weights, or run on one host");
    const std::vector<std::string> names = tell_all(control, device.name_memory(mine_.get()));
    for (int rank = 0; rank < control.size(); ++rank)
      all_.push_back(rank == control.rank() ? mine_ : device.open_memory(names[static_cast<std::size_t>(rank)]));
  }
  /// Nobody's memory goes while others read it, unless the run ends by an error.
  ~MemoryOfDevices() override {
    if (std::uncaught_exceptions() > 0) return;
    device_.wait();
    all_.clear();
    control_.barrier();
  }

  std::span<std::byte> mine() override { return {static_cast<std::byte*>(mine_.get()), bytes_}; }
  void publish() override {
    device_.wait();
    control_.barrier();
  }
  void read(int rank, std::size_t first, std::span<std::byte> to) override {
    const auto* from = static_cast<const std::byte*>(all_[static_cast<std::size_t>(rank)].get());
    device_.copy(from + first, to.data(), std::ssize(to));
  }

 private:
  Communicator& control_;
  kernels::Device& device_;
  std::size_t bytes_;
  std::shared_ptr<void> mine_;
  std::vector<std::shared_ptr<const void>> all_;  // by rank
};

/// A path is a group of two, so that messages of one wait for those of no other.
class DeviceCommunicator final : public Communicator {
 public:
  DeviceCommunicator(Communicator& control, kernels::Device& device) : control_(control), device_(device) {}

  int rank() const override { return control_.rank(); }
  int size() const override { return control_.size(); }
  bool one_host() const override { return control_.one_host(); }
  bool on_devices() const override { return true; }

  void open_path(int from, int to, int tag) override {
    BRAID_CHECK(from != to, "a path from rank {} to itself", from);
    if (!opened_.insert({from, to, tag}).second) return;
    const std::string name = shared_name();
    if (rank() == from || rank() == to) paths_[{from, to, tag}] = device_.join_group(name, 2, rank() == from ? 0 : 1);
  }
  std::unique_ptr<Request> send(Numbers numbers, int to, int tag, const kernels::Event& after) override {
    return std::make_unique<EventRequest>(
        path(rank(), to, tag).send(numbers.data, static_cast<Bytes>(numbers.bytes()), 1, after));
  }
  std::unique_ptr<Request> receive(Numbers numbers, int from, int tag, const kernels::Event& after) override {
    return std::make_unique<EventRequest>(
        path(from, rank(), tag).receive(numbers.data, static_cast<Bytes>(numbers.bytes()), 0, after));
  }
  std::unique_ptr<Request> send_bytes(std::string bytes, int to) override {
    return control_.send_bytes(std::move(bytes), to);
  }
  std::string receive_bytes(int from) override { return control_.receive_bytes(from); }

  std::unique_ptr<CommunicatorGroup> make_group(std::span<const int> ranks) override {
    std::unique_ptr<CommunicatorGroup> hosts = control_.make_group(ranks);
    const std::string name = shared_name();
    std::vector<int> members(ranks.begin(), ranks.end());
    std::sort(members.begin(), members.end());
    const auto place = std::find(members.begin(), members.end(), rank());
    if (place == members.end()) return nullptr;
    return std::make_unique<GroupOfDevices>(
        std::move(hosts),
        device_.join_group(name, static_cast<int>(members.size()), static_cast<int>(place - members.begin())));
  }

  bool shares_memory() const override { return control_.one_host(); }
  std::unique_ptr<SharedMemory> share_memory(std::size_t bytes) override {
    return std::make_unique<MemoryOfDevices>(control_, device_, bytes);
  }
  void sum(std::span<double> numbers) override { control_.sum(numbers); }
  void barrier() override { control_.barrier(); }
  void broadcast(std::span<std::byte> bytes) override { control_.broadcast(bytes); }
  std::vector<std::string> gather(const std::string& bytes) override { return control_.gather(bytes); }

 private:
  /// Rank 0's, on every rank.
  std::string shared_name() {
    std::string name = rank() == 0 ? device_.name_group() : "";
    broadcast_text(control_, name);
    return name;
  }
  kernels::DeviceGroup& path(int from, int to, int tag) {
    const auto found = paths_.find({from, to, tag});
    BRAID_CHECK(found != paths_.end(), "no path from rank {} to rank {} under tag {}", from, to, tag);
    return *found->second;
  }

  Communicator& control_;
  kernels::Device& device_;
  std::set<std::tuple<int, int, int>> opened_;  // from, to, tag; of any ranks
  std::map<std::tuple<int, int, int>, std::unique_ptr<kernels::DeviceGroup>> paths_;
};

}  // namespace

std::unique_ptr<Communicator> make_device_communicator(Communicator& control, kernels::Device& device) {
  return std::make_unique<DeviceCommunicator>(control, device);
}

void follow(const Communicator& communicator, kernels::Device& device,
            const std::function<std::unique_ptr<Request>(const kernels::Event& after)>& start) {
  const std::unique_ptr<kernels::Event> now = device.record();
  if (!communicator.on_devices()) device.wait();
  const std::unique_ptr<Request> request = start(*now);
  if (kernels::Event* const event = request->event()) return device.follow(*event);
  while (!request->done()) std::this_thread::yield();
}

}  // namespace braid::exec
