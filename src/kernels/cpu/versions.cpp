#include "kernels/versions.h"

#include <Eigen/Core>
#include <dnnl.h>
#include <fmt/format.h>

namespace braid::kernels {

std::vector<std::string> library_versions() {
  const dnnl_version_t* version = dnnl_version();
  return {fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch),
          fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)};
}

}  // namespace braid::kernels
