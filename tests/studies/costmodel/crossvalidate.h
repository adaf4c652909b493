#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace braid::costmodel::studies {

/// Holds the analytic model against a table measured elsewhere: fits on part of it, predicts the rest and prints the
/// errors. Which table it is, its columns say. Throws Error that lists the tables known.
void crossvalidate(const std::filesystem::path& table);

/// Linear layers and kernels that move numbers: fits one backbone's layers, predicts the other's, by tensor-parallel
/// degree and tokens; then fits all layers, which gives the coefficients that are built in.
void crossvalidate_operators(const std::filesystem::path& csv);
/// Collectives: fits every other size of each link, predicts the others, by collective, ranks and size.
void crossvalidate_collectives(const std::filesystem::path& csv);

/// Times of whole layers and the most tokens that fit (LobRA's profiles): predicted from operators and items alone.
void crossvalidate_layers(const std::filesystem::path& csv);
void crossvalidate_capacities(const std::filesystem::path& csv);

/// One line of a table of errors: their number, median and 95th percentile; nothing where there is none.
void print_errors(const std::string& what, const std::vector<double>& errors);
void print_error_header();

}  // namespace braid::costmodel::studies
