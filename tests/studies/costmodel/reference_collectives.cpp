#include "studies/costmodel/reference_collectives.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "studies/costmodel/reference_table.h"

namespace braid::costmodel::studies {
namespace {

struct Source {
  std::string_view network;
  std::string_view collective;  ///< empty: any
  std::int64_t workers = 0;     ///< 0: any number inside a node
  std::int64_t devices_per_node = 0;
  std::string_view gpu;
  std::string_view link;
};

constexpr std::array kSources = {
    Source{"a100_dgx", "", 0, 0, "a100-80", "nvlink"},
    Source{"a100_pairwise_nvlink", "", 2, 2, "a100-80", "nvlink"},
    Source{"a100_pairwise_nvlink", "all_reduce", 4, 4, "a100-80", "pcie4"},
    Source{"h100_dgx", "send_recv", 2, 1, "h100-sxm", "ib-400g"},
    Source{"h100_dgx", "", 0, 0, "h100-sxm", "nvlink"},
    Source{"h100_pairwise_nvlink", "all_reduce", 2, 2, "h100-sxm", "nvlink"},
    Source{"h100_pairwise_nvlink", "all_reduce", 4, 4, "h100-sxm", "pcie5"},
};

const Source* source_of(const ReferenceRow& row) {
  const std::int64_t workers = row.integer(2), devices = row.integer(3);
  const auto found = std::find_if(kSources.begin(), kSources.end(), [&](const Source& source) {
    const bool meets =
        source.workers == 0 ? workers == devices : workers == source.workers && devices == source.devices_per_node;
    return source.network == row.text(0) && (source.collective.empty() || source.collective == row.text(1)) && meets;
  });
  return found == kSources.end() ? nullptr : &*found;
}

Operator collective_of(const ReferenceRow& row) {
  if (row.text(1) == "all_reduce") return Operator::all_reduce;
  if (row.text(1) == "send_recv") return Operator::send_recv;
  throw error_at(row.file, row.line, fmt::format("unknown collective '{}'", row.text(1)),
                 "give all_reduce or send_recv");
}

}  // namespace

std::vector<ReferenceCollectives> read_reference_collectives(const std::filesystem::path& csv) {
  std::vector<ReferenceCollectives> groups;
  for (const ReferenceRow& row : read_reference_table(csv, kReferenceCollectiveColumns)) {
    if (row.integer(2) < 2) throw error_at(row.file, row.line, "a collective of one worker", "give 2 or more");
    const CollectivePoint point{collective_of(row), row.number(4), row.integer(2), row.number(5) * 1e-3};
    const Source* source = source_of(row);
    if (!source) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const ReferenceCollectives& known) {
      const bool messages = known.points.front().op == Operator::send_recv;
      return known.network == row.text(0) && known.link.name == source->link &&
             messages == (point.op == Operator::send_recv);
    });
    if (group == groups.end()) {
      groups.push_back({row.text(0), source->gpu, named_link(source->link, device_of(source->gpu)), {}});
      group = std::prev(groups.end());
    }
    group->points.push_back(point);
  }
  return groups;
}

}  // namespace braid::costmodel::studies
