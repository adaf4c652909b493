#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/support/options.h"
#include "exec/example/example.h"

namespace braid::cli {

int run_init(const std::vector<std::string>& words) {
  CommonFlags flags;
  std::string folder, size;
  CommandLine line("braid init DIR [options]", flags);
  line.add_positional("DIR", folder);
  line.add_seed();
  line.add().add_options()("overwrite", boost::program_options::bool_switch(&flags.overwrite),
                           "write into a folder that holds something");
  line.add().add_options()("backbone", boost::program_options::value(&size)->default_value("tiny"),
                           "tiny (3 million parameters) or small (54 million)");
  if (!line.parse(words)) return kSuccess;
  if (size != "tiny" && size != "small") throw error("--backbone {} is not known; give tiny or small", size);
  exec::write_example(folder, static_cast<std::uint64_t>(flags.seed), flags.overwrite,
                      size == "small" ? exec::ExampleSize::small : exec::ExampleSize::tiny);
  if (flags.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"workload", (std::filesystem::path(folder) / "workload.yaml").string()},
                                              {"backbone", "models/" + size}}
                           .dump(1));
  if (!flags.quiet)
    fmt::print(stderr,
               "wrote {}: backbone models/{}, four datasets, workload.yaml\nnext: braid plan --workload "
               "{}/workload.yaml --out plan.json\n",
               folder, size, folder);
  return kSuccess;
}

}  // namespace braid::cli
