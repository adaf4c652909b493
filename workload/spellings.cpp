#include "workload/spellings.h"

#include <algorithm>
#include <array>

namespace braid::workload {
namespace {

struct Spelling {
  std::string_view theirs;
  std::string_view section;
  std::string_view ours;
};

constexpr auto kSpellings = std::to_array<Spelling>({
    {"adam_beta1", "optimizer", "beta1"},
    {"adam_beta2", "optimizer", "beta2"},
    {"adam_epsilon", "optimizer", "epsilon"},
    {"adapter_name_or_path", "adapter", "init_from"},
    {"base_model", "", "backbone"},
    {"base_model_name_or_path", "", "backbone"},
    {"batch_size", "task", "global_batch_size"},
    {"betas", "optimizer", "beta1 and beta2"},
    {"chat_template", "task", "chat"},
    {"cutoff_len", "task", "max_length"},
    {"data", "task", "dataset"},
    {"data_files", "task", "dataset"},
    {"dataset_path", "task", "dataset"},
    {"early_stopping_patience", "evaluation", "patience"},
    {"eps", "optimizer", "epsilon"},
    {"eval_dataset", "evaluation", "dataset"},
    {"eval_steps", "evaluation", "every"},
    {"learning_rate", "optimizer", "lr"},
    {"lora", "task", "adapter"},
    {"lora_alpha", "adapter", "alpha"},
    {"lora_dropout", "adapter", "dropout"},
    {"lora_r", "adapter", "r"},
    {"lora_rank", "adapter", "r"},
    {"lora_target", "adapter", "target_modules"},
    {"lora_target_modules", "adapter", "target_modules"},
    {"lr_scheduler", "optimizer", "schedule"},
    {"lr_scheduler_type", "optimizer", "schedule"},
    {"max_grad_norm", "optimizer", "max_grad_norm"},
    {"max_seq_len", "task", "max_length"},
    {"max_seq_length", "task", "max_length"},
    {"max_steps", "task", "steps"},
    {"model", "", "backbone"},
    {"model_name_or_path", "", "backbone"},
    {"num_epochs", "task", "epochs"},
    {"num_train_epochs", "task", "epochs"},
    {"optim", "optimizer", "type"},
    {"peft_type", "adapter", "type"},
    {"per_device_train_batch_size", "task", "global_batch_size"},
    {"rank", "adapter", "r"},
    {"template", "task", "chat"},
    {"train_batch_size", "task", "global_batch_size"},
    {"train_file", "task", "dataset"},
    {"use_rslora", "adapter", "rslora"},
    {"val_set_size", "evaluation", "fraction"},
    {"val_size", "evaluation", "fraction"},
    {"validation_file", "evaluation", "dataset"},
    {"warmup_ratio", "optimizer", "warmup_steps"},
    {"weight_decay", "optimizer", "weight_decay"},
});

std::string remedy_of(const Spelling& spelling, std::string_view section) {
  if (spelling.section == section) return fmt::format("write {}", spelling.ours);
  if (spelling.section.empty()) return fmt::format("write {} at the top of the file", spelling.ours);
  if (spelling.section == "task") return fmt::format("write {}, in each of the tasks", spelling.ours);
  return fmt::format("write {}, under a task's {}", spelling.ours, spelling.section);
}

}  // namespace

void allow_only_ours(const Node& node, std::string_view section, std::initializer_list<std::string_view> known) {
  if (node.is_map()) {
    for (const auto& [key, value] : node.fields) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const auto found = std::find_if(kSpellings.begin(), kSpellings.end(),
                                      [&](const Spelling& spelling) { return spelling.theirs == key; });
      if (found != kSpellings.end())
        throw value.error(fmt::format("unknown key '{}'", key), remedy_of(*found, section));
    }
  }
  node.allow_only(known);
}

}  // namespace braid::workload
