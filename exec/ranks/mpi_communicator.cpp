// The deprecated C++ bindings do not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <limits>

#include <mpi.h>

#include "base/error.h"
#include "exec/data_type.h"
#include "exec/ranks/communicator.h"

namespace braid::exec {
namespace {

class MpiRequest final : public Request {
 public:
  MPI_Request* handle() { return &request_; }
  bool done() override {
    int flag = 1;
    if (request_ != MPI_REQUEST_NULL) MPI_Test(&request_, &flag, MPI_STATUS_IGNORE);
    return flag != 0;
  }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
};

/// With what it sends.
class MpiBytesRequest final : public Request {
 public:
  MpiBytesRequest(std::string bytes, int to, MPI_Comm communicator) : bytes_(std::move(bytes)) {
    BRAID_CHECK(bytes_.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()),
                "{} bytes are too many for one message", bytes_.size());
    MPI_Isend(bytes_.data(), static_cast<int>(bytes_.size()), MPI_BYTE, to, 0, communicator, request_.handle());
  }
  bool done() override { return request_.done(); }

 private:
  std::string bytes_;
  MpiRequest request_;
};

MPI_Datatype type_of(const Numbers& numbers) {
  return numbers.type == costmodel::DataType::bf16 ? MPI_UINT16_T : MPI_FLOAT;
}

void add_bf16(void* in, void* in_out, int* count, MPI_Datatype*) {
  const auto* from = static_cast<const std::uint16_t*>(in);
  auto* to = static_cast<std::uint16_t*>(in_out);
  for (int i = 0; i < *count; ++i) to[i] = bf16_from_f32(f32_from_bf16(to[i]) + f32_from_bf16(from[i]));
}

/// Sums numbers that MPI does not know. Goes with MPI itself.
MPI_Op bf16_sum() {
  static const MPI_Op sum = [] {
    MPI_Op made = MPI_OP_NULL;
    MPI_Op_create(&add_bf16, 1, &made);
    return made;
  }();
  return sum;
}

class MpiGroup final : public CommunicatorGroup {
 public:
  explicit MpiGroup(MPI_Comm communicator) : communicator_(communicator) {}
  ~MpiGroup() override { MPI_Comm_free(&communicator_); }

  std::unique_ptr<Request> all_reduce(Numbers numbers, const kernels::Event&) override {
    auto request = std::make_unique<MpiRequest>();
    const bool halves = numbers.type == costmodel::DataType::bf16;
    MPI_Iallreduce(MPI_IN_PLACE, numbers.data, static_cast<int>(numbers.count), halves ? MPI_UINT16_T : MPI_FLOAT,
                   halves ? bf16_sum() : MPI_SUM, communicator_, request->handle());
    return request;
  }

  std::unique_ptr<Request> all_gather(std::span<const double> mine, std::span<const int> counts,
                                      std::span<double> all) override {
    auto request = std::make_unique<MpiRequest>();
    counts_.assign(counts.begin(), counts.end());
    offsets_.assign(counts.size(), 0);
    for (std::size_t i = 1; i < counts.size(); ++i) offsets_[i] = offsets_[i - 1] + counts[i - 1];
    MPI_Iallgatherv(mine.data(), static_cast<int>(mine.size()), MPI_DOUBLE, all.data(), counts_.data(), offsets_.data(),
                    MPI_DOUBLE, communicator_, request->handle());
    return request;
  }

 private:
  MPI_Comm communicator_;
  // MPI reads these until the gather ends; every gather of a group has the same.
  std::vector<int> counts_, offsets_;
};

/// On one host ranks read each other's memory themselves; else MPI fetches it, whatever its owner does.
class MpiMemory final : public SharedMemory {
 public:
  MpiMemory(std::size_t bytes, bool one_host) : bytes_(bytes), one_host_(one_host) {
    const auto size = static_cast<MPI_Aint>(bytes);
    if (one_host) {
      MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_, &window_);
    } else {
      MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_, &window_);
    }
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    std::uint64_t all = bytes;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (one_host) mapped_ = static_cast<std::size_t>(all) - bytes;
  }
  ~MpiMemory() override {
    if (std::uncaught_exceptions() > 0) return;  // the others may never come here
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  std::span<std::byte> mine() override { return {memory_, bytes_}; }
  std::size_t mapped() const override { return mapped_; }
  void publish() override {
    MPI_Win_sync(window_);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window_);
  }

  void read(int rank, std::size_t first, std::span<std::byte> to) override {
    if (one_host_) {
      MPI_Aint size = 0;
      int unit = 0;
      std::byte* theirs = nullptr;
      MPI_Win_shared_query(window_, rank, &size, &unit, &theirs);
      std::copy_n(theirs + first, to.size(), to.begin());
      return;
    }
    constexpr std::size_t kMost = std::size_t{1} << 30;  // of one fetch
    for (std::size_t from = 0; from < to.size(); from += kMost) {
      const int count = static_cast<int>(std::min(kMost, to.size() - from));
      MPI_Get(to.data() + from, count, MPI_BYTE, rank, static_cast<MPI_Aint>(first + from), count, MPI_BYTE, window_);
    }
    MPI_Win_flush(rank, window_);
  }

 private:
  std::size_t bytes_, mapped_ = 0;
  bool one_host_;
  std::byte* memory_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm host = MPI_COMM_NULL;
    int here = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &here);
    MPI_Comm_free(&host);
    int fewest = 0;
    MPI_Allreduce(&here, &fewest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    one_host_ = fewest == size_;
    MPI_Comm_dup(MPI_COMM_WORLD, &bytes_);
  }
  ~MpiCommunicator() override {
    // While an exception unwinds the others may wait for this rank for ever, and MPI_Finalize for them; whoever catches
    // it tells what happened, and ends them with abort_ranks.
    if (std::uncaught_exceptions() > 0) return;
    MPI_Comm_free(&bytes_);
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool one_host() const override { return one_host_; }

  std::unique_ptr<Request> send(Numbers numbers, int to, int tag, const kernels::Event&) override {
    auto request = std::make_unique<MpiRequest>();
    MPI_Isend(numbers.data, static_cast<int>(numbers.count), type_of(numbers), to, tag, MPI_COMM_WORLD,
              request->handle());
    return request;
  }

  std::unique_ptr<Request> receive(Numbers numbers, int from, int tag, const kernels::Event&) override {
    auto request = std::make_unique<MpiRequest>();
    MPI_Irecv(numbers.data, static_cast<int>(numbers.count), type_of(numbers), from, tag, MPI_COMM_WORLD,
              request->handle());
    return request;
  }

  std::unique_ptr<Request> send_bytes(std::string bytes, int to) override {
    return std::make_unique<MpiBytesRequest>(std::move(bytes), to, bytes_);
  }

  std::string receive_bytes(int from) override {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Mprobe(from, 0, bytes_, &message, &status);
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    std::string bytes(static_cast<std::size_t>(count), '\0');
    MPI_Mrecv(bytes.data(), count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    return bytes;
  }

  std::unique_ptr<CommunicatorGroup> make_group(std::span<const int> ranks) override {
    bool member = false;
    for (const int rank : ranks) member |= rank == rank_;
    MPI_Comm communicator = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, member ? 0 : MPI_UNDEFINED, rank_, &communicator);
    if (!member) return nullptr;
    return std::make_unique<MpiGroup>(communicator);
  }

  std::unique_ptr<SharedMemory> share_memory(std::size_t bytes) override {
    return std::make_unique<MpiMemory>(bytes, one_host_);
  }

  void sum(std::span<double> numbers) override {
    MPI_Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void broadcast(std::span<std::byte> bytes) override {
    MPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  }

  std::vector<std::string> gather(const std::string& bytes) override {
    const int mine = static_cast<int>(bytes.size());
    std::vector<int> sizes(static_cast<std::size_t>(size_)), offsets(static_cast<std::size_t>(size_));
    MPI_Gather(&mine, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
    int total = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      offsets[i] = total;
      total += sizes[i];
    }
    std::string all(rank_ == 0 ? static_cast<std::size_t>(total) : 0, '\0');
    MPI_Gatherv(bytes.data(), mine, MPI_CHAR, all.data(), sizes.data(), offsets.data(), MPI_CHAR, 0, MPI_COMM_WORLD);
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < sizes.size() && rank_ == 0; ++i)
      parts.push_back(all.substr(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(sizes[i])));
    return parts;
  }

 private:
  int rank_ = 0;
  int size_ = 1;
  bool one_host_ = true;
  MPI_Comm bytes_ = MPI_COMM_NULL;  // of send_bytes alone
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator() {
  return std::make_unique<MpiCommunicator>();
}

void abort_ranks(int status) {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized != 0 && finalized == 0) MPI_Abort(MPI_COMM_WORLD, status);
}

int launched_ranks() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    // SLURM_NTASKS also stands in the environment of a batch script, which is no rank.
    if (std::string(variable) == "SLURM_NTASKS" && !std::getenv("SLURM_PROCID")) continue;
    if (const char* value = std::getenv(variable)) return std::max(1, std::atoi(value));
  }
  return 0;
}

int local_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    if (const char* value = std::getenv(variable)) return std::max(0, std::atoi(value));
  }
  return 0;
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<std::size_t>(length));
  return version.substr(0, version.find(','));
}

}  // namespace braid::exec
