#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "costmodel/profile/profile.h"
#include "shell.h"

// The program as its user meets it: words in, text and status out.
namespace braid::cli::testing {

using braid::Outcome;
using braid::run_shell;

inline Outcome run_braid(const std::string& words) {
  return run_shell(std::string(BRAID_PROGRAM) + " " + words);
}

inline std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void write_text(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

/// A profile of made-up times in proportion to the work, so that planning needs no measurement: every operator of
/// `backbone` for these adapters.
inline costmodel::Profile made_up_profile(const costmodel::BackboneShape& backbone,
                                          const std::vector<costmodel::AdapterShape>& adapters) {
  using costmodel::Operator;
  using costmodel::Pass;
  costmodel::Profile profile;
  profile.machine = "made up";
  profile.versions = {"none"};
  profile.peak_flops = 1e11;
  profile.reference_pass_seconds = 1e-3;
  profile.memory_bytes = Bytes{8} << 30;
  const auto add = [&](Operator op, Pass pass, costmodel::OperatorShape shape, double seconds_a_unit,
                       std::int64_t context) {
    for (const std::int64_t tokens : {8, 1024, 1 << 22}) {
      costmodel::ProfileEntry entry;
      entry.op = op;
      entry.pass = pass;
      entry.shape = shape;
      entry.tokens = tokens;
      entry.context = context > 0 ? tokens : 0;
      entry.seconds = 2e-6 + seconds_a_unit * static_cast<double>(tokens);
      entry.count = 1;
      entry.source = "made up";
      profile.entries.push_back(entry);
    }
  };
  const std::int64_t hidden = backbone.hidden;
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::parameters}) {
    for (const auto& [in, out] :
         {std::pair(hidden, backbone.qkv_width()), std::pair(backbone.query_width(), hidden),
          std::pair(hidden, 2 * backbone.intermediate), std::pair(backbone.intermediate, hidden)}) {
      add(Operator::linear, pass, {in, out}, 2e-11 * static_cast<double>(in * out), 0);
    }
    for (const costmodel::AdapterShape& adapter : adapters) {
      for (const costmodel::ModuleGroup group : costmodel::kModuleGroups) {
        const costmodel::OperatorShape shape = costmodel::adapter_shape(backbone, adapter, group);
        if (shape[3] > 0)
          add(adapter.dropout > 0 ? Operator::lora_dropout : Operator::lora, pass, shape,
              1e-9 * static_cast<double>(shape[2]), 0);
      }
    }
    add(Operator::rms_norm, pass, {hidden}, 1e-9, 0);
    if (backbone.qk_norm)
      add(Operator::head_norm, pass, {backbone.heads, backbone.kv_heads, backbone.head_dim}, 1e-9, 0);
    add(Operator::rope, pass, {backbone.heads + backbone.kv_heads, backbone.head_dim}, 1e-9, 0);
    add(Operator::attention, pass, {backbone.heads, backbone.kv_heads, backbone.head_dim}, 2e-9, 1);
    add(Operator::swiglu, pass, {backbone.intermediate}, 1e-9, 0);
    add(Operator::dispatch, pass, {}, 0, 0);
  }
  add(Operator::residual, Pass::forward, {hidden}, 1e-10, 0);
  add(Operator::embedding, Pass::forward, {backbone.vocabulary, hidden}, 1e-9, 0);
  add(Operator::head_loss, Pass::forward, {hidden, backbone.vocabulary}, 4e-8, 0);
  add(Operator::squared_norm, Pass::forward, {}, 1e-9, 0);
  add(Operator::adamw, Pass::forward, {}, 2e-9, 0);
  add(Operator::send_recv, Pass::forward, {}, 1e-10, 0);
  for (const std::int64_t ranks : {2, 3, 4}) {
    add(Operator::all_reduce, Pass::forward, {ranks}, 2e-10, 0);
    add(Operator::all_gather, Pass::forward, {ranks}, 1e-10, 0);
  }
  return profile;
}

}  // namespace braid::cli::testing
