#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "workload/import/settings.h"

namespace braid::workload {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// A row of instruction, input and output as the turns that LLaMA-Factory makes of it.
Json turns_of(const Json& row) {
  Json turns = Json::array();
  const auto text = [&](const char* key) {
    return row.contains(key) && row[key].is_string() ? row[key].get<std::string>() : "";
  };
  const auto add = [&](const char* role, const std::string& content) {
    turns.push_back({{"role", role}, {"content", content}});
  };
  if (const std::string system = text("system"); !system.empty()) add("system", system);
  if (row.contains("history") && row["history"].is_array()) {
    for (const Json& pair : row["history"]) {
      add("user", pair.at(0).get<std::string>());
      add("assistant", pair.at(1).get<std::string>());
    }
  }
  const std::string input = text("input");
  add("user", text("instruction") + (input.empty() ? "" : "\n" + input));
  add("assistant", text("output"));
  return turns;
}

/// What dataset_info.json says of the dataset, its rows written into `folder` where they need be.
ImportedRows factory_rows(Settings& settings, const fs::path& file, ImportFolder& folder, bool pairs) {
  const Node* named = settings.find("dataset");
  if (!named) throw settings.node().error("names no dataset", "add dataset: NAME");
  const std::vector<std::string> names = words_of(*named);
  if (names.size() != 1)
    throw named->error("several datasets are mixed",
                       "put their rows into one file, and name that in dataset_info.json");
  const fs::path data = file.parent_path() / settings.text("dataset_dir", "data");
  const fs::path info = data / "dataset_info.json";
  if (!fs::exists(info))
    throw named->error(fmt::format("{} is not there, which says where dataset {} lies", info.string(), names[0]),
                       "give dataset_dir as a folder that holds it");
  const Node known = parse_json(read_file(info), info.string());
  const Node* entry = known.find(names[0]);
  if (!entry) throw named->error(fmt::format("{} has no dataset {}", info.string(), names[0]), "add it there");
  const Node* where = entry->find("file_name");
  if (!where) throw entry->error(fmt::format("dataset {} is no file", names[0]), "download it, and add file_name");
  for (const auto& [key, value] : entry->fields) {
    if (key != "file_name" && key != "formatting" && key != "ranking" && key != "file_sha1")
      throw value.error(fmt::format("{} of a dataset is not supported", key),
                        "give the file the usual columns, and leave it out");
  }
  if (pairs != entry->bool_or("ranking", false))
    throw entry->error(pairs ? "stage dpo needs pairs" : "a dataset of pairs is for stage dpo", "name another dataset");
  const std::string formatting = entry->string_or("formatting", "alpaca");
  if (formatting != "alpaca" && formatting != "sharegpt")
    throw entry->at("formatting").error(fmt::format("unknown formatting '{}'", formatting), "valid: alpaca, sharegpt");
  std::vector<std::string> rows = json_rows(data / where->text);
  const std::int64_t most = settings.integer("max_samples", 0);
  const bool cut = most > 0 && std::ssize(rows) > most;
  if (cut) rows.resize(static_cast<std::size_t>(most));
  const bool laid_out = formatting == "alpaca" && !pairs;
  if (!cut && !laid_out) return {data / where->text, std::ssize(rows)};
  std::string text;
  std::int64_t number = 0;
  for (const std::string& row : rows)
    text +=
        (laid_out ? Json{{"messages", turns_of(alpaca_row(row, ++number, data / where->text))}}.dump() : row) + "\n";
  const fs::path written = fs::path(names[0] + ".jsonl");
  folder.write(written, text, data / where->text);
  return {written, std::ssize(rows)};
}

void read_factory_adapter(Settings& settings, ImportedTask& task) {
  const std::int64_t rank = settings.count("lora_rank", 8);
  task.adapter = {{"type", settings.flag("use_dora") ? "dora" : "lora"},
                  {"r", std::to_string(rank)},
                  {"alpha", std::to_string(settings.integer("lora_alpha", 2 * rank))},
                  {"dropout", yaml_number(settings.number("lora_dropout", 0))}};
  if (settings.flag("use_rslora")) task.adapter.emplace_back("rslora", "true");
  const Node* targets = settings.find("lora_target");
  const std::vector<std::string> modules = targets ? words_of(*targets) : std::vector<std::string>{"all"};
  task.adapter.emplace_back("target_modules",
                            modules == std::vector<std::string>{"all"} ? "all-linear" : yaml_list(modules));
}

void read_factory_optimizer(Settings& settings, ImportedTask& task, std::int64_t steps) {
  if (const Node* optimizer = settings.find("optim"); optimizer && !optimizer->text.starts_with("adamw_torch"))
    throw optimizer->error(fmt::format("optimizer {} is not supported", optimizer->text), "give adamw_torch");
  const std::string schedule = settings.text("lr_scheduler_type", "linear");
  if (schedule != "linear" && schedule != "cosine" && !schedule.starts_with("constant"))
    throw settings.node()
        .at("lr_scheduler_type")
        .error(fmt::format("schedule {} is not supported", schedule), "give linear, cosine or constant");
  std::int64_t warmup = settings.integer("warmup_steps", 0);
  if (const double ratio = settings.number("warmup_ratio", 0); warmup == 0)
    warmup = static_cast<std::int64_t>(std::ceil(ratio * static_cast<double>(steps)));
  task.optimizer = {{"type", "adamw"},
                    {"lr", yaml_number(settings.number("learning_rate", 5e-5))},
                    {"weight_decay", yaml_number(settings.number("weight_decay", 0))},
                    {"beta1", yaml_number(settings.number("adam_beta1", 0.9))},
                    {"beta2", yaml_number(settings.number("adam_beta2", 0.999))},
                    {"epsilon", yaml_number(settings.number("adam_epsilon", 1e-8))},
                    {"warmup_steps", std::to_string(warmup)},
                    {"schedule", schedule.starts_with("constant") ? "constant" : schedule},
                    {"max_grad_norm", yaml_number(settings.number("max_grad_norm", 1))}};
  if (const double ratio = settings.number("loraplus_lr_ratio", 0); ratio > 0)
    task.optimizer.emplace_back("loraplus_lr_ratio", yaml_number(ratio));
}

}  // namespace

Imported import_llama_factory(const Node& node, const fs::path& file, ImportFolder& folder) {
  Settings settings(node, "LLaMA-Factory");
  Imported imported{"LLaMA-Factory", settings.text("model_name_or_path", ""), {}, {}};
  const std::string stage = settings.text("stage", "sft");
  if (stage != "sft" && stage != "dpo")
    throw node.at("stage").error(fmt::format("stage {} is not supported", stage), "give sft or dpo");
  if (const std::string kind = settings.text("finetuning_type", "lora"); kind != "lora")
    throw node.at("finetuning_type").error(fmt::format("finetuning_type {} is not supported", kind), "give lora");
  ImportedTask task;
  if (stage == "dpo") {
    if (const std::string loss = settings.text("pref_loss", "sigmoid"); loss != "sigmoid")
      throw node.at("pref_loss").error(fmt::format("pref_loss {} is not supported", loss), "give sigmoid");
    task.objective = {{"type", "dpo"},
                      {"beta", yaml_number(settings.number("pref_beta", 0.1))},
                      {"label_smoothing", yaml_number(settings.number("dpo_label_smoothing", 0))}};
  }
  for (const char* key : {"quantization_bit",  "additional_target",   "pissa_init",    "adapter_name_or_path",
                          "train_on_prompt",   "mask_history",        "packing",       "streaming",
                          "eval_dataset",      "neftune_noise_alpha", "rope_scaling",  "freeze_trainable_layers",
                          "use_galore",        "use_badam",           "use_apollo",    "pref_ftx",
                          "mixture_of_depths", "shift_attn",          "use_llama_pro", "resize_vocab"})
    settings.refuse(key, "take it out; a run with it trains something else than braid does");
  const ImportedRows rows = factory_rows(settings, file, folder, stage == "dpo");
  task.dataset = rows.file;
  task.name = fs::path(settings.text("output_dir", "task")).filename().string();
  task.max_length = settings.count("cutoff_len", 2048);
  task.global_batch_size =
      settings.count("per_device_train_batch_size", 8) * settings.count("gradient_accumulation_steps", 1);
  const double held_out = settings.number("val_size", 0, 0);
  const double fraction =
      held_out >= 1 ? held_out / static_cast<double>(std::max<std::int64_t>(1, rows.count)) : held_out;
  if (fraction > 0) {
    task.evaluation = {{"fraction", yaml_number(fraction)}};
    if (const std::int64_t every = settings.integer("eval_steps", 0); every > 0)
      task.evaluation.emplace_back("every", std::to_string(every));
  }
  const double learned = static_cast<double>(rows.count) * (1 - fraction);
  const auto an_epoch = static_cast<std::int64_t>(std::ceil(learned / static_cast<double>(task.global_batch_size)));
  const std::int64_t steps =
      set_duration(settings.integer("max_steps", -1), settings.number("num_train_epochs", 3, 0), an_epoch, task);
  read_factory_adapter(settings, task);
  read_factory_optimizer(settings, task, steps);
  task.seed = settings.integer("seed", 42);
  if (const Node* layout = settings.find("template"))
    imported.notes.push_back(
        fmt::format("conversations are laid out by the chat template of the backbone's folder; LLaMA-Factory's "
                    "template '{}' may add a system message of its own",
                    layout->text));
  imported.notes.emplace_back(
      "samples longer than cutoff_len are cut at their end; LLaMA-Factory cuts prompt and answer in proportion");
  imported.notes.emplace_back("global_batch_size is that of one GPU; multiply it by as many as the file was run on");
  settings.pass_over({"output_dir",
                      "logging_steps",
                      "save_steps",
                      "plot_loss",
                      "overwrite_output_dir",
                      "overwrite_cache",
                      "preprocessing_num_workers",
                      "dataloader_num_workers",
                      "report_to",
                      "ddp_timeout",
                      "bf16",
                      "fp16",
                      "pure_bf16",
                      "tf32",
                      "do_train",
                      "do_eval",
                      "save_only_model",
                      "trust_remote_code",
                      "per_device_eval_batch_size",
                      "eval_strategy",
                      "evaluation_strategy",
                      "flash_attn",
                      "enable_liger_kernel",
                      "use_unsloth",
                      "gradient_checkpointing",
                      "disable_gradient_checkpointing",
                      "deepspeed",
                      "fsdp",
                      "fsdp_config",
                      "save_strategy",
                      "save_total_limit",
                      "logging_dir",
                      "run_name",
                      "include_num_input_tokens_seen",
                      "cache_dir",
                      "hf_hub_token",
                      "push_to_hub",
                      "low_cpu_mem_usage",
                      "use_fast_tokenizer",
                      "warmup_ratio",
                      "eval_steps",
                      "logging_strategy",
                      "compute_accuracy"});
  settings.finish(imported.notes);
  imported.tasks.push_back(std::move(task));
  return imported;
}

}  // namespace braid::workload
