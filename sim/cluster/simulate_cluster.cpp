#include "sim/cluster/simulate_cluster.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "base/error.h"
#include "sim/cluster/instances/instances.h"
#include "sim/cluster/moments.h"
#include "sim/cluster/run_meter.h"

namespace braid::sim {
namespace {

/// Relative error that adding up the tokens or GPU-seconds of a whole run may leave.
constexpr double kManyRoundings = 1e-6;

/// Moments at which GPUs may break or come back, without a job that ends meanwhile.
constexpr std::int64_t kMostBreaks = 1'000'000;

class ClusterSimulation final : public Cluster {
 public:
  ClusterSimulation(const std::vector<ClusterJob>& jobs, GpuPool pool, Scheduler& scheduler, TaskSets& sets,
                    const InstanceRules& rules)
      : jobs_(jobs),
        scheduler_(scheduler),
        sets_(sets),
        rules_(rules),
        outages_(rules.outages),
        instances_(std::move(pool), sets, scheduler.joining(), rules),
        states_(jobs.size()),
        meter_(jobs.empty() ? 0 : jobs.front().submit_seconds, rules.usage_bin_seconds) {
    run_.outcomes.resize(jobs.size());
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
      take_ends();
      take_outages();
      take_submissions();
      scheduler_.decide(*this);
      instances_.give_up_idle();
    }
    check_served();
    const Instances::Totals& totals = instances_.totals();
    run_.instances = totals.started;
    run_.replans = totals.replans;
    run_.busy_gpu_seconds = totals.busy_gpu_seconds;
    run_.resizes += totals.growths;
    run_.audited = totals.audited;
    run_.tokens = instances_.tokens().done() - run_.lost_tokens;
    run_.sums = sums_at_end_;
    run_.usage = meter_.usage(run_.end_seconds);
    return std::move(run_);
  }

  double now() const override { return now_; }
  const std::vector<ClusterJob>& jobs() const override { return jobs_; }
  std::int64_t gpus() const override { return instances_.pool().size(); }
  std::int64_t room_for(std::int64_t gpus) const override { return instances_.pool().room_for(gpus); }
  double part_of_instance(JobIndex job) const override {
    return sets_.shares() ? 1.0 / sets_.most_of(jobs_[index(job)].kind, jobs_[index(job)].gpus) : 1;
  }
  std::int64_t free_gpus() const override { return instances_.free_gpus(); }
  bool fits(JobIndex job) override { return instances_.fits(jobs_[index(job)].kind, jobs_[index(job)].gpus); }
  bool fits_alone(std::int64_t gpus) const override { return instances_.fits_alone(gpus); }
  const std::vector<std::int32_t>& sizes() const override { return sets_.sizes(); }
  double pace(JobIndex job, std::int32_t gpus) override {
    const SetIndex alone = sets_.alone(jobs_[index(job)].kind, gpus);
    return alone == TaskSets::kNone ? 0 : states_[index(job)].alone_seconds / sets_.step_seconds(alone);
  }
  std::int64_t gpus_of(JobIndex job) const override { return instances_[states_[index(job)].instance].gpu_count; }
  const std::vector<JobIndex>& running() const override { return running_; }

  double attained_seconds(JobIndex job) const override {
    const State& state = states_[index(job)];
    double steps = state.steps;
    if (state.instance != kNobody) steps += instances_.clock(state.instance, now_) - state.joined_steps;
    return steps * state.alone_seconds;
  }
  double remaining_seconds(JobIndex job) const override {
    return jobs_[index(job)].service_seconds - attained_seconds(job);
  }
  double finish_seconds(JobIndex job) const override {
    return instances_.end_seconds(states_[index(job)].instance, job);
  }

  void start(JobIndex job) override {
    start_on(instances_.place_for(jobs_[index(job)].kind, jobs_[index(job)].gpus, now_), job);
  }
  void start_alone(JobIndex job, std::int64_t gpus) override { start_on(instances_.start_alone(gpus, now_), job); }
  bool can_resize(JobIndex job, std::int64_t gpus) override {
    return instances_.fits_in_place_of(states_[index(job)].instance, gpus);
  }
  void resize(JobIndex job, std::int64_t gpus) override {
    const InstanceIndex place = states_[index(job)].instance;
    BRAID_CHECK(place != kNobody && !instances_[place].open, "job {} is not alone, and its GPUs are changed", job);
    leave(job);
    wait(job);
    ++run_.resizes;
    start_alone(job, gpus);
  }

  void preempt(JobIndex job) override {
    BRAID_CHECK(states_[index(job)].instance != kNobody, "job {} is preempted and does not run", job);
    leave(job);
    wait(job);
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
    wakes_.push(seconds);
  }

 private:
  static constexpr InstanceIndex kNobody = Instances::kNobody;

  struct State {
    double steps = 0;          // done in stretches that have ended
    double joined_steps = 0;   // of the instance's clock
    double since = 0;          // when the stretch under way began
    double alone_seconds = 1;  // of a step
    InstanceIndex instance = kNobody;
    std::int32_t place = -1;  // in running_
    bool waits = false;
  };

  static std::size_t index(std::int32_t place) { return static_cast<std::size_t>(place); }

  bool is_unfinished() const {
    if (next_submission_ < jobs_.size() || !running_.empty()) return true;
    return waiting_ > 0 && (!wakes_.empty() || instances_.next_end() != kNever || outages_.any_out());
  }

  double next_moment() const {
    double next = std::max(now_, outages_.next());  // those before the first submission last on
    if (next_submission_ < jobs_.size()) next = std::min(next, jobs_[next_submission_].submit_seconds);
    if (!wakes_.empty()) next = std::min(next, wakes_.top());
    return std::min(next, instances_.next_end());
  }

  void advance_to(double time) {
    BRAID_CHECK(time >= now_, "an event at {} lies before {}", time, now_);
    if (time == now_) return;
    const GpuPool& pool = instances_.pool();
    const RunMeter::Levels levels{.allocated = pool.size() - pool.free(),
                                  .free = pool.free(),
                                  .broken = pool.broken(),
                                  .fragmented = pool.fragmented(),
                                  .running = running_.size(),
                                  .waiting = waiting_,
                                  .is_full = pool.free() < least_gpus_};
    meter_.advance(now_, time, levels, instances_.tokens());
    now_ = time;
  }

  void take_ends() {
    while (!wakes_.empty() && wakes_.top() == now_) wakes_.pop();
    for (auto ended = instances_.take_ended(now_); !ended.empty(); ended = instances_.take_ended(now_)) {
      for (const JobIndex job : ended) {
        leave(job);
        run_.outcomes[index(job)].finish_seconds = run_.end_seconds = now_;
        breaks_since_end_ = 0;
        scheduler_.ended(*this, job);
      }
      sums_at_end_ = meter_.sums();
    }
  }

  void take_outages() {
    if (outages_.next() > now_) return;
    instances_.give_up_idle();
    const Outages::Changes changes = outages_.take(now_);
    run_.outages += changes.outages;
    const std::size_t there = running_.size() + static_cast<std::size_t>(waiting_);
    breaks_since_end_ = there > 0 ? breaks_since_end_ + 1 : 0;
    if (breaks_since_end_ > kMostBreaks)
      throw error(
          "none of {} jobs ended while GPUs broke and came back {} times; let them fail more seldom, or give a "
          "horizon",
          there, breaks_since_end_);
    for (const NodeGpus& gpus : changes.repaired) {
      instances_.repair(gpus);
      if (rules_.keeps_timeline) run_.breaks.push_back({now_, gpus, true});
    }
    for (const NodeGpus& gpus : changes.broken) {
      if (rules_.keeps_timeline) run_.breaks.push_back({now_, gpus, false});
      for (InstanceIndex owner = instances_.owner_of(gpus); owner != kNobody; owner = instances_.owner_of(gpus))
        interrupt(owner);
      instances_.break_down(gpus);
    }
  }

  /// An instance loses GPUs: its tasks wait again with what the last checkpoint has of them.
  void interrupt(InstanceIndex place) {
    const Instance& instance = instances_[place];
    const double shows = instances_.clock(place, now_), saved = instances_.saved_steps(place, now_);
    const double lost_seconds = (shows - saved) * sets_.step_seconds(instance.set);
    const double lost_tokens = lost_seconds * sets_.tokens_per_second(instance.set);
    run_.lost_tokens += lost_tokens;
    run_.lost_gpu_seconds += lost_seconds * static_cast<double>(instance.gpu_count);
    meter_.lose(lost_tokens);
    for (const JobIndex job : vacate(place, saved)) {
      wait(job);
      ++run_.outcomes[index(job)].restarts;
      scheduler_.interrupted(*this, job);
    }
    instances_.give_up_idle();
  }

  void stop_at(double horizon) {
    advance_to(horizon);
    while (!running_.empty()) {
      const InstanceIndex place = states_[index(running_.back())].instance;
      vacate(place, instances_.clock(place, now_));
    }
    run_.end_seconds = horizon;
    sums_at_end_ = meter_.sums();
  }

  void take_submissions() {
    for (; next_submission_ < jobs_.size() && jobs_[next_submission_].submit_seconds == now_; ++next_submission_) {
      const auto job = static_cast<JobIndex>(next_submission_);
      const ClusterJob& submitted = jobs_[next_submission_];
      const bool is_small = instances_.pool().could_fit(submitted.gpus);
      const SetIndex alone = is_small ? sets_.alone(submitted.kind, submitted.gpus) : TaskSets::kNone;
      if (alone == TaskSets::kNone) {
        run_.outcomes[next_submission_].rejected = true;
        continue;
      }
      states_[next_submission_].alone_seconds = sets_.step_seconds(alone);
      wait(job);
      scheduler_.submitted(*this, job);
    }
  }

  void wait(JobIndex job) {
    states_[index(job)].waits = true;
    ++waiting_;
  }

  void start_on(InstanceIndex place, JobIndex job) {
    State& state = states_[index(job)];
    BRAID_CHECK(state.waits, "job {} is started and does not wait", job);
    state.waits = false;
    --waiting_;
    const ClusterJob& asked = jobs_[index(job)];
    const double left = std::max(0.0, asked.service_seconds / state.alone_seconds - state.steps);
    state.joined_steps = instances_.join(place, job, asked.kind, left, now_);
    state.instance = place;
    state.since = now_;
    state.place = static_cast<std::int32_t>(running_.size());
    running_.push_back(job);
    const Instance& instance = instances_[place];
    JobOutcome& outcome = run_.outcomes[index(job)];
    outcome.start_seconds = std::min(outcome.start_seconds, now_);
    outcome.instance = instance.number;
    for (const Instance::Member& member : instance.members) {
      JobOutcome& theirs = run_.outcomes[index(member.job)];
      theirs.gpus = instance.gpu_count;
      if (instance.members.size() > 1) theirs.shared = true;
    }
  }

  void leave(JobIndex job) {
    const InstanceIndex place = states_[index(job)].instance;
    out_of_service(job, instances_.clock(place, now_));
    instances_.leave(place, job, now_);
  }

  /// Everybody leaves, their work done as far as `steps` of the clock. Those who left, ascending.
  std::vector<JobIndex> vacate(InstanceIndex place, double steps) {
    std::vector<JobIndex> leaving;
    for (const Instance::Member& member : instances_[place].members) leaving.push_back(member.job);
    std::sort(leaving.begin(), leaving.end());
    for (const JobIndex job : leaving) out_of_service(job, steps);
    instances_.vacate(place, now_);
    return leaving;
  }

  /// A job's stretch ends, its work done as far as `steps` of the clock of the instance that it is about to leave.
  void out_of_service(JobIndex job, double steps) {
    State& state = states_[index(job)];
    JobOutcome& outcome = run_.outcomes[index(job)];
    if (rules_.keeps_timeline) {
      const Instance& instance = instances_[state.instance];
      run_.stretches.push_back(
          {job, instance.number, instance.gpus.front().node, instance.gpu_count, state.since, now_});
    }
    state.steps += steps - state.joined_steps;
    outcome.steps = state.steps;
    outcome.run_seconds += now_ - state.since;
    const JobIndex last = running_.back();
    running_[index(state.place)] = last;
    states_[index(last)].place = state.place;
    running_.pop_back();
    state.place = -1;
    state.instance = kNobody;
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
    const double billed = instances_.tokens().done(), done = billed - run_.lost_tokens;
    BRAID_CHECK(std::abs(done - tokens) <= kManyRoundings * (1 + billed), "{} tokens done of {} owed", done, tokens);
    const double busy = instances_.totals().busy_gpu_seconds, allocated = meter_.sums().allocated_gpu_seconds;
    BRAID_CHECK(busy <= (1 + kManyRoundings) * allocated, "{} GPU-seconds busy of {} allocated", busy, allocated);
  }

  const std::vector<ClusterJob>& jobs_;
  Scheduler& scheduler_;
  TaskSets& sets_;
  const InstanceRules& rules_;
  Outages outages_;
  std::int64_t breaks_since_end_ = 0;
  Instances instances_;
  std::vector<State> states_;
  std::vector<JobIndex> running_;
  std::priority_queue<double, std::vector<double>, std::greater<>> wakes_;  // decisions asked for, the first on top
  std::size_t next_submission_ = 0;
  std::int64_t waiting_ = 0, least_gpus_ = std::numeric_limits<std::int64_t>::max();
  double now_ = 0;
  RunMeter meter_;
  RunMeter::Sums sums_at_end_;  // of the last job so far; later submissions may be rejected
  ClusterRun run_;
};

}  // namespace

ClusterRun simulate_cluster(const std::vector<ClusterJob>& jobs, GpuPool pool, Scheduler& scheduler, TaskSets& sets,
                            const InstanceRules& rules) {
  return ClusterSimulation(jobs, std::move(pool), scheduler, sets, rules).run();
}

}  // namespace braid::sim
