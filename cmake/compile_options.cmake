# Flags of every target of ours, and none of the libraries'. These alone are for programs that run elsewhere, too.
add_library(braid_warnings INTERFACE)
target_include_directories(braid_warnings INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(braid_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra -Werror=all-warnings>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps in std::string's own code that are not there (GCC bug 105651).
  target_compile_options(braid_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

add_library(braid_options INTERFACE)
target_compile_options(braid_options INTERFACE -fno-math-errno)
# GCC 12 prefers 256-bit vectors on server processors that run 512-bit ones at full rate.
set(braid_vector_options -mprefer-vector-width=512)
# For some processors, AMD's among them, GCC makes multiply-adds that follow one another two instructions each, which
# round twice, and others of the same source one: rows would depend on how many there are.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(--param=avoid-fma-max-bits=0 BRAID_FMA_CHAINS)
if(BRAID_FMA_CHAINS)
  list(APPEND braid_vector_options $<$<COMPILE_LANGUAGE:CXX>:--param=avoid-fma-max-bits=0>)
endif()
if(BRAID_NATIVE)
  target_compile_options(braid_options INTERFACE -march=native ${braid_vector_options})
endif()
if(BRAID_SANITIZE)
  # Lines are all that a report names; variables in it, and more optimization, take half as long again to build. Dynamic
  # types, bounds of objects that are known and null are not checked, which took a sixth of it: what they would find
  # AddressSanitizer mostly does, and reads through null end the program anyway. What is not initialized, the release
  # build warns of: here GCC 12 takes its own intrinsics for that.
  target_compile_options(braid_options INTERFACE -fsanitize=address,undefined -fno-sanitize=null,vptr,object-size
    -fno-sanitize-recover=all -fno-omit-frame-pointer -Og -g1 -Wno-uninitialized -Wno-maybe-uninitialized)
  target_link_options(braid_options INTERFACE -fsanitize=address,undefined)
endif()
target_link_libraries(braid_options INTERFACE braid_warnings OpenMP::OpenMP_CXX)

# Joined, a target's files are compiled sixteen at a time, which takes half as long; a build without tells whether each
# file includes what it needs. So no two files of a folder may give different things one name.
function(braid_join_sources target)
  if(BRAID_JOIN)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  endif()
endfunction()
