#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "workload/import/settings.h"

namespace braid::workload {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// Stanford Alpaca's prompt, which axolotl's type alpaca has.
std::string alpaca_prompt(const std::string& instruction, const std::string& input) {
  if (input.empty())
    return "Below is an instruction that describes a task. Write a response that appropriately completes the "
           "request.\n\n"
           "### Instruction:\n" +
           instruction + "\n\n### Response:\n";
  return "Below is an instruction that describes a task, paired with an input that provides further context. Write a "
         "response that appropriately completes the request.\n\n### Instruction:\n" +
         instruction + "\n\n### Input:\n" + input + "\n\n### Response:\n";
}

ImportedRows axolotl_rows(Settings& settings, const fs::path& file, ImportFolder& folder) {
  const Node* list = settings.find("datasets");
  if (!list || !list->is_sequence() || list->items.empty())
    throw settings.node().error("names no datasets", "add datasets: [{path: FILE, type: chat_template}]");
  if (list->items.size() > 1) throw list->error("several datasets are mixed", "put their rows into one file");
  const Node& dataset = list->items.front();
  const std::string path = dataset.string_at("path"), type = dataset.at("type").as_string("type");
  for (const auto& [key, value] : dataset.fields)
    if (key != "path" && key != "type" && key != "ds_type" && key != "split")
      throw value.error(fmt::format("{} of a dataset is not supported", key),
                        "give the file the usual columns, and leave it out");
  const fs::path data = fs::path(path).is_absolute() ? fs::path(path) : file.parent_path() / path;
  if (!fs::is_regular_file(data))
    throw dataset.at("path").error(fmt::format("{} is no file here", path),
                                   "download the dataset as JSON lines, and name that");
  const std::vector<std::string> rows = json_rows(data);
  if (type == "chat_template" || type == "completion") return {data, std::ssize(rows)};
  if (type != "alpaca")
    throw dataset.at("type").error(fmt::format("type {} is not supported", type),
                                   "valid: alpaca, chat_template, completion");
  std::string text;
  std::int64_t number = 0;
  for (const std::string& line : rows) {
    const Json row = alpaca_row(line, ++number, data);
    text += Json{{"prompt", alpaca_prompt(row.value("instruction", ""), row.value("input", ""))},
                 {"completion", row.value("output", "")}}
                .dump() +
            "\n";
  }
  const fs::path written = data.stem().string() + ".alpaca.jsonl";
  folder.write(written, text, data);
  return {written, std::ssize(rows)};
}

void read_axolotl_adapter(Settings& settings, ImportedTask& task) {
  const std::int64_t rank = settings.count("lora_r", 8);
  task.adapter = {{"type", settings.flag("peft_use_dora") ? "dora" : "lora"},
                  {"r", std::to_string(rank)},
                  {"alpha", yaml_number(settings.number("lora_alpha", static_cast<double>(2 * rank)))},
                  {"dropout", yaml_number(settings.number("lora_dropout", 0))}};
  if (settings.flag("peft_use_rslora")) task.adapter.emplace_back("rslora", "true");
  const Node* modules = settings.find("lora_target_modules");
  const bool all = settings.flag("lora_target_linear");
  if (!modules && !all)
    throw settings.node().error("says no modules that adapters are on",
                                "add lora_target_modules or lora_target_linear: true");
  task.adapter.emplace_back("target_modules", all ? "all-linear" : yaml_list(words_of(*modules)));
}

}  // namespace

Imported import_axolotl(const Node& node, const fs::path& file, ImportFolder& folder) {
  Settings settings(node, "axolotl");
  Imported imported{"axolotl", settings.text("base_model", ""), {}, {}};
  if (const std::string kind = settings.text("adapter", ""); kind != "lora") {
    const Node* named = node.find("adapter");
    throw(named ? *named : node)
        .error(fmt::format("adapter '{}' is not supported", kind),
               kind == "qlora"
                   ? "give adapter: lora and leave load_in_4bit out, and put base_weights: nf4, which has no "
                     "double quantization, into the workload that is written"
                   : "give adapter: lora");
  }
  for (const char* key : {"load_in_8bit",
                          "load_in_4bit",
                          "lora_modules_to_save",
                          "lora_model_dir",
                          "train_on_inputs",
                          "sample_packing",
                          "group_by_length",
                          "special_tokens",
                          "tokens",
                          "rl",
                          "pretraining_dataset",
                          "test_datasets",
                          "neftune_noise_alpha",
                          "roles_to_train",
                          "loftq",
                          "relora_steps",
                          "loraplus_lr_embedding",
                          "unfrozen_parameters",
                          "lora_layers_to_transform",
                          "lora_fan_in_fan_out"})
    settings.refuse(key, "take it out; a run with it trains something else than braid does");
  const ImportedRows rows = axolotl_rows(settings, file, folder);
  ImportedTask task;
  task.dataset = rows.file;
  task.name = fs::path(settings.text("output_dir", "task")).filename().string();
  task.max_length = settings.count("sequence_len", 512);
  task.global_batch_size = settings.count("micro_batch_size", 1) * settings.count("gradient_accumulation_steps", 1);
  const double held_out = settings.number("val_set_size", 0, 0);
  const double fraction = held_out >= 1 ? held_out / static_cast<double>(rows.count) : held_out;
  const double learned = static_cast<double>(rows.count) * (1 - fraction);
  const auto an_epoch = static_cast<std::int64_t>(std::ceil(learned / static_cast<double>(task.global_batch_size)));
  const double epochs = settings.number("num_epochs", 1, 0);
  const std::int64_t steps = set_duration(settings.integer("max_steps", -1), epochs, an_epoch, task);
  if (fraction > 0) {
    task.evaluation = {{"fraction", yaml_number(fraction)}};
    const double an_epochs = settings.number("evals_per_epoch", 0);
    std::int64_t every = settings.integer("eval_steps", 0);
    if (an_epochs > 0)
      every = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(an_epoch) / an_epochs));
    if (every > 0) task.evaluation.emplace_back("every", std::to_string(every));
    if (const std::int64_t patience = settings.integer("early_stopping_patience", 0); patience > 0)
      task.evaluation.emplace_back("patience", std::to_string(patience));
  }
  read_axolotl_adapter(settings, task);
  node.at("learning_rate");  // needed
  const std::string optimizer = settings.text("optimizer", "adamw_torch");
  if (!optimizer.starts_with("adamw"))
    throw node.at("optimizer").error(fmt::format("optimizer {} is not supported", optimizer), "give adamw_torch");
  if (optimizer.find("8bit") != std::string::npos)
    imported.notes.push_back(fmt::format("AdamW's state is held in full precision in place of {}'s 8 bits", optimizer));
  const std::string schedule = settings.text("lr_scheduler", "cosine");
  if (schedule != "linear" && schedule != "cosine" && !schedule.starts_with("constant"))
    throw node.at("lr_scheduler")
        .error(fmt::format("schedule {} is not supported", schedule), "give linear, cosine or constant");
  std::int64_t warmup = settings.integer("warmup_steps", 0);
  if (const double ratio = settings.number("warmup_ratio", 0); warmup == 0)
    warmup = static_cast<std::int64_t>(ratio * static_cast<double>(steps));
  task.optimizer = {{"type", "adamw"},
                    {"lr", yaml_number(settings.number("learning_rate", 0))},
                    {"weight_decay", yaml_number(settings.number("weight_decay", 0))},
                    {"beta1", yaml_number(settings.number("adam_beta1", 0.9))},
                    {"beta2", yaml_number(settings.number("adam_beta2", 0.999))},
                    {"epsilon", yaml_number(settings.number("adam_epsilon", 1e-8))},
                    {"warmup_steps", std::to_string(warmup)},
                    {"schedule", schedule.starts_with("constant") ? "constant" : schedule},
                    {"max_grad_norm", yaml_number(settings.number("max_grad_norm", 1))}};
  if (const double ratio = settings.number("loraplus_lr_ratio", 0); ratio > 0)
    task.optimizer.emplace_back("loraplus_lr_ratio", yaml_number(ratio));
  task.seed = settings.integer("seed", 42);
  imported.notes.emplace_back("global_batch_size is that of one GPU; multiply it by as many as the file was run on");
  settings.pass_over({"output_dir",
                      "bf16",
                      "fp16",
                      "tf32",
                      "float16",
                      "bfloat16",
                      "gradient_checkpointing",
                      "gradient_checkpointing_kwargs",
                      "flash_attention",
                      "xformers_attention",
                      "sdp_attention",
                      "logging_steps",
                      "saves_per_epoch",
                      "save_steps",
                      "save_strategy",
                      "save_total_limit",
                      "dataset_prepared_path",
                      "wandb_project",
                      "wandb_entity",
                      "wandb_watch",
                      "wandb_name",
                      "wandb_log_model",
                      "wandb_run_id",
                      "debug",
                      "strict",
                      "local_rank",
                      "fsdp",
                      "fsdp_config",
                      "deepspeed",
                      "hub_model_id",
                      "push_dataset_to_hub",
                      "resume_from_checkpoint",
                      "auto_resume_from_checkpoints",
                      "model_type",
                      "tokenizer_type",
                      "trust_remote_code",
                      "chat_template",
                      "eval_strategy",
                      "evaluation_strategy",
                      "eval_batch_size",
                      "early_stopping_patience",
                      "evals_per_epoch",
                      "eval_steps",
                      "warmup_ratio",
                      "pad_to_sequence_len",
                      "eval_sample_packing",
                      "is_llama_derived_model",
                      "save_safetensors",
                      "dataset_processes",
                      "eval_table_size",
                      "eval_max_new_tokens",
                      "plugins",
                      "liger_rope",
                      "liger_rms_norm",
                      "liger_glu_activation"});
  settings.finish(imported.notes);
  imported.tasks.push_back(std::move(task));
  return imported;
}

}  // namespace braid::workload
