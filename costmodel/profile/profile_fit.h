#pragma once

#include <vector>

#include "costmodel/profile/profile.h"

namespace braid::costmodel {

/// How a GPU departs from its datasheet, learned from what was measured on it.
struct ProfileFit {
  Profile profile;  ///< with `products` and `copies` by its own entries, which stay
  /// |predicted / measured - 1| of products: of all under their own fit, under the coefficients of the GPU's
  /// generation, and of each half of the shapes under a fit on the other half.
  std::vector<double> fitted, generation, held_out;
  std::vector<double> copies;  ///< of copies, under their own fit
};

/// From the measured entries of products and copies of a GPU's profile in 16 or 32 bits, such as `braid profile
/// --backend cuda` writes, whose GPU is known by its machine's name. What half of the shapes says is left out where it
/// is too little, and copies where they are of too few sizes within the L2 cache or beyond it. Throws Error for a
/// profile of no GPU with a datasheet, of a lower clock or of int8, and for too few products. Takes seconds.
ProfileFit fit_profile(const Profile& measured);

}  // namespace braid::costmodel
