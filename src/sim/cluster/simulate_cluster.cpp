#include "sim/cluster/simulate_cluster.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "base/error.h"

namespace braid::sim {
namespace {

/// Relative error that adding up stretches of service may leave.
constexpr double kRounding = 1e-9;

class ClusterSimulation final : public Cluster {
 public:
  ClusterSimulation(const std::vector<ClusterJob>& jobs, GpuPool pool, Scheduler& scheduler)
      : jobs_(jobs), pool_(std::move(pool)), scheduler_(scheduler), states_(jobs.size()) {
    run_.outcomes.resize(jobs.size());
  }

  ClusterRun run() {
    if (jobs_.empty()) return std::move(run_);
    run_.first_submit_seconds = now_ = jobs_.front().submit_seconds;
    while (next_submission_ < jobs_.size() || !events_.empty()) {
      advance_to(next_moment());
      take_events();
      take_submissions();
      scheduler_.decide(*this);
    }
    check_all_served();
    return std::move(run_);
  }

  double now() const override { return now_; }
  const std::vector<ClusterJob>& jobs() const override { return jobs_; }
  std::int64_t free_gpus() const override { return pool_.free(); }
  bool fits(std::int64_t gpus) const override { return pool_.fits(gpus); }
  const std::vector<JobIndex>& running() const override { return running_; }

  double attained_seconds(JobIndex job) const override {
    const State& state = states_[index(job)];
    return state.served + (state.place < 0 ? 0 : now_ - state.since);
  }
  double remaining_seconds(JobIndex job) const override {
    return jobs_[index(job)].service_seconds - attained_seconds(job);
  }
  double finish_seconds(JobIndex job) const override { return states_[index(job)].end; }

  void start(JobIndex job) override {
    State& state = states_[index(job)];
    BRAID_CHECK(state.waits, "job {} is started and does not wait", job);
    const std::int32_t gpus = jobs_[index(job)].gpus;
    state.gpus = pool_.take(gpus);
    state.waits = false;
    state.since = now_;
    state.end = now_ + std::max(0.0, jobs_[index(job)].service_seconds - state.served);
    state.place = static_cast<std::int32_t>(running_.size());
    running_.push_back(job);
    held_ += gpus;
    --waiting_;
    events_.push({state.end, job, ++state.run});
    JobOutcome& outcome = run_.outcomes[index(job)];
    outcome.start_seconds = std::min(outcome.start_seconds, now_);
  }

  void preempt(JobIndex job) override {
    State& state = states_[index(job)];
    BRAID_CHECK(state.place >= 0, "job {} is preempted and does not run", job);
    state.served += now_ - state.since;
    stop(job);
    state.waits = true;
    ++waiting_;
    ++run_.outcomes[index(job)].preemptions;
  }

  void wake_at(double seconds) override {
    BRAID_CHECK(seconds >= now_, "a decision is asked for at {}, before {}", seconds, now_);
    events_.push({seconds, kNobody, 0});
  }

 private:
  static constexpr JobIndex kNobody = -1;

  struct State {
    double served = 0;          // in stretches that have ended
    double since = 0, end = 0;  // of the stretch under way
    GpuSet gpus;
    std::int32_t place = -1;  // in running_
    std::uint32_t run = 0;    // stretches begun
    bool waits = false;
  };
  struct Event {
    double time = 0;
    JobIndex job = kNobody;
    std::uint32_t run = 0;
    /// The queue has the largest on top.
    bool operator<(const Event& other) const { return time != other.time ? time > other.time : job > other.job; }
  };

  static std::size_t index(JobIndex job) { return static_cast<std::size_t>(job); }

  double next_moment() const {
    if (next_submission_ == jobs_.size()) return events_.top().time;
    const double submission = jobs_[next_submission_].submit_seconds;
    return events_.empty() ? submission : std::min(submission, events_.top().time);
  }

  void advance_to(double time) {
    BRAID_CHECK(time >= now_, "an event at {} lies before {}", time, now_);
    run_.allocated_gpu_seconds += static_cast<double>(held_) * (time - now_);
    if (waiting_ > 0) run_.waiting_free_gpu_seconds += static_cast<double>(pool_.free()) * (time - now_);
    now_ = time;
  }

  void take_events() {
    for (; !events_.empty() && events_.top().time == now_; events_.pop()) {
      const Event event = events_.top();
      if (event.job == kNobody) continue;
      State& state = states_[index(event.job)];
      if (state.place < 0 || state.run != event.run) continue;  // preempted meanwhile
      state.served += now_ - state.since;
      stop(event.job);
      JobOutcome& outcome = run_.outcomes[index(event.job)];
      outcome.finish_seconds = run_.end_seconds = now_;
      outcome.run_seconds = state.served;
      scheduler_.ended(*this, event.job);
    }
  }

  void take_submissions() {
    for (; next_submission_ < jobs_.size() && jobs_[next_submission_].submit_seconds == now_; ++next_submission_) {
      const auto job = static_cast<JobIndex>(next_submission_);
      if (!pool_.could_fit(jobs_[next_submission_].gpus)) {
        run_.outcomes[next_submission_].rejected = true;
        continue;
      }
      states_[next_submission_].waits = true;
      ++waiting_;
      scheduler_.submitted(*this, job);
    }
  }

  void stop(JobIndex job) {
    State& state = states_[index(job)];
    pool_.give(state.gpus);
    held_ -= jobs_[index(job)].gpus;
    state.gpus.clear();
    const JobIndex last = running_.back();
    running_[static_cast<std::size_t>(state.place)] = last;
    states_[index(last)].place = state.place;
    running_.pop_back();
    state.place = -1;
  }

  void check_all_served() const {
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      const JobOutcome& outcome = run_.outcomes[j];
      if (outcome.rejected) continue;
      BRAID_CHECK(outcome.finished(), "the scheduler '{}' left job {} waiting", scheduler_.name(), j);
      const double owed = jobs_[j].service_seconds;
      BRAID_CHECK(std::abs(outcome.run_seconds - owed) <= kRounding * (owed + std::abs(outcome.finish_seconds)),
                  "job {} was served for {} s of {}", j, outcome.run_seconds, owed);
      BRAID_CHECK(outcome.start_seconds >= jobs_[j].submit_seconds, "job {} started before its submission", j);
    }
  }

  const std::vector<ClusterJob>& jobs_;
  GpuPool pool_;
  Scheduler& scheduler_;
  std::vector<State> states_;
  std::priority_queue<Event> events_;
  std::vector<JobIndex> running_;
  std::size_t next_submission_ = 0;
  std::int64_t held_ = 0, waiting_ = 0;
  double now_ = 0;
  ClusterRun run_;
};

}  // namespace

ClusterRun simulate_cluster(const std::vector<ClusterJob>& jobs, GpuPool pool, Scheduler& scheduler) {
  return ClusterSimulation(jobs, std::move(pool), scheduler).run();
}

}  // namespace braid::sim
