#include "planner/lobra/deployment_search.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace braid::planner {
namespace {

constexpr double kUndoable = std::numeric_limits<double>::infinity();

/// Fills replicas with the longest sequences first.
class Filling {
 public:
  Filling(std::span<const Configuration> configurations, const ExpectedLoad& load)
      : configurations_(configurations), load_(load), order_(configurations.size()) {
    for (const Configuration& one : configurations) ends_.push_back(pipeline_ends(one.speed, load));
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      const Configuration &one = configurations[a], &other = configurations[b];
      if (one.speed.full.size() != other.speed.full.size()) return one.speed.full.size() > other.speed.full.size();
      return one.gpus > other.gpus;
    });
  }

  /// Of so many replicas of each configuration.
  void deploy(std::span<const std::int64_t> replicas) {
    deployed_.clear();
    for (const std::size_t c : order_) {
      if (replicas[c] > 0) deployed_.push_back({c, static_cast<double>(replicas[c]), 0});
    }
  }

  /// Whether all is done within so many seconds.
  bool fits(double seconds) {
    for (Deployed& one : deployed_) one.left = one.replicas * std::max(0.0, seconds - ends_[one.configuration]);
    for (std::size_t interval = load_.size(); interval-- > 0;) {
      double sequences = load_[interval];
      for (Deployed& one : deployed_) {
        if (sequences <= 0) break;
        const ReplicaSpeed& speed = configurations_[one.configuration].speed;
        if (interval >= speed.full.size() || one.left <= 0) continue;
        const double each = speed.seconds_a_row(interval), taken = std::min(sequences, one.left / each);
        sequences -= taken;
        one.left -= taken * each;
      }
      if (sequences > kNothing) return false;
    }
    return true;
  }

 private:
  static constexpr double kNothing = 1e-12;

  struct Deployed {
    std::size_t configuration = 0;
    double replicas = 0, left = 0;
  };

  std::span<const Configuration> configurations_;
  const ExpectedLoad& load_;
  std::vector<std::size_t> order_;
  std::vector<double> ends_;  // per configuration
  std::vector<Deployed> deployed_;
};

/// Infinity where it is more than `most`; no less than `least`.
double seconds_of(Filling& filling, std::span<const std::int64_t> replicas, double least, double most) {
  if (most <= 0) return kUndoable;
  filling.deploy(replicas);
  if (!filling.fits(most)) return kUndoable;
  constexpr double kAlike = 1e-12;
  while (most - least > kAlike * (1 + most)) {
    const double middle = (least + most) / 2;
    (filling.fits(middle) ? most : least) = middle;
  }
  return most;
}

/// Of all loads together; infinity where it is more than `most`. `at_least`: seconds that each load takes on any.
double seconds_of(std::vector<Filling>& fillings, std::span<const double> at_least,
                  std::span<const std::int64_t> replicas, double most) {
  double sum = 0, to_come = std::accumulate(at_least.begin(), at_least.end(), 0.0);
  for (std::size_t load = 0; load < fillings.size() && sum < kUndoable; ++load) {
    to_come -= at_least[load];
    sum += seconds_of(fillings[load], replicas, at_least[load], most - sum - to_come);
  }
  return sum;
}

/// More than any deployment that holds everything takes.
double most_seconds(std::span<const Configuration> configurations, const ExpectedLoads& loads) {
  double most = 0;
  for (const ExpectedLoad& load : loads)
    for (const Configuration& one : configurations) {
      for (std::size_t interval = 0; interval < std::min(load.size(), one.speed.full.size()); ++interval)
        most += load[interval] * one.speed.seconds_a_row(interval) +
                static_cast<double>(one.speed.stages) * one.speed.full[interval].seconds;
    }
  return most;
}

/// Every sequence where its GPU-seconds are least, all GPUs busy throughout.
double bound_of(std::span<const Configuration> configurations, std::int64_t gpus, const ExpectedLoads& loads) {
  double gpu_seconds = 0;
  for (const ExpectedLoad& load : loads)
    for (std::size_t interval = 0; interval < load.size(); ++interval) {
      if (load[interval] <= 0) continue;
      double least = kUndoable;
      for (const Configuration& one : configurations) {
        if (interval < one.speed.full.size())
          least = std::min(least, static_cast<double>(one.gpus) * one.speed.seconds_a_row(interval));
      }
      gpu_seconds += load[interval] * least;
    }
  return gpu_seconds / static_cast<double>(gpus);
}

/// What a load takes at the least on given replicas, soon told: a sequence of each length is worth the GPU-seconds that
/// it takes where it takes the fewest, and no replica earns more of that a second than with the length that it is best
/// at. These prices are a solution of the dual of the fractional dispatch.
class PricedLoad {
 public:
  PricedLoad(std::span<const Configuration> configurations, const ExpectedLoad& load) {
    std::vector<double> price(load.size(), kUndoable);
    for (std::size_t interval = 0; interval < load.size(); ++interval) {
      for (const Configuration& one : configurations) {
        if (interval < one.speed.full.size())
          price[interval] =
              std::min(price[interval], static_cast<double>(one.gpus) * one.speed.seconds_a_row(interval));
      }
      if (load[interval] > 0) worth_ += load[interval] * price[interval];
    }
    for (const Configuration& one : configurations) {
      double most = 0;
      for (std::size_t interval = 0; interval < std::min(load.size(), one.speed.full.size()); ++interval) {
        if (load[interval] > 0) most = std::max(most, price[interval] / one.speed.seconds_a_row(interval));
      }
      earns_.push_back(most);
    }
  }

  double seconds_at_least(std::span<const std::int64_t> replicas) const {
    double earned = 0;
    for (std::size_t c = 0; c < replicas.size(); ++c) earned += static_cast<double>(replicas[c]) * earns_[c];
    return earned > 0 ? worth_ / earned : 0;
  }

  double earns(std::size_t configuration) const { return earns_[configuration]; }
  double seconds_of_earning(double earned) const { return earned > 0 ? worth_ / earned : 0; }

 private:
  double worth_ = 0;
  std::vector<double> earns_;  // a second, per configuration
};

class Enumeration {
 public:
  Enumeration(std::span<const Configuration> configurations, const ExpectedLoads& loads, std::size_t keep,
              std::int64_t most_looked_at)
      : configurations_(configurations),
        most_seconds_(most_seconds(configurations, loads)),
        keep_(keep),
        most_looked_at_(most_looked_at),
        replicas_(configurations.size(), 0) {
    for (const ExpectedLoad& load : loads) {
      fillings_.emplace_back(configurations, load);
      priced_.emplace_back(configurations, load);
    }
    for (const Configuration& one : configurations) least_gpus_ = std::min(least_gpus_, one.gpus);
    // What a GPU of any configuration from one on earns at the most.
    for (const PricedLoad& load : priced_) {
      std::vector<double>& most = most_earned_.emplace_back(configurations.size() + 1, 0.0);
      for (std::size_t c = configurations.size(); c-- > 0;)
        most[c] = std::max(most[c + 1], load.earns(c) / static_cast<double>(configurations[c].gpus));
    }
  }

  /// All, but for those whose GPUs cannot earn what is needed to be among the best.
  void run(std::int64_t gpus) { run(0, gpus, std::vector<double>(priced_.size(), 0.0)); }

  /// From the best that was found on: a replica gives its GPUs to one of another configuration and more of a third.
  void climb(std::int64_t gpus) {
    if (found_.best.empty()) return;
    for (bool better = true; better;) {
      better = false;
      const std::vector<std::int64_t> from = found_.best.front().replicas;
      const double before = found_.best.front().seconds;
      std::int64_t used = 0;
      for (std::size_t c = 0; c < from.size(); ++c) used += from[c] * configurations_[c].gpus;
      for (std::size_t given = 0; given < from.size(); ++given) {
        if (from[given] == 0) continue;
        for (std::size_t first = 0; first < from.size(); ++first) {
          for (std::size_t second = first; second < from.size(); ++second) {
            replicas_ = from;
            --replicas_[given];
            std::int64_t left = gpus - used + configurations_[given].gpus - configurations_[first].gpus;
            if (left < 0 || first == given) continue;
            ++replicas_[first];
            replicas_[second] += left / configurations_[second].gpus;
            left %= configurations_[second].gpus;
            if (left < least_gpus_) look();
          }
        }
      }
      better = found_.best.front().seconds < before;
    }
  }

  bool truncated() const { return found_.truncated; }
  FoundDeployments take() { return std::move(found_); }

 private:
  void run(std::size_t next, std::int64_t gpus, const std::vector<double>& earned) {
    if (found_.truncated) return;
    if (next == configurations_.size()) {
      if (gpus < least_gpus_) look_if_few();
      return;
    }
    if (found_.best.size() == keep_) {
      double seconds = 0;
      for (std::size_t load = 0; load < priced_.size(); ++load)
        seconds +=
            priced_[load].seconds_of_earning(earned[load] + static_cast<double>(gpus) * most_earned_[load][next]);
      if (seconds >= found_.best.back().seconds) return;
    }
    std::vector<double> mine = earned;
    for (std::int64_t count = 0; count * configurations_[next].gpus <= gpus; ++count) {
      replicas_[next] = count;
      run(next + 1, gpus - count * configurations_[next].gpus, mine);
      for (std::size_t load = 0; load < priced_.size(); ++load) mine[load] += priced_[load].earns(next);
    }
    replicas_[next] = 0;
  }

  void look_if_few() {
    if (found_.looked_at == most_looked_at_) {
      found_.truncated = true;
      return;
    }
    look();
  }

  void look() {
    ++found_.looked_at;
    for (const DeploymentChoice& known : found_.best) {
      if (known.replicas == replicas_) return;
    }
    const bool full = found_.best.size() == keep_;
    const double most = full ? found_.best.back().seconds : most_seconds_;
    at_least_.clear();
    for (const PricedLoad& load : priced_) at_least_.push_back(load.seconds_at_least(replicas_));
    if (std::accumulate(at_least_.begin(), at_least_.end(), 0.0) >= most) return;
    const double seconds = seconds_of(fillings_, at_least_, replicas_, most);
    if (seconds == kUndoable || (full && seconds >= most)) return;
    const auto place = std::upper_bound(found_.best.begin(), found_.best.end(), seconds,
                                        [](double value, const DeploymentChoice& one) { return value < one.seconds; });
    found_.best.insert(place, {replicas_, seconds});
    if (found_.best.size() > keep_) found_.best.pop_back();
  }

  std::span<const Configuration> configurations_;
  std::vector<Filling> fillings_;
  std::vector<PricedLoad> priced_;
  std::vector<std::vector<double>> most_earned_;  // of each load, a second and GPU of configurations from one on
  std::vector<double> at_least_;                  // seconds of each load on the replicas that are looked at
  double most_seconds_;
  std::size_t keep_;
  std::int64_t most_looked_at_;
  std::int64_t least_gpus_ = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> replicas_;
  FoundDeployments found_;
};

/// Seconds of all GPUs, with such replicas alone, for the expected load that they hold.
double seconds_alone(const Configuration& one, std::int64_t gpus, const ExpectedLoads& loads) {
  const auto replicas = static_cast<double>(gpus / one.gpus);
  double seconds = 0;
  for (const ExpectedLoad& load : loads) {
    for (std::size_t interval = 0; interval < std::min(load.size(), one.speed.full.size()); ++interval)
      seconds += load[interval] * one.speed.seconds_a_row(interval) / replicas;
    seconds += pipeline_ends(one.speed, load);
  }
  return seconds;
}

bool dominates(const Configuration& a, const Configuration& b) {
  if (a.gpus != b.gpus || a.speed.full.size() < b.speed.full.size() || a.speed.stages > b.speed.stages) return false;
  for (std::size_t interval = 0; interval < b.speed.full.size(); ++interval) {
    if (a.speed.seconds_a_row(interval) > b.speed.seconds_a_row(interval)) return false;
    if (a.speed.stages > 1 && a.speed.full[interval].seconds > b.speed.full[interval].seconds) return false;
  }
  return true;
}

}  // namespace

double pipeline_ends(const ReplicaSpeed& speed, const ExpectedLoad& load) {
  double longest = 0;
  for (std::size_t interval = 0; interval < std::min(speed.full.size(), load.size()); ++interval) {
    if (load[interval] < 1) continue;
    const double rows = std::min(load[interval], static_cast<double>(speed.full[interval].rows));
    longest = std::max(longest, rows * speed.seconds_a_row(interval));
  }
  return static_cast<double>(speed.stages - 1) * longest;
}

double expected_seconds(std::span<const Configuration> configurations, std::span<const std::int64_t> replicas,
                        const ExpectedLoads& loads) {
  std::vector<Filling> fillings;
  for (const ExpectedLoad& load : loads) fillings.emplace_back(configurations, load);
  const std::vector<double> at_least(loads.size(), 0.0);
  return seconds_of(fillings, at_least, replicas, most_seconds(configurations, loads));
}

FoundDeployments find_deployments(std::span<const Configuration> configurations, std::int64_t gpus,
                                  const ExpectedLoads& loads, std::size_t keep, std::int64_t most_looked_at) {
  Enumeration enumeration(configurations, loads, keep, most_looked_at);
  enumeration.run(gpus);
  if (enumeration.truncated()) enumeration.climb(gpus);
  FoundDeployments found = enumeration.take();
  found.bound = bound_of(configurations, gpus, loads);
  return found;
}

std::vector<std::size_t> worth_deploying(std::span<const Configuration> configurations, std::int64_t gpus,
                                         const ExpectedLoads& loads) {
  std::vector<std::size_t> worth;
  for (std::size_t c = 0; c < configurations.size(); ++c) {
    bool best = !configurations[c].speed.full.empty();
    for (std::size_t other = 0; other < configurations.size() && best; ++other) {
      if (other == c) continue;
      const Configuration &mine = configurations[c], &its = configurations[other];
      const bool earlier = other < c;
      if (dominates(its, mine) && (earlier || !dominates(mine, its))) best = false;
      if (its.gpus != mine.gpus || its.speed.full.size() != mine.speed.full.size()) continue;
      const double seconds = seconds_alone(mine, gpus, loads), others = seconds_alone(its, gpus, loads);
      if (others < seconds || (others == seconds && earlier)) best = false;
    }
    if (best) worth.push_back(c);
  }
  return worth;
}

}  // namespace braid::planner
