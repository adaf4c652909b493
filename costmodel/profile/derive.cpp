#include "costmodel/profile/derive.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "costmodel/profile/cost_model.h"

namespace braid::costmodel {
namespace {

constexpr std::int64_t kFewestTokens = 16;

}  // namespace

std::vector<ProfileEntry> derived_entries(const Profile& profile, const BackboneShape& backbone,
                                          std::span<const AdapterShape> adapters, std::int64_t most_tokens,
                                          std::int64_t longest_context) {
  const Device& device = device_of(profile.device);
  const Roofline roofline(profile);
  const Storage storage = profile.storage();
  using Key = std::tuple<Operator, Pass, OperatorShape, std::int64_t, std::int64_t>;
  std::map<Key, double> seconds;
  for (std::int64_t tokens = kFewestTokens; tokens <= std::max(most_tokens, longest_context); tokens *= 2) {
    MicrobatchLoad load;
    load.tokens = tokens;
    load.scored = tokens;
    if (tokens <= longest_context) load.sequences = {{0, tokens}};
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      for (const AdapterShape& adapter : adapters) {
        load.tasks = {{adapter, tokens}};
        for (const OperatorCall& call : stage_operators(backbone, {2, true, true}, load, pass, storage))
          if (tokens <= most_tokens || call.op == Operator::attention)
            seconds[{call.op, call.pass, call.shape, call.tokens, call.context}] = roofline.seconds(call);
      }
    }
  }
  std::vector<ProfileEntry> entries;
  for (const auto& [key, time] : seconds) {
    ProfileEntry entry;
    std::tie(entry.op, entry.pass, entry.shape, entry.tokens, entry.context) = key;
    entry.dtype = name(profile.dtype);
    entry.seconds = time;
    entry.source = fmt::format("{} from the datasheet of {}", kDerived, device.name);
    entries.push_back(entry);
  }
  return entries;
}

std::vector<Disagreement> compare_profiles(const Profile& first, const Profile& other, std::int64_t& unanswered) {
  const CostModel answers(other, Curves::raw);
  std::vector<Disagreement> disagreements;
  unanswered = 0;
  for (const ProfileEntry& entry : first.entries) {
    if (entry.dtype != name(other.dtype)) {
      ++unanswered;
      continue;
    }
    const bool attends = entry.op == Operator::attention;
    OperatorCall call{entry.op, entry.pass, entry.shape, entry.tokens, entry.context, entry.prefix, 1};
    if (attends) {
      // Sequences, or chunks, of one length; calls are of one.
      call.tokens = entry.chunk();
      call.count = static_cast<double>(entry.tokens) / static_cast<double>(std::max<std::int64_t>(entry.chunk(), 1));
    }
    try {
      disagreements.push_back({entry, answers.estimate(call).seconds});
    } catch (const Error&) {
      ++unanswered;
    }
  }
  return disagreements;
}

}  // namespace braid::costmodel
