#include "planner/bins/bin_models.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace braid::planner {
namespace {

/// Items that nobody tells apart.
struct ItemClass {
  std::int32_t adapter = 0;
  std::int64_t tokens = 0;
  std::vector<std::int32_t> places;
};

/// The longest first, those of one length by adapter.
std::vector<ItemClass> classes_of(std::span<const BinItem> items) {
  std::map<std::pair<std::int64_t, std::int32_t>, std::vector<std::int32_t>> places;
  for (std::size_t i = 0; i < items.size(); ++i)
    places[{-items[i].tokens, items[i].adapter}].push_back(static_cast<std::int32_t>(i));
  std::vector<ItemClass> classes;
  for (auto& [key, mine] : places) classes.push_back({key.second, -key.first, std::move(mine)});
  return classes;
}

/// Where variables lie: bin by bin the number of each class, the tiles of each adapter, and whether the bin is used.
struct BinVariables {
  std::vector<ItemClass> classes;
  std::vector<std::int32_t> adapters;  // ascending

  explicit BinVariables(std::span<const BinItem> items) : classes(classes_of(items)) {
    for (const ItemClass& one : classes) adapters.push_back(one.adapter);
    std::sort(adapters.begin(), adapters.end());
    adapters.erase(std::unique(adapters.begin(), adapters.end()), adapters.end());
  }

  std::int64_t stride() const { return static_cast<std::int64_t>(classes.size() + adapters.size()) + 1; }
  std::int32_t number(std::int64_t bin, std::size_t item_class) const {
    return static_cast<std::int32_t>(bin * stride() + static_cast<std::int64_t>(item_class));
  }
  std::int32_t tiles(std::int64_t bin, std::size_t adapter) const { return number(bin, classes.size() + adapter); }
  std::int32_t used(std::int64_t bin) const { return number(bin, classes.size() + adapters.size()); }
};

enum class Stage { fewest, emptiest };

milp::Model model_of(Stage stage, std::span<const BinItem> items, const BinRules& rules, std::int64_t bins) {
  const BinVariables layout(items);
  const std::int64_t most_tiles = rules.capacity / rules.multiple;
  milp::Model model(stage == Stage::fewest ? "fewest_bins" : "emptiest_bin");
  for (std::int64_t bin = 0; bin < bins; ++bin) {
    for (const ItemClass& one : layout.classes) {
      const auto most = std::min<std::int64_t>(static_cast<std::int64_t>(one.places.size()),
                                               most_tiles * rules.multiple / std::max<std::int64_t>(1, one.tokens));
      model.add(milp::Variable{fmt::format("bin{}_adapter{}_tokens{}", bin, one.adapter, one.tokens), 0,
                               static_cast<double>(most), 0, true});
    }
    const bool counts = stage == Stage::emptiest && bin + 1 == bins;
    for (const std::int32_t adapter : layout.adapters)
      model.add(milp::Variable{fmt::format("bin{}_adapter{}_tiles", bin, adapter), 0, static_cast<double>(most_tiles),
                               counts ? static_cast<double>(rules.multiple) : 0, true});
    model.add(milp::Variable{fmt::format("bin{}_used", bin), stage == Stage::fewest ? 0.0 : 1.0, 1,
                             stage == Stage::fewest ? 1.0 : 0.0, true});
  }
  for (std::size_t c = 0; c < layout.classes.size(); ++c) {
    const ItemClass& one = layout.classes[c];
    const auto count = static_cast<double>(one.places.size());
    milp::Row row{fmt::format("all_adapter{}_tokens{}", one.adapter, one.tokens), count, count, {}};
    for (std::int64_t bin = 0; bin < bins; ++bin) row.terms.push_back({layout.number(bin, c), 1});
    model.add(std::move(row));
  }
  for (std::int64_t bin = 0; bin < bins; ++bin) {
    milp::Row room{fmt::format("bin{}_room", bin), -milp::kInfinity, 0, {}};
    milp::Row some{fmt::format("bin{}_some", bin), 0, milp::kInfinity, {}};
    for (std::size_t a = 0; a < layout.adapters.size(); ++a) {
      milp::Row padded{fmt::format("bin{}_adapter{}_padded", bin, layout.adapters[a]), -milp::kInfinity, 0, {}};
      for (std::size_t c = 0; c < layout.classes.size(); ++c) {
        if (layout.classes[c].adapter == layout.adapters[a])
          padded.terms.push_back({layout.number(bin, c), static_cast<double>(layout.classes[c].tokens)});
      }
      padded.terms.push_back({layout.tiles(bin, a), -static_cast<double>(rules.multiple)});
      model.add(std::move(padded));
      room.terms.push_back({layout.tiles(bin, a), 1});
    }
    room.terms.push_back({layout.used(bin), -static_cast<double>(most_tiles)});
    model.add(std::move(room));
    // No bin of those that there are to be is empty.
    for (std::size_t c = 0; c < layout.classes.size(); ++c) some.terms.push_back({layout.number(bin, c), 1});
    some.terms.push_back({layout.used(bin), -1});
    model.add(std::move(some));
    if (stage == Stage::fewest && bin > 0)
      model.add(milp::Row{
          fmt::format("bin{}_after", bin), 0, milp::kInfinity, {{layout.used(bin - 1), 1}, {layout.used(bin), -1}}});
  }
  return model;
}

}  // namespace

milp::Model fewest_bins_model(std::span<const BinItem> items, const BinRules& rules, std::int64_t bins) {
  return model_of(Stage::fewest, items, rules, bins);
}

milp::Model emptiest_bin_model(std::span<const BinItem> items, const BinRules& rules, std::int64_t bins) {
  return model_of(Stage::emptiest, items, rules, bins);
}

std::vector<double> values_of(std::span<const Bin> packing, std::span<const BinItem> items, const BinRules& rules,
                              const milp::Model& model, std::int64_t bins) {
  const BinVariables layout(items);
  std::vector<double> values(model.variables().size(), 0.0);
  for (std::int64_t bin = 0; bin < std::min(bins, static_cast<std::int64_t>(packing.size())); ++bin) {
    std::map<std::int32_t, std::int64_t> of_adapter;
    for (const std::int32_t place : packing[static_cast<std::size_t>(bin)]) {
      const BinItem& item = items[static_cast<std::size_t>(place)];
      of_adapter[item.adapter] += item.tokens;
      const auto mine = std::find_if(layout.classes.begin(), layout.classes.end(), [&](const ItemClass& one) {
        return one.adapter == item.adapter && one.tokens == item.tokens;
      });
      values[static_cast<std::size_t>(layout.number(bin, static_cast<std::size_t>(mine - layout.classes.begin())))] +=
          1;
    }
    for (std::size_t a = 0; a < layout.adapters.size(); ++a) {
      const std::int64_t tokens = of_adapter[layout.adapters[a]];
      values[static_cast<std::size_t>(layout.tiles(bin, a))] =
          static_cast<double>((tokens + rules.multiple - 1) / rules.multiple);
    }
    values[static_cast<std::size_t>(layout.used(bin))] = 1;
  }
  return values;
}

std::vector<Bin> packing_of(std::span<const double> values, std::span<const BinItem> items, std::int64_t bins) {
  const BinVariables layout(items);
  std::vector<Bin> packing;
  std::vector<std::size_t> taken(layout.classes.size(), 0);
  for (std::int64_t bin = 0; bin < bins; ++bin) {
    Bin mine;
    for (std::size_t c = 0; c < layout.classes.size(); ++c) {
      const auto count =
          static_cast<std::int64_t>(std::llround(values[static_cast<std::size_t>(layout.number(bin, c))]));
      for (std::int64_t i = 0; i < count; ++i) mine.push_back(layout.classes[c].places[taken[c]++]);
    }
    std::sort(mine.begin(), mine.end());
    if (!mine.empty()) packing.push_back(std::move(mine));
  }
  return packing;
}

SolvedBins solve_bins(std::vector<Bin> packing, const PackingStages& stages, std::span<const BinItem> items,
                      const BinRules& rules, const milp::Limits& limits) {
  SolvedBins solved{std::move(packing)};
  const auto ask = [&](const milp::Model& model, const milp::Limits& within) {
    const auto bins = static_cast<std::int64_t>(solved.bins.size());
    const milp::Solution found = milp::solve(model, within, values_of(solved.bins, items, rules, model, bins));
    solved.bins = packing_of(found.values, items, bins);
    solved.truncated = solved.truncated || found.ended == milp::Ended::seconds;
    return found.ended == milp::Ended::proven;
  };
  if (stages.fewest) {
    const auto bins = static_cast<std::int64_t>(solved.bins.size());
    milp::Limits whole = limits;
    // Numbers of bins are whole: what is within less than one of the best is it.
    whole.gap = std::max(limits.gap, 0.99 / static_cast<double>(bins + 1));
    solved.fewest = ask(fewest_bins_model(items, rules, bins), whole);
  }
  if (!stages.emptiest) return solved;
  // The designated bin is the last, the others in any order.
  std::stable_sort(solved.bins.begin(), solved.bins.end(), [&](const Bin& a, const Bin& b) {
    return bin_tokens(items, a, rules) > bin_tokens(items, b, rules);
  });
  solved.emptiest = ask(emptiest_bin_model(items, rules, static_cast<std::int64_t>(solved.bins.size())), limits);
  return solved;
}

}  // namespace braid::planner
