#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/node.h"
#include "costmodel/shapes/adapter.h"
#include "costmodel/shapes/backbone.h"
#include "costmodel/shapes/data_type.h"
#include "workload/lengths.h"
#include "workload/objective.h"
#include "workload/text/chat_layout.h"

namespace braid::workload {

/// How the learning rate goes on after `warmup_steps` steps of linear rise.
enum class Schedule { linear, cosine, constant };

/// AdamW (Loshchilov and Hutter 2019).
struct Optimizer {
  double lr = 2e-4;
  double weight_decay = 0;
  std::int64_t warmup_steps = 0;
  Schedule schedule = Schedule::constant;
  double max_grad_norm = 0;  ///< 0: no clipping
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double lora_plus_ratio = 1;  ///< LoRA+: of the learning rate of B to that of all else

  bool operator==(const Optimizer&) const = default;
};

/// What happens to a sample of more than `max_length` tokens.
enum class OnTooLong {
  error,
  truncate,  ///< its first max_length tokens are kept
  drop,
};

/// Samples that a task does not learn from, by whose loss others may judge it.
struct Evaluation {
  double fraction = 0;            ///< of the dataset's samples, in (0, 1); 0 where `dataset` is given
  std::filesystem::path dataset;  ///< JSONL, absolute; empty where `fraction` is given
  std::int64_t every = 0;         ///< steps; 0: an epoch. And after the last step
  std::int64_t patience = 0;      ///< so many evaluations without a better loss end the task; 0: none do

  bool operator==(const Evaluation&) const = default;
};

/// A search among tasks, the best of which alone are trained to their end (exec/searches.h).
struct Search {
  std::string name;  ///< the same of all its tasks
  std::int64_t halving = 3;
  std::int64_t keep = 1;
  std::int64_t at_once = 0;  ///< how many of its tasks train, while the others wait; 0: all

  bool operator==(const Search&) const = default;
};

/// One tenant's fine-tuning.
struct Task {
  std::string name;                           ///< unique; may be a folder's name
  std::filesystem::path dataset;              ///< JSONL, absolute; empty when `lengths` stands for the data
  std::optional<LengthDistribution> lengths;  ///< for planning without data
  std::int64_t max_length = 0;                ///< tokens of a sequence; 2 up to the backbone's positions
  OnTooLong on_too_long = OnTooLong::error;
  costmodel::AdapterShape adapter;
  std::filesystem::path init_from;  ///< a PEFT adapter's folder to begin with, absolute; empty for a fresh adapter
  std::int64_t global_batch_size = 0;
  std::optional<std::int64_t> steps;  ///< just one of `steps` and `epochs` is set
  std::optional<std::int64_t> epochs;
  Optimizer optimizer;
  std::uint64_t seed = 0;
  std::int64_t priority = 0;
  Objective objective;
  std::optional<Evaluation> evaluation;
  std::optional<Search> search;    ///< of an evaluated task
  std::optional<ChatLayout> chat;  ///< takes the place of the folder's chat template

  /// Tokens that a sample has at the most.
  std::int64_t sample_tokens() const { return objective.sequences() * max_length; }
  bool operator==(const Task&) const = default;
};

struct Workload {
  std::filesystem::path file;             ///< absolute
  std::string backbone_reference;         ///< as written
  std::filesystem::path backbone_folder;  ///< absolute; empty for a built-in shape
  costmodel::BackboneShape backbone;
  bool reproducible = false;
  /// What the layers' frozen products are held as, where the file says it; else f32, or what a GPU's profile has.
  std::optional<costmodel::DataType> base_weights;
  costmodel::DataType held_weights() const { return base_weights.value_or(costmodel::DataType::f32); }
  std::vector<Task> tasks;

  bool operator==(const Workload&) const = default;
};

/// Reads workload.yaml. Paths in it count from its folder, and must exist. A folder goes before a built-in shape of the
/// same name. Throws Error "FILE:LINE: what; remedy".
Workload read_workload(const std::filesystem::path& file);

/// More tasks for a workload: one task, a list of them, or a file as read_workload takes it without a backbone; lists
/// of values make several, as there. Relative paths count from `folder`. Throws Error, and where a name is taken.
std::vector<Task> read_more_tasks(const std::filesystem::path& file, const std::filesystem::path& folder,
                                  const Workload& workload);
/// A task as read_more_tasks reads it, with every default spelled out.
std::string to_json(const Task& task);

/// The places of those tasks that train from the start: of a search as many of its first as it trains at once.
std::vector<std::size_t> first_tasks(const Workload& workload);

/// By what others find the backbone, from any folder: its name on the hub if it lies in the hub's cache, else the
/// folder.
std::string published_name(const Workload& workload);

/// The form embedded in plan.json, with every default spelled out, and the same workload read back from it. Reading
/// touches no other file, so that a plan can be looked at where its data is not.
std::string to_json(const Workload& workload);
Workload workload_from(const Node& node);

}  // namespace braid::workload
