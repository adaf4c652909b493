#include <algorithm>

#include "base/error.h"
#include "exec/ranks/communicator.h"

namespace braid::exec {
namespace {

class LocalGroup final : public CommunicatorGroup {
 public:
  std::unique_ptr<Request> all_reduce(Numbers, const kernels::Event&) override {
    return std::make_unique<DoneRequest>();
  }
  std::unique_ptr<Request> all_gather(std::span<const double> mine, std::span<const int>,
                                      std::span<double> all) override {
    std::copy(mine.begin(), mine.end(), all.begin());
    return std::make_unique<DoneRequest>();
  }
};

class LocalMemory final : public SharedMemory {
 public:
  explicit LocalMemory(std::size_t bytes) : bytes_(bytes) {}
  std::span<std::byte> mine() override { return bytes_; }
  void publish() override {}
  void read(int rank, std::size_t first, std::span<std::byte> to) override {
    BRAID_CHECK(rank == 0 && first + to.size() <= bytes_.size(), "{} bytes from {} of rank {}", to.size(), first, rank);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(first), to.size(), to.begin());
  }

 private:
  std::vector<std::byte> bytes_;
};

class LocalCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  bool one_host() const override { return true; }
  std::unique_ptr<Request> send(Numbers, int, int, const kernels::Event&) override {
    throw InternalError("a single rank has nobody to send to");
  }
  std::unique_ptr<Request> receive(Numbers, int, int, const kernels::Event&) override {
    throw InternalError("a single rank has nobody to receive from");
  }
  std::unique_ptr<Request> send_bytes(std::string, int) override {
    throw InternalError("a single rank has nobody to send to");
  }
  std::string receive_bytes(int) override { throw InternalError("a single rank has nobody to receive from"); }
  std::unique_ptr<CommunicatorGroup> make_group(std::span<const int>) override {
    return std::make_unique<LocalGroup>();
  }
  std::unique_ptr<SharedMemory> share_memory(std::size_t bytes) override {
    return std::make_unique<LocalMemory>(bytes);
  }
  void sum(std::span<double>) override {}
  void barrier() override {}
  void broadcast(std::span<std::byte>) override {}
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes}; }
};

}  // namespace

std::unique_ptr<Communicator> make_local_communicator() {
  return std::make_unique<LocalCommunicator>();
}

}  // namespace braid::exec
