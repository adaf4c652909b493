#include "planner/lobra/deployment_model.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace braid::planner {
namespace {

/// Where replicas of a configuration are counted: from a variable on, one for each number from 1 on.
struct Counted {
  std::int32_t first = 0;
  std::int64_t most = 0;
};

std::vector<Counted> counted(std::span<const Configuration> configurations, std::int64_t gpus) {
  std::vector<Counted> places;
  std::int32_t next = 0;
  for (const Configuration& one : configurations) {
    places.push_back({next, gpus / one.gpus});
    next += static_cast<std::int32_t>(places.back().most);
  }
  return places;
}

class Builder {
 public:
  Builder(std::span<const Configuration> configurations, std::int64_t gpus, double most_seconds)
      : configurations_(configurations),
        gpus_(gpus),
        most_(most_seconds),
        counted_(counted(configurations, gpus)),
        model_("deployment") {}

  milp::Model run(const ExpectedLoads& loads, std::span<const std::int64_t> given) {
    add_replicas(given);
    for (std::size_t load = 0; load < loads.size(); ++load) add_load(load, loads[load]);
    return std::move(model_);
  }

 private:
  void add_replicas(std::span<const std::int64_t> given) {
    milp::Row all{"gpus", -milp::kInfinity, static_cast<double>(gpus_), {}};
    std::vector<milp::Row> once;
    for (std::size_t c = 0; c < configurations_.size(); ++c) {
      milp::Row& one = once.emplace_back(milp::Row{fmt::format("replicas{}_once", c), -milp::kInfinity, 1, {}});
      for (std::int64_t count = 1; count <= counted_[c].most; ++count) {
        milp::Variable variable{fmt::format("replicas{}_are{}", c, count), 0, 1, 0, true};
        if (!given.empty()) variable.low = variable.high = given[c] == count ? 1 : 0;
        const std::int32_t place = model_.add(std::move(variable));
        one.terms.push_back({place, 1});
        all.terms.push_back({place, static_cast<double>(count * configurations_[c].gpus)});
      }
    }
    for (milp::Row& one : once) {
      if (!one.terms.empty()) model_.add(std::move(one));
    }
    model_.add(std::move(all));
  }

  void add_load(std::size_t load, const ExpectedLoad& sequences) {
    const std::int32_t seconds = model_.add(milp::Variable{fmt::format("seconds{}", load), 0, most_, 1, false});
    std::vector<milp::Row> all;
    for (std::size_t interval = 0; interval < sequences.size(); ++interval)
      all.push_back({fmt::format("load{}_interval{}", load, interval), sequences[interval], sequences[interval], {}});
    for (std::size_t c = 0; c < configurations_.size(); ++c) {
      const ReplicaSpeed& speed = configurations_[c].speed;
      milp::Row busy{fmt::format("load{}_replicas{}_busy", load, c), -milp::kInfinity, 0, {}};
      for (std::size_t interval = 0; interval < std::min(sequences.size(), speed.full.size()); ++interval) {
        if (sequences[interval] <= 0) continue;
        const std::int32_t taken = model_.add(milp::Variable{
            fmt::format("load{}_replicas{}_interval{}", load, c, interval), 0, sequences[interval], 0, false});
        all[interval].terms.push_back({taken, 1});
        busy.terms.push_back({taken, speed.seconds_a_row(interval)});
      }
      if (busy.terms.empty()) continue;
      add_usable(load, c, pipeline_ends(speed, sequences), seconds, busy);
      model_.add(std::move(busy));
    }
    for (std::size_t interval = 0; interval < sequences.size(); ++interval) {
      if (sequences[interval] > 0) model_.add(std::move(all[interval]));
    }
  }

  /// Seconds of each replica beside its pipeline's ends, once for every number of replicas; only those of the number
  /// that there are may be used.
  void add_usable(std::size_t load, std::size_t c, double ends, std::int32_t seconds, milp::Row& busy) {
    milp::Row usable{fmt::format("load{}_replicas{}_usable", load, c), -milp::kInfinity, 0, {}};
    for (std::int64_t count = 1; count <= counted_[c].most; ++count) {
      const std::string name = fmt::format("load{}_replicas{}_are{}", load, c, count);
      const std::int32_t part = model_.add(milp::Variable{name, 0, most_, 0, false});
      const auto counts = static_cast<std::int32_t>(counted_[c].first + count - 1);
      model_.add(milp::Row{name + "_if", -milp::kInfinity, 0, {{part, 1}, {counts, -most_}}});
      usable.terms.push_back({part, 1});
      busy.terms.push_back({part, -static_cast<double>(count)});
    }
    if (ends > 0) {
      // A replica that has nothing to do has no ends.
      const std::int32_t used =
          model_.add(milp::Variable{fmt::format("load{}_replicas{}_used", load, c), 0, 1, 0, true});
      milp::Row idle{fmt::format("load{}_replicas{}_idle", load, c), -milp::kInfinity, 0, usable.terms};
      idle.terms.push_back({used, -most_});
      model_.add(std::move(idle));
      usable.terms.push_back({used, ends});
    }
    usable.terms.push_back({seconds, -1});
    model_.add(std::move(usable));
  }

  std::span<const Configuration> configurations_;
  std::int64_t gpus_;
  double most_;
  std::vector<Counted> counted_;
  milp::Model model_;
};

/// More than any deployment takes that holds everything.
double far_too_long(std::span<const Configuration> configurations, std::span<const std::int64_t> replicas,
                    const ExpectedLoads& loads) {
  return 2 * expected_seconds(configurations, replicas, loads);
}

}  // namespace

milp::Model deployment_model(std::span<const Configuration> configurations, std::int64_t gpus,
                             const ExpectedLoads& loads, double most_seconds) {
  return Builder(configurations, gpus, most_seconds).run(loads, {});
}

DeploymentChoice deployment_of(std::span<const double> values, std::span<const Configuration> configurations,
                               std::int64_t gpus, const milp::Model& model) {
  DeploymentChoice choice;
  for (const Counted& place : counted(configurations, gpus)) {
    std::int64_t replicas = 0;
    for (std::int64_t count = 1; count <= place.most; ++count) {
      if (values[static_cast<std::size_t>(place.first + count - 1)] > 0.5) replicas = count;
    }
    choice.replicas.push_back(replicas);
  }
  choice.seconds = model.cost_of(values);
  return choice;
}

FractionalDispatch fractional_dispatch(std::span<const Configuration> configurations, std::int64_t gpus,
                                       std::span<const std::int64_t> replicas, const ExpectedLoads& loads) {
  const double most = far_too_long(configurations, replicas, loads);
  if (std::isinf(most)) return {};
  const milp::Solution found = milp::solve(Builder(configurations, gpus, most).run(loads, replicas), {});
  if (!found.found()) return {};
  return {found.values, found.cost};
}

}  // namespace braid::planner
