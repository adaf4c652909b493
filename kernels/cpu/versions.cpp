#include "kernels/versions.h"

#include <dnnl.h>
#include <fmt/format.h>

namespace braid::kernels {

std::vector<std::string> library_versions() {
  const dnnl_version_t* version = dnnl_version();
  return {fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch)};
}

}  // namespace braid::kernels
