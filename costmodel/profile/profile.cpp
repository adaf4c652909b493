#include "costmodel/profile/profile.h"

#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "costmodel/links/link_json.h"
#include "costmodel/profile/kernel_choice_json.h"

namespace braid::costmodel {
namespace {

using Json = nlohmann::ordered_json;

Json entry_json(const ProfileEntry& entry) {
  Json shape = Json::array();
  for (const std::int64_t number : entry.shape) {
    if (number != 0) shape.push_back(number);
  }
  return {{"op", name(entry.op)},     {"pass", name(entry.pass)}, {"dtype", entry.dtype},     {"tp", entry.tp},
          {"shape", shape},           {"tokens", entry.tokens},   {"context", entry.context}, {"prefix", entry.prefix},
          {"seconds", entry.seconds}, {"spread", entry.spread},   {"count", entry.count},     {"source", entry.source}};
}

/// Doubles hold every whole number up to here.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 53;

ProfileEntry entry_from(const Node& node) {
  ProfileEntry entry;
  const std::string op = node.string_at("op"), pass = node.string_at("pass");
  entry.dtype = node.string_or("dtype", "f32");
  try {
    entry.op = operator_of(op);
    entry.pass = pass_of(pass);
    data_type_of(entry.dtype);
  } catch (const Error& unknown) {
    const std::string text = unknown.what();
    const auto mark = text.find("; ");
    throw node.error(text.substr(0, mark),
                     mark == std::string::npos ? "measure the profile again" : text.substr(mark + 2));
  }
  entry.tp = node.integer_or("tp", 1, 1);
  const std::vector<Node>& shape = node.at("shape").sequence("shape");
  const ShapeSize size = shape_size(entry.op);
  if (shape.size() < size.least || shape.size() > size.most)
    throw node.at("shape").error(fmt::format("the shape of '{}' has {} numbers", op, shape.size()),
                                 fmt::format("give {}", size.most));
  for (std::size_t i = 0; i < shape.size(); ++i) entry.shape[i] = shape[i].as_integer("shape", 1);
  entry.tokens = node.integer_at("tokens", 1, kMostTokens);
  entry.context = node.integer_or("context", 0, 0, kMostTokens);
  entry.prefix = node.integer_or("prefix", 0, 0, kMostTokens);
  if (entry.op == Operator::attention && (entry.chunk() < 1 || entry.chunk() > entry.tokens))
    throw node.error(fmt::format("attention of {} tokens in contexts of {} after prefixes of {}", entry.tokens,
                                 entry.context, entry.prefix),
                     "give 1 <= context - prefix <= tokens");
  entry.seconds = node.number_at("seconds", 0.0);
  entry.spread = node.number_or("spread", 0.0, 0.0);
  entry.count = node.integer_or("count", 0, 0);
  entry.source = node.string_or("source", "");
  return entry;
}

/// A coefficient's name in the file, and what it may be: wider than any fit goes.
template <typename Coefficients>
struct Field {
  const char* key = nullptr;
  double Coefficients::*value = nullptr;
  double least = 0;
  double most = 0;
};
constexpr Field<GemmCoefficients> kProductFields[] = {
    {"launch_seconds", &GemmCoefficients::launch_seconds, 0, 1e-3},
    {"block_seconds", &GemmCoefficients::block_seconds, 0, 1e-3},
    {"block_depth", &GemmCoefficients::block_depth, 0, 1e5},
    {"rate_efficiency", &GemmCoefficients::rate_efficiency, 1e-3, 1},
    {"edge_cost", &GemmCoefficients::edge_cost, 1e-3, 1e4},
    {"bandwidth_efficiency", &GemmCoefficients::bandwidth_efficiency, 1e-3, 1},
    {"wave_rounding", &GemmCoefficients::wave_rounding, 0, 1},
    {"split_cost", &GemmCoefficients::split_cost, 0, 1e3},
    {"cache_bandwidth", &GemmCoefficients::cache_bandwidth, 1e-3, 1e3}};
constexpr Field<StreamCoefficients> kCopyFields[] = {{"launch_seconds", &StreamCoefficients::launch_seconds, 0, 1e-3},
                                                     {"cached", &StreamCoefficients::cached, 1e-3, 1e3},
                                                     {"beyond_cache", &StreamCoefficients::beyond_cache, 1e-3, 1e3}};

/// What `of` finds under a name of a derived profile.
template <typename Value>
Value named(const Node& node, const char* field, Value (*of)(std::string_view)) {
  try {
    return of(node.as_string(field));
  } catch (const Error& unknown) {
    throw node.error(unknown.what(), "derive the profile again with `braid profile --analytic`");
  }
}

template <typename Coefficients, typename Fields>
Json coefficients_json(const Coefficients& coefficients, const Fields& fields) {
  Json json;
  for (const auto& field : fields) json[field.key] = coefficients.*field.value;
  return json;
}

template <typename Coefficients, typename Fields>
Coefficients coefficients_from(const Node& node, const Fields& fields) {
  Coefficients coefficients;
  for (const auto& field : fields) coefficients.*field.value = node.number_at(field.key, field.least, field.most);
  return coefficients;
}

}  // namespace

namespace {

Storage own_storage(const Profile& profile) {
  if (!profile.device.empty()) return gpu_storage(profile.dtype);
  if (!profile.on_gpus()) return cpu_storage(profile.dtype);
  return cuda_storage(profile.dtype, profile.computes_in_bf16() ? DataType::bf16 : DataType::f32);
}

}  // namespace

Storage Profile::storage() const {
  Storage storage = own_storage(*this);
  storage.attention = attention;
  storage.loss_in_place = loss_in_place;
  if (device.empty()) storage.context = runtime_bytes, storage.head_context = head_runtime_bytes;
  return storage;
}

std::string describe(const Profile& profile) {
  std::string text = profile.machine;
  if (profile.clock != 1) text += fmt::format(", at {} of its clock", profile.clock);
  if (profile.attention != AttentionKind::flash) text += fmt::format(", {} attention", name(profile.attention));
  if (profile.recomputes) text += ", layers recomputed";
  if (profile.loss_in_place) text += ", the loss in place";
  if (profile.exposed_launch_seconds > 0)
    text += fmt::format(", {:.3g} us exposed a launch", 1e6 * profile.exposed_launch_seconds);
  if (profile.overlap_slowdown > 0)
    text += fmt::format(", {:.3g} times as long beside a collective", profile.overlap_slowdown);
  return text;
}

Profile profile_from(const Node& node) {
  Profile profile;
  if (node.integer_at("format") != 1) throw node.at("format").error("unknown format", "this build reads format 1");
  if (node.find("profile") && !node.find("machine"))
    throw node.error("is a plan, not a profile", "give the file that `braid profile --out` wrote");
  profile.machine = node.string_at("machine");
  for (const Node& version : node.at("versions").sequence("versions"))
    profile.versions.push_back(version.as_string("versions"));
  profile.threads = static_cast<int>(node.integer_at("threads", 1, 100000));
  profile.corunning_ranks = static_cast<int>(node.integer_at("corunning_ranks", 1, 1000000));
  profile.cores = static_cast<int>(node.integer_or("cores", 0, 0));
  profile.peak_flops = node.number_or("peak_flops", 0.0, 0.0);
  profile.memory_bytes = node.integer_or("memory_bytes", 0, 0);
  profile.runtime_bytes = node.integer_or("runtime_bytes", 0, 0);
  profile.head_runtime_bytes = node.integer_or("head_runtime_bytes", 0, 0);
  profile.pass_skew = node.number_or("pass_skew", 1.0, 0.0);
  profile.reference_pass_seconds = node.number_or("reference_pass_seconds", 0.0, 0.0);
  if (const Node* backend = node.find("backend")) {
    constexpr std::string_view kBackends[] = {"cpu", "cuda", "cuda-f32", "cuda-tf32", "reference"};
    profile.backend = backend->as_string("backend");
    if (std::ranges::find(kBackends, profile.backend) == std::end(kBackends))
      throw backend->error(fmt::format("unknown backend '{}'", profile.backend),
                           fmt::format("give one of: {}", fmt::join(kBackends, ", ")));
  }
  if (const Node* kernels = node.find("kernels")) {
    for (const Node& one : kernels->sequence("kernels")) profile.kernels.push_back(kernel_choice_from(one));
    if (!profile.kernels.empty() && !profile.computes_in_bf16())
      throw kernels->error(fmt::format("backend {} has no second kernels", profile.backend),
                           "leave the key out, or measure with `braid profile --backend cuda`");
  }
  if (const Node* dtype = node.find("dtype")) profile.dtype = named(*dtype, "dtype", data_type_of);
  if (const Node* device = node.find("device")) {
    profile.device = device->as_string("device");
    if (!find_device(profile.device))
      throw device->error(fmt::format("unknown GPU '{}'; known: {}", profile.device, fmt::join(device_names(), ", ")),
                          "derive the profile again with `braid profile --analytic`");
    profile.launch_seconds = node.number_or("launch_seconds", profile.launch_seconds, 0.0, 1.0);
    profile.exposed_launch_seconds = node.number_or("exposed_launch_seconds", 0.0, 0.0, 1.0);
    profile.overlap_slowdown = node.number_or("overlap_slowdown", 0.0, 1.0, kMostSlowdown);
    profile.clock = node.number_or("clock", 1.0, kLeastClock, 1.0);
    if (const Node* products = node.find("products"))
      profile.products = coefficients_from<GemmCoefficients>(*products, kProductFields);
    if (const Node* copies = node.find("copies"))
      profile.copies = coefficients_from<StreamCoefficients>(*copies, kCopyFields);
    if (const Node* attention = node.find("attention"))
      profile.attention = named(*attention, "attention", attention_kind_of);
    profile.recomputes = node.bool_or("recomputes", false);
    profile.loss_in_place = node.bool_or("loss_in_place", false);
    if (const Node* interconnect = node.find("interconnect")) profile.interconnect = interconnect_from(*interconnect);
  }
  for (const Node& entry : node.at("entries").sequence("entries")) profile.entries.push_back(entry_from(entry));
  if (const Node* meta = node.find("meta")) {
    profile.measured_at = meta->string_or("measured_at", "");
    if (const Node* measured_for = meta->find("measured_for")) {
      for (const Node& one : measured_for->sequence("measured_for"))
        profile.measured_for.push_back(one.as_string("measured_for"));
    }
  }
  return profile;
}

Profile analytic_profile(const std::string& gpu, DataType dtype) {
  const Device& device = device_of(gpu);
  Profile profile;
  profile.machine = fmt::format("{}, by its datasheet", device.name);
  profile.device = device.name;
  profile.dtype = dtype;
  profile.peak_flops = device.peak_flops(dtype);
  profile.memory_bytes = device.memory_bytes;
  return profile;
}

namespace {

/// Of a device's datasheet, which tells nothing where the profile has none.
constexpr std::string_view kOfDevices[] = {
    "launch_seconds", "exposed_launch_seconds", "overlap_slowdown", "clock",  "attention",
    "recomputes",     "loss_in_place",          "products",         "copies", "interconnect"};
constexpr std::string_view kOfAll[] = {"format",          "machine",
                                       "versions",        "threads",
                                       "corunning_ranks", "cores",
                                       "peak_flops",      "memory_bytes",
                                       "runtime_bytes",   "head_runtime_bytes",
                                       "pass_skew",       "reference_pass_seconds",
                                       "device",          "backend",
                                       "kernels",         "dtype",
                                       "entries",         "meta"};

/// What nobody would read. Profiles within plans may be of builds that wrote more.
void check_keys(const Node& node) {
  for (const auto& [key, value] : node.fields) {
    const bool of_device = std::ranges::find(kOfDevices, key) != std::end(kOfDevices);
    if (of_device && !node.find("device"))
      throw value.error(fmt::format("'{}' is of a GPU's datasheet, which the profile has none of", key),
                        "name its 'device', or leave the key out");
    if (!of_device && std::ranges::find(kOfAll, key) == std::end(kOfAll))
      throw value.error(fmt::format("unknown key '{}'", key),
                        fmt::format("valid keys: {}, {}", fmt::join(kOfAll, ", "), fmt::join(kOfDevices, ", ")));
  }
}

}  // namespace

Profile read_profile(const std::filesystem::path& path) {
  const Node node = read_json(path);
  Profile profile = profile_from(node);
  check_keys(node);
  return profile;
}

std::string to_json(const Profile& profile) {
  std::string text = "{\n";
  const auto field = [&](const char* key, const Json& value) {
    text += fmt::format("  \"{}\": {},\n", key, value.dump());
  };
  field("format", 1);
  field("machine", profile.machine);
  field("versions", profile.versions);
  field("threads", profile.threads);
  field("corunning_ranks", profile.corunning_ranks);
  if (profile.cores > 0) field("cores", profile.cores);
  field("peak_flops", profile.peak_flops);
  field("memory_bytes", profile.memory_bytes);
  if (profile.runtime_bytes > 0) field("runtime_bytes", profile.runtime_bytes);
  if (profile.head_runtime_bytes > 0) field("head_runtime_bytes", profile.head_runtime_bytes);
  if (profile.pass_skew != 1) field("pass_skew", profile.pass_skew);
  if (profile.reference_pass_seconds > 0) field("reference_pass_seconds", profile.reference_pass_seconds);
  if (!profile.device.empty()) field("device", profile.device);
  if (profile.backend != Profile().backend) field("backend", profile.backend);
  if (!profile.kernels.empty()) {
    Json kernels = Json::array();
    for (const KernelChoice& choice : profile.kernels) kernels.push_back(json_of(choice));
    field("kernels", kernels);
  }
  if (!profile.device.empty() || profile.dtype != Profile().dtype) field("dtype", name(profile.dtype));
  if (!profile.device.empty()) {
    field("launch_seconds", profile.launch_seconds);
    if (profile.exposed_launch_seconds > 0) field("exposed_launch_seconds", profile.exposed_launch_seconds);
    if (profile.overlap_slowdown > 0) field("overlap_slowdown", profile.overlap_slowdown);
    if (profile.clock != 1) field("clock", profile.clock);
    if (profile.attention != AttentionKind::flash) field("attention", name(profile.attention));
    if (profile.recomputes) field("recomputes", true);
    if (profile.loss_in_place) field("loss_in_place", true);
    if (profile.products) field("products", coefficients_json(*profile.products, kProductFields));
    if (profile.copies) field("copies", coefficients_json(*profile.copies, kCopyFields));
    if (profile.interconnect != Interconnect{}) field("interconnect", json_of(profile.interconnect));
  }
  text += "  \"entries\": [";
  for (std::size_t i = 0; i < profile.entries.size(); ++i) {
    text += (i == 0 ? "\n    " : ",\n    ") + entry_json(profile.entries[i]).dump();
  }
  text += "\n  ],\n";
  Json meta{{"measured_at", profile.measured_at}};
  if (!profile.measured_for.empty()) meta["measured_for"] = profile.measured_for;
  text += fmt::format("  \"meta\": {}\n", meta.dump());
  return text + "}\n";
}

}  // namespace braid::costmodel
