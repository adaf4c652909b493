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
#include "kernels/outer_sums.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/row_norms.h"
#include "kernels/sparse.h"

namespace braid::kernels {

/// All operators of one device. Shapes and formulas stand in each operator's header. An operator more is a header, its
/// reference, its kernels and a row here.
///
/// An operator may return before it has run: they run in the order of the calls, on the device's compute stream. What a
/// Matrix or a Vector shows is the device's, and is read and written then; a std::span and what it shows is the host's,
/// and is read before the call returns. The same holds for the products of a FrozenLinear.
struct Kernels {
  PackLinear* pack_linear;
  EmbeddingForward* embedding_forward;
  ScatterRows* scatter_rows;
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
  Copy* copy;
  Fill* fill;
  Scale* scale;
  ScaleColumns* scale_columns;
  AddRow* add_row;
  SumColumns* sum_columns;
  LowRankSquares* low_rank_squares;
  InverseRoots* inverse_roots;
  SparseForward* sparse_forward;
  SparseBackward* sparse_backward;
  Matmul* matmul;
  MatmulGroup* matmul_group;
  Dropout* dropout;
  CrossEntropy* cross_entropy;
  CrossEntropyShare* cross_entropy_share;
  CrossEntropyOfShares* cross_entropy_of_shares;
  SquaredNorms* squared_norms;
  AdamW* adamw;
  AdamWGroup* adamw_group;
  OuterSums* outer_sums;  ///< null of a device whose memory is not the host's
};

}  // namespace braid::kernels
