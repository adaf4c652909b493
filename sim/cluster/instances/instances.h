#pragma once

#include <queue>
#include <set>
#include <span>
#include <vector>

#include "base/random.h"
#include "sim/cluster/gpu_pool.h"
#include "sim/cluster/instances/instance_choice.h"
#include "sim/cluster/instances/instance_rules.h"
#include "sim/cluster/run_meter.h"

namespace braid::sim {

/// Place in Instances. That of an instance given up goes to a later one.
using InstanceIndex = std::int32_t;

/// Tasks on GPUs. All of them take their steps together, so that one clock of steps does for all: a task that joins
/// when it shows 10.5 and must do 100 more ends when it shows 110.5.
struct Instance {
  struct Member {
    JobIndex job = 0;
    KindIndex kind = 0;
    double end_steps = 0;  ///< of the clock
  };

  static constexpr std::int32_t kNoBackbone = -1;

  GpuSet gpus;
  std::int64_t gpu_count = 0;
  bool open = false;  ///< to others
  SetIndex set = TaskSets::kNone;
  std::vector<Member> members;
  std::int32_t backbone = kNoBackbone;  ///< that is loaded
  double load_seconds = 0;              ///< of that
  /// The clock shows `steps` at `at_seconds`, when it goes on where it stands still.
  double steps = 0, at_seconds = 0;
  std::int32_t number = 0;    ///< of instances started
  std::uint32_t version = 0;  ///< of its next end

  /// Infinity where it has no members.
  double first_end_steps() const;
};

/// A cluster's instances and the GPUs they are on: which tasks are on which, how far they are, and when they end.
///
/// A task is a job, its kind and the steps it must do; what becomes of jobs is the caller's to keep. Moments are in
/// seconds, and `now` is never less than in a call before. An open instance whose last task has left is idle until a
/// task joins or give_up_idle(); one that scales, or that is not open, is given up at once. A GPU given twice and a
/// task that an instance cannot take are internal errors.
/// Cost: O(log instances + tasks of an instance) a change, besides the estimates' own; where instances scale, O(those
/// that may grow) a place.
class Instances {
 public:
  static constexpr InstanceIndex kNobody = InstanceChoice::kNobody;

  /// Keeps `sets` and `rules`.
  Instances(GpuPool pool, TaskSets& sets, Joining joining, const InstanceRules& rules);

  const Instance& operator[](InstanceIndex place) const { return instances_[static_cast<std::size_t>(place)]; }
  const GpuPool& pool() const { return pool_; }
  /// Those of idle instances among them.
  std::int64_t free_gpus() const { return pool_.free() + idle_gpus_; }

  /// Whether so many GPUs can be had that no task is on.
  bool fits_alone(std::int64_t gpus) const {
    return pool_.fits(gpus) || idle_gpus_ >= gpus;  // idle instances are as large as all
  }
  /// Whether a task can be placed that asks for so many, with others or alone.
  bool fits(KindIndex kind, std::int64_t gpus);
  /// Whether so many would fit if the instance gave its own back.
  bool fits_in_place_of(InstanceIndex place, std::int64_t gpus) {
    return pool_.fits_in_place_of((*this)[place].gpus, gpus);
  }

  /// The instance that a task joins which asks for so many GPUs: one that is there, grown for it where instances scale,
  /// or a new one. The task must fit, and join before anything else is asked.
  InstanceIndex place_for(KindIndex kind, std::int64_t gpus, double now);
  /// A new instance of so many GPUs for one task, which must join as well.
  InstanceIndex start_alone(std::int64_t gpus, double now);
  /// Those that nobody joined since their last task left.
  void give_up_idle();

  /// A task with so many steps to do joins; returns what the clock shows.
  double join(InstanceIndex place, JobIndex job, KindIndex kind, double steps, double now);
  void leave(InstanceIndex place, JobIndex job, double now);
  /// All of them leave.
  void vacate(InstanceIndex place, double now);

  /// What an instance's clock shows.
  double clock(InstanceIndex place, double now) const;
  /// What it showed at the last checkpoint. There is one whenever tasks join or leave, and one each time that the
  /// instance has run for rules.checkpoint_seconds since.
  double saved_steps(InstanceIndex place, double now) const;
  /// When a task ends if nothing changes on its instance.
  double end_seconds(InstanceIndex place, JobIndex job) const;
  /// When tasks may next end: none do where others have come or gone since. Infinity when nothing is to come.
  double next_end() const;
  /// The jobs of one instance whose tasks end now, ascending, until the next call; all of them must leave before it.
  /// None when no more end now.
  std::span<const JobIndex> take_ended(double now);

  /// An instance that has some of these GPUs, kNobody when none has. Known where the rules have outages.
  InstanceIndex owner_of(const NodeGpus& gpus) const;
  /// Takes GPUs that nobody has out of service, and brings them back.
  void break_down(const NodeGpus& gpus) { pool_.break_down(gpus); }
  void repair(const NodeGpus& gpus) { pool_.repair(gpus); }

  /// Billed on all of them.
  const TokenMeter& tokens() const { return tokens_; }
  TokenMeter& tokens() { return tokens_; }
  struct Totals {
    std::int64_t started = 0;
    std::int64_t replans = 0;       ///< tasks that joined or left others
    std::int64_t growths = 0;       ///< of instances that scale
    double busy_gpu_seconds = 0;    ///< computing, until each instance's set last changed
    std::vector<SetIndex> audited;  ///< drawn from the sets that they changed to, as often as drawn
  };
  const Totals& totals() const { return totals_; }

 private:
  struct End {
    double time = 0;
    InstanceIndex instance = kNobody;
    std::uint32_t version = 0;
    /// The queue has the largest on top.
    bool operator<(const End& other) const {
      return time != other.time ? time > other.time : instance > other.instance;
    }
  };
  struct Growth {
    InstanceIndex place = kNobody;
    std::int64_t gpus = 0;
  };

  Instance& at(InstanceIndex place) { return instances_[static_cast<std::size_t>(place)]; }
  Growth growth_for(KindIndex kind);
  InstanceIndex grow_for(KindIndex kind);
  void note_growable(InstanceIndex place);
  InstanceIndex start(std::int64_t gpus, bool open, double now);
  void load(Instance& instance, KindIndex kind, double now);
  void empty(InstanceIndex place);
  void give_up(InstanceIndex place);
  void fetch_next() const;
  void take_gpus(InstanceIndex place, std::int64_t gpus);
  void give_gpus(InstanceIndex place);
  void set_owner(const GpuSet& gpus, InstanceIndex owner);
  std::size_t gpu_index(std::int32_t node, int gpu) const {
    return static_cast<std::size_t>(node * pool_.gpus_per_node() + gpu);
  }
  void anchor(Instance& instance, double steps, double now);
  template <typename Change>
  void change_set(InstanceIndex place, SetIndex next, double now, const Change& change);
  void count_tokens(const Instance& instance, int sign);

  GpuPool pool_;
  TaskSets& sets_;
  const InstanceRules& rules_;
  InstanceChoice choice_;
  std::vector<Instance> instances_;
  std::vector<InstanceIndex> vacant_, emptied_;
  std::vector<InstanceIndex> owners_;                          // per GPU, where GPUs may fail
  std::set<std::pair<std::int32_t, InstanceIndex>> growable_;  // by number
  std::priority_queue<End> ends_;
  std::vector<JobIndex> ended_;
  std::int64_t idle_gpus_ = 0;
  RandomStream audit_;
  TokenMeter tokens_;
  Totals totals_;
};

}  // namespace braid::sim
