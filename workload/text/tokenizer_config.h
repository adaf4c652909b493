#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/node.h"
#include "workload/text/added_tokens.h"

namespace braid::workload {

/// A special token as a file gives it: by its name, or with all that is said of it.
using SpecialToken = std::variant<std::string, AddedToken>;

/// What lies beside a tokenizer's vocabulary in a folder: tokenizer_config.json, and what older versions of
/// Hugging Face's library wrote into special_tokens_map.json and added_tokens.json.
struct TokenizerConfig {
  std::string tokenizer_class;  ///< of Hugging Face's classes, less "Fast"; empty where none is named
  std::string model_type;       ///< of config.json
  std::optional<bool> legacy, add_prefix_space;
  bool add_bos = false, add_eos = false;
  bool has_code = false;  ///< it names code of its own

  /// With their ids, in the order of these, from tokenizer_config.json; without a value where that has none.
  std::optional<std::vector<std::pair<std::int32_t, AddedToken>>> decoder;
  /// Likewise, from added_tokens.json, which only counts where `decoder` has no value.
  std::vector<std::pair<std::int32_t, std::string>> added;
  /// "bos_token" and the like, each once; without a value where the file says null.
  std::vector<std::pair<std::string, std::optional<SpecialToken>>> named;
  std::vector<SpecialToken> extra;
  std::string chat_template;  ///< Jinja; empty where there is none

  const std::optional<SpecialToken>* find(std::string_view name) const;
};

/// Reads `folder`'s; every file may be absent. Throws Error "FILE:LINE: what; remedy" when one is broken, and when a
/// key is set that would change ids and is not built in. Keys that are not known, and so change nothing, are told.
TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder);

}  // namespace braid::workload
