#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace braid {

/// Throws Error when it cannot be read.
std::ifstream open_to_read(const std::filesystem::path& path);

/// The whole file as bytes. Throws Error when it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Throws Error when a file could not be written there, its folders made first: to ask before work whose result would
/// be lost. Makes nothing.
void check_writable(const std::filesystem::path& path);

/// Writes under a temporary name beside `path`, then renames, so that nothing half-written is ever seen at `path`; the
/// file is on the disk before it has its name, and its name when this returns, so that neither are they after a power
/// cut. Makes missing parent folders. Throws Error as check_writable does, Failure when writing fails.
void write_file(const std::filesystem::path& path, std::string_view content);
void write_file(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);

/// XXH3 of the file's bytes, 128 bits in hexadecimal. Throws Error when it cannot be read.
std::string hash_file(const std::filesystem::path& path);
/// XXH3 of `bytes`, 128 bits in hexadecimal.
std::string hash_bytes(std::string_view bytes);

}  // namespace braid
