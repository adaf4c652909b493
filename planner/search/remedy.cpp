#include "planner/search/remedy.h"

#include <algorithm>

#include "base/error.h"
#include "planner/plan/recomputation.h"
#include "planner/policies/common_options.h"
#include "planner/policies/registry.h"
#include "planner/search/fewer_tokens.h"
#include "planner/search/larger_cluster.h"
#include "planner/search/plan_search.h"
#include "planner/search/ways.h"

namespace braid::planner {
namespace {

using workload::Cluster;

/// What gives up no more of a step's tokens goes before more GPUs.
constexpr double kSmallLoss = 0.5;

/// What is asked for beside tasks and ranks, and in words how it differs.
struct Terms {
  PolicyChoice choice;
  Overrides overrides;
  Preference preference = Preference::speed;
  std::string words = {};
};

std::string with(const Terms& terms, const std::string& change) {
  return terms.words.empty() ? change : fmt::format("{}, and {}", terms.words, change);
}

/// Each left out alone, then all.
std::vector<Terms> fewer_overrides(const Terms& asked) {
  using Field = std::optional<std::int64_t> Overrides::*;
  constexpr std::pair<Field, std::string_view> kFields[] = {
      {&Overrides::microbatches, "--microbatches"}, {&Overrides::tp, "--tp"}, {&Overrides::pp, "--pp"}};
  std::vector<Terms> fewer;
  std::vector<std::string_view> given;
  const auto without = [&](std::string_view name) -> Overrides& {
    given.push_back(name);
    Terms& terms = fewer.emplace_back(asked);
    terms.words = fmt::format("leave out {}", name);
    return terms.overrides;
  };
  for (const auto& [field, name] : kFields) {
    if (asked.overrides.*field) (without(name).*field).reset();
  }
  if (asked.overrides.split.kind == LayerSplit::Kind::given) without("--layers").split = {};
  if (given.size() > 1)
    fewer.push_back(
        {asked.choice, Overrides{}, asked.preference, fmt::format("leave out {}", fmt::join(given, " and "))});
  return fewer;
}

/// In the share of GPUs' memory that is left free otherwise.
std::vector<Terms> in_all_memory(const Terms& asked, const costmodel::Profile& profile) {
  const auto usable = [&](Preference preference) { return usable_memory(profile, preference).usable; };
  if (usable(asked.preference) >= usable(Preference::speed)) return {};
  Terms all = asked;
  all.preference = Preference::speed;
  all.words = with(asked, fmt::format("plan with --prefer {}, which leaves no memory free", name(all.preference)));
  return {std::move(all)};
}

/// Balanced ones where they were to be even: the last stage holds the head, too.
std::vector<Terms> other_layers(const Terms& asked) {
  if (asked.overrides.split.kind != LayerSplit::Kind::even) return {};
  if (!asked.choice.policy->parallelism(asked.choice.options).pipeline) return {};
  Terms balanced = asked;
  balanced.overrides.split.kind = LayerSplit::Kind::balanced;
  balanced.words = with(asked, "plan with --layers balanced");
  return {std::move(balanced)};
}

Terms with_choice(const Terms& asked, PolicyChoice choice) {
  std::string words = with(asked, fmt::format("plan with --policy {}", spelled(choice)));
  return {std::move(choice), asked.overrides, asked.preference, std::move(words)};
}

/// As much recomputation as it takes, where it was given.
std::vector<Terms> recomputing(const Terms& asked) {
  Terms free = asked;
  for (auto& [name, value] : free.choice.options) {
    if (name == kRecomputeOption && value != "auto") {
      value = "auto";
      free.words = with(asked, fmt::format("plan with --policy {}:{}=auto", spelled(free.choice), kRecomputeOption));
      return {std::move(free)};
    }
  }
  return {};
}

std::vector<Terms> other_options(const Terms& asked) {
  std::vector<Terms> others;
  const std::vector<PolicyOption> options = asked.choice.policy->options();
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i].name == kRecomputeOption) continue;
    for (const std::string_view value : options[i].values) {
      // What is searched is what is fast.
      if (value == "searched" || value == asked.choice.options[i].second) continue;
      PolicyChoice other = asked.choice;
      other.options[i].second = value;
      others.push_back(with_choice(asked, std::move(other)));
    }
  }
  return others;
}

/// The last of the list, which share most, first.
std::vector<Terms> other_policies(const Terms& asked) {
  std::vector<Terms> others;
  for (auto policy = policies().rbegin(); policy != policies().rend(); ++policy) {
    if (policy->get() == asked.choice.policy || (*policy)->unites()) continue;
    PolicyChoice other = parse_policy((*policy)->name());
    for (auto& [name, value] : other.options) {
      if (name == resident_option().name) value = "false";
    }
    others.push_back(with_choice(asked, std::move(other)));
  }
  return others;
}

class RemedySearch {
 public:
  RemedySearch(const PlanningInput& input, const PolicyChoice& choice)
      : input_(input), asked_{choice, input.overrides, input.preference}, left_(kMostPlansLaidOut) {}

  std::string run() {
    const std::vector<Terms> fewer = fewer_overrides(asked_);
    const Terms& free = fewer.empty() ? asked_ : fewer.back();
    const std::vector<Terms> free_policies = other_policies(free);
    for (const auto& others : {recomputing(asked_), in_all_memory(asked_, input_.cost.profile()), fewer,
                               other_layers(asked_), other_options(asked_), other_policies(asked_), free_policies}) {
      for (const Terms& terms : others) {
        if (fits(terms, input_)) return terms.words;
      }
    }
    std::vector<Terms> ways = {asked_};
    if (!fewer.empty()) ways.push_back(free);
    ways.insert(ways.end(), free_policies.begin(), free_policies.end());
    std::string large_loss;
    for (const Terms& way : ways) {
      const std::optional<Loss> loss = fewest_tokens_lost(way);
      if (loss && loss->share <= kSmallLoss) return with(way, in_words(*loss));
      if (const std::optional<Cluster> cluster = larger_cluster(way)) return with(way, in_words(*cluster));
      if (loss && large_loss.empty()) large_loss = with(way, in_words(*loss));
    }
    if (!large_loss.empty()) return large_loss;
    if (left_ <= 0)
      return fmt::format("of {} plans with less to do or more GPUs none fits; lower max_length, or use more GPUs yet",
                         kMostPlansLaidOut);
    return fmt::format("no option or policy fits, no max_length from {} up, no global_batch_size and no task alone{}",
                       std::max<std::int64_t>(2, length_step(input_.workload)),
                       on_cpus() ? "" : ", and no more GPUs do");
  }

 private:
  /// What the policy refuses does not fit.
  bool fits(const Terms& terms, const PlanningInput& input) {
    for (const auto& [choice, overrides] : ways_of(terms.choice, terms.overrides, !on_cpus())) {
      const PlanningInput changed{input.workload, input.cluster, input.samples,   input.cost,
                                  input.judge,    overrides,     terms.preference};
      try {
        PlanSearch search(changed, choice, left_);
        const bool found = search.any().has_value();
        left_ -= search.bench().laid_out();
        if (found) return true;
      } catch (const Error&) {
      }
    }
    return false;
  }

  bool on_cpus() const { return input_.cost.profile().device.empty(); }

  std::optional<Loss> fewest_tokens_lost(const Terms& terms) {
    const auto fits_work = [&](const workload::Workload& workload, const workload::SampleIndex& samples) {
      return fits(terms, {workload, input_.cluster, samples, input_.cost, input_.judge, {}});
    };
    return planner::fewest_tokens_lost(input_.workload, input_.samples, fits_work);
  }

  std::optional<Cluster> larger_cluster(const Terms& terms) {
    if (on_cpus()) return std::nullopt;
    const costmodel::Device& device = costmodel::device_of(input_.cost.profile().device);
    return smallest_that_fits(input_.cluster, device, [&](const Cluster& cluster) {
      costmodel::Profile profile = input_.cost.profile();
      if (profile.interconnect == input_.cluster.interconnect()) profile.interconnect = cluster.interconnect();
      const costmodel::CostModel cost(std::move(profile));
      return fits(terms, {input_.workload, cluster, input_.samples, cost, input_.judge, {}});
    });
  }

  static std::string in_words(const Loss& loss) {
    return fmt::format("{}, which gives up {:.1f} % of a step's tokens", loss.change, 100 * loss.share);
  }

  static std::string in_words(const Cluster& cluster) {
    if (cluster.nodes == 1) return fmt::format("use {} GPUs", cluster.gpus_per_node);
    return fmt::format("use {} nodes of {} GPU{}", cluster.nodes, cluster.gpus_per_node,
                       cluster.gpus_per_node == 1 ? "" : "s");
  }

  const PlanningInput& input_;
  Terms asked_;
  std::int64_t left_;  // plans to lay out
};

}  // namespace

std::string cheapest_remedy(const PlanningInput& input, const PolicyChoice& choice) {
  return RemedySearch(input, choice).run();
}

}  // namespace braid::planner
