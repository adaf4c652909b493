#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/links/collective_model.h"

namespace braid::costmodel::studies {

/// Rings or messages measured elsewhere (Vidur's profiles) over one kind of link in one kind of host.
struct ReferenceCollectives {
  std::string network;
  std::string_view gpu;
  Link link;
  std::vector<CollectivePoint> points;
};

inline constexpr std::string_view kReferenceCollectiveColumns =
    "network,collective,workers,devices_per_node,size_bytes,median_ms";

/// The rows of a table with those columns whose wire is known: NVLink inside nodes of A100 and H100; PCIe 4 and 5 where
/// NVLink joins only pairs and four GPUs meet; the DGX H100's 400 Gbit/s adapters. Left out: the other adapters, which
/// the table does not name; the A40's sends, which do not look like NVLink; and the H100 pairs' sends, which repeat the
/// A100's to the digit. Throws Error "FILE:LINE: ..." for a row that is not so.
std::vector<ReferenceCollectives> read_reference_collectives(const std::filesystem::path& csv);

}  // namespace braid::costmodel::studies
