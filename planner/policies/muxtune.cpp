#include "planner/muxtune/muxtune.h"

#include "planner/plan/recomputation.h"
#include "planner/policies/common_options.h"
#include "planner/policies/registry.h"
#include "planner/window/alignment.h"

namespace braid::planner {
namespace {

class MuxTune final : public Policy {
 public:
  std::string_view name() const override { return "muxtune"; }
  std::string_view summary() const override {
    return "tasks fused into hTasks, hTasks into buckets, aligned in chunks, in a structured pipeline (MuxTune)";
  }
  std::vector<PolicyOption> options() const override {
    return {{"fusion", {"one_pass", "literal", "off"}},
            {"orchestration", {"on", "off"}},
            {"launch", {"earliest", "shallowest"}},
            {"alignment", {"chunks", "packed", "zero"}},
            {"chunk", {"auto", "searched"}, kChunkUnit},
            {"pack", {"auto"}, kChunkUnit},
            {"padding", {"computed", "skipped"}},
            {"order", {"descending", "searched"}},
            {"drain", {"on", "off"}},
            {"pad_to", {padding_name(Padding::max_length), padding_name(Padding::none)}},
            transport_option(),
            recompute_option(true),
            sequence_parallel_option()};
  }
  bool shares_backbone() const override { return true; }
  /// Streams of replicas would end global batches in unlike orders.
  Parallelism parallelism(const OptionValues& options) const override {
    return {.tensor = true, .pipeline = true, .data = value_of(options, "drain") == "on"};
  }

  std::optional<Arrangement> arrange(const PolicyInput& input) const override {
    return arrange_muxtune(input, chosen(input));
  }
  std::optional<Sketch> sketch(const PolicyInput& input) const override { return sketch_muxtune(input, chosen(input)); }

 private:
  static MuxTuneOptions chosen(const PolicyInput& input) {
    const auto value = [&](std::string_view option) { return value_of(input.options, option); };
    MuxTuneOptions options;
    if (value("fusion") == "literal") options.fusion = MuxTuneOptions::Fusion::literal;
    if (value("fusion") == "off") options.fusion = MuxTuneOptions::Fusion::off;
    if (value("alignment") == "packed") options.alignment = MuxTuneOptions::Alignment::packed;
    if (value("alignment") == "zero") options.alignment = MuxTuneOptions::Alignment::zero_padding;
    options.searches_chunk_size = value("chunk") == "searched";
    if (value("chunk") != "auto" && !options.searches_chunk_size) options.chunk_size = std::stoll(value("chunk"));
    if (value("pack") != "auto") options.pack_length = std::stoll(value("pack"));
    if (value("order") == "searched") options.order = BucketSearch::searched;
    options.skips_padding = value("padding") == "skipped";
    options.pad_to = padding_of(input.options);
    options.drains = value("drain") == "on";
    if (value("launch") == "shallowest") options.launch = LaunchRule::shallowest;
    options.orchestration = value("orchestration") == "on";
    return options;
  }
  static std::string_view padding_name(Padding padding) { return planner::name(padding); }
};

}  // namespace

std::unique_ptr<Policy> make_muxtune() {
  return std::make_unique<MuxTune>();
}

}  // namespace braid::planner
