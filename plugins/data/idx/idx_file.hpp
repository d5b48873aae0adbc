// plugins/data/idx/idx_file.hpp - one idx file (the MNIST format) of unsigned bytes, plain or gzip, read
// and checked as a whole. Every fault is an lhost::Error that names the file, what was found and what was
// expected.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

struct IdxFile {
  std::vector<int64_t> shape;  // samples first
  std::vector<uint8_t> values;
};

IdxFile read_idx(const std::string& path);
