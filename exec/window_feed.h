#pragma once

#include <deque>
#include <future>
#include <optional>

#include "exec/ranks/communicator.h"
#include "planner/latency/launch_turns.h"
#include "planner/verify/verify.h"
#include "planner/window/program_stream.h"

namespace braid::exec {

/// A window as one rank runs it.
struct WindowPart {
  planner::Slice slice;             ///< on rank 0 all of it, elsewhere the rank's part (planner/window/slice_bytes.h)
  std::vector<std::int64_t> ahead;  ///< per channel: most_waiting_messages of the whole Program
  planner::StageTurns turns;        ///< of the rank's stage, where the plan has a profile
};

/// The windows of a run. Rank 0 alone lays them out and verifies them, on a thread of its own while the window before
/// runs, and sends each rank its part: so that ranks cannot disagree, and nobody waits for a plan. Of a plan that does
/// not drain parts are sent a window before they are asked for, as no rank is to wait for another between windows.
///
/// Every rank makes one, asks for the same windows, and says the same of tasks between two of them.
class WindowFeed {
 public:
  /// Windows [first, last) of the plan without the tasks that are `stopped`; turns are found by `profile`, where it has
  /// entries. What is referred to must outlive it.
  WindowFeed(const planner::FixedPlan& fixed, const planner::WindowInput& input, std::int64_t first, std::int64_t last,
             const costmodel::Profile& profile, Communicator& communicator);
  WindowFeed(const WindowFeed&) = delete;
  WindowFeed& operator=(const WindowFeed&) = delete;
  /// Waits until all that was sent has been taken, unless an exception unwinds.
  ~WindowFeed();

  /// The next window that has steps; nothing past the last. Throws on rank 0 what laying it out threw, InternalError
  /// where a window breaks a rule of `verify`.
  std::optional<WindowPart> next();

  /// Leaves a task out: of the next window on where the plan drains, else of those that are not laid out, up to two.
  void stop(planner::TaskIndex task);
  /// No more windows than those, likewise.
  void end();

 private:
  /// On rank 0.
  struct Laid {
    WindowPart part;
    std::vector<std::string> parts;  // of the other ranks, in order
  };
  using MaybeLaid = std::optional<Laid>;

  MaybeLaid lay_out();
  void begin_laying_out();
  MaybeLaid take();
  void send(const MaybeLaid& laid);
  std::optional<WindowPart> receive();

  const planner::FixedPlan& fixed_;
  Communicator& communicator_;
  bool streams_;
  // Of rank 0 alone:
  workload::SampleIndex samples_;  // a copy: an index is for one thread at a time
  planner::WindowInput input_;
  planner::VerifyContext rules_;
  std::optional<planner::LaunchTurns> turns_;
  std::int64_t last_;
  std::optional<planner::ProgramStream> stream_;
  std::future<MaybeLaid> laying_out_;
  MaybeLaid sent_;  // of a plan that does not drain: the window that comes next
  bool begun_ = false;
  std::vector<planner::TaskIndex> stopped_;  // since the last window was begun to be laid out
  bool ended_ = false;                       // likewise
  std::deque<std::unique_ptr<Request>> sending_;
};

}  // namespace braid::exec
