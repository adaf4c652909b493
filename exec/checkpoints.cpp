#include "exec/checkpoints.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/named.h"
#include "base/node.h"
#include "base/steady_clock.h"
#include "exec/files/safetensors.h"

namespace braid::exec {

using planner::TaskIndex;

namespace {

constexpr const char* kManifest = "checkpoint.json";
constexpr std::int64_t kFormat = 1;

/// What a plan's files hashed to when it was made.
std::string hash_of(const planner::Plan& plan, const std::filesystem::path& file) {
  for (const auto& [name, hash] : plan.data_hashes)
    if (name == file.string()) return hash;
  return {};
}

/// Of all weights of the backbone, wherever they lie.
std::string backbone_hash(const planner::Plan& plan) {
  std::string all;
  for (const auto& [name, hash] : plan.data_hashes) {
    const std::filesystem::path file(name);
    if (file.extension() == ".safetensors" && file.parent_path() == plan.workload.backbone_folder) all += hash;
  }
  return hash_bytes(all);
}

/// Of a task that is as any other but for what `keep` copies of it.
template <typename Keep>
std::string hash_of_part(const workload::Task& task, const Keep& keep) {
  workload::Task part;
  keep(task, part);
  return hash_bytes(workload::to_json(part));
}

/// What decides which samples a step is of, and what it learns of them.
std::map<std::string, std::string> data_of(const planner::Plan& plan, const workload::Task& task) {
  using workload::Task;
  return {{"dataset", hash_of(plan, task.dataset)},
          {"global_batch_size", std::to_string(task.global_batch_size)},
          {"seed", std::to_string(task.seed)},
          {"max_length", std::to_string(task.max_length)},
          {"on_too_long", hash_of_part(task, [](const Task& of, Task& to) { to.on_too_long = of.on_too_long; })},
          {"evaluation fraction", fmt::format("{}", task.evaluation ? task.evaluation->fraction : 0)},
          {"chat layout", hash_of_part(task, [](const Task& of, Task& to) { to.chat = of.chat; })},
          {"objective", hash_of_part(task, [](const Task& of, Task& to) { to.objective = of.objective; })},
          {"adapter", hash_of_part(task, [](const Task& of, Task& to) { to.adapter = of.adapter; })}};
}

std::optional<std::int64_t> number_of(const std::filesystem::path& folder) {
  const std::string name = folder.filename().string();
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (status != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::string name_of(const EndedTasks& tasks, TaskIndex task) {
  const auto found = tasks.find(task);
  return std::string(name(found == tasks.end() ? Ended::no : found->second));
}

Ended ended_named(const Node& node) {
  constexpr Ended kAll[] = {Ended::no, Ended::diverged, Ended::cancelled, Ended::early, Ended::outranked};
  if (const std::optional<Ended> known = value_named(node.as_string("ended"), kAll)) return *known;
  throw node.error(fmt::format("a task ended '{}'", node.text), "give one of: " + names_of(kAll));
}

/// [[step, loss], ...]; JSON has no number for a loss that is not finite.
nlohmann::ordered_json json_of(const std::vector<Evaluated>& evaluations) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Evaluated& one : evaluations) {
    nlohmann::ordered_json loss;
    if (std::isfinite(one.loss)) loss = one.loss;
    list.push_back({one.step, loss});
  }
  return list;
}

std::vector<Evaluated> evaluations_of(const Node& line) {
  std::vector<Evaluated> evaluations;
  const Node* list = line.find("evaluations");
  if (!list) return evaluations;
  for (const Node& one : list->sequence("evaluations")) {
    const std::vector<Node>& pair = one.sequence("an evaluation");
    if (pair.size() != 2) throw one.error("an evaluation is a step and a loss", "leave checkpoints as they are");
    evaluations.push_back(
        {pair[0].as_integer("step", 1), pair[1].is_null() ? std::nan("") : pair[1].as_number("loss")});
  }
  return evaluations;
}

}  // namespace

std::vector<float> gather_layers(const std::vector<float>& mine, std::int64_t layer_numbers, Runner& runner,
                                 std::int64_t layers, Communicator& communicator) {
  const std::vector<std::string> parts =
      communicator.gather({reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(float)});
  if (communicator.rank() != 0) return {};
  const auto each = static_cast<std::size_t>(layer_numbers);
  std::vector<float> whole(static_cast<std::size_t>(layers) * each);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const RankPlace& place = runner.places()[rank];
    if (!place.tells_of_layers()) continue;
    const std::vector<std::int32_t>& numbers = place.layers.numbers();
    BRAID_CHECK(parts[rank].size() == numbers.size() * each * sizeof(float), "gathered {} bytes of {} layers",
                parts[rank].size(), numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i)
      std::memcpy(whole.data() + static_cast<std::size_t>(numbers[i]) * each,
                  parts[rank].data() + i * each * sizeof(float), each * sizeof(float));
  }
  return whole;
}

Checkpoints::Checkpoints(std::filesystem::path folder, const planner::Plan& plan, std::int64_t kept)
    : folder_(std::move(folder)), plan_(plan), kept_(kept) {}

/// Ascending.
std::vector<std::filesystem::path> Checkpoints::numbered() const {
  std::vector<std::pair<std::int64_t, std::filesystem::path>> found;
  if (!std::filesystem::is_directory(folder_)) return {};
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    if (const auto number = number_of(entry.path())) found.emplace_back(*number, entry.path());
  std::sort(found.begin(), found.end());
  std::vector<std::filesystem::path> folders;
  for (auto& [number, path] : found) folders.push_back(std::move(path));
  return folders;
}

std::filesystem::path Checkpoints::begin_next() {
  const std::vector<std::filesystem::path> before = numbered();
  const std::int64_t number = before.empty() ? 1 : *number_of(before.back()) + 1;
  const std::filesystem::path next = folder_ / std::to_string(number);
  std::error_code reason;
  std::filesystem::create_directories(next, reason);
  if (reason) throw Failure(fmt::format("{}: cannot be made ({})", next.string(), reason.message()));
  return next;
}

/// All but the newest whole ones, and those that were never whole.
void Checkpoints::prune() const {
  std::vector<std::filesystem::path> folders = numbered();
  std::reverse(folders.begin(), folders.end());
  std::int64_t whole = 0;
  for (const std::filesystem::path& folder : folders) {
    std::error_code ignored;
    const bool ended = std::filesystem::exists(folder / kManifest, ignored);
    if (ended && whole++ < kept_) continue;
    std::filesystem::remove_all(folder, ignored);
  }
}

/// A state that has not changed, from the checkpoint before.
void Checkpoints::take_over(const std::filesystem::path& before, const std::filesystem::path& file) {
  std::error_code failed;
  std::filesystem::create_hard_link(before, file, failed);
  if (failed) std::filesystem::copy_file(before, file, failed);  // a file system without links
  if (failed) throw Failure(fmt::format("{}: cannot be written ({})", file.string(), failed.message()));
}

/// Gathered from all ranks, on rank 0.
Adapter::State Checkpoints::whole_state(std::size_t task, Runner& runner, Communicator& communicator) const {
  const Adapter& adapter = *runner.adapters()[task];
  const Adapter::State mine = adapter.state_on_host();
  const auto whole = [&](const std::vector<float>& numbers) {
    return gather_layers(numbers, adapter.layer_numbers(), runner, plan_.workload.backbone.layers, communicator);
  };
  return {whole(mine.parameters), whole(mine.first_moments), whole(mine.second_moments)};
}

void Checkpoints::write_state(const Adapter::State& state, const std::filesystem::path& file) const {
  const std::int64_t layers = plan_.workload.backbone.layers;
  const std::vector<std::int64_t> shape = {layers, std::ssize(state.parameters) / layers};
  const NamedTensor tensors[] = {{"parameters", shape, state.parameters},
                                 {"first_moments", shape, state.first_moments},
                                 {"second_moments", shape, state.second_moments}};
  write_safetensors(file, tensors);
}

void Checkpoints::write(std::span<const std::int64_t> taken, const EndedTasks& ended, const Evaluations& evaluations,
                        Runner& runner, Communicator& communicator) {
  const SteadyClock::time_point began = SteadyClock::now();
  const bool writes = communicator.rank() == 0;
  const std::vector<workload::Task>& tasks = plan_.workload.tasks;
  std::filesystem::path next;
  std::optional<Failure> failed;
  // Rank 0 goes on gathering, as the others do.
  const auto attempt = [&](const auto& work) {
    if (!writes || failed) return;
    try {
      work();
    } catch (const Failure& failure) {
      failed = failure;
    }
  };
  attempt([&] { next = begin_next(); });
  std::vector<TaskState> standing(tasks.size());
  written_.resize(tasks.size());
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    standing[task].taken = taken[task];
    const std::filesystem::path file = next / (tasks[task].name + ".safetensors");
    if (!runner.adapters()[task] || (written_[task].written && written_[task].taken == taken[task])) {
      standing[task].written = written_[task].written;
      if (!standing[task].written) continue;  // it waits, and has never run
      standing[task].hash = written_[task].hash;
      attempt([&] { take_over(written_[task].file, file); });
    } else {
      standing[task].written = true;
      const Adapter::State state = whole_state(task, runner, communicator);
      attempt([&] {
        write_state(state, file);
        standing[task].hash = hash_file(file);
        spent_bytes_ += static_cast<Bytes>(std::filesystem::file_size(file));
      });
    }
    standing[task].file = file;
  }
  attempt([&] {
    write_file(next / kManifest, manifest(standing, ended, evaluations));
    prune();
  });
  // All ranks tell alike what is written: rank 0's failure is no rank's next checkpoint.
  spent_seconds_ += seconds_since(began);
  std::uint8_t whole = failed ? 0 : 1;
  communicator.broadcast(std::as_writable_bytes(std::span(&whole, 1)));
  if (whole) {
    written_ = std::move(standing);
  } else {  // of what was there before, nothing is relied on
    for (std::size_t task = 0; task < tasks.size(); ++task) written_[task].written &= !runner.adapters()[task];
  }
  if (whole) return;
  if (!failed) throw Failure("rank 0 could not keep the run's state");
  std::error_code ignored;
  if (!next.empty()) std::filesystem::remove_all(next, ignored);
  throw Failure(*failed);
}

std::string Checkpoints::manifest(std::span<const TaskState> standing, const EndedTasks& ended,
                                  const Evaluations& evaluations) const {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (std::size_t task = 0; task < standing.size(); ++task) {
    nlohmann::ordered_json line = {{"task", plan_.workload.tasks[task].name},
                                   {"steps_taken", standing[task].taken},
                                   {"ended", name_of(ended, static_cast<TaskIndex>(task))},
                                   {"data", data_of(plan_, plan_.workload.tasks[task])},
                                   {"xxh3", standing[task].hash}};  // empty: it has no file
    if (const std::vector<Evaluated>& told = evaluations.of(static_cast<TaskIndex>(task)); !told.empty())
      line["evaluations"] = json_of(told);
    lines.push_back(std::move(line));
  }
  const nlohmann::ordered_json all = {{"format", kFormat}, {"backbone", backbone_hash(plan_)}, {"tasks", lines}};
  return all.dump(1) + "\n";
}

std::optional<Checkpoint> Checkpoints::newest() const {
  std::vector<std::filesystem::path> folders = numbered();
  std::vector<std::string> notices;
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    if (!std::filesystem::exists(*folder / kManifest)) continue;  // never whole
    if (std::optional<Checkpoint> found = read(*folder)) {
      found->notices.insert(found->notices.begin(), notices.begin(), notices.end());
      return found;
    }
    notices.push_back(fmt::format("{}: is not what was written; the checkpoint before it is taken", folder->string()));
  }
  if (!notices.empty()) throw error("{}; but there is none: begin the run anew", notices.back());
  return std::nullopt;
}

/// Nothing where a file is not what was written.
std::optional<Checkpoint> Checkpoints::read(const std::filesystem::path& folder) const {
  const std::filesystem::path file = folder / kManifest;
  Node node;
  try {
    node = parse_json(read_file(file), file.string());
  } catch (const Error&) {
    return std::nullopt;
  }
  node.at("format").as_integer("format", kFormat, kFormat);
  if (node.string_at("backbone") != backbone_hash(plan_))
    throw error("{}: is of another backbone than {}; go on with the one that the run began with", file.string(),
                plan_.workload.backbone_folder.string());
  Checkpoint checkpoint{folder, std::vector<TaskState>(plan_.workload.tasks.size()), {}};
  for (const Node& line : node.at("tasks").sequence("tasks")) {
    const std::string name = line.string_at("task");
    const auto task = std::ranges::find(plan_.workload.tasks, name, &workload::Task::name);
    if (task == plan_.workload.tasks.end()) {
      checkpoint.notices.push_back(fmt::format("{}: is no longer a task of the run; it does not go on", name));
      continue;
    }
    std::filesystem::path state = folder / (name + ".safetensors");
    const std::string hash = line.string_at("xxh3");
    if (hash.empty()) {
      state.clear();
    } else if (!std::filesystem::exists(state) || hash_file(state) != hash) {
      return std::nullopt;
    }
    for (const auto& [key, now] : data_of(plan_, *task)) {
      const Node* then = line.at("data").find(key);  // of older builds there are fewer
      if (then && then->as_string(key) != now)
        throw error(
            "{}: the {} of task {} has changed since, so its steps would be others; change it back, or begin "
            "the task anew under another name",
            file.string(), key, name);
    }
    checkpoint.tasks[static_cast<std::size_t>(task - plan_.workload.tasks.begin())] = {
        line.integer_at("steps_taken", 0),
        ended_named(line.at("ended")),
        state,
        evaluations_of(line),
        !hash.empty(),
        hash};
  }
  return checkpoint;
}

void restore(const Checkpoint& checkpoint, const workload::Workload& workload, Runner& runner) {
  for (std::size_t task = 0; task < checkpoint.tasks.size(); ++task) {
    const TaskState& state = checkpoint.tasks[task];
    if (state.file.empty() || !runner.adapters()[task]) continue;
    Adapter& adapter = *runner.adapters()[task];
    const SafetensorsFolder file = SafetensorsFolder::open_file(state.file);
    const std::vector<std::int64_t> shape = {workload.backbone.layers, adapter.layer_numbers()};
    const TensorInfo* found = file.find("parameters");
    if (!found || found->shape != shape)
      throw error(
          "{}: is of another adapter than task {} has now; give the task the adapter that it began with, or "
          "begin it anew under another name",
          state.file.string(), workload.tasks[task].name);
    const auto each = static_cast<std::size_t>(adapter.layer_numbers());
    const auto mine = [&](const char* name) {
      const std::vector<float> whole = file.read_f32(name, shape);
      std::vector<float> part;
      for (const std::int32_t layer : adapter.layers().numbers()) {
        const auto first = whole.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(layer) * each);
        part.insert(part.end(), first, first + static_cast<std::ptrdiff_t>(each));
      }
      return part;
    };
    adapter.restore({mine("parameters"), mine("first_moments"), mine("second_moments")});
  }
}

}  // namespace braid::exec
