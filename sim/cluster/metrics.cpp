#include "sim/cluster/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <boost/math/distributions/students_t.hpp>

#include "base/units.h"

namespace braid::sim {
namespace {

constexpr double kJoulesOfKilowattHour = 3.6e6;

/// Of numbers that are sorted; the nearest at or below.
double share_below(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

class Metrics {
 public:
  Metrics(const std::vector<ClusterJob>& jobs, const ClusterRun& run, const MetricContext& context)
      : jobs_(jobs), run_(run), context_(context), span_(run.end_seconds - run.first_submit_seconds) {}

  std::vector<Metric> all() {
    counts();
    throughput();
    times();
    use();
    fairness();
    deadlines();
    return std::move(metrics_);
  }

 private:
  void add(const char* name, double value) { metrics_.push_back({name, value}); }

  void counts() {
    double finished = 0, rejected = 0, preemptions = 0, restarts = 0;
    for (const JobOutcome& outcome : run_.outcomes) {
      finished += outcome.finished();
      rejected += outcome.rejected;
      preemptions += outcome.preemptions;
      restarts += outcome.restarts;
    }
    add("jobs", static_cast<double>(jobs_.size()));
    add("finished", finished);
    add("rejected", rejected);
    add("preemptions", preemptions);
    add("restarts", restarts);
    add("instances", static_cast<double>(run_.instances));
    add("replans", static_cast<double>(run_.replans));
    add("resizes", static_cast<double>(run_.resizes));
    add("makespan_seconds", span_);
  }

  void throughput() {
    if (context_.step_tokens.empty() || span_ <= 0) return;
    double samples = 0;
    for (std::size_t j = 0; j < jobs_.size(); ++j)
      samples += run_.outcomes[j].steps * of_kind(context_.step_samples, j);
    add("tokens_per_second", run_.tokens / span_);
    add("samples_per_second", samples / span_);
    if (run_.sums.saturated.to_seconds > run_.sums.saturated.from_seconds) {
      add("saturated_tokens_per_second", run_.sums.saturated.tokens_per_second());
      add("saturated_seconds", run_.sums.saturated.to_seconds - run_.sums.saturated.from_seconds);
    }
  }

  void times() {
    std::vector<double> completion, queueing;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      const JobOutcome& outcome = run_.outcomes[j];
      if (!outcome.finished()) continue;
      completion.push_back(outcome.finish_seconds - jobs_[j].submit_seconds);
      queueing.push_back(completion.back() - outcome.run_seconds);
    }
    describe("completion", std::move(completion));
    describe("queueing", std::move(queueing));
  }

  void describe(const std::string& what, std::vector<double> values) {
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    metrics_.push_back({what + "_mean_seconds", sum / static_cast<double>(values.size())});
    metrics_.push_back({what + "_median_seconds", share_below(values, 0.5)});
    metrics_.push_back({what + "_p90_seconds", share_below(values, 0.9)});
    metrics_.push_back({what + "_p99_seconds", share_below(values, 0.99)});
  }

  void use() {
    const double offered = static_cast<double>(context_.gpus) * span_;
    if (offered <= 0) return;
    add("gpu_allocation", run_.sums.allocated_gpu_seconds / offered);
    add("free_while_waiting", run_.sums.waiting_free_gpu_seconds / offered);
    add("fragmentation", run_.sums.fragmented_gpu_seconds / offered);
    if (context_.fails) {
      add("outages", static_cast<double>(run_.outages));
      add("out_of_service", run_.sums.broken_gpu_seconds / offered);
      add("lost_gpu_hours", run_.lost_gpu_seconds / kHour);
    }
    double flops = 0;
    for (std::size_t j = 0; j < jobs_.size() && !context_.kinds.empty(); ++j) {
      const std::optional<KindCost>& kind = context_.kinds[static_cast<std::size_t>(jobs_[j].kind)];
      if (!kind) continue;
      flops += run_.outcomes[j].steps * kind->flops;
    }
    if (flops > 0 && context_.peak_flops > 0) add("gpu_utilization", flops / (offered * context_.peak_flops));
    const double hours = run_.sums.allocated_gpu_seconds / kHour;
    add("gpu_hours", hours);
    if (context_.gpu_hour_price) add("cost", hours * *context_.gpu_hour_price);
    if (context_.power && run_.busy_gpu_seconds > 0) {
      const double joules =
          costmodel::energy_joules(*context_.power, static_cast<double>(context_.gpus), span_, run_.busy_gpu_seconds);
      add("energy_kwh", joules / kJoulesOfKilowattHour);
    }
  }

  void fairness() {
    /// Changes of the number of jobs that are there, and its integral until each.
    std::vector<std::pair<double, int>> changes;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      const JobOutcome& outcome = run_.outcomes[j];
      if (outcome.rejected) continue;
      changes.emplace_back(jobs_[j].submit_seconds, 1);
      if (outcome.finished()) changes.emplace_back(outcome.finish_seconds, -1);
    }
    std::sort(changes.begin(), changes.end());
    std::vector<double> integral(changes.size(), 0);
    double there = 0;
    for (std::size_t c = 0; c < changes.size(); ++c) {
      if (c > 0) integral[c] = integral[c - 1] + there * (changes[c].first - changes[c - 1].first);
      there += changes[c].second;
    }
    const auto until = [&](double time) {
      const auto change = std::lower_bound(changes.begin(), changes.end(), std::pair(time, -2));
      return integral[static_cast<std::size_t>(change - changes.begin())];
    };
    double sum = 0, most = 0, counted = 0;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      const JobOutcome& outcome = run_.outcomes[j];
      const double taken = outcome.finish_seconds - jobs_[j].submit_seconds;
      if (!outcome.finished() || taken <= 0 || jobs_[j].reference_seconds <= 0) continue;
      const double mean_there = (until(outcome.finish_seconds) - until(jobs_[j].submit_seconds)) / taken;
      const double share = static_cast<double>(context_.gpus) / (std::max(1.0, mean_there) * jobs_[j].gpus);
      const double unfairness = taken / (jobs_[j].reference_seconds / std::min(1.0, share));
      sum += unfairness, most = std::max(most, unfairness), ++counted;
    }
    if (counted > 0) {
      add("finish_time_fairness_mean", sum / counted);
      add("finish_time_fairness_max", most);
    }
  }

  /// Where a horizon cuts the run off, of those due until then: of others nobody knows.
  void deadlines() {
    const auto is_open = [](const JobOutcome& outcome) { return !outcome.rejected && !outcome.finished(); };
    const bool is_cut = std::any_of(run_.outcomes.begin(), run_.outcomes.end(), is_open);
    const double last = is_cut ? run_.end_seconds : std::numeric_limits<double>::max();
    double met = 0, due = 0;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (run_.outcomes[j].rejected || jobs_[j].deadline_seconds > last) continue;
      ++due;
      met += run_.outcomes[j].finish_seconds <= jobs_[j].deadline_seconds;
    }
    if (due > 0) add("deadlines_met", met / due);
  }

  double of_kind(const std::vector<double>& values, std::size_t job) const {
    return values[static_cast<std::size_t>(jobs_[job].kind)];
  }

  const std::vector<ClusterJob>& jobs_;
  const ClusterRun& run_;
  const MetricContext& context_;
  double span_;
  std::vector<Metric> metrics_;
};

}  // namespace

std::vector<Metric> metrics_of(const std::vector<ClusterJob>& jobs, const ClusterRun& run,
                               const MetricContext& context) {
  return Metrics(jobs, run, context).all();
}

std::vector<SeedMean> over_seeds(const std::vector<std::vector<Metric>>& runs) {
  std::vector<SeedMean> means;
  const auto count = static_cast<double>(runs.size());
  for (const Metric& metric : runs.front()) {
    double sum = 0, squares = 0;
    std::size_t having = 0;
    for (const std::vector<Metric>& run : runs) {
      const auto found =
          std::find_if(run.begin(), run.end(), [&](const Metric& other) { return other.name == metric.name; });
      if (found == run.end()) continue;
      ++having;
      sum += found->value;
    }
    if (having < runs.size()) continue;
    SeedMean& mean = means.emplace_back(SeedMean{metric.name, sum / count, {}});
    if (runs.size() < 2) continue;
    for (const std::vector<Metric>& run : runs) {
      const auto found =
          std::find_if(run.begin(), run.end(), [&](const Metric& other) { return other.name == metric.name; });
      squares += (found->value - mean.mean) * (found->value - mean.mean);
    }
    const boost::math::students_t distribution(count - 1);
    mean.half_width = quantile(distribution, 0.975) * std::sqrt(squares / (count - 1) / count);
  }
  return means;
}

}  // namespace braid::sim
