// plugins/logger/tensorboard/crc32c.hpp - CRC-32C (Castagnoli), the checksum of TFRecord files. Any thread.
#pragma once
#include <cstdint>
#include <string_view>

uint32_t crc32c(std::string_view bytes);
uint32_t crc32c_portable(std::string_view bytes);  // what crc32c does on a machine without the instruction
