#include "traces/generate.h"

#include <array>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/random.h"
#include "base/units.h"

namespace braid::traces {
namespace {

constexpr int kHalvings = 200;

/// Where an increasing function is `value`.
double where(const std::function<double(double)>& increasing, double value, double low, double high) {
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (increasing(middle) < value ? low : high) = middle;
  }
  return (low + high) / 2;
}

double least_with_mean(double alpha, double mean, double longest) {
  return where([&](double least) { return BoundedPareto{least, longest, alpha}.moment(1); }, mean, mean * 1e-9, mean);
}

double deviation_of(const BoundedPareto& pareto) {
  return std::sqrt(std::max(0.0, pareto.moment(2) - pareto.moment(1) * pareto.moment(1)));
}

void check(bool usable, const char* what, double value) {
  if (!usable || !std::isfinite(value)) throw error("{} {} is not usable; see --help for its range", what, value);
}

class Arrivals {
 public:
  Arrivals(const Generator& wanted, RandomStream& random) : random_(random), mean_(kMinute / wanted.jobs_per_minute) {
    const double squared = wanted.burstiness * wanted.burstiness;
    often_ = (1 + std::sqrt((squared - 1) / (squared + 1))) / 2;
  }

  /// Two exponentials that contribute half of the mean each: the first, short one with probability `often_`.
  double between() {
    const bool shorter = random_.next_uniform() < often_;
    const double mean = mean_ / (2 * (shorter ? often_ : 1 - often_));
    return -std::log(1 - random_.next_uniform()) * mean;
  }

 private:
  RandomStream& random_;
  double mean_;
  double often_;
};

class Durations {
 public:
  Durations(const Generator& wanted, RandomStream& random) : random_(random), shape_(wanted.duration) {
    const double mean = wanted.duration_mean_seconds, deviation = wanted.duration_deviation_seconds;
    if (shape_ == DurationShape::bounded_pareto) {
      pareto_ = bounded_pareto(mean, deviation, wanted.longest_seconds);
    } else {
      const double variance = std::log1p(deviation * deviation / (mean * mean));
      sigma_ = std::sqrt(variance);
      mu_ = std::log(mean) - variance / 2;
    }
  }

  double next() {
    return shape_ == DurationShape::bounded_pareto ? pareto_.quantile(random_.next_uniform())
                                                   : std::exp(mu_ + sigma_ * random_.next_normal());
  }

 private:
  RandomStream& random_;
  DurationShape shape_;
  BoundedPareto pareto_;
  double mu_ = 0, sigma_ = 0;
};

std::int32_t draw_gpus(const Generator& wanted, double all, RandomStream& random) {
  double left = random.next_uniform() * all;
  for (const auto& [gpus, weight] : wanted.gpus) {
    left -= weight;
    if (left < 0) return gpus;
  }
  return wanted.gpus.back().first;
}

}  // namespace

double BoundedPareto::quantile(double share) const {
  return least * std::pow(1 - share * (1 - std::pow(least / longest, alpha)), -1 / alpha);
}

double BoundedPareto::moment(int power) const {
  const double ratio = least / longest;
  const double scale = alpha * std::pow(least, power) / (1 - std::pow(ratio, alpha));
  if (std::abs(alpha - power) < 1e-9) return -scale * std::log(ratio);
  return scale * (1 - std::pow(ratio, alpha - power)) / (alpha - power);
}

BoundedPareto bounded_pareto(double mean, double deviation, double longest) {
  if (!(mean > 0 && deviation > 0 && longest > mean))
    throw error(
        "a bounded Pareto has a mean of {} s, deviation {} s and longest {} s; give numbers above 0, the longest "
        "above the mean",
        mean, deviation, longest);
  // The heavier the tail, the larger the deviation; both ends are as far as one goes.
  constexpr double kHeaviest = 0.01, kLightest = 50;
  const auto with = [&](double alpha) { return BoundedPareto{least_with_mean(alpha, mean, longest), longest, alpha}; };
  const double most = deviation_of(with(kHeaviest)), least = deviation_of(with(kLightest));
  if (deviation > most || deviation < least)
    throw error(
        "no bounded Pareto up to {:.0f} s has mean {:.0f} s and deviation {:.0f} s; give a deviation between "
        "{:.0f} and {:.0f} s, or another longest",
        longest, mean, deviation, least, most);
  return with(where([&](double alpha) { return -deviation_of(with(alpha)); }, -deviation, kHeaviest, kLightest));
}

Trace generate(const Generator& wanted) {
  if (wanted.jobs < 1) throw error("{} jobs are not usable; give a number >= 1", wanted.jobs);
  check(wanted.jobs_per_minute > 0, "the rate of", wanted.jobs_per_minute);
  check(wanted.burstiness >= 1, "a burstiness of", wanted.burstiness);
  check(wanted.duration_mean_seconds > 0, "a mean duration of", wanted.duration_mean_seconds);
  check(wanted.duration_deviation_seconds >= 0, "a deviation of", wanted.duration_deviation_seconds);
  double all = 0;
  for (const auto& [gpus, weight] : wanted.gpus) {
    if (gpus < 1 || !(weight >= 0)) throw error("jobs of {} GPUs with weight {} are not usable", gpus, weight);
    all += weight;
  }
  if (!(all > 0)) throw error("no number of GPUs has a weight; give one");
  constexpr std::uint64_t kGenerate = 0x67656e65;
  RandomStream random(mix_key(std::array{kGenerate, wanted.seed}));
  Arrivals arrivals(wanted, random);
  Durations durations(wanted, random);
  Trace trace;
  trace.source = "generated";
  trace.format = "braid";
  for (std::int32_t v = 0; v < wanted.virtual_clusters; ++v) trace.virtual_clusters.push_back(fmt::format("vc{}", v));
  double now = 0;
  for (std::int64_t i = 0; i < wanted.jobs; ++i) {
    now += arrivals.between();
    Job job;
    job.id = std::to_string(i);
    job.submit_seconds = now;
    job.duration_seconds = durations.next();
    job.gpus = draw_gpus(wanted, all, random);
    if (wanted.virtual_clusters > 0)
      job.virtual_cluster =
          static_cast<std::int32_t>(random.next_below(static_cast<std::uint64_t>(wanted.virtual_clusters)));
    trace.jobs.push_back(std::move(job));
  }
  trace.irregularities.rows = wanted.jobs;
  return trace;
}

}  // namespace braid::traces
