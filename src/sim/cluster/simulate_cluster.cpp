#include "sim/cluster/simulate_cluster.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <queue>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "sim/cluster/run_meter.h"

namespace braid::sim {
namespace {

/// Relative error that adding up stretches of service may leave.
constexpr double kRounding = 1e-9, kManyRoundings = 1e-6;

/// Without a job that ends meanwhile.
constexpr std::int64_t kMostOutages = 1'000'000;

using InstanceIndex = std::int32_t;

/// Tasks on GPUs. All of them take their steps together, so that one clock of steps does for all: a task that joins
/// when it shows 10.5 and must do 100 more ends when it shows 110.5.
struct Instance {
  struct Member {
    JobIndex job = 0;
    double joined_steps = 0, end_steps = 0;  // of the clock
  };

  static constexpr std::int32_t kNoBackbone = -1;

  GpuSet gpus;
  std::int64_t gpu_count = 0;
  bool open = false;  // to others
  SetIndex set = TaskSets::kNone;
  std::vector<Member> members;
  std::int32_t backbone = kNoBackbone;  // that is loaded
  double load_seconds = 0;              // of that
  double steps = 0, at_seconds = 0;  // the clock shows `steps` at `at_seconds`, when it goes on where it stands still
  std::int32_t number = 0;           // of instances started
  std::uint32_t version = 0;         // of events of it

  double first_end_steps() const {
    double first = std::numeric_limits<double>::infinity();
    for (const Member& member : members) first = std::min(first, member.end_steps);
    return first;
  }
};

class ClusterSimulation final : public Cluster {
 public:
  ClusterSimulation(const std::vector<ClusterJob>& jobs, GpuPool pool, Scheduler& scheduler, TaskSets& sets,
                    const InstanceRules& rules)
      : jobs_(jobs),
        pool_(std::move(pool)),
        scheduler_(scheduler),
        sets_(sets),
        rules_(rules),
        outages_(rules.outages),
        choice_(sets, scheduler.joining()),
        states_(jobs.size()),
        audit_(rules.audit_seed),
        meter_(jobs.empty() ? 0 : jobs.front().submit_seconds, rules.usage_bin_seconds) {
    run_.outcomes.resize(jobs.size());
    if (outages_.next() != JobOutcome::kNever)
      owners_.assign(static_cast<std::size_t>(pool_.nodes() * pool_.gpus_per_node()), kNobody);
    for (const ClusterJob& job : jobs) least_gpus_ = std::min<std::int64_t>(least_gpus_, job.gpus);
  }

  ClusterRun run() {
    if (jobs_.empty()) return std::move(run_);
    run_.first_submit_seconds = now_ = jobs_.front().submit_seconds;
    const double horizon = now_ + rules_.horizon_seconds;
    while (is_unfinished()) {
      const double moment = next_moment();
      if (moment > horizon) {
        stop_at(horizon);
        break;
      }
      advance_to(moment);
      take_events();
      take_outages();
      take_submissions();
      scheduler_.decide(*this);
      give_up_idle();
    }
    check_served();
    run_.tokens = tokens_.done() - run_.lost_tokens;
    run_.sums = meter_.sums();
    run_.usage = meter_.usage();
    return std::move(run_);
  }

  double now() const override { return now_; }
  const std::vector<ClusterJob>& jobs() const override { return jobs_; }
  std::int64_t gpus() const override { return pool_.size(); }
  std::int64_t room_for(std::int64_t gpus) const override { return pool_.room_for(gpus); }
  double part_of_instance(JobIndex job) const override {
    return shares() ? 1.0 / sets_.most_of(jobs_[index(job)].kind, jobs_[index(job)].gpus) : 1;
  }
  std::int64_t free_gpus() const override { return pool_.free() + idle_gpus_; }
  bool fits(JobIndex job) override { return fits_alone(jobs_[index(job)].gpus) || (shares() && joins(job)); }
  bool fits_alone(std::int64_t gpus) const override {
    return pool_.fits(gpus) || idle_gpus_ >= gpus;  // idle instances are as large as all
  }
  const std::vector<std::int32_t>& sizes() const override { return sets_.sizes(); }
  double pace(JobIndex job, std::int32_t gpus) override {
    const SetIndex alone = sets_.alone(jobs_[index(job)].kind, gpus);
    return alone == TaskSets::kNone ? 0 : states_[index(job)].alone_seconds / sets_.step_seconds(alone);
  }
  std::int64_t gpus_of(JobIndex job) const override {
    return instances_[index(states_[index(job)].instance)].gpu_count;
  }
  const std::vector<JobIndex>& running() const override { return running_; }

  double attained_seconds(JobIndex job) const override {
    const State& state = states_[index(job)];
    double steps = state.steps;
    if (state.instance >= 0) steps += clock_of(instances_[index(state.instance)]) - state.joined_steps;
    return steps * state.alone_seconds;
  }
  double remaining_seconds(JobIndex job) const override {
    return jobs_[index(job)].service_seconds - attained_seconds(job);
  }
  double finish_seconds(JobIndex job) const override {
    const Instance& instance = instances_[index(states_[index(job)].instance)];
    for (const Instance::Member& member : instance.members) {
      if (member.job == job)
        return instance.at_seconds + (member.end_steps - instance.steps) * sets_.step_seconds(instance.set);
    }
    return JobOutcome::kNever;
  }

  void start(JobIndex job) override {
    const ClusterJob& asked = jobs_[index(job)];
    InstanceIndex place = kNobody;
    if (rules_.scales) place = scale_up_for(job);
    if (place == kNobody && shares()) place = choice_.best(asked.kind, asked.gpus, pool_.fits(asked.gpus));
    start_on(place < 0 ? new_instance(asked.gpus, shares()) : place, job);
  }
  void start_alone(JobIndex job, std::int64_t gpus) override {
    if (!pool_.fits(gpus)) give_up_idle();
    start_on(new_instance(gpus, false), job);
  }
  bool can_resize(JobIndex job, std::int64_t gpus) override {
    return pool_.fits_in_place_of(instances_[index(states_[index(job)].instance)].gpus, gpus);
  }
  void resize(JobIndex job, std::int64_t gpus) override {
    const InstanceIndex place = states_[index(job)].instance;
    BRAID_CHECK(place >= 0 && !instances_[index(place)].open, "job {} is not alone, and its GPUs are changed", job);
    leave(job);
    states_[index(job)].waits = true;
    ++waiting_;
    ++run_.resizes;
    start_on(new_instance(gpus, false), job);
  }

  void preempt(JobIndex job) override {
    State& state = states_[index(job)];
    BRAID_CHECK(state.instance >= 0, "job {} is preempted and does not run", job);
    leave(job);
    state.waits = true;
    ++waiting_;
    ++run_.outcomes[index(job)].preemptions;
  }

  void reject(JobIndex job) override {
    State& state = states_[index(job)];
    BRAID_CHECK(state.waits, "job {} is refused and does not wait", job);
    state.waits = false;
    --waiting_;
    run_.outcomes[index(job)].rejected = true;
  }

  void wake_at(double seconds) override {
    BRAID_CHECK(seconds >= now_, "a decision is asked for at {}, before {}", seconds, now_);
    events_.push({seconds, kNobody, 0});
  }

 private:
  static constexpr InstanceIndex kNobody = -1;

  struct State {
    double steps = 0;          // done in stretches that have ended
    double joined_steps = 0;   // of the instance's clock
    double since = 0;          // when the stretch under way began
    double alone_seconds = 1;  // of a step
    InstanceIndex instance = kNobody;
    std::int32_t place = -1;  // in running_
    bool waits = false;
  };
  struct Event {
    double time = 0;
    InstanceIndex instance = kNobody;
    std::uint32_t version = 0;
    /// The queue has the largest on top.
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : instance > other.instance;
    }
  };

  static std::size_t index(std::int32_t place) { return static_cast<std::size_t>(place); }
  bool shares() const { return sets_.shares(); }
  bool joins(JobIndex job) {
    const ClusterJob& asked = jobs_[index(job)];
    if (choice_.best(asked.kind, asked.gpus, false) != InstanceChoice::kNobody) return true;
    return rules_.scales && growable_for(job).place != kNobody;
  }

  bool is_unfinished() const {
    if (next_submission_ < jobs_.size() || !running_.empty()) return true;
    return waiting_ > 0 && (!events_.empty() || outages_.any_out());
  }

  double next_moment() const {
    double next = std::max(now_, outages_.next());  // those before the first submission last on
    if (next_submission_ < jobs_.size()) next = std::min(next, jobs_[next_submission_].submit_seconds);
    if (!events_.empty()) next = std::min(next, events_.top().time);
    return next;
  }

  void advance_to(double time) {
    BRAID_CHECK(time >= now_, "an event at {} lies before {}", time, now_);
    if (time == now_) return;
    const RunMeter::Levels levels{.allocated = pool_.size() - pool_.free(),
                                  .free = pool_.free(),
                                  .broken = pool_.broken(),
                                  .fragmented = pool_.fragmented(),
                                  .running = running_.size(),
                                  .waiting = waiting_,
                                  .is_full = pool_.free() < least_gpus_};
    meter_.advance(now_, time, levels, tokens_);
    now_ = time;
  }

  void take_events() {
    for (; !events_.empty() && events_.top().time == now_; events_.pop()) {
      const Event event = events_.top();
      if (event.instance == kNobody) continue;
      Instance& instance = instances_[index(event.instance)];
      if (instance.version != event.version) continue;  // tasks came or went meanwhile
      const double end_steps = instance.first_end_steps();
      ended_.clear();
      for (const Instance::Member& member : instance.members) {
        if (member.end_steps == end_steps) ended_.push_back(member.job);
      }
      std::sort(ended_.begin(), ended_.end());
      // At an end the clock shows that end, and not what rounding makes of it.
      anchor(instance, end_steps);
      for (const JobIndex job : ended_) {
        leave(job);
        JobOutcome& outcome = run_.outcomes[index(job)];
        outcome.finish_seconds = run_.end_seconds = now_;
        outages_since_end_ = 0;
        scheduler_.ended(*this, job);
      }
    }
  }

  void take_outages() {
    if (outages_.next() > now_) return;
    give_up_idle();
    const Outages::Changes changes = outages_.take(now_);
    run_.outages += changes.outages;
    outages_since_end_ += changes.outages;
    const std::size_t there = running_.size() + static_cast<std::size_t>(waiting_);
    if (outages_since_end_ > kMostOutages && there > 0)
      throw error("none of {} jobs ended during {} outages; let GPUs fail more seldom, or give a horizon", there,
                  outages_since_end_);
    for (const NodeGpus& gpus : changes.repaired) {
      pool_.repair(gpus);
      if (rules_.keeps_timeline) run_.breaks.push_back({now_, gpus, true});
    }
    for (const NodeGpus& gpus : changes.broken) {
      if (rules_.keeps_timeline) run_.breaks.push_back({now_, gpus, false});
      for (std::uint64_t left = gpus.gpus; left != 0; left &= left - 1) {
        const InstanceIndex owner = owner_of(gpus.node, std::countr_zero(left));
        if (owner != kNobody) interrupt(owner);
      }
      pool_.break_down(gpus);
    }
  }

  /// An instance loses GPUs: its tasks wait again with what the last checkpoint has of them. There is one whenever
  /// tasks join or leave, and one each time that so many seconds have passed.
  void interrupt(InstanceIndex place) {
    Instance& instance = instances_[index(place)];
    const double step = sets_.step_seconds(instance.set), shows = clock_of(instance);
    const double passed = std::max(0.0, now_ - instance.at_seconds);
    const double saved_seconds = std::floor(passed / rules_.checkpoint_seconds) * rules_.checkpoint_seconds;
    const double saved = std::min(shows, instance.steps + saved_seconds / step);
    anchor(instance, shows);
    const double lost_tokens = (shows - saved) * step * sets_.tokens_per_second(instance.set);
    run_.lost_tokens += lost_tokens;
    run_.lost_gpu_seconds += (shows - saved) * step * static_cast<double>(instance.gpu_count);
    meter_.lose(lost_tokens);
    for (const JobIndex job : vacate(place, saved)) {
      states_[index(job)].waits = true;
      ++waiting_;
      ++run_.outcomes[index(job)].restarts;
      scheduler_.interrupted(*this, job);
    }
    give_up_idle();
  }

  void stop_at(double horizon) {
    advance_to(horizon);
    while (!running_.empty()) {
      const InstanceIndex place = states_[index(running_.back())].instance;
      Instance& instance = instances_[index(place)];
      anchor(instance, clock_of(instance));
      vacate(place, instance.steps);
    }
    run_.end_seconds = horizon;
  }

  void take_submissions() {
    for (; next_submission_ < jobs_.size() && jobs_[next_submission_].submit_seconds == now_; ++next_submission_) {
      const auto job = static_cast<JobIndex>(next_submission_);
      const ClusterJob& submitted = jobs_[next_submission_];
      const bool is_small = pool_.could_fit(submitted.gpus);
      const SetIndex alone = is_small ? sets_.alone(submitted.kind, submitted.gpus) : TaskSets::kNone;
      if (alone == TaskSets::kNone) {
        run_.outcomes[next_submission_].rejected = true;
        continue;
      }
      states_[next_submission_].alone_seconds = sets_.step_seconds(alone);
      states_[next_submission_].waits = true;
      ++waiting_;
      scheduler_.submitted(*this, job);
    }
  }

  void start_on(InstanceIndex place, JobIndex job) {
    State& state = states_[index(job)];
    BRAID_CHECK(state.waits, "job {} is started and does not wait", job);
    Instance& instance = instances_[index(place)];
    if (instance.open && instance.members.empty()) idle_gpus_ -= instance.gpu_count;
    state.waits = false;
    state.instance = place;
    state.since = now_;
    const ClusterJob& asked = jobs_[index(job)];
    if (instance.members.empty()) load(instance, asked.kind);
    change_set(place, sets_.with_on(instance.set, asked.kind, instance.gpu_count), [&] {
      state.joined_steps = instance.steps;
      const double left = std::max(0.0, asked.service_seconds / state.alone_seconds - state.steps);
      instance.members.push_back({job, instance.steps, instance.steps + left});
    });
    state.place = static_cast<std::int32_t>(running_.size());
    running_.push_back(job);
    --waiting_;
    JobOutcome& outcome = run_.outcomes[index(job)];
    outcome.start_seconds = std::min(outcome.start_seconds, now_);
    outcome.instance = instance.number;
    outcome.gpus = instance.gpu_count;
    if (instance.members.size() > 1) {
      for (const Instance::Member& member : instance.members) run_.outcomes[index(member.job)].shared = true;
    }
  }

  InstanceIndex new_instance(std::int64_t gpus, bool open) {
    auto place = static_cast<InstanceIndex>(instances_.size());
    if (vacant_.empty()) {
      instances_.emplace_back();
    } else {
      place = vacant_.back();
      vacant_.pop_back();
    }
    Instance& instance = instances_[index(place)];
    instance.gpus = pool_.take(gpus);
    set_owner(instance, place);
    instance.gpu_count = gpus;
    instance.open = open;
    instance.set = sets_.empty(gpus);
    instance.backbone = Instance::kNoBackbone;
    instance.steps = 0;
    instance.at_seconds = now_;
    instance.number = static_cast<std::int32_t>(run_.instances++);
    if (open) {
      choice_.add(place, instance.set);
      idle_gpus_ += gpus;
    }
    return place;
  }

  void load(Instance& instance, KindIndex kind) {
    if (rules_.backbones.empty()) return;
    const InstanceRules::Backbone& wanted = rules_.backbones[static_cast<std::size_t>(kind)];
    if (instance.backbone == wanted.name) return;
    instance.backbone = wanted.name;
    instance.load_seconds = wanted.load_seconds;
    instance.at_seconds = now_ + wanted.load_seconds;
  }

  struct Growth {
    InstanceIndex place = kNobody;
    std::int64_t gpus = 0;
  };
  /// The first instance started of those that have fewer tasks than the largest has GPUs, and that can get as many GPUs
  /// as they would have tasks.
  Growth growable_for(JobIndex job) {
    for (const auto& [number, place] : growable_) {
      const Instance& instance = instances_[index(place)];
      const std::int64_t tasks = sets_.tasks(instance.set) + 1;
      const std::int64_t gpus = std::max<std::int64_t>(
          instance.gpu_count, *std::lower_bound(sets_.sizes().begin(), sets_.sizes().end(), tasks));
      if (gpus > instance.gpu_count && !pool_.fits_in_place_of(instance.gpus, gpus)) continue;
      if (sets_.with_on(instance.set, jobs_[index(job)].kind, gpus) != TaskSets::kNone) return {place, gpus};
    }
    return {};
  }

  InstanceIndex scale_up_for(JobIndex job) {
    const auto [place, gpus] = growable_for(job);
    if (place == kNobody) return place;
    Instance& instance = instances_[index(place)];
    if (gpus == instance.gpu_count) return place;
    set_owner(instance, kNobody);
    pool_.give(instance.gpus);
    instance.gpus = pool_.take(gpus);
    instance.gpu_count = gpus;
    set_owner(instance, place);
    ++run_.resizes;
    for (const Instance::Member& member : instance.members) run_.outcomes[index(member.job)].gpus = gpus;
    return place;
  }

  /// Where instances scale: whether another task makes it grow.
  void note_growable(InstanceIndex place) {
    if (!rules_.scales) return;
    const Instance& instance = instances_[index(place)];
    const std::int32_t tasks = sets_.tasks(instance.set);
    if (instance.open && tasks > 0 && tasks < sets_.sizes().back()) {
      growable_.emplace(instance.number, place);
    } else {
      growable_.erase({instance.number, place});
    }
  }

  void give_up(InstanceIndex place) {
    Instance& instance = instances_[index(place)];
    pool_.give(instance.gpus);
    set_owner(instance, kNobody);
    instance.gpus.clear();
    vacant_.push_back(place);
  }

  /// Those that nobody joined since their last task left.
  void give_up_idle() {
    for (const InstanceIndex place : emptied_) {
      Instance& instance = instances_[index(place)];
      if (instance.gpus.empty() || !instance.members.empty()) continue;
      choice_.remove(place, instance.set);
      idle_gpus_ -= instance.gpu_count;
      give_up(place);
    }
    emptied_.clear();
  }

  void leave(JobIndex job) {
    State& state = states_[index(job)];
    const InstanceIndex place = state.instance;
    Instance& instance = instances_[index(place)];
    change_set(place, sets_.without(instance.set, jobs_[index(job)].kind), [&] {
      const auto member = std::find_if(instance.members.begin(), instance.members.end(),
                                       [&](const Instance::Member& each) { return each.job == job; });
      state.steps += instance.steps - member->joined_steps;
      instance.members.erase(member);
    });
    out_of_service(job);
    if (instance.members.empty()) empty(place);
  }

  /// Everybody leaves, when the clock shows the present; their work is done as far as `steps` of it. Those who left.
  std::vector<JobIndex> vacate(InstanceIndex place, double steps) {
    Instance& instance = instances_[index(place)];
    std::vector<JobIndex> left;
    change_set(place, sets_.empty(instance.gpu_count), [&] {
      for (const Instance::Member& member : instance.members) {
        states_[index(member.job)].steps += steps - member.joined_steps;
        left.push_back(member.job);
      }
      instance.members.clear();
    });
    std::sort(left.begin(), left.end());
    for (const JobIndex job : left) out_of_service(job);
    empty(place);
    return left;
  }

  void out_of_service(JobIndex job) {
    State& state = states_[index(job)];
    JobOutcome& outcome = run_.outcomes[index(job)];
    if (rules_.keeps_timeline) {
      const Instance& instance = instances_[index(state.instance)];
      run_.stretches.push_back(
          {job, instance.number, instance.gpus.front().node, instance.gpu_count, state.since, now_});
    }
    outcome.run_seconds += now_ - state.since;
    outcome.steps = state.steps;
    const JobIndex last = running_.back();
    running_[index(state.place)] = last;
    states_[index(last)].place = state.place;
    running_.pop_back();
    state.place = -1;
    state.instance = kNobody;
  }

  /// Its last task has left.
  void empty(InstanceIndex place) {
    const Instance& instance = instances_[index(place)];
    if (instance.open && !rules_.scales) {
      idle_gpus_ += instance.gpu_count;
      emptied_.push_back(place);
    } else {
      if (instance.open) choice_.remove(place, instance.set);
      give_up(place);
    }
  }

  /// Kept where GPUs may fail.
  void set_owner(const Instance& instance, InstanceIndex owner) {
    if (owners_.empty()) return;
    for (const NodeGpus& part : instance.gpus) {
      for (std::uint64_t left = part.gpus; left != 0; left &= left - 1)
        owner_of(part.node, std::countr_zero(left)) = owner;
    }
  }
  InstanceIndex& owner_of(std::int32_t node, int gpu) {
    return owners_[static_cast<std::size_t>(node * pool_.gpus_per_node() + gpu)];
  }

  /// What an instance's clock shows now.
  double clock_of(const Instance& instance) const {
    if (instance.members.empty() || now_ <= instance.at_seconds) return instance.steps;
    const double passed = (now_ - instance.at_seconds) / sets_.step_seconds(instance.set);
    return std::min(instance.steps + passed, instance.first_end_steps());
  }

  void anchor(Instance& instance, double steps) {
    count_tokens(instance, -1);
    tokens_.add((steps - instance.steps) * sets_.tokens_per_second(instance.set) * sets_.step_seconds(instance.set));
    instance.steps = steps;
    instance.at_seconds = std::max(instance.at_seconds, now_);
    count_tokens(instance, 1);
  }

  /// `change` adds or removes a member when the clock shows the present.
  template <typename Change>
  void change_set(InstanceIndex place, SetIndex next, const Change& change) {
    Instance& instance = instances_[index(place)];
    BRAID_CHECK(next != TaskSets::kNone, "an instance is given a task that it cannot take");
    anchor(instance, clock_of(instance));
    count_tokens(instance, -1);
    const bool had_others = !instance.members.empty();
    change();
    if (had_others && !instance.members.empty()) {
      ++run_.replans;
      const bool moves = sets_.layout(instance.set) != sets_.layout(next);
      const double pause = rules_.replan_seconds + (moves ? instance.load_seconds : 0);
      instance.at_seconds = std::max(instance.at_seconds, now_ + pause);
    }
    if (instance.open) {
      choice_.remove(place, instance.set);
      choice_.add(place, next);
    }
    instance.set = next;
    note_growable(place);
    if (sets_.tasks(next) > 0 && audit_.next_uniform() < rules_.audited_share) run_.audited.push_back(next);
    ++instance.version;
    count_tokens(instance, 1);
    if (instance.members.empty()) return;
    const double left = std::max(0.0, instance.first_end_steps() - instance.steps);
    events_.push({instance.at_seconds + left * sets_.step_seconds(next), place, instance.version});
  }

  void count_tokens(const Instance& instance, int sign) {
    tokens_.add_rate(sign * sets_.tokens_per_second(instance.set), instance.at_seconds);
  }

  void check_served() const {
    double tokens = 0;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      const JobOutcome& outcome = run_.outcomes[j];
      tokens += outcome.steps * sets_.step_tokens(jobs_[j].kind);
      if (outcome.rejected) continue;
      const bool over = run_.end_seconds < run_.first_submit_seconds + rules_.horizon_seconds;
      BRAID_CHECK(outcome.finished() || !over, "the scheduler '{}' left job {} waiting", scheduler_.name(), j);
      BRAID_CHECK(outcome.start_seconds >= jobs_[j].submit_seconds, "job {} started before its submission", j);
      if (!outcome.finished()) continue;
      const double owed = jobs_[j].service_seconds, done = outcome.steps * states_[j].alone_seconds;
      BRAID_CHECK(std::abs(done - owed) <= kRounding * (owed + std::abs(outcome.finish_seconds)),
                  "job {} was served for {} s of {}", j, done, owed);
    }
    const double done = tokens_.done() - run_.lost_tokens;
    BRAID_CHECK(std::abs(done - tokens) <= kManyRoundings * (1 + tokens_.done()), "{} tokens done of {} owed", done,
                tokens);
  }

  const std::vector<ClusterJob>& jobs_;
  GpuPool pool_;
  Scheduler& scheduler_;
  TaskSets& sets_;
  const InstanceRules& rules_;
  Outages outages_;
  std::vector<InstanceIndex> owners_;  // per GPU, where GPUs may fail
  std::int64_t outages_since_end_ = 0;
  InstanceChoice choice_;
  std::vector<State> states_;
  std::vector<Instance> instances_;
  std::vector<InstanceIndex> vacant_, emptied_;
  std::set<std::pair<std::int32_t, InstanceIndex>> growable_;  // by number
  std::priority_queue<Event> events_;
  std::vector<JobIndex> running_, ended_;
  std::size_t next_submission_ = 0;
  std::int64_t waiting_ = 0, idle_gpus_ = 0, least_gpus_ = std::numeric_limits<std::int64_t>::max();
  double now_ = 0;
  RandomStream audit_;
  TokenMeter tokens_;
  RunMeter meter_;
  ClusterRun run_;
};

}  // namespace

ClusterRun simulate_cluster(const std::vector<ClusterJob>& jobs, GpuPool pool, Scheduler& scheduler, TaskSets& sets,
                            const InstanceRules& rules) {
  return ClusterSimulation(jobs, std::move(pool), scheduler, sets, rules).run();
}

}  // namespace braid::sim
