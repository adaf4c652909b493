#include "costmodel/reference_points.h"

#include <charconv>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "costmodel/backbone.h"

namespace braid::costmodel {
namespace {

constexpr std::string_view kHeader = "gpu,model,tp,tokens,op,median_ms";

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
  return fields;
}

/// in and out of one shard; nothing for an operator that is no linear layer. Heads and FFN columns are split over tp.
std::optional<GemmShape> sharded(const BackboneShape& backbone, const std::string& op, std::int64_t tp) {
  if (op == "attn_pre_proj") return GemmShape{0, backbone.hidden, backbone.qkv_width() / tp};
  if (op == "attn_post_proj") return GemmShape{0, backbone.query_width() / tp, backbone.hidden};
  if (op == "mlp_up_proj") return GemmShape{0, backbone.hidden, 2 * backbone.intermediate / tp};
  if (op == "mlp_down_proj") return GemmShape{0, backbone.intermediate / tp, backbone.hidden};
  return std::nullopt;
}

std::string builtin_name(const std::string& model) {
  if (model == "Llama-2-7b-hf") return "llama2-7b";
  if (model == "Llama-2-70b-hf") return "llama2-70b";
  return "";
}

template <typename Number>
bool read_number(const std::string& text, Number& number) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size() && number > 0;
}

}  // namespace

std::vector<ReferenceLinear> read_reference_linears(const std::filesystem::path& csv) {
  std::istringstream text(read_file(csv));
  std::string line;
  std::getline(text, line);
  if (line != kHeader)
    throw error_at(csv.string(), 1, "this is no table of layer times",
                   fmt::format("give one with the columns {}", kHeader));
  std::vector<ReferenceLinear> linears;
  for (int number = 2; std::getline(text, line); ++number) {
    if (line.empty()) continue;
    const std::vector<std::string> fields = fields_of(line);
    ReferenceLinear linear;
    std::int64_t tokens = 0;
    double milliseconds = 0;
    if (fields.size() != 6 || !read_number(fields[2], linear.tp) || !read_number(fields[3], tokens) ||
        !read_number(fields[5], milliseconds))
      throw error_at(csv.string(), number, fmt::format("'{}' is not a row", line), fmt::format("give {}", kHeader));
    linear.gpu = fields[0];
    linear.backbone = builtin_name(fields[1]);
    if (linear.backbone.empty())
      throw error_at(csv.string(), number, fmt::format("unknown model '{}'", fields[1]),
                     "give Llama-2-7b-hf or Llama-2-70b-hf");
    const std::optional<GemmShape> shape = sharded(builtin_backbone(linear.backbone), fields[4], linear.tp);
    if (!shape) continue;
    linear.point = {*shape, milliseconds * 1e-3};
    linear.point.shape.rows = tokens;
    linears.push_back(linear);
  }
  return linears;
}

}  // namespace braid::costmodel
