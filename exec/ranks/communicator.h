#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace braid::exec {

/// Something under way between ranks. Its buffers must stay until it is done.
class Request {
 public:
  virtual ~Request() = default;
  /// True once it has ended; asking lets it go on.
  virtual bool done() = 0;
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
  /// Sums over the group in place.
  virtual std::unique_ptr<Request> all_reduce(std::span<float> numbers) = 0;
  /// Everyone's numbers in the order of ranks; `counts` are how many each gives.
  virtual std::unique_ptr<Request> all_gather(std::span<const double> mine, std::span<const int> counts,
                                              std::span<double> all) = 0;
};

/// Memory of every rank of a run that all of them read.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  /// This rank's own.
  virtual std::span<std::byte> mine() = 0;
  /// All ranks call this alike: what each wrote until then is what the others read from then on.
  virtual void publish() = 0;
  /// Copies what another rank has from its byte `first` on. Asks nothing of that rank.
  virtual void read(int rank, std::size_t first, std::span<std::byte> to) = 0;
  /// Bytes of other ranks that the system counts as this process's too, once all of them were read.
  virtual std::size_t mapped() const { return 0; }
};

/// How the ranks of a run talk. All of it starts something and returns; nothing blocks but `sum`, `barrier`,
/// `gather` and `receive_bytes`.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// One host: clocks agree.
  virtual bool one_host() const = 0;

  virtual std::unique_ptr<Request> send(std::span<const float> numbers, int to, int tag) = 0;
  virtual std::unique_ptr<Request> receive(std::span<float> numbers, int from, int tag) = 0;
  /// Less than 2 GiB, which are kept until they are gone. What one rank sends another comes as it went.
  virtual std::unique_ptr<Request> send_bytes(std::string bytes, int to) = 0;
  /// The next of these, once they have come.
  virtual std::string receive_bytes(int from) = 0;
  /// Called by all ranks of the run alike, members or not; null for those that are not.
  virtual std::unique_ptr<CommunicatorGroup> make_group(std::span<const int> ranks) = 0;

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
