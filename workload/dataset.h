#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "costmodel/backbone.h"
#include "workload/sample.h"
#include "workload/tokenizer.h"
#include "workload/workload.h"

namespace braid::workload {

/// A sample's id is its place in `samples`.
struct Dataset {
  std::vector<Sample> samples;
  std::int64_t dropped = 0;    ///< longer than max_length, with on_too_long drop
  std::int64_t truncated = 0;  ///< with on_too_long truncate
};

/// Reads JSONL; every line is one of
///   {"input_ids": [...], "labels": [...]}  as they stand; labels may be left out, then they are the input_ids
///   {"text": "..."}                        BOS where the tokenizer prepends it, the text, EOS; all supervised
///   {"prompt": "...", "completion": "..."} likewise; only the completion and EOS supervised
///   {"messages": [{"role", "content"}]}    see chat.h
/// Blank lines are skipped. Each sample has 2 to task.max_length tokens, all of them the backbone's, and a supervised
/// label past the first. Throws Error "FILE:LINE: what; remedy" on the first line that is not so.
Dataset load_dataset(const std::filesystem::path& path, const Task& task, const Tokenizer& tokenizer,
                     const costmodel::BackboneShape& backbone);

std::vector<SampleSize> sample_sizes(const Dataset& dataset);

}  // namespace braid::workload
