#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/device.h"

namespace braid::exec {

/// Numbers of a device's memory that ranks tell each other.
struct Numbers {
  void* data = nullptr;
  std::int64_t count = 0;
  costmodel::DataType type = costmodel::DataType::f32;  ///< or bf16

  std::size_t bytes() const { return static_cast<std::size_t>(count * costmodel::bytes_of(type)); }
};
inline Numbers numbers_of(std::span<float> floats) {
  return {floats.data(), std::ssize(floats)};
}

inline Numbers numbers_of(const kernels::Matrix& rows) {
  return {rows.data, rows.rows * rows.columns, rows.type};
}

/// Something under way between ranks. Its buffers must stay until it is done.
class Request {
 public:
  virtual ~Request() = default;
  /// True once it has ended; asking lets it go on.
  virtual bool done() = 0;
  /// When it ends, of what goes on in a stream of the device; null of what the host lets go on.
  virtual kernels::Event* event() { return nullptr; }
};

/// Of what has ended when it returns.
class DoneRequest final : public Request {
 public:
  bool done() override { return true; }
};

/// Some ranks that meet in collectives.
class CommunicatorGroup {
 public:
  virtual ~CommunicatorGroup() = default;
  /// Sums over the group in place; `after` as Communicator has it.
  virtual std::unique_ptr<Request> all_reduce(Numbers numbers, const kernels::Event& after) = 0;
  /// Everyone's numbers of the host in the order of ranks; `counts` are how many each gives.
  virtual std::unique_ptr<Request> all_gather(std::span<const double> mine, std::span<const int> counts,
                                              std::span<double> all) = 0;
};

/// Memory of every rank of a run that all of them read; of the ranks' devices where these tell each other their numbers
/// (Communicator::on_devices), else of the host.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  /// This rank's own.
  virtual std::span<std::byte> mine() = 0;
  /// All ranks call this alike: what each wrote until then, or called its device to write, is what the others read from
  /// then on.
  virtual void publish() = 0;
  /// Copies what any rank has from its byte `first` on. Asks nothing of that rank. By the host it has ended when this
  /// returns; devices copy in the order of calls.
  virtual void read(int rank, std::size_t first, std::span<std::byte> to) = 0;
  /// Bytes of other ranks that the system counts as this process's too, once all of them were read.
  virtual std::size_t mapped() const { return 0; }
};

/// How the ranks of a run talk. All of it starts something and returns; nothing blocks but `sum`, `barrier`, `gather`
/// and `receive_bytes`. What is told of a device's memory goes after the event `after`: whoever tells the host waits
/// for that first, and tells devices at once.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// One host: clocks agree.
  virtual bool one_host() const = 0;

  /// Whether devices tell each other their numbers.
  virtual bool on_devices() const { return false; }
  /// Messages will go from one rank to another under that tag. Called by all ranks of the run alike, before the first;
  /// again, it changes nothing.
  virtual void open_path(int /*from*/, int /*to*/, int /*tag*/) {}
  virtual std::unique_ptr<Request> send(Numbers numbers, int to, int tag, const kernels::Event& after) = 0;
  virtual std::unique_ptr<Request> receive(Numbers numbers, int from, int tag, const kernels::Event& after) = 0;
  /// Less than 2 GiB, which are kept until they are gone. What one rank sends another comes as it went.
  virtual std::unique_ptr<Request> send_bytes(std::string bytes, int to) = 0;
  /// The next of these, once they have come.
  virtual std::string receive_bytes(int from) = 0;
  /// Called by all ranks of the run alike, members or not; null for those that are not.
  virtual std::unique_ptr<CommunicatorGroup> make_group(std::span<const int> ranks) = 0;

  /// Whether ranks can share memory: devices of several hosts do not read each other's.
  virtual bool shares_memory() const { return true; }
  /// So many bytes of this rank; every rank says how many of its own. Called by all ranks of the run alike, and so
  /// destroyed.
  virtual std::unique_ptr<SharedMemory> share_memory(std::size_t bytes) = 0;

  virtual void sum(std::span<double> numbers) = 0;
  virtual void barrier() = 0;
  /// Rank 0's bytes on every rank.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  /// Every rank's bytes on rank 0, in order; empty elsewhere.
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;
};

/// Has the device compute after what `start` starts, which itself goes after all that was called on the device until
/// now. By the host it has ended when this returns.
void follow(const Communicator& communicator, kernels::Device& device,
            const std::function<std::unique_ptr<Request>(const kernels::Event& after)>& start);

/// The ranks of `control`, whose devices tell each other their numbers: `device` has groups. Both outlive it.
std::unique_ptr<Communicator> make_device_communicator(Communicator& control, kernels::Device& device);

/// A run of one rank, without MPI.
std::unique_ptr<Communicator> make_local_communicator();

/// All ranks that mpirun or srun started. Sets MPI up, and down again when it goes; at most one at a time.
std::unique_ptr<Communicator> make_mpi_communicator();

/// Ends every rank of the run with `status`: the others may wait for this one for ever. Returns when there is no MPI.
void abort_ranks(int status);

/// How many ranks mpirun or srun has started this process among; 0 when none has started it.
int launched_ranks();
/// Which of the ranks on its host this one is, from 0.
int local_rank();
/// "Open MPI v4.1.4", for profiles.
std::string mpi_version();

}  // namespace braid::exec
