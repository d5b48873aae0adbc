// describe_child.cpp - the child that describe_plugins starts in these tests: `lhost __describe FILE...`
// without lhost.
#include "plugin/describe.hpp"

int main(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "__describe") return 2;
  return lhost::describe_child_main({argv + 2, argv + argc});
}
