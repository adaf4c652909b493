#pragma once

#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/columns.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/layer_norm.h"
#include "kernels/linear.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/sparse.h"

namespace braid::kernels {

/// All operators of one device. Shapes and formulas stand in each operator's header. An operator more is a header, its
/// reference, its kernels and a row here.
struct Kernels {
  PackLinear* pack_linear;
  EmbeddingForward* embedding_forward;
  RmsNormForward* rms_norm_forward;
  RmsNormAgain* rms_norm_again;
  RmsNormBackward* rms_norm_backward;
  LayerNormForward* layer_norm_forward;
  LayerNormAgain* layer_norm_again;
  LayerNormBackward* layer_norm_backward;
  HeadNormForward* head_norm_forward;
  HeadNormBackward* head_norm_backward;
  Rope* rope_forward;
  Rope* rope_backward;
  AttentionForward* attention_forward;
  AttentionBackward* attention_backward;
  ActivationForward* activation_forward;
  ActivationBackward* activation_backward;
  Add* add;
  ScaleColumns* scale_columns;
  AddRow* add_row;
  SumColumns* sum_columns;
  SparseForward* sparse_forward;
  SparseBackward* sparse_backward;
  Matmul* matmul;
  MatmulGroup* matmul_group;
  Dropout* dropout;
  CrossEntropy* cross_entropy;
  CrossEntropyShare* cross_entropy_share;
  CrossEntropyOfShares* cross_entropy_of_shares;
  SquaredNorm* squared_norm;
  AdamW* adamw;
};

}  // namespace braid::kernels
