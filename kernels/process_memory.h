#pragma once

#include "base/units.h"

namespace braid::kernels {

/// Resident memory of this process now.
Bytes resident_memory();
/// The most it ever was, or since `reset_peak_memory` where the system lets that be reset.
Bytes peak_resident_memory();
void reset_peak_memory();
/// Makes freed blocks of 128 kB or more go back to the system at once, so that what a process holds is what it uses.
void return_large_blocks();
/// The rest of what is free goes back now.
void return_free_memory();

/// Of the machine.
Bytes physical_memory();

}  // namespace braid::kernels
