#include "planner/milp/solve.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "planner/milp/cbc.h"

namespace braid::planner::milp {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_until(Clock::time_point end) {
  return std::chrono::duration<double>(end - Clock::now()).count();
}

/// What the solving process says: a record for each solution that it finds, and one when it ends.
struct Record {
  enum class Kind : std::int32_t { solution, ended };
  Kind kind = Kind::solution;
  Ended ended = Ended::nodes;
  double bound = -kInfinity;
};

bool write_all(int file, const void* data, std::size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(file, bytes, size);
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

/// In the process of its own: silent, and never back.
[[noreturn]] void solve_and_tell(const Model& model, const Limits& limits, std::span<const double> start, int to) {
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  const auto tell = [&](std::span<const double> values) {
    const Record record{Record::Kind::solution, Ended::nodes, -kInfinity};
    write_all(to, &record, sizeof record);
    write_all(to, values.data(), values.size_bytes());
  };
  Record last;
  last.kind = Record::Kind::ended;
  try {
    const CbcOutcome outcome = run_cbc(model, limits, start, tell);
    last.ended = outcome.ended;
    last.bound = outcome.bound;
    write_all(to, &last, sizeof last);
  } catch (...) {
    // CBC throws where memory or its own numbers fail; what it told before is kept, as when it is killed.
  }
  ::_exit(0);
}

/// Reads what comes until the end or the deadline; false where nothing comes in time.
class Listener {
 public:
  Listener(int from, Clock::time_point deadline) : from_(from), deadline_(deadline) {}

  bool read(void* data, std::size_t size) {
    char* bytes = static_cast<char*>(data);
    while (size > 0) {
      pollfd waiting{from_, POLLIN, 0};
      const double left = seconds_until(deadline_);
      if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(std::ceil(left * 1000))) <= 0) return false;
      const ssize_t got = ::read(from_, bytes, size);
      if (got <= 0) return false;
      bytes += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  int from_;
  Clock::time_point deadline_;
};

/// Whole numbers are rounded, as a solver's are so to its tolerance only; nothing where the values do not hold then.
std::optional<std::vector<double>> checked(const Model& model, std::vector<double> values) {
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (model.variables()[v].integer) values[v] = std::round(values[v]);
  }
  if (!model.holds(values)) return std::nullopt;
  return values;
}

}  // namespace

Solution solve(const Model& model, const Limits& limits, std::span<const double> start) {
  Solution best;
  const auto take = [&](std::vector<double> values) {
    std::optional<std::vector<double>> whole = checked(model, std::move(values));
    if (!whole) return;
    const double cost = model.cost_of(*whole);
    if (best.found() && cost >= best.cost) return;
    best.values = std::move(*whole);
    best.cost = cost;
  };
  if (!start.empty()) take({start.begin(), start.end()});
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw error("no pipe to a solving process: {}", std::strerror(errno));
  const pid_t process = ::fork();
  if (process < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw error("no process to solve {} in: {}", model.name(), std::strerror(errno));
  }
  if (process == 0) solve_and_tell(model, limits, best.values, ends[1]);
  ::close(ends[1]);
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.seconds));
  Listener listener(ends[0], deadline);
  best.ended = Ended::seconds;
  for (Record record; listener.read(&record, sizeof record);) {
    if (record.kind == Record::Kind::ended) {
      best.ended = record.ended;
      best.bound = record.bound;
      break;
    }
    std::vector<double> values(model.variables().size());
    if (!listener.read(values.data(), values.size() * sizeof(double))) break;
    take(std::move(values));
  }
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  ::close(ends[0]);
  // With a start CBC asks for what is better, and finds that there is none.
  if (best.ended == Ended::infeasible && best.found()) {
    best.ended = Ended::proven;
    best.bound = best.cost;
  }
  if (best.ended == Ended::proven) best.bound = std::min(best.bound, best.cost);
  return best;
}

}  // namespace braid::planner::milp
