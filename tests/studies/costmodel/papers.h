#pragma once

namespace braid::costmodel::studies {

/// Prints the figures of operators and memory that papers report beside what the analytic model
/// says. As JSON also the kernels and the fits of memory that mLoRA's figures 8(a) and 14 are of.
void print_papers(bool json);

}  // namespace braid::costmodel::studies
