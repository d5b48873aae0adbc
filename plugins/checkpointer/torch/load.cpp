#include "bytes.hpp"
#include "file.hpp"
#include "pickle_reader.hpp"
#include "walk.hpp"
#include "zip_reader.hpp"

#include <lhost/sdk/plugin.hpp>

namespace torch_file {
namespace {

constexpr std::string_view kSaveAgain = "; in Python: torch.save(torch.load(old), new)";

bool starts_with(std::string_view s, std::string_view start) { return s.substr(0, start.size()) == start; }

// Files that are no zip archive, by their first bytes.
void refuse_other_formats(std::string_view file) {
  constexpr std::string_view kLegacyMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  if (file.empty())
    throw lhost::Error(LH_DATA_LOSS, "the file is empty; expected a torch checkpoint (a zip archive)");
  if (starts_with(file, "PK")) return;
  const bool is_pickle =
      file[0] == '\x80' && starts_with(file.substr(std::min<size_t>(2, file.size())), kLegacyMagic);
  const bool is_tar = file.size() > 262 && file.substr(257, 5) == "ustar";
  if (is_pickle || is_tar)
    throw lhost::Error(LH_UNIMPLEMENTED,
                       "the file has PyTorch's format from before 1.6, expected the zip format of today" +
                           std::string(kSaveAgain));
  throw lhost::Error(LH_INVALID_ARGUMENT, "not a torch checkpoint: the file starts with \"" +
                                              printable(file.substr(0, 8)) +
                                              "\", expected a zip archive as torch.save writes it (\"PK\")");
}

std::string_view find_pickle(const ZipReader& zip) {
  if (zip.find("constants.pkl") || zip.has_folder("code/"))
    throw lhost::Error(
        LH_UNIMPLEMENTED,
        "a TorchScript archive (torch.jit.save, or torch::save in C++), expected a checkpoint as "
        "Python's torch.save writes it; in Python: torch.save(torch.jit.load(old).state_dict(), new)");
  if (const auto order = zip.find("byteorder"); order && *order != "little")
    throw lhost::Error(LH_UNIMPLEMENTED,
                       "the numbers of the file have byte order \"" + printable(*order) +
                           "\", expected \"little\"; save it again on a little-endian machine" +
                           std::string(kSaveAgain));
  const auto pickle = zip.find("data.pkl");
  if (!pickle)
    throw lhost::Error(LH_INVALID_ARGUMENT, "a zip archive, but not a torch checkpoint: it has no record " +
                                                printable(zip.full_name("data.pkl")));
  return *pickle;
}

}  // namespace

void load(std::string_view file, const lh_leaf_visitor& visitor) {
  refuse_other_formats(file);
  const ZipReader zip(file);
  const std::string_view pickle = find_pickle(zip);
  const Document document = read_pickle(pickle);
  // What a small file may take in any case: 4 MiB of text, 64 MiB of copies.
  const uint64_t text_budget = 64 * pickle.size() + (4 << 20), copy_budget = 16 * file.size() + (64 << 20);
  Walk(zip, text_budget, copy_budget).run(*document.root, nullptr);
  Walk(zip, text_budget, copy_budget).run(*document.root, &visitor);
}

}  // namespace torch_file
