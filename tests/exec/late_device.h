#pragma once

#include "kernels/device.h"

namespace braid::exec {

/// A device that runs nothing when it is called: operators, copies and what is given back wait in a queue, of which
/// asking an event runs a few, drawn by `seed`, and waiting all. Its kernels are the reference's. So it is as late as a
/// GPU may be at worst: whoever reads on the host what no event has said to be there reads what was there before, and
/// whoever changes what a waiting operator is to read spoils its result.
///
/// With `groups` such devices tell each other their numbers as late, beside what they compute.
///
/// One for each thread at a time.
std::unique_ptr<kernels::Device> make_late_device(std::uint64_t seed, bool groups = false);

}  // namespace braid::exec
