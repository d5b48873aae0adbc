#include "plugin/note.hpp"

#include "support.hpp"

#include <elf.h>
#include <lhost/abi.h>
#include <sys/stat.h>

#include <cstring>
#include <random>

using namespace lhost;
using namespace lhost_test;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace {

std::string good() { return bytes_of(fixture("plain")); }

// The good plugin with one field of its headers changed.
template <class T, class F>
std::string changed(size_t offset, F change) {
  std::string bytes = good();
  T t;
  std::memcpy(&t, bytes.data() + offset, sizeof t);
  change(t);
  std::memcpy(bytes.data() + offset, &t, sizeof t);
  return bytes;
}
template <class F>
std::string with_header(F change) {
  return changed<Elf64_Ehdr>(0, change);
}
template <class F>
std::string with_segment(uint32_t type, F change) {
  const std::string bytes = good();
  Elf64_Ehdr h;
  std::memcpy(&h, bytes.data(), sizeof h);
  for (size_t i = 0; i < h.e_phnum; ++i) {
    const size_t at = h.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr s;
    std::memcpy(&s, bytes.data() + at, sizeof s);
    if (s.p_type == type) return changed<Elf64_Phdr>(at, change);
  }
  throw std::runtime_error("the fixture has no such segment");
}

std::string why(const std::string& bytes) {
  return reason([&] { parse_note(bytes); });
}
std::string why_file(const std::string& path) {
  return reason([&] { read_note(path); });
}
std::string refused(const std::string& name, const std::string& libtorch = "2.11.0") {
  return refusal(read_note(fixture(name)), libtorch);
}

}  // namespace

TEST(Note, TellsWhatThePluginIs) {
  const Note n = read_note(fixture("two_kinds"));
  EXPECT_EQ(n.name, "two_kinds");
  EXPECT_EQ(n.version, "2.1");
  EXPECT_EQ(n.license, "MIT");
  EXPECT_EQ(n.torch, "");
  EXPECT_EQ(n.abi_major, 1u);
  ASSERT_EQ(n.components.size(), 2u);
  EXPECT_EQ(n.components[0].kind, "callback");
  EXPECT_EQ(n.components[0].revision, "0.1");
  EXPECT_EQ(n.components[0].name, "two_kinds");
  EXPECT_EQ(n.components[1].kind, "logger");
  EXPECT_EQ(n.components[1].revision, "1");
  EXPECT_EQ(refusal(n, ""), "");
}

TEST(Note, ListsTheNeededLibraries) {
  EXPECT_THAT(read_note(fixture("uses_torch")).needed, ::testing::Contains("libtorch_cpu.so"));
}

TEST(Note, OfAFileThatCannotBeReadSaysWhy) {
  EXPECT_EQ(why_file("/nonexistent/x.so"), "cannot be read: No such file or directory");
  EXPECT_EQ(why_file("/tmp"), "not a regular file");
  TempDir dir;
  mkfifo((dir / "pipe.so").c_str(), 0600);
  EXPECT_EQ(why_file(dir / "pipe.so"), "not a regular file");  // and does not wait for a writer
}

TEST(Note, RefusesWhatIsNoSharedObjectForThisMachine) {
  EXPECT_EQ(why(""), "an empty file, not a plugin");
  EXPECT_EQ(why("#!/bin/sh\necho hello\n"), "not an ELF file");
  EXPECT_EQ(why(ELFMAG), "truncated: the header ends at byte 64 of 4");
  EXPECT_THAT(why(with_header([](Elf64_Ehdr& h) { h.e_ident[EI_CLASS] = ELFCLASS32; })),
              StartsWith("not a 64-bit"));
  EXPECT_THAT(why(with_header([](Elf64_Ehdr& h) { h.e_ident[EI_DATA] = ELFDATA2MSB; })),
              StartsWith("a big-endian"));
  EXPECT_THAT(why(with_header([](Elf64_Ehdr& h) { h.e_machine = EM_S390; })),
              StartsWith("built for another machine (ELF machine 22), this host runs on "));
  EXPECT_THAT(why(with_header([](Elf64_Ehdr& h) { h.e_type = ET_REL; })), StartsWith("an object file"));
  EXPECT_THAT(why(with_header([](Elf64_Ehdr& h) { h.e_type = ET_EXEC; })), StartsWith("not a shared object"));
  EXPECT_EQ(why_file("/proc/self/exe"), "an executable, expected a shared object");
}

TEST(Note, RefusesDamagedHeaders) {
  EXPECT_THAT(why(with_header([](Elf64_Ehdr& h) { h.e_phnum = 0; })),
              StartsWith("a damaged ELF file: 0 program"));
  EXPECT_THAT(why(with_header([](Elf64_Ehdr& h) { h.e_phentsize = 1; })),
              HasSubstr("program headers of 1 bytes"));
  EXPECT_THAT(why(with_header([](Elf64_Ehdr& h) { h.e_phoff = UINT64_MAX - 8; })),
              StartsWith("truncated: the program header table ends"));
  EXPECT_THAT(why(with_segment(PT_DYNAMIC, [](Elf64_Phdr& s) { s.p_filesz = UINT64_MAX; })),
              StartsWith("truncated: a segment ends at byte 18446744073709551615"));
  EXPECT_THAT(why(with_segment(PT_GNU_STACK, [](Elf64_Phdr& s) { s.p_flags |= PF_X; })),
              StartsWith("asks for an executable stack"));
  EXPECT_THAT(why(with_segment(PT_DYNAMIC, [](Elf64_Phdr& s) { s.p_type = PT_INTERP; })),
              StartsWith("an executable"));
}

TEST(Note, RefusesAFileCutAnywhereInsideItsSegments) {
  const std::string whole = good();
  Elf64_Ehdr h;
  std::memcpy(&h, whole.data(), sizeof h);
  uint64_t end = 0;
  for (size_t i = 0; i < h.e_phnum; ++i) {
    Elf64_Phdr s;
    std::memcpy(&s, whole.data() + h.e_phoff + i * sizeof s, sizeof s);
    if (s.p_type == PT_LOAD) end = std::max(end, s.p_offset + s.p_filesz);
  }
  for (size_t n = 4; n < end; n += 97) ASSERT_THAT(why(whole.substr(0, n)), StartsWith("truncated: "));
  EXPECT_EQ(why(whole.substr(0, end - 1)),
            "truncated: a segment ends at byte " + std::to_string(end) + " of " + std::to_string(end - 1));
  EXPECT_EQ(why(whole.substr(0, end)), "(nothing was thrown)");  // section headers are nobody's business
}

TEST(Note, RefusesASharedObjectWithoutANote) {
  EXPECT_THAT(why_file(fixture("no_note")), StartsWith("a shared object, but not an lhost plugin"));
}

TEST(Note, RefusesMalformedNotes) {
  EXPECT_EQ(why_file(fixture("small_note")), "malformed note: found 100 bytes, expected at least 752");
  EXPECT_EQ(why_file(fixture("unprintable_note")), "malformed note: the version holds unprintable bytes");
  EXPECT_EQ(why_file(fixture("noted_twice")),
            "malformed note: it names the component callback:noted_twice twice");
  EXPECT_EQ(why_file(fixture("bad_components")),
            "malformed note: found the component \"callback:bad_components\", expected a form like "
            "\"strategy/0.1:ddp\"");
}

TEST(Note, RefusesTextsThatDoNotEnd) {
  std::string bytes = good();
  const std::string components = "callback/0.1:plain";
  const size_t at = bytes.find(components);
  ASSERT_NE(at, bytes.npos);
  const auto note = [&](size_t offset_of_field) {
    return at - offsetof(lh_note_v1, components) + offset_of_field;
  };
  std::string all = bytes;
  std::fill_n(all.begin() + static_cast<ptrdiff_t>(note(offsetof(lh_note_v1, name))), 64, 'x');
  EXPECT_EQ(why(all), "malformed note: the name does not end inside its 64 bytes");
  all = bytes;
  all[note(offsetof(lh_note_v1, name))] = '\0';
  EXPECT_THAT(why(all), StartsWith("malformed note: the plugin's name is \"\""));
  all = bytes;
  all[at] = '\0';
  EXPECT_EQ(why(all), "malformed note: it names no component");
  all = bytes;
  all[note(offsetof(lh_note_v1, size))] = 1;
  EXPECT_THAT(why(all), StartsWith("malformed note: it says that it has "));
}

// Every byte of the headers and of the note, damaged at random: a Note or a Failure, nothing else.
TEST(Note, SurvivesAnyBytes) {
  const std::string whole = good();
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole;
    const size_t reach = round % 2 ? 1024 : whole.size();
    for (int i = 0; i < 4; ++i) bytes[random() % reach] = static_cast<char>(random());
    try {
      refusal(parse_note(bytes), "2.11.0");
    } catch (const Failure& f) {
      ASSERT_EQ(f.code, Exit::plugin);
    }
  }
}

TEST(Refusal, OfAnotherAbiMajorSaysWhichSideToChange) {
  EXPECT_EQ(refused("other_major"),
            "built for plugin ABI 2.x, this host speaks 1.1: use a newer lhost or an older plugin");
}

TEST(Refusal, OfAPluginNewerThanTheHost) {
  EXPECT_EQ(refused("newer_minor"),
            "needs plugin ABI 1.3, this host speaks 1.1: use a newer lhost or an older plugin");
}

TEST(Refusal, OfAnotherRevisionOfAKind) {
  EXPECT_EQ(refused("other_revision"),
            "callback:other_revision is built for callback/0.9, this host speaks callback/0.1 (a draft: both "
            "must be "
            "the same); build it against this host's headers");
  EXPECT_EQ(
      refused("other_frozen_revision"),
      "logger:other_frozen_revision is built for logger/2, this host speaks logger/1; build it against this "
      "host's headers");
}

TEST(Refusal, DoesNotTouchKindsTheHostDoesNotKnow) { EXPECT_EQ(refused("unknown_kind"), ""); }

TEST(Refusal, ComparesLibTorchByMajorAndMinor) {
  EXPECT_EQ(refused("other_torch"),
            "built for LibTorch 2.14.1, this host runs 2.11.0; build it against LibTorch 2.11");
  EXPECT_EQ(refused("uses_torch", "2.11.0"), "");  // built for 2.11.3: the patch may differ
  EXPECT_EQ(refused("uses_torch", ""),
            "needs LibTorch 2.11.3, and none was found; `lhost doctor` says where it was looked for");
  Note n = read_note(fixture("plain"));
  n.torch = "2.1.0";  // not a prefix of 2.11
  EXPECT_NE(refusal(n, "2.11.0"), "");
}

TEST(Refusal, OfANoteThatHidesLibTorch) {
  EXPECT_THAT(refused("hides_torch"),
              StartsWith("its note says that it uses no LibTorch, but it is linked to libtorch_cpu.so"));
}

TEST(Refusal, OfALibTorchWithOtherFileNames) {
  Note n = read_note(fixture("uses_torch"));
  n.needed = {"libc10.so", "libtorch_cpu.so.2.11"};
  EXPECT_THAT(refusal(n, "2.11.0"),
              StartsWith("linked to libtorch_cpu.so.2.11, a LibTorch with other file names"));
}
