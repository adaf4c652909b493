#include "cli/support/versions.h"

#include "exec/ranks/communicator.h"
#include "kernels/device.h"

namespace braid::cli {

std::vector<std::string> library_versions() {
  std::vector<std::string> versions = kernels::make_cpu_device()->library_versions();
  versions.push_back(exec::mpi_version());
  return versions;
}

}  // namespace braid::cli
