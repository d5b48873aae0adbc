# lhost_add_plugin(<kind> <name> SOURCES <file>... [LIBRARIES <target>...])
#
# Builds <name>.so: hidden symbols but lh_plugin_v1, nothing left unresolved, no RPATH. In lhost's own tree it goes
# to lib/lhost/plugins/1/<kind>/ (and is installed there); elsewhere to the build folder. A model, and whatever names
# lhost::libtorch_cpu among its LIBRARIES, is compiled against LibTorch. The target is plugin-<kind>-<name>.
include(${CMAKE_CURRENT_LIST_DIR}/LhostLibTorch.cmake)

function(lhost_add_plugin kind name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES;LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "lhost_add_plugin(<kind> <name> SOURCES <file>... [LIBRARIES <target>...]): "
                        "${kind} ${name} has ${ARGN}")
  endif()
  if(kind STREQUAL "model")
    list(APPEND arg_LIBRARIES lhost::libtorch_cpu)
  endif()
  if("lhost::libtorch_cpu" IN_LIST arg_LIBRARIES)
    if(DEFINED LHOST_WITH_LIBTORCH AND NOT LHOST_WITH_LIBTORCH)
      return()
    endif()
    lhost_find_libtorch()
  endif()

  set(target plugin-${kind}-${name})
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE lhost::sdk ${arg_LIBRARIES})
  lhost_plugin_properties(${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
  if(COMMAND lhost_place_plugin)
    lhost_place_plugin(${target} ${kind} ${name})
  else()
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  endif()
endfunction()

# What makes a module a plugin, whatever its language and place.
function(lhost_plugin_properties target)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("CXX" IN_LIST languages)
    target_compile_features(${target} PRIVATE cxx_std_20)
  endif()
  if("C" IN_LIST languages)
    target_compile_features(${target} PRIVATE c_std_11)
  endif()
  set_target_properties(${target} PROPERTIES
    PREFIX "" SKIP_BUILD_RPATH ON INSTALL_RPATH "" POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
  endif()
  # The version script is needed: hidden visibility alone still exports weak libstdc++ instances.
  set(exports ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/exports.map)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${exports})
  target_link_options(${target} PRIVATE LINKER:--version-script=${exports} LINKER:-z,now)
  if(NOT LHOST_SANITIZE)  # a sanitizer's own symbols come from the executable
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
endfunction()
