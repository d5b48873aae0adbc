// zip_format.hpp - the constants of the zip format that the writer and the reader share (PKWARE APPNOTE 6.3).
#pragma once
#include <cstdint>

namespace torch_file {

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocatorSignature = 0x07064b50;

constexpr uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20;

constexpr uint16_t kZip64Extra = 0x0001;
constexpr uint32_t kNoNumber32 = 0xFFFFFFFF;  // "the number is in the zip64 part"
constexpr uint16_t kNoNumber16 = 0xFFFF;

}  // namespace torch_file
