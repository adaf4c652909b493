#include "studies/costmodel/reference_points.h"

#include "base/error.h"
#include "costmodel/shapes/backbone.h"
#include "studies/costmodel/reference_table.h"

namespace braid::costmodel::studies {
namespace {

std::string builtin_name(const std::string& model) {
  if (model == "Llama-2-7b-hf") return "llama2-7b";
  if (model == "Llama-2-70b-hf") return "llama2-70b";
  return "";
}

}  // namespace

std::vector<ReferencePoint> read_reference_points(const std::filesystem::path& csv) {
  std::vector<ReferencePoint> points;
  for (const ReferenceRow& row : read_reference_table(csv, kReferencePointColumns)) {
    ReferencePoint point;
    point.gpu = row.text(0);
    point.backbone = builtin_name(row.text(1));
    if (point.backbone.empty())
      throw error_at(row.file, row.line, fmt::format("unknown model '{}'", row.text(1)),
                     "give Llama-2-7b-hf or Llama-2-70b-hf");
    point.tp = row.integer(2);
    point.tokens = row.integer(3);
    point.op = row.text(4);
    point.seconds = row.number(5) * 1e-3;
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

}  // namespace braid::costmodel::studies
