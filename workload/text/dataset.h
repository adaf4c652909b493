#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "costmodel/shapes/backbone.h"
#include "workload/sample.h"
#include "workload/text/tokenizer.h"
#include "workload/workload.h"

namespace braid::workload {

/// A sample's id is its place in `samples`.
struct Dataset {
  std::vector<Sample> samples;
  std::int64_t held_out = 0;           ///< the last so many of `samples`, which the task is evaluated on
  std::int64_t dropped = 0;            ///< longer than max_length, with on_too_long drop
  std::int64_t truncated = 0;          ///< with on_too_long truncate, those among `samples`
  std::int64_t emptied = 0;            ///< left out, as on_too_long truncate cut all that was to be learned
  std::vector<std::string> unread;     ///< columns that were not read
  std::vector<std::string> preferred;  ///< which of two kinds rows were taken for: "messages, not text"
};

/// Reads the rows of a file (rows.h), each of which says one of (row.h)
///   tokens and labels    as they stand
///   a text               BOS where the tokenizer prepends it, the text, EOS; all supervised
///   prompt, completion   likewise; only the completion and EOS supervised, EOS alone where the completion is empty
///   a conversation       see chat.h
/// Of a task that learns from pairs, a pair of such rows. A BOS or EOS that the text itself has at that end is not put
/// there twice. Each sequence has 2 to task.max_length tokens, all of them the backbone's, and a supervised label past
/// the first. Throws Error "FILE:LINE: what; remedy" on the first row that is not so. `folder` is the backbone's, empty
/// for a built-in shape.
Dataset load_dataset(const std::filesystem::path& path, const Task& task, const Tokenizer& tokenizer,
                     const costmodel::BackboneShape& backbone, const std::filesystem::path& folder);

/// The samples that a task learns from, and behind them those that it is evaluated on: of another file, or a fraction of
/// its own, the same whatever else the task says. Throws as load_dataset does, and where a fraction leaves none.
Dataset load_task_data(const Task& task, const Tokenizer& tokenizer, const costmodel::BackboneShape& backbone,
                       const std::filesystem::path& folder);

/// Of the samples that are learned from.
std::vector<SampleSize> sample_sizes(const Dataset& dataset);
/// Of those that the task is evaluated on.
std::vector<SampleSize> held_out_sizes(const Dataset& dataset);

}  // namespace braid::workload
