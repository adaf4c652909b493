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

std::vector<ReferencePoint> read_reference_points(const std::filesystem::path& csv) {
  std::istringstream text(read_file(csv));
  std::string line;
  std::getline(text, line);
  if (line != kHeader)
    throw error_at(csv.string(), 1, "this is no table of layer times",
                   fmt::format("give one with the columns {}", kHeader));
  std::vector<ReferencePoint> points;
  for (int number = 2; std::getline(text, line); ++number) {
    if (line.empty()) continue;
    const std::vector<std::string> fields = fields_of(line);
    ReferencePoint point;
    double milliseconds = 0;
    if (fields.size() != 6 || !read_number(fields[2], point.tp) || !read_number(fields[3], point.tokens) ||
        !read_number(fields[5], milliseconds))
      throw error_at(csv.string(), number, fmt::format("'{}' is not a row", line), fmt::format("give {}", kHeader));
    point.gpu = fields[0];
    point.backbone = builtin_name(fields[1]);
    if (point.backbone.empty())
      throw error_at(csv.string(), number, fmt::format("unknown model '{}'", fields[1]),
                     "give Llama-2-7b-hf or Llama-2-70b-hf");
    point.op = fields[4];
    point.seconds = milliseconds * 1e-3;
    points.push_back(point);
  }
  return points;
}

std::optional<GemmPoint> gemm_of(const ReferencePoint& point) {
  const BackboneShape backbone = builtin_backbone(point.backbone);
  // Heads and FFN columns are split over tp.
  GemmShape shape{point.tokens, 0, 0};
  if (point.op == "attn_pre_proj") {
    shape.in = backbone.hidden, shape.out = backbone.qkv_width() / point.tp;
  } else if (point.op == "attn_post_proj") {
    shape.in = backbone.query_width() / point.tp, shape.out = backbone.hidden;
  } else if (point.op == "mlp_up_proj") {
    shape.in = backbone.hidden, shape.out = 2 * backbone.intermediate / point.tp;
  } else if (point.op == "mlp_down_proj") {
    shape.in = backbone.intermediate / point.tp, shape.out = backbone.hidden;
  } else {
    return std::nullopt;
  }
  return GemmPoint{shape, point.seconds};
}

std::optional<std::pair<StreamKind, StreamPoint>> stream_of(const ReferencePoint& point) {
  const BackboneShape backbone = builtin_backbone(point.backbone);
  const std::int64_t heads = backbone.heads + backbone.kv_heads;
  const auto traffic = [&](StreamKind kind, std::int64_t numbers_a_token) {
    const double bytes = 2.0 * static_cast<double>(point.tokens * numbers_a_token);
    return std::pair(kind, StreamPoint{bytes, point.seconds});
  };
  if (point.op == "add") return traffic(StreamKind::add, 3 * backbone.hidden);
  if (point.op == "input_layernorm" || point.op == "post_attention_layernorm")
    return traffic(StreamKind::norm, 2 * backbone.hidden);
  if (point.op == "mlp_act") return traffic(StreamKind::activation, 3 * backbone.intermediate / point.tp);
  if (point.op == "attn_rope") return traffic(StreamKind::rope, 2 * heads * backbone.head_dim / point.tp);
  if (point.op == "emb") return traffic(StreamKind::gather, 2 * backbone.hidden);
  return std::nullopt;
}

}  // namespace braid::costmodel
