#include "costmodel/profile/profile_facts.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace braid::costmodel {
namespace {

using CurveKey = std::tuple<Operator, Pass, std::string, OperatorShape, std::int64_t>;

/// Chunks of one length are a curve over their prefix.
CurveKey curve_of(const ProfileEntry& entry) {
  return {entry.op, entry.pass, entry.dtype, entry.shape, entry.prefix > 0 ? entry.chunk() : 0};
}

std::int64_t work_of(const ProfileEntry& entry) {
  if (entry.op != Operator::attention) return entry.tokens;
  return entry.prefix > 0 ? entry.prefix : entry.context;
}

/// Attention was measured on several sequences of one length.
double seconds_of(const ProfileEntry& entry) {
  if (entry.op != Operator::attention || entry.chunk() == 0) return entry.seconds;
  return entry.seconds * static_cast<double>(entry.chunk()) /
         static_cast<double>(std::max(entry.tokens, entry.chunk()));
}

/// The entries of each curve by work; of several with the same work the first.
std::map<CurveKey, std::map<std::int64_t, const ProfileEntry*>> curves_of(const Profile& profile) {
  std::map<CurveKey, std::map<std::int64_t, const ProfileEntry*>> curves;
  for (const ProfileEntry& entry : profile.entries) curves[curve_of(entry)].emplace(work_of(entry), &entry);
  return curves;
}

bool moves_numbers(Operator op) {
  switch (op) {
    case Operator::embedding:
    case Operator::rms_norm:
    case Operator::layer_norm:
    case Operator::head_norm:
    case Operator::rope:
    case Operator::swiglu:
    case Operator::gelu:
    case Operator::residual:
    case Operator::copy:
      return true;
    default:
      return false;
  }
}

void count_falls(const Profile& profile, ProfileFacts& facts) {
  for (const auto& [key, points] : curves_of(profile)) {
    const ProfileEntry* before = nullptr;
    for (const auto& [work, entry] : points) {
      if (before) {
        ++facts.neighbours;
        const double fall = 1 - seconds_of(*entry) / seconds_of(*before);
        if (fall > 0) ++facts.falls;
        facts.largest_fall = std::max(facts.largest_fall, fall);
      }
      before = entry;
    }
  }
}

void count_shards(const Profile& profile, ProfileFacts& facts) {
  std::map<std::tuple<Pass, std::string, std::int64_t, std::int64_t, std::int64_t>, double> products;
  for (const ProfileEntry& entry : profile.entries) {
    if (entry.op == Operator::linear)
      products[{entry.pass, entry.dtype, entry.tokens, entry.shape[0], entry.shape[1]}] = entry.seconds;
  }
  for (const auto& [key, seconds] : products) {
    const auto& [pass, dtype, tokens, in, out] = key;
    for (const std::int64_t tp : {2, 4, 8}) {
      for (const auto& [part_in, part_out] : {std::pair(in / tp, out), std::pair(in, out / tp)}) {
        if (part_in * part_out * tp != in * out) continue;
        const auto part = products.find({pass, dtype, tokens, part_in, part_out});
        if (part == products.end()) continue;
        ++facts.shards;
        if (part->second * static_cast<double>(tp) < seconds) ++facts.superlinear;
      }
    }
  }
}

void count_cached(const Profile& profile, ProfileFacts& facts) {
  if (profile.device.empty()) return;
  const Roofline roofline(profile);
  for (const ProfileEntry& entry : profile.entries) {
    if (!moves_numbers(entry.op)) continue;
    ++facts.moves;
    const double bytes = roofline.traffic({entry.op, entry.pass, entry.shape, entry.tokens});
    if (entry.seconds < bytes / roofline.device().memory_bandwidth) ++facts.beats_memory;
  }
}

OperatorCall call_of(const ProfileEntry& entry) {
  OperatorCall call{entry.op, entry.pass, entry.shape, entry.tokens, entry.context, entry.prefix};
  // Calls of attention are of one sequence.
  if (entry.op == Operator::attention) call.tokens = entry.chunk();
  return call;
}

}  // namespace

ProfileFacts facts_of(const Profile& profile) {
  ProfileFacts facts;
  count_falls(profile, facts);
  count_shards(profile, facts);
  count_cached(profile, facts);
  facts.largest_departure = CostModel(profile).largest_departure();
  return facts;
}

std::vector<HeldOutPoint> hold_out(const Profile& profile) {
  std::vector<HeldOutPoint> held_out;
  const auto curves = curves_of(profile);
  for (const auto& [key, points] : curves) {
    if (points.size() < 3) continue;
    // Chunks after no prefix are whole sequences.
    auto whole_key = key;
    std::get<4>(whole_key) = 0;
    const auto whole = whole_key == key ? curves.end() : curves.find(whole_key);
    for (auto point = std::next(points.begin()); point != std::prev(points.end()); ++point) {
      // What was derived would be foretold by what it was derived from.
      if (point->second->source.starts_with(kDerived)) continue;
      Profile rest = profile;
      rest.dtype = data_type_of(point->second->dtype);
      rest.entries.clear();
      for (const auto& [work, entry] : points) {
        if (work != point->first) rest.entries.push_back(*entry);
      }
      if (whole != curves.end()) {
        for (const auto& [work, entry] : whole->second) rest.entries.push_back(*entry);
      }
      ProfileEntry alone = *point->second;
      alone.seconds = seconds_of(alone);
      held_out.push_back({alone, CostModel(std::move(rest)).estimate(call_of(alone)).seconds});
    }
  }
  return held_out;
}

}  // namespace braid::costmodel
