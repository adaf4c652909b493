#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/units.h"
#include "costmodel/shapes/rope_scaling.h"

namespace braid::costmodel {

/// gpt2 is also GPT-3's shape. gpt2 and opt have layer norms, learned positions, a feed-forward layer without a gate,
/// and biases throughout; the others have RMS norms, rotary positions and a gated feed-forward layer.
enum class Architecture { llama, qwen2, gpt2, opt, mistral, qwen3 };

/// By what a feed-forward layer bends its first product, or its gate.
enum class Nonlinearity { silu, gelu_tanh, relu };
/// What the family has unless a configuration says otherwise.
Nonlinearity usual_nonlinearity(Architecture architecture);

/// What a frozen backbone is: the numbers of its config.json.
///
/// Letters used in shapes elsewhere: H hidden, F intermediate, V vocabulary, D head_dim, Hq heads, Hkv kv_heads.
struct BackboneShape {
  std::string name;
  Architecture architecture = Architecture::llama;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocabulary = 0;
  std::int64_t max_position = 0;
  bool tied_head = false;
  bool qkv_bias = false;
  double norm_epsilon = 1e-5;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  /// An RMS norm of each query and key head before rotation, its D weights shared by the heads (Qwen3).
  bool qk_norm = false;
  /// Tokens that one attends to, itself among them; 0: all before it. Samples must not be longer.
  std::int64_t sliding_window = 0;
  Nonlinearity nonlinearity = Nonlinearity::silu;

  bool gated() const { return architecture != Architecture::gpt2 && architecture != Architecture::opt; }
  bool rotary() const { return gated(); }
  /// Whether every linear layer has a bias; of others qkv_bias says whether q, k and v have.
  bool biased() const { return !gated(); }
  /// Rows of the table of learned positions, which OPT's begins with two that no token has; 0: none.
  std::int64_t position_rows() const {
    return rotary() ? 0 : max_position + (architecture == Architecture::opt ? 2 : 0);
  }
  /// Linear layers that read the second norm: gate and up, or up alone.
  std::int64_t up_width() const { return (gated() ? 2 : 1) * intermediate; }

  std::int64_t query_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }
  std::int64_t qkv_width() const { return query_width() + 2 * kv_width(); }

  /// Weights of one layer, the embeddings of tokens and positions, the final norm and the head (none of its own when
  /// tied).
  std::int64_t layer_parameters() const { return linear_parameters() + vector_parameters(); }
  std::int64_t linear_parameters() const;
  std::int64_t vector_parameters() const;  ///< norms and biases of a layer
  std::int64_t norm_parameters() const { return (gated() ? 1 : 2) * hidden; }
  std::int64_t embedding_parameters() const { return (vocabulary + position_rows()) * hidden; }
  std::int64_t parameters() const;

  bool operator==(const BackboneShape&) const = default;
};

/// The shape in `folder`/config.json, read as transformers does, defaults included; of a key that stands twice the last
/// one. What would change the arithmetic and is not supported is refused by name; keys that braid does not know are
/// named in a notice. Throws Error.
BackboneShape read_backbone(const std::filesystem::path& folder);

/// The folder that holds config.json: `folder`, or where that is a model of the hub's cache (models--ORG--NAME), the
/// snapshot that its refs/main names. Throws Error where such a folder has no such snapshot.
std::filesystem::path backbone_folder(const std::filesystem::path& folder);

/// A shape known by name, for planning without weights (llama2-7b, ...). Throws Error that lists the names.
BackboneShape builtin_backbone(const std::string& name);
std::vector<std::string> builtin_backbone_names();

}  // namespace braid::costmodel
