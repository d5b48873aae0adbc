# lhost_find_libtorch(): defines lhost::libtorch_cpu (libtorch_cpu.so, libc10.so and their headers) and
# LHOST_LIBTORCH_ROOT (the folder with lib/ and include/). Looks where the host looks at run time:
# $LHOST_LIBTORCH, an installation's lib/lhost/libtorch, the source tree's .deps.
# Own targets, because find_package(Torch) of a CUDA build wants a whole CUDA toolkit.

function(lhost_find_libtorch)
  if(TARGET lhost::libtorch_cpu)
    return()
  endif()
  set(wanted 2.11)
  set(here ${CMAKE_CURRENT_FUNCTION_LIST_DIR})  # <prefix>/lib/cmake/lhost or <source>/plugin-api/cmake
  set(places ${here}/../../lhost/libtorch ${here}/../../.deps/libtorch/torch)
  if(DEFINED ENV{LHOST_LIBTORCH})
    set(places $ENV{LHOST_LIBTORCH} $ENV{LHOST_LIBTORCH}/torch)  # a LibTorch folder, or Python's site-packages
  endif()
  foreach(place IN LISTS places)
    set(version_header ${place}/include/torch/headeronly/version.h)
    if(EXISTS ${version_header})
      file(REAL_PATH ${place} root)
      break()
    endif()
  endforeach()
  if(NOT root)
    list(JOIN places "\n  " places)
    message(FATAL_ERROR "LibTorch ${wanted} was not found. Looked for include/torch/headeronly/version.h in\n"
                        "  ${places}\nRun scripts/setup, or set LHOST_LIBTORCH to a LibTorch folder or a site-packages.")
  endif()
  file(STRINGS ${version_header} version REGEX "^ *\"[0-9]+\\.[0-9]+")
  string(REGEX MATCH "[0-9]+\\.[0-9]+" minor "${version}")
  if(NOT minor STREQUAL wanted)
    message(FATAL_ERROR "${root} is LibTorch ${minor}, but lhost is built for ${wanted}: LibTorch's C++ "
                        "interface differs between minor versions. Set LHOST_LIBTORCH to a ${wanted}.")
  endif()

  foreach(lib c10 torch_cpu)
    add_library(lhost::lib${lib} SHARED IMPORTED GLOBAL)
    set_target_properties(lhost::lib${lib} PROPERTIES IMPORTED_LOCATION ${root}/lib/lib${lib}.so)
  endforeach()
  set_target_properties(lhost::libtorch_cpu PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${root}/include;${root}/include/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES lhost::libc10)
  set(LHOST_LIBTORCH_ROOT ${root} CACHE INTERNAL "the LibTorch in use")
endfunction()
