#include "kernels/gpu_probe/products.h"

namespace braid::gpu_probe {
namespace {

constexpr std::int64_t kBytesOfNumber = 2;

}  // namespace

ProductLayout product_layout(const Point& linear) {
  const std::int64_t in = linear.shape.at(0), out = linear.shape.at(1), rows = linear.tokens;
  // By columns: X is [in, rows], dY [out, rows], W [in, out].
  if (linear.pass == "forward") return {out, rows, in, true, false, in, out, in, rows};
  if (linear.pass == "backward") return {in, rows, out, false, false, in, out, out, rows};
  return {in, out, rows, false, true, in, rows, out, rows};
}

double product_flops(const Point& linear) {
  return 2.0 * static_cast<double>(linear.tokens) * static_cast<double>(linear.shape.at(0)) *
         static_cast<double>(linear.shape.at(1));
}

OperandBytes operand_bytes(const Point& point) {
  if (point.op == "linear") {
    const ProductLayout product = product_layout(point);
    return {product.a_rows * product.a_columns * kBytesOfNumber, product.b_rows * product.b_columns * kBytesOfNumber,
            product.m * product.n * kBytesOfNumber};
  }
  if (point.op == "copy") return {0, point.tokens / 2, point.tokens / 2};
  if (point.op == "residual") {
    const std::int64_t bytes = point.tokens * point.shape.at(0) * kBytesOfNumber;
    return {bytes, bytes, bytes};
  }
  return {};
}

}  // namespace braid::gpu_probe
