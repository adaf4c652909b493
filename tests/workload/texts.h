#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "support.h"
#include "workload/text/tokenizer.h"

namespace braid::workload {

inline std::vector<std::int32_t> bytes(std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

/// The tokenizer of a new backbone: bytes, BOS 256, EOS 257, <|im_start|> 258, <|im_end|> 259.
inline std::unique_ptr<Tokenizer> byte_tokenizer() {
  const TestFolder folder;
  return make_byte_tokenizer(folder.write("braid_tokenizer.json", byte_tokenizer_json()));
}

}  // namespace braid::workload
