#include "workload/read_task.h"

#include <algorithm>
#include <cmath>

#include "workload/names.h"
#include "workload/read_adapter.h"
#include "workload/spellings.h"
#include "workload/sweep.h"

namespace braid::workload {
namespace {

constexpr std::int64_t kLeastTokens = 2;
constexpr std::int64_t kMostSamples = 100'000'000;
constexpr std::int64_t kMostSteps = 1'000'000'000;
constexpr std::int64_t kMostBatch = 1'000'000;

/// In (0, ∞).
double positive(const Node& node, std::string_view key, double value) {
  if (value > 0) return value;
  throw node.at(key).error(fmt::format("{} {} is not usable", key, value), fmt::format("give {} above 0", key));
}

/// In [0, 1).
double fraction_or(const Node& node, std::string_view key, double otherwise) {
  const double value = node.number_or(key, otherwise);
  if (value >= 0 && value < 1) return value;
  throw node.at(key).error(fmt::format("{} {} is not usable", key, value), fmt::format("give 0 <= {} < 1", key));
}

std::string read_name(const Node& node) {
  std::string name = node.as_string("name");
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  const bool fits = !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), good);
  if (!fits || name == "." || name == "..") {
    throw node.error(fmt::format("task name '{}' is not usable", name),
                     "give 1 to 128 letters, digits, '.', '_' or '-' (it names a folder)");
  }
  return name;
}

LengthDistribution read_lengths(const Node& node, const Task& task) {
  node.allow_only({"dist", "mean", "sigma", "skewness", "min", "max", "samples"});
  LengthDistribution lengths;
  lengths.kind = value_of(node.at("dist"), "dist", kDistributions);
  lengths.samples = node.integer_or("samples", lengths.samples, 1, kMostSamples);
  lengths.min = node.integer_or("min", kLeastTokens, kLeastTokens);
  lengths.max = node.integer_or("max", std::max(task.max_length, lengths.min), lengths.min);
  if (lengths.kind != LengthDistribution::Kind::uniform) {
    lengths.mean = node.number_at("mean", static_cast<double>(lengths.min), static_cast<double>(lengths.max));
  } else if (const Node* mean = node.find("mean")) {
    throw mean->error("a uniform distribution takes no mean", "give min and max");
  }
  if (lengths.kind == LengthDistribution::Kind::lognormal) {
    const Node* skewness = node.find("skewness");
    if (skewness && node.find("sigma"))
      throw skewness->error("sigma and skewness are both given, and one tells the other", "remove one of them");
    constexpr double kLeastSkewed = 1e-3, kMostSkewed = 1000;
    lengths.sigma = skewness ? sigma_of_skewness(node.number_at("skewness", kLeastSkewed, kMostSkewed))
                             : node.number_at("sigma", 0.0, 10.0);
  } else {
    for (const char* shape : {"sigma", "skewness"}) {
      if (const Node* given = node.find(shape))
        throw given->error(fmt::format("only a lognormal distribution takes {}", shape),
                           "remove it, or give dist: lognormal");
    }
  }
  if (lengths.max > task.max_length && task.on_too_long == OnTooLong::error) {
    throw(node.find("max") ? node.at("max") : node)
        .error(fmt::format("lengths up to {} are longer than max_length {}", lengths.max, task.max_length),
               "lower max, or set on_too_long to truncate or drop");
  }
  return lengths;
}

std::filesystem::path read_data_file(const Node& node, const TaskContext& context, const std::string& remedy) {
  std::filesystem::path file = resolve(context.folder, node.as_string("dataset"));
  if (context.files_must_exist && !std::filesystem::is_regular_file(file))
    throw node.error(fmt::format("{}: no such dataset", file.string()), remedy);
  return file;
}

void read_dataset(const Node& node, const TaskContext& context, Task& task) {
  if (node.is_map()) {
    node.allow_only({"lengths"});
    task.lengths = read_lengths(node.at("lengths"), task);
    return;
  }
  task.dataset = read_data_file(node, context, "give a JSONL file, or {lengths: {dist: , ...}} to plan without data");
}

Evaluation read_evaluation(const Node& node, const TaskContext& context, const Task& task) {
  allow_only_ours(node, "evaluation", {"fraction", "dataset", "every", "patience"});
  Evaluation evaluation;
  const Node* fraction = node.find("fraction");
  const Node* dataset = node.find("dataset");
  if (fraction && dataset)
    throw dataset->error("both a fraction of the data and a dataset are given to evaluate on", "keep one");
  if (!fraction && !dataset)
    throw node.error("nothing is given to evaluate on", "add fraction: 0.05, or dataset: FILE");
  if (fraction) {
    evaluation.fraction = node.number_at("fraction");
    if (!(evaluation.fraction > 0 && evaluation.fraction < 1))
      throw fraction->error(fmt::format("fraction {} is not usable", evaluation.fraction), "give 0 < fraction < 1");
  } else {
    if (task.lengths)
      throw dataset->error("a task of lengths has no dataset to learn from, and is given one to evaluate on",
                           "give a fraction of its samples");
    evaluation.dataset = read_data_file(*dataset, context, "give a JSONL file, or fraction: 0.05");
  }
  if (const Node* every = node.find("every")) evaluation.every = every->as_integer("every", 1, kMostSteps);
  evaluation.patience = node.integer_or("patience", 0, 0, kMostSteps);
  return evaluation;
}

Optimizer read_optimizer(const Node& node) {
  allow_only_ours(node, "optimizer",
                  {"type", "lr", "weight_decay", "warmup_steps", "schedule", "max_grad_norm", "beta1", "beta2",
                   "epsilon", "loraplus_lr_ratio"});
  if (const std::string type = node.string_or("type", "adamw"); type != "adamw") {
    throw node.at("type").error(fmt::format("unknown optimizer '{}'", type), "valid: adamw");
  }
  Optimizer optimizer;
  optimizer.lr = node.number_or("lr", optimizer.lr, 0.0);
  optimizer.weight_decay = node.number_or("weight_decay", optimizer.weight_decay, 0.0);
  optimizer.warmup_steps = node.integer_or("warmup_steps", optimizer.warmup_steps, 0);
  if (const Node* schedule = node.find("schedule")) optimizer.schedule = value_of(*schedule, "schedule", kSchedules);
  optimizer.max_grad_norm = node.number_or("max_grad_norm", optimizer.max_grad_norm, 0.0);
  optimizer.beta1 = fraction_or(node, "beta1", optimizer.beta1);
  optimizer.beta2 = fraction_or(node, "beta2", optimizer.beta2);
  optimizer.epsilon = positive(node, "epsilon", node.number_or("epsilon", optimizer.epsilon));
  optimizer.lora_plus_ratio =
      positive(node, "loraplus_lr_ratio", node.number_or("loraplus_lr_ratio", optimizer.lora_plus_ratio));
  return optimizer;
}

/// A name, or a map with more than that.
Objective read_objective(const Node& node) {
  Objective objective;
  if (!node.is_map()) {
    objective.kind = value_of(node, "objective", kObjectives);
    return objective;
  }
  objective.kind = value_of(node.at("type"), "type", kObjectives);
  if (!objective.pairs()) {
    allow_only_ours(node, "objective", {"type"});
    return objective;
  }
  allow_only_ours(node, "objective", {"type", "beta", "label_smoothing"});
  objective.beta = positive(node, "beta", node.number_or("beta", objective.beta));
  objective.label_smoothing = node.number_or("label_smoothing", 0, 0.0);
  if (!(objective.label_smoothing < 0.5))
    throw node.at("label_smoothing")
        .error(fmt::format("label_smoothing {} is not usable", objective.label_smoothing), "give one below 0.5");
  return objective;
}

/// Of the task's own search where none is named.
Search read_search(const Node& node, const Task& task) {
  allow_only_ours(node, "search", {"name", "metric", "halving", "keep", "at_once"});
  if (!task.evaluation)
    throw node.error("a search judges its tasks by what they are evaluated on", "add evaluation: {fraction: 0.05}");
  if (const std::string metric = node.string_or("metric", "eval_loss"); metric != "eval_loss")
    throw node.at("metric").error(fmt::format("unknown metric '{}'", metric), "valid: eval_loss");
  Search search;
  search.name = node.find("name") ? read_name(node.at("name")) : task.name;
  search.halving = node.integer_or("halving", search.halving, 2, kMostSwept);
  search.keep = node.integer_or("keep", search.keep, 1, kMostSwept);
  search.at_once = node.integer_or("at_once", search.at_once, 1, kMostSwept);
  return search;
}

void read_duration(const Node& node, Task& task) {
  const Node* steps = node.find("steps");
  const Node* epochs = node.find("epochs");
  if (steps && epochs) throw epochs->error("both steps and epochs are given", "keep one");
  if (!steps && !epochs) throw node.error("neither steps nor epochs is given", "add steps or epochs");
  if (steps) task.steps = steps->as_integer("steps", 1, kMostSteps);
  if (epochs) task.epochs = epochs->as_integer("epochs", 1, kMostSteps);
}

std::int64_t read_max_length(const Node& node, const TaskContext& context) {
  const std::int64_t max_length = node.as_integer("max_length");
  if (max_length < kLeastTokens || max_length > context.max_position) {
    throw node.error(
        fmt::format("max_length {} is not usable", max_length),
        fmt::format("give one in {}..{}, the positions of this backbone", kLeastTokens, context.max_position));
  }
  if (context.sliding_window > 0 && max_length > context.sliding_window) {
    throw node.error(
        fmt::format("max_length {} is longer than this backbone's sliding_window, which is not supported", max_length),
        fmt::format("give one up to {}, where the window hides nothing", context.sliding_window));
  }
  return max_length;
}

/// Keys of a prefix take positions, and are in the window, as well as tokens.
void leave_room_for_prefix(const Node& node, const TaskContext& context, const Task& task) {
  const std::int64_t tokens = task.adapter.virtual_tokens();
  const std::int64_t most =
      context.sliding_window > 0 ? std::min(context.max_position, context.sliding_window) : context.max_position;
  if (tokens == 0 || task.max_length + tokens <= most) return;
  throw node.at("max_length")
      .error(fmt::format("max_length {} and the prefix's {} tokens are more than the {} positions that there are",
                         task.max_length, tokens, most),
             "lower one of them");
}

/// LoRA+ is of adapters with a B.
void check_optimizer(const Node& node, const Task& task) {
  using costmodel::AdapterMethod;
  const bool has_b = task.adapter.method == AdapterMethod::lora || task.adapter.method == AdapterMethod::dora;
  if (!has_b && task.optimizer.lora_plus_ratio != 1)
    throw node.at("optimizer")
        .at("loraplus_lr_ratio")
        .error(fmt::format("an adapter of type {} has no B to learn faster", name(task.adapter.method)),
               "leave it out");
}

}  // namespace

std::filesystem::path resolve(const std::filesystem::path& folder, const std::filesystem::path& path) {
  const std::filesystem::path whole = std::filesystem::absolute(folder / path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

Task read_task(const Node& node, const TaskContext& context) {
  allow_only_ours(node, "task",
                  {"name", "dataset", "max_length", "on_too_long", "adapter", "global_batch_size", "steps", "epochs",
                   "optimizer", "seed", "priority", "chat", "objective", "evaluation", "search"});
  Task task;
  task.name = read_name(node.at("name"));
  task.max_length = read_max_length(node.at("max_length"), context);
  if (const Node* choice = node.find("on_too_long")) task.on_too_long = value_of(*choice, "on_too_long", kOnTooLong);
  if (const Node* objective = node.find("objective")) task.objective = read_objective(*objective);
  read_dataset(node.at("dataset"), context, task);
  task.adapter = read_adapter(node.at("adapter"), context, task.init_from);
  leave_room_for_prefix(node, context, task);
  task.global_batch_size = node.integer_at("global_batch_size", 1, kMostBatch);
  read_duration(node, task);
  if (const Node* optimizer = node.find("optimizer")) task.optimizer = read_optimizer(*optimizer);
  check_optimizer(node, task);
  task.seed = static_cast<std::uint64_t>(node.integer_or("seed", 0, 0));
  task.priority = node.integer_or("priority", 0);
  if (const Node* evaluation = node.find("evaluation")) task.evaluation = read_evaluation(*evaluation, context, task);
  if (const Node* search = node.find("search")) task.search = read_search(*search, task);
  if (const Node* chat = node.find("chat")) task.chat = value_of(*chat, "chat", kChatLayouts);
  return task;
}

}  // namespace braid::workload
